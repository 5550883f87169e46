"""Area a, the todo tool: inputs that broke other products. Each entry is a test by its number."""

import json
import os
import subprocess
import sys
from itertools import pairwise

import pytest
from helpers import REMINDER, Lab, assert_paired, plan, read, wire
from hypothesis import given
from hypothesis import strategies as st

from labkit import P05, ScriptedModelClient, ToolCall, build_agent, call, reply, say

GOOD_1 = '{"todos":[{"content":"write tests","status":"pending"}]}'
GOOD_2 = '{"todos":[{"content":"write tests","status":"completed"},{"content":"ship","status":"in_progress"}]}'

# ---- D-a1: the reminder and the pairing of calls and results ----

SHAPES = {
    "one call": read(),
    "three calls": [read(), read(), read()],
    "a call and text": reply(text="let me see", calls=[read()]),
    "unknown tool": call("nope"),
    "broken JSON": call("read_file", '{"path":'),
    "bad arguments": call("read_file", '{"file":"a.txt"}'),
    "denied": call("shell", command="exit"),
    "cut off": reply(calls=[read()], finish_reason="length"),
    "no ids": reply(calls=[ToolCall("", "read_file", '{"path":"a.txt"}')] * 2),
    "one id twice": reply(calls=[read(id="same"), read(id="same")]),
    "the same id each round": read(id="again"),
}


def check_fourth_request(lab):
    """Four requests; the last holds the one reminder, at its end, behind all of request 3 unchanged."""
    assert len(lab.model.requests) == 4
    assert lab.reminders == [0, 0, 0, 1]
    third, fourth = wire(lab.model.requests[2]), wire(lab.model.requests[3])
    assert fourth[-1]["content"] == REMINDER
    assert fourth[-2]["role"] == "tool"
    assert fourth[: len(third)] == third
    assert (lab.result.text, lab.result.stop_reason) == ("done", "completed")


def test_d_a1_the_reminder_leaves_calls_and_results_paired_on_the_fourth_request(folder):
    """Three rounds of read_file: request 4 is paired and ends with the one reminder."""
    check_fourth_request(Lab(folder, [read(id="c1"), read(id="c2"), read(id="c3"), say("done")]))


@given(st.lists(st.sampled_from(list(SHAPES)), min_size=3, max_size=3))
def test_d_a1_whatever_the_three_rounds_were(folder, shapes):
    """Rounds of any shape, also such whose calls all failed: the fourth request is paired and reminded."""
    check_fourth_request(Lab(folder, [*(SHAPES[shape] for shape in shapes), say("done")]))


def test_d_a1_the_reminder_stays_out_of_the_second_run_too(folder):
    """A run of several prompts: earlier messages are never rewritten, and no reminder is among them."""
    model = ScriptedModelClient([read(), read(), say("one"), read(), read(), say("two")])
    agent = build_agent(P05, model, workspace=folder)
    agent.run("go")
    agent.run("again")
    sent = [wire(request) for request in model.requests]
    bare = [[message for message in messages if message["content"] != REMINDER] for messages in sent]
    for earlier, later in pairwise(bare):
        assert later[: len(earlier)] == earlier
    assert [len(messages) - len(other) for messages, other in zip(sent, bare, strict=True)] == [0, 0, 0, 0, 1, 0]
    for messages in sent:
        assert_paired(messages)


# ---- D-a2: a list sent as text, a status that does not exist ----


def stored_after(folder, *argument_texts):
    """How many items are stored after each round, and each call's result."""
    lab = Lab(folder, [*(call("todo_write", text) for text in argument_texts), say("done")])
    assert lab.result.text == "done"
    return [len(one.after.todos) for one in lab.result.rounds[:-1]], [one.result for one in lab.settled]


def test_d_a2_a_list_sent_as_text_and_a_status_that_does_not_exist(folder):
    """Both are refused with words that say what to send, the list stays, and a right call then succeeds."""
    counts, results = stored_after(
        folder,
        GOOD_1,
        '{"todos":"[{\\"content\\":\\"write tests\\",\\"status\\":\\"pending\\"}]"}',
        '{"todos":[{"content":"write tests","status":"failed"}]}',
        GOOD_2,
    )
    assert counts == [1, 1, 1, 2]
    assert [one.error for one in results] == [None, "invalid_arguments", "invalid_arguments", None]
    assert "todos: must be a list, not text" in results[1].content
    assert "todos[0].status: must be one of 'pending', 'in_progress', 'completed'" in results[2].content


TEXTS = ["", " ", "[]", "[{}]", GOOD_1, "- [ ] write tests", "['a']", json.dumps(json.dumps([])), "null", "x" * 100_000]


@pytest.mark.parametrize("text", TEXTS, ids=lambda text: repr(text[:20]))
def test_d_a2_no_text_is_a_list(folder, text):
    """Whatever text stands in the place of the list, it is refused as text and not walked letter by letter."""
    counts, results = stored_after(folder, GOOD_1, json.dumps({"todos": text}), GOOD_2)
    assert counts == [1, 1, 2]
    assert results[1].content.endswith(
        "todos: must be a list, not text: send the list itself, not JSON inside a string."
    )


