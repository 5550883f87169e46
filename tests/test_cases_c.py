"""Messages and the loop: inputs that broke other people's products, each as its whole kind, by its number."""

import copy
import json
from pathlib import Path

import pytest
from helpers import Lab, assert_paired, plan, read, wire

import labkit
from labkit import (
    P01,
    HookAnswer,
    Hooks,
    ToolDefinition,
    ToolInput,
    ToolMessage,
    ToolResult,
    call,
    reply,
    say,
)


class Nothing(ToolInput):
    """No arguments."""


class Words(ToolInput):
    """Some words."""

    words: tuple[str, ...]


def tool(name, handler, arguments=Nothing):
    """A tool that needs no permission."""
    return ToolDefinition(name, "For a test.", arguments, "read", handler)


def raising(error):
    """A handler that raises."""

    def handler(given):
        raise error

    return handler


def codes(lab):
    """The code of each result of a run."""
    return [one.result.error for one in lab.settled]


# ---- D-c1 ----


@pytest.mark.parametrize("place", [0, 1, 2])
@pytest.mark.parametrize("error", [ValueError("disk full"), OSError(28, "disk full"), KeyError("disk full")])
def test_d_c1_a_handler_that_raises_answers_its_call_and_the_others_run(error, place, folder):
    """D-c1: wherever in a message a handler raises, all calls are answered in order and the run goes on."""
    calls = [read(id="A"), read(id="C")]
    calls.insert(place, call("broken", id="B"))
    lab = Lab(folder, [calls, say("done")], tools=[tool("broken", raising(error))])
    assert lab.result.text == "done"
    expected = ["hello\n"] * 2
    expected.insert(place, lab.settled[place].result.content)
    assert [message["content"] for message in wire(lab.model.requests[1])[-3:]] == expected
    assert [one.call.id for one in lab.settled] == [one.id for one in calls]
    assert "disk full" in expected[place]
    assert str(Path(labkit.__file__).parent) not in expected[place]
    assert codes(lab)[place] == "tool_execution_error"


@pytest.mark.parametrize("place", [0, 1, 2])
def test_d_c1_a_hook_that_stops_early_leaves_every_call_answered(place, folder):
    """D-c1: a PostToolUse hook that stops the run after any call leaves a paired history."""
    seen = []
    hooks = Hooks(PostToolUse=[lambda prepared, result: seen.append(1) or HookAnswer(stop=len(seen) > place)])
    lab = Lab(folder, [[read(id="A"), read(id="B"), read(id="C")], say("never")], hooks=hooks)
    assert codes(lab) == [None] * (place + 1) + ["hook_stopped"] * (2 - place)
    assert (lab.result.stop_reason, len(lab.model.requests)) == ("hook_stopped", 1)


# ---- D-c2 ----


@pytest.mark.parametrize(
    "name", ["search_web", "multi_tool_use.parallel", "Read_File", "read_file ", "", "文件", "\ud800", "x" * 500]
)
def test_d_c2_a_made_up_tool_name_is_answered_with_the_known_ones(name, folder):
    """D-c2: an unknown tool is refused with its name and the registered ones; no hook takes it for real; others run."""
    seen = []
    hooks = Hooks(
        PreToolUse=[lambda prepared: seen.append(prepared.tool.name)],
        PostToolUse=[lambda prepared, result: seen.append(prepared.tool.name)],
    )
    lab = Lab(folder, [[call(name, id="c1"), read(id="c2")], say("done")], hooks=hooks)
    text = lab.settled[0].result.content
    assert codes(lab) == ["unknown_tool", None]
    assert repr(name[:80])[1:-1].replace("\\ud800", "\ufffd") in text
    assert len(text) < 400
    for known in ("read_file", "write_file", "edit_file", "glob", "shell", "todo_write"):
        assert known in text
    assert seen == ["read_file", "read_file"]
    assert len(lab.result.audit) == 1


def test_d_c2_without_any_tool_it_says_so():
    """D-c2: an agent that has no tools answers a made-up call too."""
    lab = Lab(None, [call("read_file", path="a.txt"), say("done")], profile=P01)
    assert "the tools are: none" in lab.settled[0].result.content


