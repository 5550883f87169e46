"""Area b, arguments and schema: inputs that broke other products. Each entry is a test by its number."""

import json
import re
from enum import Enum
from typing import Annotated, Literal

import pytest
from helpers import Lab, assert_paired, plan, read, tree_hash, wire
from hypothesis import given
from hypothesis import strategies as st
from pydantic import Field

from labkit import (
    P05,
    ScriptedModelClient,
    ToolCall,
    ToolDefinition,
    ToolDefinitionError,
    ToolInput,
    ToolRegistry,
    ToolResult,
    UserMessage,
    build_agent,
    call,
    reply,
    say,
)


class Nothing(ToolInput):
    """No arguments."""


class Optional(ToolInput):
    """Arguments that may all be left out."""

    loud: bool = False


def recorder(name, model):
    """A tool that keeps what its handler saw."""
    seen = []
    return ToolDefinition(name, "Keeps.", model, "read", lambda given: seen.append(given) or ToolResult("kept")), seen


def yes(ask):
    """An approver who says yes to everything."""
    return "allow"


# ---- D-b1: arguments that are "" or already a dict ----


def test_d_b1_empty_arguments_and_a_dict(folder):
    """No arguments are {}, for a tool that needs some an ordinary fault; a dict is as good as its text."""
    ping, seen = recorder("ping", Nothing)
    calls = [
        ToolCall("c1", "ping", ""),
        ToolCall("c2", "read_file", ""),
        ToolCall("c3", "read_file", {"path": "a.txt"}),
    ]
    lab = Lab(folder, [reply(calls=calls), say("done")], tools=[ping])
    assert seen == [Nothing()]
    assert [one.result.error for one in lab.settled] == [None, "invalid_arguments", None]
    assert "path: is required" in lab.settled[1].result.content
    assert lab.settled[2].result.content == "hello\n"
    sent = [one["function"]["arguments"] for one in wire(lab.model.requests[1])[-4]["tool_calls"]]
    assert [type(one) for one in sent] == [str, str, str]
    assert [json.loads(one) for one in sent] == [{}, {}, {"path": "a.txt"}]


@pytest.mark.parametrize("absent", [None, "", " ", "\n", "\t \r\n", {}, "{}", "{ }"])
@pytest.mark.parametrize("model", [Nothing, Optional])
def test_d_b1_every_way_to_say_nothing_runs_a_tool_that_needs_nothing(folder, absent, model):
    """Absent, blank and empty arguments run a tool without required fields."""
    ping, seen = recorder("ping", model)
    lab = Lab(folder, [reply(calls=[ToolCall("c1", "ping", absent)]), say("done")], tools=[ping])
    assert lab.settled[0].result == ToolResult("kept")
    assert seen == [model()]


@pytest.mark.parametrize("absent", [None, "", " \n", {}])
@pytest.mark.parametrize(
    ("tool", "fault"),
    [
        ("read_file", "path: is required"),
        ("write_file", "path: is required; content: is required"),
        ("edit_file", "path: is required; old: is required; new: is required"),
        ("glob", "pattern: is required"),
        ("shell", "command: is required"),
        ("todo_write", "todos: is required"),
    ],
)
def test_d_b1_a_tool_that_needs_something_names_all_it_misses(folder, absent, tool, fault):
    """Absent arguments are no JSON error: each required field is named at once."""
    lab = Lab(folder, [reply(calls=[ToolCall("c1", tool, absent)]), say("done")], approver=yes)
    assert lab.settled[0].result.content == f"Error [invalid_arguments]: {tool} was not run. {fault}."


# ---- D-b2: text that is not JSON, or that blows a parser up ----

NO_JSON = {
    "NaN": '{"command":"touch out.txt","timeout":NaN}',
    "infinite": '{"command":"touch out.txt","timeout":1e400}',
    "Infinity": '{"command":"touch out.txt","timeout":-Infinity}',
    "deep objects": '{"path":' * 5_000,
    "deep and closed": '{"path":' * 5_000 + "1" + "}" * 5_000,
    "deep lists": '{"path":' + "[" * 100_000 + "]" * 100_000 + "}",
    "closing comma": '{"path":"a.txt",}',
    "single quotes": "{'path': 'a.txt'}",
    "comment": '{"path":"a.txt"} // the file',
    "fence": '```json\n{"path":"a.txt"}\n```',
    "two objects": '{"path":"a.txt"}{"path":"b.txt"}',
    "half": '{"path":"a.t',
    "huge number": '{"command":"touch out.txt","timeout":' + "9" * 5_000 + "}",
    "long number": '{"command":"touch out.txt","timeout":' + "9" * 4_000 + "}",
    "python": '{"path": None}',
    "control character": '{"path":"a\n.txt"}',
}


