"""Four events: what each sees, what each may do, in which order, and what happens to an answer that is wrong."""

import pytest
from helpers import Lab, plan, read, wire
from hypothesis import given
from hypothesis import strategies as st

from labkit import HookAnswer, Hooks, PreparedCall, SystemMessage, ToolResult, UserMessage, call, reply, say
from labkit.hooks import ALLOWED, HookFailure, ask_hook

VALUES = {
    "context": "c",
    "deny": "no",
    "arguments": {"path": "a.txt"},
    "recommend": "allow",
    "output": ToolResult("x"),
    "stop": True,
    "message": "more",
}


@pytest.mark.parametrize("field", VALUES)
@pytest.mark.parametrize("event", ALLOWED)
def test_a_field_that_an_event_does_not_own_is_a_contract_error(event, field):
    """Each event may set its own fields and no other; the error names the hook, the field and what is owned."""

    def hook(*seen):
        return HookAnswer(**{field: VALUES[field]})

    if field in ALLOWED[event]:
        assert getattr(ask_hook(event, hook), field) == VALUES[field]
        return
    with pytest.raises(HookFailure) as caught:
        ask_hook(event, hook)
    assert caught.value.code == "hook_contract_error"
    assert f"the {event} hook 'hook' set '{field}'" in str(caught.value)
    assert all(owned in str(caught.value) for owned in ALLOWED[event])


@given(st.sampled_from(list(ALLOWED)), st.one_of(st.none(), st.booleans(), st.text(), st.integers(), st.binary()))
def test_an_answer_is_a_hook_answer_or_none(event, value):
    """Whatever else a hook returns is a contract error; None is an answer that wants nothing."""
    if value is None:
        assert ask_hook(event, lambda *seen: value) == HookAnswer()
    else:
        with pytest.raises(HookFailure, match="may return a HookAnswer or None"):
            ask_hook(event, lambda *seen: value)


def test_one_function_stands_for_a_sequence():
    """A single function is as good as a list of one; what is no function is refused at once."""
    assert Hooks(Stop=len).Stop == (len,)
    assert Hooks(PreToolUse=[len, repr]).PreToolUse == (len, repr)
    with pytest.raises(ValueError, match="PostToolUse must be functions"):
        Hooks(PostToolUse=[len, "no"])


def test_each_event_sees_its_own(folder):
    """Prompt; prepared call; prepared call and result; a copy of the history."""
    seen = {}
    hooks = Hooks(
        UserPromptSubmit=[lambda *given: seen.update(prompt=given)],
        PreToolUse=[lambda *given: seen.update(pre=given)],
        PostToolUse=[lambda *given: seen.update(post=given)],
        Stop=[lambda *given: seen.update(stop=given)],
    )
    lab = Lab(folder, [read(), say("done")], hooks=hooks)
    assert seen["prompt"] == ("go",)
    (prepared,) = seen["pre"]
    assert isinstance(prepared, PreparedCall)
    assert (prepared.tool.name, prepared.input.path) == ("read_file", "a.txt")
    assert seen["post"] == (prepared, ToolResult("hello\n"))
    assert seen["stop"] == (tuple(lab.result.history),)


def test_hooks_run_in_order_and_each_sees_what_the_one_before_left(folder):
    """Rewrites follow each other, of the arguments and of the output."""
    (folder / "b.txt").write_text("bee", encoding="utf-8")
    seen = []
    hooks = Hooks(
        PreToolUse=[
            lambda prepared: seen.append(prepared.input.path) or HookAnswer(arguments={"path": "b.txt"}),
            lambda prepared: seen.append(prepared.input.path),
        ],
        PostToolUse=[
            lambda prepared, result: HookAnswer(output=ToolResult(f"<{result.content}>")),
            lambda prepared, result: HookAnswer(output=ToolResult(f"{result.content}!")),
        ],
    )
    lab = Lab(folder, [read(), say("done")], hooks=hooks)
    assert seen == ["a.txt", "b.txt"]
    assert wire(lab.model.requests[1])[-1]["content"] == "<bee>!"


