"""Hostile input in bulk: 10,000 argument texts, the same on every run, over every tool, with nobody to say yes.

Whatever a model sends: no exception leaves the loop, each call has one result, and list and files stay as they were.
"""

import json
import os
import random
from collections import Counter

import pytest
from helpers import assert_paired, tree_hash, wire

from labkit import P05, ScriptedModelClient, ToolCall, build_agent, call, reply, say

TEXTS = 10_000
CALLS = 50  # to a message
FIELDS = {
    "read_file": ["path"],
    "write_file": ["path", "content"],
    "edit_file": ["path", "old", "new"],
    "glob": ["pattern"],
    "shell": ["command", "timeout"],
    "todo_write": ["todos"],
}
TOOLS = list(FIELDS)
STRINGS = [
    "", " ", "a.txt", "b.txt", "sub", "sub/c.txt", "out", "out/secret.txt", "pipe", "../beside/secret.txt",
    "/etc/passwd", "~", "~/x", ".", "..", "a\0b", "C:\\x", "a.txt/", "x" * 300, "x" * 5_000, "hello", "日本", "\u200b",
    "\ufeff", "*", "**", "**/*", "[", "[!", "{a,b}", "**/**/**", "touch made; touch ../made", "$(touch made)",
    "rm -rf .", "pending",
]  # fmt: skip
NUMBERS = ["0", "-0", "1", "-1", "1e5", "1e400", "-1e999", "1.0", "5.5", "NaN", "Infinity", "-Infinity", "9" * 25]
NUMBERS += ["9" * 4_299, "9" * 4_301, "9" * 20_000, "1e-400", "0." + "1" * 5_000, "01", "+1", "0x10", "1_000", "١"]
# subtle: two faults each, so that a text damaged in one place is still refused
PLANS = [
    '{"todos":[{"content":" ","status":"failed","id":1}],"merge":true}',
    '{"todos":[{"content":"a","status":"pending","b":1}],"c":[]}',
]


def string(rng):
    """A JSON string, some with lone surrogates, escapes and control characters."""
    kind = rng.random()
    if kind < 0.88:
        return json.dumps(rng.choice(STRINGS), ensure_ascii=rng.random() < 0.5)
    if kind < 0.94:
        lone = [r"\ud800", r"\udfff", "\ud800", r"\ud83d\ude80", r"\u0000", r"\x", "\t", "\\"]
        return f'"{"".join(rng.choices(lone, k=rng.randint(1, 3)))}"'
    return json.dumps(json.dumps({rng.choice(STRINGS): [rng.choice(STRINGS)]}))


def value(rng, depth=0):
    """A JSON value of any shape, or nearly."""
    kind = rng.random()
    if kind < 0.6 or depth > 3:
        return string(rng)
    if kind < 0.7:
        return rng.choice(NUMBERS)
    if kind < 0.76:
        return rng.choice(["null", "true", "false", "null", "true", "None"])
    if kind < 0.88:
        many = rng.choice([1, 2, 3, 60])
        return f"[{','.join(value(rng, depth + 1 + many // 60 * 3) for _ in range(many))}]"
    keys = rng.choices(["content", "status", "path", "", "__class__", "$ref", "x" * 200], k=rng.randint(0, 3))
    return "{" + ",".join(f"{json.dumps(key)}:{value(rng, depth + 1)}" for key in keys) + "}"


def shaped(rng, tool):
    """An object that is nearly right: the tool's own fields, some left out, doubled, or with company."""
    keys = [key for key in FIELDS[tool] if rng.random() < 0.9]
    if rng.random() < 0.2:
        keys += rng.choices([*FIELDS[tool], "path", "more", "timeout"], k=1)
    return "{" + ",".join(f"{json.dumps(key)}:{value(rng)}" for key in keys) + "}"


def noise(rng, tool):
    """Random bytes as text."""
    data = rng.randbytes(rng.choice([1, 3, 20, 200]))
    return data.decode("utf-8", rng.choice(["replace", "surrogateescape", "backslashreplace"]))


def deep(rng, tool):
    """Nesting, closed or not, beside or inside a field."""
    levels = rng.choice([3, 50, 190, 210, 1_000, 3_000] * 10 + [100_000])
    opens, closes = rng.choice([("[", "]"), ('{"a":', "}"), ('[{"b":', "}]"), ('{"todos":[', "]}")])
    middle = rng.choice(["1", '"a"', "NaN", "", string(rng)])
    text = opens * levels + middle + closes * rng.choice([levels, levels - 1, 0])
    return text if rng.random() < 0.3 else f'{{"{rng.choice(FIELDS[tool])}":{text}}}'