def test_d_b2_bad_text_never_leaves_the_loop_and_good_text_is_not_mended(folder):
    """Each bad text is a refusal and the run goes on; commas and brackets inside a string stay as they are."""
    kept = '{"path":"b.txt","content":"keep ,] and , } as they are"}'
    script = [call("shell", text) if '"command"' in text else call("read_file", text) for text in NO_JSON.values()]
    lab = Lab(folder, [*script, call("write_file", kept), say("done")], approver=yes, max_rounds=99)
    assert lab.result.text == "done"
    assert all(one.result.error in ("invalid_json", "invalid_arguments") for one in lab.settled[:-1])
    assert (folder / "b.txt").read_bytes() == b"keep ,] and , } as they are"
    assert not (folder / "out.txt").exists()
    assert [one.call.arguments for one in lab.settled] == [*NO_JSON.values(), kept]


@pytest.mark.parametrize("name", NO_JSON)
@pytest.mark.parametrize("tool", ["read_file", "write_file", "edit_file", "glob", "shell", "todo_write"])
def test_d_b2_no_tool_takes_it(folder, tool, name):
    """Every tool refuses each of these texts before any hook, rule or person sees it, and nothing is done."""
    before = tree_hash(folder)
    lab = Lab(folder, [call(tool, NO_JSON[name]), say("done")], approver=yes)
    assert lab.settled[0].result.error in ("invalid_json", "invalid_arguments")
    assert lab.result.audit == ()
    assert tree_hash(folder) == before


@given(st.text(st.sampled_from(",]}[{:\"' \n\\"), max_size=20))
def test_d_b2_no_repair_changes_a_text_inside_a_string(folder, content):
    """What looks like broken JSON inside a string is written to the file as it is."""
    lab = Lab(folder, [call("write_file", path="b.txt", content=content), say("done")], approver=yes)
    assert lab.settled[0].result.error is None
    assert (folder / "b.txt").read_bytes() == content.encode()


# ---- D-b3: a misspelt or extra key ----


def test_d_b3_a_misspelt_key_is_named_with_the_known_ones(folder):
    """Neither the shell's nor the todo list's unknown key is dropped in silence."""
    item = {"content": "write", "status": "pending", "activeForm": "Writing"}
    lab = Lab(
        folder,
        [
            [call("shell", '{"command":"touch out.txt","TimeoutSeconds":"1200"}'), call("todo_write", todos=[item])],
            say("done"),
        ],
        approver=yes,
    )
    assert [one.result.error for one in lab.settled] == ["invalid_arguments"] * 2
    shell, todo = (one.result.content for one in lab.settled)
    assert "TimeoutSeconds: is not a known field; the fields are: command, timeout" in shell
    assert "todos[0].activeForm: is not a known field; the fields are: content, status" in todo
    assert not (folder / "out.txt").exists()
    assert lab.agent.todos == ()


GOOD = {
    "read_file": {"path": "a.txt"},
    "write_file": {"path": "b.txt", "content": "x"},
    "edit_file": {"path": "a.txt", "old": "hello", "new": "bye"},
    "glob": {"pattern": "*"},
    "shell": {"command": "touch out.txt", "timeout": 5},
    "todo_write": {"todos": [{"content": "a", "status": "pending"}]},
}


@pytest.mark.parametrize("tool", GOOD)
@pytest.mark.parametrize("extra", ["Path", "timeout_s", "description", "self", "__class__", "model_config", "日本", ""])
def test_d_b3_no_tool_drops_a_key(folder, tool, extra):
    """A right call with one key too many is refused by every tool, and names that key and the fields."""
    before = tree_hash(folder)
    lab = Lab(folder, [call(tool, json.dumps({**GOOD[tool], extra: "x"})), say("done")], approver=yes)
    assert lab.settled[0].result.error == "invalid_arguments"
    assert (extra or "['']") in lab.settled[0].result.content
    for field in GOOD[tool]:
        assert field in lab.settled[0].result.content
    assert tree_hash(folder) == before


@pytest.mark.parametrize("tool", GOOD)
def test_d_b3_control_the_same_call_without_the_key_runs(folder, tool):
    """The control: without the extra key each of these calls passes `prepare`."""
    lab = Lab(folder, [call(tool, json.dumps(GOOD[tool])), say("done")])
    assert lab.settled[0].result.error in (None, "permission_denied")