# ---- D-c3 ----


@pytest.mark.parametrize(
    "arguments", ['{"path":"a.txt","content":"first half"}', '{"path":"a.txt","content":"first ha', "", "null"]
)
def test_d_c3_a_reply_cut_off_by_its_length_runs_nothing(arguments, folder):
    """D-c3: with finish_reason "length" nothing runs, whether the arguments parse or not; the text says what to do."""
    calls = [call("write_file", arguments), call("shell", command="touch b.txt"), plan("ship")]
    lab = Lab(folder, [reply(calls=calls, finish_reason="length"), say("done")], approver=lambda ask: "allow")
    assert codes(lab) == ["truncated"] * 3
    for one in lab.settled:
        assert "cut off" in one.result.content
        assert "again" in one.result.content
    assert [path.name for path in folder.iterdir()] == ["a.txt"]
    assert (folder / "a.txt").read_bytes() == b"hello\n"
    assert (lab.result.text, lab.agent.todos, lab.result.audit) == ("done", (), ())


def test_d_c3_cut_arguments_under_another_name_are_invalid_json(folder):
    """D-c3: where a server mislabels the cut, the torn arguments are invalid JSON, and nothing is written."""
    torn = reply(calls=[call("write_file", '{"path":"a.txt","content":"first ha')], finish_reason="tool_calls")
    lab = Lab(folder, [torn, say("done")], approver=lambda ask: "allow")
    assert codes(lab) == ["invalid_json"]
    assert (folder / "a.txt").read_bytes() == b"hello\n"
    assert lab.result.text == "done"


def test_d_c3_text_cut_off_ends_the_run_with_its_reason(folder):
    """D-c3: "length" with text only gives that text, its stop reason visible."""
    lab = Lab(folder, [reply(text="a long ans", finish_reason="length")])
    assert (lab.result.text, lab.result.stop_reason) == ("a long ans", "length")


# ---- D-c4 ----


@pytest.mark.parametrize("finish_reason", ["stop", "tool_calls", "function_call", "content_filter", "eos", "", None])
@pytest.mark.parametrize("text", ["", "I will read it."])
def test_d_c4_calls_are_run_whatever_the_finish_reason_says(finish_reason, text, folder):
    """D-c4: the presence of calls decides; the finish_reason (but for "length") does not."""
    lab = Lab(folder, [reply(text=text, calls=[read()], finish_reason=finish_reason), say("done")])
    assert (codes(lab), len(lab.model.requests), lab.result.text) == ([None], 2, "done")


# ---- D-c5 ----


@pytest.mark.parametrize(
    ("last", "text", "stop_reason"),
    [
        (reply(refusal="I can't help with that.", finish_reason="stop"), "I can't help with that.", "refusal"),
        (reply(refusal="No.", finish_reason="content_filter"), "No.", "refusal"),
        (reply(text="", finish_reason="content_filter"), "", "content_filter"),
        (reply(text="Once upon", finish_reason="content_filter"), "Once upon", "content_filter"),
        (reply(text="", finish_reason="stop"), "", "empty_reply"),
    ],
)
def test_d_c5_a_refusal_or_a_filter_is_no_normal_end(last, text, stop_reason, folder):
    """D-c5: one request, the words shown, and a stop reason that is not `completed`."""
    lab = Lab(folder, [last])
    assert (lab.result.text, lab.result.stop_reason, len(lab.model.requests)) == (text, stop_reason, 1)


# ---- D-c6 ----


class Foreign:
    """A student's own class."""


class AlmostText(str):
    """Text of a kind of its own."""


NOT_A_RESULT = [
    None,
    {"n": 3},
    7,
    {"x": float("nan")},
    b"bytes",
    Foreign(),
    Foreign,
    "plain text",
    True,
    ["text"],
    ToolMessage("c1", "text"),
    ToolResult(None),
    ToolResult({"n": 3}),
    ToolResult(b"bytes"),
    ToolResult(AlmostText("text")),
    ToolResult("lone \ud800"),
    ToolResult("text", 7),
    ToolResult,
]