def test_a_denial_ends_it_there(folder):
    """The first hook that denies is the last that is asked; the reason reaches the model, its context stays."""
    later = []
    hooks = Hooks(PreToolUse=[lambda prepared: HookAnswer(deny="not on Fridays", context="it is Friday"), later.append])
    lab = Lab(folder, [read(), say("done")], hooks=hooks)
    assert lab.settled[0].result == ToolResult(
        "Error [hook_denied]: read_file was not run: not on Fridays", "hook_denied"
    )
    assert (later, lab.result.audit) == ([], ())
    assert lab.result.rounds[0].context == (SystemMessage("it is Friday"),)


@pytest.mark.parametrize(
    "arguments",
    [
        {"path": 7},
        {},
        {"path": "a.txt", "more": 1},
        "not json",
        "[]",
        '{"path": NaN}',
        {"path": {1, 2}},
        {1: {}},
        "null",
    ],
    ids=repr,
)
def test_a_rewrite_is_prepared_as_if_the_model_had_sent_it(arguments, folder):
    """Arguments that do not fit, or are no JSON, are the hook's contract error: the call is not run."""
    hooks = Hooks(PreToolUse=[lambda prepared: HookAnswer(arguments=arguments)])
    lab = Lab(folder, [read(), say("done")], hooks=hooks)
    assert lab.settled[0].result.error == "hook_contract_error"
    assert lab.result.audit == ()


def test_a_rewrite_deeper_than_any_parser_is_a_contract_error(folder):
    """A dict nested without end, or in itself, blocks the call and leaves the loop whole."""
    deep = {}
    for _ in range(100_000):
        deep = {"path": deep}
    ring = {}
    ring["path"] = ring
    for arguments in (deep, ring):
        hooks = Hooks(PreToolUse=[lambda prepared, given=arguments: HookAnswer(arguments=given)])
        lab = Lab(folder, [read(), say("done")], hooks=hooks)
        assert lab.settled[0].result.error == "hook_contract_error"
    while deep:  # taken apart by hand, since Python would go as deep to free it
        deep = deep["path"]


def test_a_rewrite_keeps_id_name_and_tool(folder):
    """Only the arguments are rewritten: the result is paired with the model's call, whose text stays as it was."""
    hooks = Hooks(PreToolUse=[lambda prepared: HookAnswer(arguments='{"path":"a.txt"}')])
    lab = Lab(folder, [read("nowhere.txt", id="c7"), say("done")], hooks=hooks)
    (record,) = lab.result.audit
    assert (record.call_id, record.tool, record.arguments) == ("c7", "read_file", '{"path":"a.txt"}')
    assert (lab.settled[0].call.arguments, lab.settled[0].result.content) == ('{"path": "nowhere.txt"}', "hello\n")


def test_after_tool_is_told_of_a_handler_and_of_nothing_else(folder):
    """PostToolUse comes after a handler was called, failed or not; never for a refusal, a denial, a cut-off call."""
    told = []
    hooks = Hooks(
        PreToolUse=[lambda prepared: HookAnswer(deny="no") if prepared.tool.name == "glob" else None],
        PostToolUse=[lambda prepared, result: told.append((prepared.tool.name, result.error))],
    )
    script = [
        [read(), read("nowhere.txt"), call("nope"), call("read_file", "{"), call("glob", pattern="*"), plan("")],
        [call("write_file", path="b.txt", content="x")],
        reply(calls=[read()], finish_reason="length"),
        say("done"),
    ]
    Lab(folder, script, hooks=hooks)
    assert told == [("read_file", None), ("read_file", "tool_execution_error")]