def walk(node):
    """Each object of a JSON value."""
    if isinstance(node, dict):
        yield node
        node = list(node.values())
    for part in node if isinstance(node, list) else ():
        yield from walk(part)


def sent_schemas(folder, *more):
    """The parameters of every tool as a request sends them."""
    model = ScriptedModelClient([say("done")])
    build_agent(P05, model, workspace=folder, tools=more).run("go")
    return [one["function"]["parameters"] for one in model.requests[0].to_openai()["tools"]]


def test_d_b3_each_sent_object_is_closed(folder):
    """Schema and validator agree: every object says additionalProperties false, nested ones too."""
    objects = [node for schema in sent_schemas(folder) for node in walk(schema) if node.get("type") == "object"]
    assert len(objects) == 7  # six tools and the todo item
    assert all(node["additionalProperties"] is False for node in objects)


# ---- D-b4: a lone surrogate ----


def test_d_b4_a_lone_surrogate_poisons_nothing(folder):
    """In arguments it is refused and the file stays; in a prompt U+FFFD stands in its place; all can be sent."""
    (folder / "b.txt").write_bytes(b"old")
    script = [call("write_file", '{"path":"b.txt","content":"new \\ud800"}'), say("done")]
    lab = Lab(folder, script, prompt="paste \udcb0 here", approver=yes)
    assert lab.settled[0].result.error == "invalid_json"
    assert (folder / "b.txt").read_bytes() == b"old"
    assert lab.agent.history[0] == UserMessage("paste \ufffd here")
    assert lab.result.text == "done"


LONE = ["\\ud800", "\\udfff", "\\uDBFF", "a\\ud800b", "\\udc00\\ud800", "\\ud800\\ud800"]


@pytest.mark.parametrize("lone", LONE)
@pytest.mark.parametrize("tool", GOOD)
def test_d_b4_an_escaped_surrogate_is_refused_wherever_it_stands(folder, tool, lone):
    """As a value, inside a list or as a key, a lone surrogate's escape is refused by every tool; nothing changes."""
    before = tree_hash(folder)
    good = json.dumps(GOOD[tool])
    name, value = next((name, value) for name, value in GOOD[tool].items())
    texts = [
        good[:-1] + f',"{lone}":"x"}}',
        json.dumps({**GOOD[tool], name: "HERE"}).replace("HERE", lone),
        good.replace('"a"', f'"{lone}"') if '"a"' in good else good.replace(json.dumps(value), f'"{lone}"'),
    ]
    lab = Lab(folder, [[call(tool, text) for text in texts], say("done")], approver=yes)
    assert [one.result.error for one in lab.settled] == ["invalid_json"] * len(texts)
    assert tree_hash(folder) == before
    assert lab.agent.todos == ()


@given(st.text(st.characters(categories=["Cs", "Ll"]), min_size=1, max_size=5))
def test_d_b4_a_raw_surrogate_becomes_ufffd_everywhere(folder, text):
    """In prompt, reply, arguments, ids and tool names a raw surrogate is stored and sent as U+FFFD."""
    script = [
        reply(text=text, calls=[ToolCall(text, text, text), plan(text)]),
        reply(text=text, refusal=text),
    ]
    lab = Lab(folder, script, prompt=text)
    clean = re.sub("[\ud800-\udfff]", "\ufffd", text)
    assert lab.agent.history[0].content == clean
    assert lab.settled[0].call.arguments == clean
    assert lab.result.text == clean


@pytest.mark.parametrize("pair", ["\\ud83d\\ude80", "🚀"])
def test_d_b4_control_a_pair_is_a_character(folder, pair):
    """The control: two surrogates that belong together are one character and are taken."""
    lab = Lab(folder, [call("write_file", f'{{"path":"b.txt","content":"{pair}"}}'), say("done")], approver=yes)
    assert lab.settled[0].result.error is None
    assert (folder / "b.txt").read_bytes() == "🚀".encode()


# ---- D-b5: $ref beside a description ----


class Mood(Enum):
    """Words by name."""

    glad = "glad"
    sad = "sad"


class Part(ToolInput):
    """A nested model."""

    text: str
    mood: Annotated[Mood, Field(description="How it sounds.")]