def is_no_result(result):
    """The code, and a text that says what a handler must return and shows nothing of what it did."""
    assert result.error == "invalid_tool_result"
    assert "ToolResult" in result.content
    for leak in ("0x", "Foreign", "bytes", "nan", "<", "lone"):
        assert leak not in result.content


@pytest.mark.parametrize("bad", NOT_A_RESULT, ids=lambda bad: type(bad).__name__)
def test_d_c6_what_is_no_result_is_refused(bad, folder):
    """D-c6: whatever a handler returns that is no ToolResult of text is answered for, and the loop goes on."""
    lab = Lab(folder, [[call("odd"), read()], say("done")], tools=[tool("odd", lambda given: bad)])
    is_no_result(lab.settled[0].result)
    assert (codes(lab)[1], lab.result.text) == (None, "done")


@pytest.mark.parametrize("bad", NOT_A_RESULT[1:], ids=lambda bad: type(bad).__name__)
def test_d_c6_a_hooks_rewrite_is_held_to_the_same(bad, folder):
    """D-c6: the same for what a PostToolUse hook puts in the place of a result."""
    hooks = Hooks(PostToolUse=[lambda prepared, result: HookAnswer(output=bad)])
    lab = Lab(folder, [read(), say("done")], hooks=hooks)
    is_no_result(lab.settled[0].result)
    assert lab.result.text == "done"


# ---- D-c7 ----


def test_d_c7_recorded_requests_stay_as_they_were_sent(folder):
    """D-c7: three rounds later each recorded request holds what was sent, and changing a copy changes nothing."""
    sent = []

    def keep(request):
        sent.append(copy.deepcopy(request.to_openai()))
        request.to_openai()["messages"].clear()
        list(request.messages).clear()
        return read()

    script = [keep, keep, keep, lambda request: keep(request) and say("done")]
    lab = Lab(folder, script)
    assert [request.to_openai() for request in lab.model.requests] == sent
    assert [len(request.messages) for request in lab.model.requests] == [2, 4, 6, 9]  # the fourth with the reminder
    assert lab.result.text == "done"


def test_d_c7_a_handler_cannot_rewrite_what_was_asked(folder):
    """D-c7: a handler that tries to change its input changes neither the history's text nor the next request."""
    raw = '{"words":  ["one", "tw\\u00f6"]}'

    def meddle(given):
        for attempt in (
            lambda: setattr(given, "words", ()),
            lambda: given.words.clear(),
            lambda: vars(given).clear(),
        ):
            try:
                attempt()
            except Exception:
                continue
        return ToolResult("meddled")

    lab = Lab(folder, [call("meddle", raw), say("done")], tools=[tool("meddle", meddle, Words)])
    assert lab.agent.history[1].tool_calls[0].arguments == raw
    assert wire(lab.model.requests[1])[2]["tool_calls"][0]["function"]["arguments"] == raw
    assert lab.result.text == "done"


@pytest.mark.parametrize(
    "raw", ['{"path": "a.txt"}', ' {"path":"a.txt"}\n', '{"path":"\\u0061.txt"}', '{"path":', "[1, 2]", "null"]
)
def test_d_c7_arguments_stay_byte_for_byte(raw, folder):
    """D-c7: what the model wrote stands in the history and in each later request as it wrote it."""
    lab = Lab(folder, [call("read_file", raw), read(), say("done")])
    for request in lab.model.requests[1:]:
        assert wire(request)[2]["tool_calls"][0]["function"]["arguments"] == raw


def test_d_c7_a_client_that_changes_its_own_list_changes_nothing(folder):
    """D-c7: a reply made from a list of calls that is changed later stays as it was."""
    calls = [read()]
    first = reply(calls=calls)
    calls.append(call("nope"))
    body = {"path": "a.txt"}
    lab = Lab(folder, [first, call("read_file", body), lambda request: body.clear() or say("done")])
    assert codes(lab) == [None, None]
    assert json.loads(lab.agent.history[3].tool_calls[0].arguments) == {"path": "a.txt"}
    assert_paired([message.to_openai() for message in lab.result.history])