@pytest.mark.parametrize("value", [None, 5, True, {}, {"0": {"content": "a", "status": "pending"}}, 1.5])
def test_d_a2_nothing_else_is_a_list_either(folder, value):
    """A value that is no list is refused with the same code, and the list stays."""
    counts, results = stored_after(folder, GOOD_1, json.dumps({"todos": value}))
    assert counts == [1, 1]
    assert results[1].content.endswith("todos: must be a list.")


@pytest.mark.parametrize(
    "status",
    ["failed", "PENDING", "Pending", " pending", "pending ", "in-progress", "done", "", "cancelled", 0, True, None, []],
)
def test_d_a2_no_status_is_made_into_another(folder, status):
    """A status that is not one of the three, be it nearly one, is refused with its place and the three."""
    item = [{"content": "a", "status": "pending"}, {"content": "b", "status": status}]
    counts, results = stored_after(folder, GOOD_1, json.dumps({"todos": item}), GOOD_2)
    assert counts == [1, 1, 2]
    assert "todos[1].status: must be one of 'pending', 'in_progress', 'completed'" in results[1].content
    assert "todos[0]" not in results[1].content


# ---- D-a3: two calls in one message ----


def test_d_a3_two_todo_write_calls_in_one_message(folder):
    """They run in order, each shows its own list, and the second stands alone."""
    first = call("todo_write", id="t1", todos=[{"content": c, "status": "completed"} for c in "ab"])
    second = call("todo_write", id="t2", todos=[{"content": c, "status": "pending"} for c in "xyz"])
    lab = Lab(folder, [[first, second], say("done")])
    results = wire(lab.model.requests[1])[-2:]
    assert [one["tool_call_id"] for one in results] == ["t1", "t2"]
    assert [[item["content"] for item in json.loads(one["content"])["todos"]] for one in results] == [
        ["a", "b"],
        ["x", "y", "z"],
    ]
    assert [tuple(item) for item in lab.agent.todos] == [("x", "pending"), ("y", "pending"), ("z", "pending")]


@given(st.lists(st.one_of(st.lists(st.sampled_from("abc"), max_size=4), st.none()), min_size=2, max_size=6))
def test_d_a3_the_last_valid_one_of_any_number_stands(folder, lists):
    """Of any number of calls in one message, refused ones (None here) among them, the last valid list stands."""
    calls = [plan("a", status="odd") if one is None else plan(*one) for one in lists]
    lab = Lab(folder, [calls, say("done")])
    valid = [one for one in lists if one is not None]
    assert [one.content for one in lab.agent.todos] == (valid[-1] if valid else [])
    shown = [json.loads(one.result.content)["todos"] if one.result.error is None else None for one in lab.settled]
    assert [one and [item["content"] for item in one] for one in shown] == lists


# ---- D-a4: all done is not empty; text that is not ASCII ----


@pytest.mark.parametrize("count", [1, 3, 50])
def test_d_a4_all_completed_is_not_empty(folder, count):
    """A list of completed items stays a list of so many items, in the result and in the store, in later rounds too."""
    lab = Lab(folder, [plan(*map(str, range(count)), status="completed"), read(), say("done")])
    assert len(json.loads(lab.settled[0].result.content)["todos"]) == count
    assert len(lab.agent.todos) == count
    assert {item.status for item in lab.agent.todos} == {"completed"}


def test_d_a4_an_empty_list_clears(folder):
    """An empty list is a success that leaves and shows no item."""
    lab = Lab(folder, [plan("a"), plan(), say("done")])
    assert lab.settled[1].result.error is None
    assert lab.settled[1].result.content == '{"todos":[]}'
    assert lab.agent.todos == ()


WORLD = [
    "Prüfen ✅ 日本語",
    "Проверить",
    "🚀👩‍👩‍👧",
    "שלום",
    "e\u0301",
    "\U0010ffff",
    '"\\\n\t.',
    "a\x7fb\x9fc",
    ".\u2028\u2029.",
]


@pytest.mark.parametrize("content", WORLD)
def test_d_a4_a_result_is_ascii_and_decodes_to_the_content(folder, content):
    """Any writing comes back character for character out of a result that is ASCII."""
    lab = Lab(folder, [plan(content), say("done")])
    result = lab.settled[0].result.content
    assert result.isascii()
    assert json.loads(result)["todos"] == [{"content": content, "status": "pending"}]


def test_d_a4_a_result_can_be_printed_on_an_old_terminal(folder):
    """Printing results under a code page that knows few characters raises nothing."""
    code = f"""
from labkit import P05, ScriptedModelClient, build_agent, call, say
model = ScriptedModelClient([call("todo_write", todos=[
    {{"content": content, "status": "pending"}} for content in {WORLD!a}]), say("done")])
result = build_agent(P05, model, workspace={str(folder)!a}).run("go")
print(result.rounds[0].settled[0].result.content)
print(ascii(result.rounds))
"""
    env = {**os.environ, "PYTHONIOENCODING": "cp1252:strict"}
    done = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, check=False)
    assert done.returncode == 0, done.stderr.decode()
    assert len(json.loads(done.stdout.decode("ascii").splitlines()[0])["todos"]) == len(WORLD)