def test_a_stop_ends_the_run_after_its_round(folder):
    """stop: the calls left get `hook_stopped`, the round counts, no further request."""
    hooks = Hooks(PostToolUse=[lambda prepared, result: HookAnswer(stop=True, output=ToolResult("enough"))])
    lab = Lab(folder, [[read(), plan("ship")], say("never")], hooks=hooks)
    assert (lab.result.stop_reason, lab.result.text, lab.agent.todos) == ("hook_stopped", "enough", ())
    assert [one.result.error for one in lab.settled] == [None, "hook_stopped"]
    assert lab.result.rounds[-1].after.count == 0  # todo_write was among the names


def test_context_of_a_prompt_and_of_tools_are_system_messages_that_stay(folder):
    """Context is in the history, so each later request holds it, in its place."""
    hooks = Hooks(
        UserPromptSubmit=[lambda prompt: HookAnswer(context="one"), lambda prompt: HookAnswer(context="")],
        PreToolUse=[lambda prepared: HookAnswer(context="two")],
    )
    lab = Lab(folder, [read(), read(), say("done")], hooks=hooks)
    history = list(lab.result.history)
    assert history[:2] == [UserMessage("go"), SystemMessage("one")]
    assert history[4] == SystemMessage("two") == history[7]
    assert len(history) == 9


def test_several_stop_hooks_speak_in_one_more_round(folder):
    """Each message joins the history as a user message; together they are one more round."""
    hooks = Hooks(Stop=[lambda history: HookAnswer(message="tests?"), lambda history: HookAnswer(message="docs?")])
    lab = Lab(folder, [say("first"), say("second")], hooks=hooks)
    assert list(lab.result.history)[2:4] == [UserMessage("tests?"), UserMessage("docs?")]
    assert lab.result.text == "second"
    again = "a Stop hook asked for one more round again; it may do so once in a run"
    assert [one.notes for one in lab.result.rounds] == [(), (again,)]


@pytest.mark.parametrize("last", [reply(finish_reason="length", text="x"), reply(refusal="no"), reply()])
def test_a_stop_hook_is_asked_at_a_normal_end_only(last, folder):
    """A refusal, a cut or an empty reply is no completion that a Stop hook could doubt."""
    asked = []
    lab = Lab(folder, [last], hooks=Hooks(Stop=[asked.append]))
    assert (asked, lab.result.stop_reason == "completed") == ([], False)


def test_words_that_utf8_cannot_hold_poison_nothing(folder):
    """Context, denial, output and message with a lone surrogate: what is sent stays UTF-8 (PAIRED checks each)."""
    hooks = Hooks(
        UserPromptSubmit=[lambda prompt: HookAnswer(context="c \ud800")],
        PreToolUse=[lambda prepared: HookAnswer(deny="d \udc00") if prepared.input.path == "x" else None],
        PostToolUse=[lambda prepared, result: HookAnswer(output=ToolResult("o \ud800"), context="c \udfff")],
        Stop=[lambda history: HookAnswer(message="m \ud800")],
    )
    lab = Lab(folder, [[read("x"), read()], say("one"), say("two")], hooks=hooks)
    assert lab.settled[0].result.content.endswith("d \ufffd")
    assert lab.settled[1].result.error == "invalid_tool_result"
    assert lab.result.history[-2] == UserMessage("m \ufffd")


@pytest.mark.parametrize("recommended", ["allow", "ask", "deny"])
def test_a_recommendation_is_a_voice_of_its_own(recommended, folder):
    """Also a recommendation to allow is a candidate: the audit names the hook as the source."""
    hooks = Hooks(PreToolUse=[lambda prepared: HookAnswer(recommend=recommended)])
    lab = Lab(folder, [read(), say("done")], hooks=hooks)
    assert lab.result.audit[0].source == "hook"


def test_a_rewrite_that_is_no_json_says_what_was_wrong(folder):
    """The contract error of a rewrite names what JSON could not hold."""
    hooks = Hooks(PreToolUse=[lambda prepared: HookAnswer(arguments={"path": {1, 2}})])
    lab = Lab(folder, [read(), say("done")], hooks=hooks)
    result = lab.result.rounds[0].settled[0].result
    assert result.error == "hook_contract_error"
    assert "TypeError" in result.content