def damaged(rng, tool):
    """A good text cut off, or with one character lost, doubled or exchanged."""
    good = {"path": "a.txt", "content": "x", "old": "hello", "new": "bye", "pattern": "*", "command": "touch made"}
    text = json.dumps({key: good.get(key, 5) for key in FIELDS[tool]})
    text = rng.choice(PLANS) if tool == "todo_write" else text
    at = rng.randrange(len(text))
    head, char, tail = text[:at], text[at], text[at + 1 :]
    other = chr(rng.randrange(0x300))
    return rng.choice([head, tail, head + tail, head + char * 2 + tail, head + other + tail, text * 2, f"```{text}```"])


def whole(rng, tool):
    """No object at all, a number, a text of a text."""
    return rng.choice(
        [value(rng), rng.choice(NUMBERS), json.dumps(shaped(rng, tool)), "null", "[]", "", " ", "\ufeff{}"]
    )


KINDS = [noise, deep, shaped, shaped, damaged, whole]


def hostile_calls(count):
    """So many calls, the same on each run: each tool and each kind of text in turn."""
    rng = random.Random("hostile")
    for number in range(count):
        tool = TOOLS[number % len(TOOLS)]
        text = KINDS[number // len(TOOLS) % len(KINDS)](rng, tool)
        yield ToolCall(rng.choice(["", "same", f"c{number}"]), tool, text)


@pytest.fixture
def place(folder):
    """A workspace with a folder, a link that leaves it and a pipe; beside it a folder that nobody may touch."""
    beside = folder.parent / "beside"
    for path, text in ((beside / "secret.txt", "secret"), (folder / "sub" / "c.txt", "c"), (folder / "b.txt", "b")):
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, encoding="utf-8")
    if os.name != "nt":
        (folder / "out").symlink_to(beside)
        os.mkfifo(folder / "pipe")
    return folder


def test_the_texts_are_the_same_on_every_run_and_of_every_kind():
    """The generator is seeded, and gives broken JSON, other shapes and fitting objects for every tool."""
    first = list(hostile_calls(600))
    assert first == list(hostile_calls(600))
    assert Counter(one.name for one in first) == dict.fromkeys(TOOLS, 100)


def test_ten_thousand_hostile_texts_change_nothing(place):
    """No exception leaves the loop, each call has one result, and snapshot and files are as before."""
    sent = list(hostile_calls(TEXTS))
    messages = [reply(calls=sent[at : at + CALLS]) for at in range(0, TEXTS, CALLS)]
    plan = call("todo_write", todos=[{"content": "ship", "status": "in_progress"}])
    model = ScriptedModelClient([plan, say("ready"), *messages, say("done")])
    agent = build_agent(P05, model, workspace=place, max_rounds=len(messages) + 1)
    agent.run("plan")
    snapshot, files = agent.todos, tree_hash(place.parent)
    assert len(snapshot) == 1

    result = agent.run("go")

    assert (result.text, result.stop_reason) == ("done", "completed")
    settled = [one for this in result.rounds for one in this.settled]
    assert [one.call.name for one in settled] == [one.name for one in sent]
    assert agent.todos is snapshot
    assert tree_hash(place.parent) == files
    assert_paired(wire(model.requests[-1]))
    assert_paired([message.to_openai() for message in agent.history])

    codes = {name: Counter(one.result.error for one in settled if one.call.name == name) for name in TOOLS}
    known = {None, "invalid_json", "invalid_arguments", "permission_denied", "tool_execution_error"}
    assert known >= {code for counts in codes.values() for code in counts}
    for name in ("write_file", "edit_file", "shell"):  # what changes things was asked about, and nobody said yes
        assert codes[name][None] == codes[name]["tool_execution_error"] == 0
        assert codes[name]["permission_denied"] > 10
    assert codes["todo_write"].keys() == {"invalid_json", "invalid_arguments"}
    for name in TOOLS:  # the texts reach as far as they can
        assert codes[name]["invalid_json"] > 100
        assert codes[name]["invalid_arguments"] > 100
    assert codes["read_file"][None] > 10
    assert codes["glob"][None] > 10
    assert max(len(one.result.content) for one in settled) < 20_000
    assert "secret" not in {one.result.content for one in settled}