class Whole(ToolInput):
    """Nested in each way there is, with a description beside each."""

    one: Annotated[Part, Field(description="The one.")]
    maybe: Annotated[Part | None, Field(description="Perhaps.")]
    many: Annotated[tuple[Part, ...], Field(description="All.", max_length=3)]
    listed: Annotated[list[list[Part]], Field(description="Lists of lists.")]
    mood: Annotated[Mood, Field(description="How it sounds.")]
    kind: Annotated[Literal["a", "b"], Field(description="Which.")]


def test_d_b5_no_schema_holds_a_reference(folder):
    """Root object without alternatives at the top, no $ref anywhere, descriptions kept, all fit for strict mode."""
    whole = ToolDefinition("whole", "All.", Whole, "read", lambda given: ToolResult("fine"))
    for schema in sent_schemas(folder, whole):
        assert schema["type"] == "object"
        assert not {"anyOf", "oneOf", "allOf", "enum", "not"} & schema.keys()
        assert not any({"$ref", "$defs"} & node.keys() for node in walk(schema))
    properties = whole.parameters["properties"]
    assert [part["description"] for part in properties.values()] == [
        "The one.",
        "Perhaps.",
        "All.",
        "Lists of lists.",
        "How it sounds.",
        "Which.",
    ]
    part = properties["many"]["items"]
    assert part["properties"]["mood"]["enum"] == ["glad", "sad"]
    assert part["properties"]["mood"]["description"] == "How it sounds."
    inner = properties["listed"]["items"]["items"]
    assert inner["additionalProperties"] is False
    assert whole.to_openai(strict=True)["function"]["strict"] is True


def test_d_b5_what_is_shown_is_what_is_enforced():
    """A value that the shown schema allows passes, with nested models, enums and null."""
    seen = []
    whole = ToolDefinition("whole", "All.", Whole, "read", lambda given: seen.append(given) or ToolResult("fine"))
    part = {"text": "x", "mood": "glad"}
    sent = {"one": part, "maybe": None, "many": [part], "listed": [[part], []], "mood": "sad", "kind": "b"}
    registry = ToolRegistry((whole,))
    registry.invoke(registry.prepare(ToolCall("c1", "whole", json.dumps(sent))))
    assert seen[0].listed[0][0].mood is Mood.glad
    assert seen[0].maybe is None
    refused = registry.prepare(ToolCall("c1", "whole", json.dumps({**sent, "one": {**part, "mood": "odd"}})))
    assert refused.content.endswith("one.mood: must be one of 'glad', 'sad'.")


# ---- D-b6: a second tool with the same name ----


def test_d_b6_a_second_tool_with_the_same_name_is_refused(folder):
    """ValueError names the tool, the first one stays and runs; on purpose it can be replaced, as a re-run cell does."""
    first = ToolDefinition("read_file", "A.", Nothing, "read", lambda given: ToolResult("A"))
    second = ToolDefinition("read_file", "B.", Nothing, "read", lambda given: ToolResult("B"))
    registry = ToolRegistry()
    registry.register(first)
    with pytest.raises(ValueError, match="'read_file' is registered already") as caught:
        registry.register(second)
    assert isinstance(caught.value, ToolDefinitionError)
    assert registry.invoke(registry.prepare(ToolCall("c1", "read_file"))) == ToolResult("A")
    for _ in range(2):
        registry.register(second, replace=True)
    assert registry.tools == (second,)
    assert registry.invoke(registry.prepare(ToolCall("c1", "read_file"))) == ToolResult("B")


@pytest.mark.parametrize("name", ["read_file", "write_file", "edit_file", "glob", "shell", "todo_write"])
def test_d_b6_no_built_in_tool_can_be_shadowed(folder, name):
    """A tool of one's own with a built-in name is refused when the agent is built, as are two of one name."""
    mine = ToolDefinition(name, "Mine.", Nothing, "read", lambda given: ToolResult("mine"))
    with pytest.raises(ValueError, match=f"'{name}' is registered already"):
        build_agent(P05, ScriptedModelClient([]), workspace=folder, tools=[mine])
    other = ToolDefinition("mine", "Mine.", Nothing, "read", lambda given: ToolResult("mine"))
    with pytest.raises(ValueError, match="'mine' is registered already"):
        build_agent(P05, ScriptedModelClient([]), workspace=folder, tools=[other, other])


def test_d_b6_a_cell_that_builds_its_own_agent_can_run_twice(folder):
    """Building the agent in the cell gives a fresh registry each time."""
    for _ in range(2):
        mine, seen = recorder("mine", Nothing)
        lab = Lab(folder, [call("mine"), read(), say("done")], tools=[mine])
        assert seen == [Nothing()]
        assert_paired([message.to_openai() for message in lab.agent.history])
