"""The scripted model: it says what the script says, word for word, and keeps what it was asked."""

import pytest
from helpers import Lab, assert_paired, plan, read

from labkit import (
    P01,
    AssistantMessage,
    MessageView,
    ModelRequest,
    ScriptedModelClient,
    ScriptError,
    ToolCall,
    UserMessage,
    build_agent,
    call,
    reply,
    say,
)


def ask(text="go"):
    """A request."""
    return ModelRequest(MessageView([UserMessage(text)]))


def answers(script, count=None):
    """What a model with this script says to so many requests."""
    model = ScriptedModelClient(script)
    return [model.complete(ask()) for _ in range(len(script) if count is None else count)]


# ---- entries ----

C1 = ToolCall("call_1", "f")


@pytest.mark.parametrize(
    ("entry", "said"),
    [
        (say("hi"), AssistantMessage("hi", (), "stop")),
        (call("f"), AssistantMessage("", (C1,), "tool_calls")),
        ([call("f")], AssistantMessage("", (C1,), "tool_calls")),
        ((call("f"), call("g")), AssistantMessage("", (C1, ToolCall("call_2", "g")), "tool_calls")),
        (reply(text="hi"), AssistantMessage("hi")),
        (reply(calls=[call("f")]), AssistantMessage("", (C1,))),
        (
            reply(text="hi", calls=[call("f")], finish_reason="length", refusal="no"),
            AssistantMessage("hi", (C1,), "length", "no"),
        ),
        (reply(finish_reason="content_filter"), AssistantMessage("", (), "content_filter")),
        (lambda request: say(request.messages[0].content), AssistantMessage("go", (), "stop")),
        (lambda request: call("f"), AssistantMessage("", (C1,), "tool_calls")),
        (lambda request: [call("f")], AssistantMessage("", (C1,), "tool_calls")),
    ],
)
def test_an_entry_is_said_as_it_stands(entry, said):
    """Each kind of entry gives the message that it names, nameless calls numbered."""
    assert answers([entry]) == [said]


@pytest.mark.parametrize("error", [ValueError("x"), ValueError, KeyboardInterrupt(), KeyboardInterrupt])
def test_an_exception_is_raised(error):
    """An entry that is an exception is raised, the very one; the script goes on behind it."""
    model = ScriptedModelClient([error, lambda request: error, say("hi")])
    for _ in range(2):
        with pytest.raises(error if isinstance(error, type) else type(error)) as caught:
            model.complete(ask())
        assert isinstance(error, type) or caught.value is error
    assert model.complete(ask()).content == "hi"
    assert len(model.requests) == 3


@pytest.mark.parametrize("entry", ["hi", None, 5, {}, [], [say("hi")], [call("f"), "g"], lambda request: "hi"])
def test_what_is_no_entry_is_named(entry):
    """An entry of another kind is an error that says which reply it was and what an entry is."""
    model = ScriptedModelClient([say("hi"), entry])
    model.complete(ask())
    with pytest.raises(ScriptError, match=r"reply 2 of the script is a \w+; an entry is say\(\.\.\.\)") as caught:
        model.complete(ask())
    assert caught.value.requests == 2


# ---- calls ----


def test_a_call_by_name_or_by_raw_text():
    """Arguments come by name, also such as the function's own parameters have, or as the raw text of a model."""
    assert call("f", path="a", name="b", raw="c").arguments == '{"path": "a", "name": "b", "raw": "c"}'
    assert call("f", "{not json").arguments == "{not json"
    assert call("f", "").arguments == "{}"
    assert call("f", {"a": 1}).arguments == '{"a": 1}'
    assert call("f", 日="本").arguments == '{"日": "本"}'
    assert call("f", id="c7") == ToolCall("c7", "f", "{}")
    with pytest.raises(TypeError, match="by name or as raw text, not both"):
        call("f", "{}", path="a")


def test_ids_are_counted_through_the_script_and_kept_where_fixed():
    """Nameless calls are call_1, call_2, ... through the whole script, each call that has an id counted too."""
    said = answers([[call("f"), call("f", id="c7")], say("hi"), call("f")])
    assert [one.id for message in said for one in message.tool_calls] == ["call_1", "c7", "call_3"]


def test_an_entry_can_stand_in_a_script_more_than_once():
    """One entry used three times gives three messages with ids of their own."""
    again = [call("f"), call("g")]
    ids = [[one.id for one in message.tool_calls] for message in answers([again, again, again])]
    assert ids == [["call_1", "call_2"], ["call_3", "call_4"], ["call_5", "call_6"]]


def test_two_clients_of_one_script_say_the_same():
    """Ids are the same on every run, and a client does not change its script."""
    script = [call("f"), [call("g"), call("f", id="c7")], say("hi")]
    assert answers(script) == answers(script)
    assert len(script) == 3


# ---- requests ----


def test_requests_are_recorded_in_order_and_cannot_be_changed():
    """Each request is kept as it was made; `requests` is a tuple."""
    model = ScriptedModelClient([say("a"), say("b")])
    asked = [ask("one"), ask("two")]
    for one in asked:
        model.complete(one)
    assert model.requests == tuple(asked)
    assert type(model.requests) is tuple


def test_running_out_names_the_replies_and_the_requests():
    """The error says how many replies there are, which request found none, and what to do."""
    model = ScriptedModelClient([say("a")])
    model.complete(ask())
    for count in (2, 3):
        with pytest.raises(ScriptError) as caught:
            model.complete(ask())
        assert str(caught.value) == (
            f"the script has 1 replies, and this was request {count}; add replies, or let the last one be say(...)"
        )
        assert caught.value.requests == count
        assert len(model.requests) == count


def test_a_script_is_copied():
    """A list of replies that changes later does not change the model; any iterable will do."""
    script = [say("a")]
    model = ScriptedModelClient(script)
    script.clear()
    assert model.complete(ask()).content == "a"
    assert ScriptedModelClient(say(text) for text in "ab").complete(ask()).content == "a"


def test_the_front_door(folder):
    """The first example of the lab: text, stop reason, the reminder in request 4 only, the list."""
    lab = Lab(folder, [read(), read(), read(), plan("ship", status="in_progress"), say("done")])
    assert (lab.result.text, lab.result.stop_reason) == ("done", "completed")
    assert lab.reminders == [0, 0, 0, 1, 0]
    assert repr(lab.agent.todos) == "(TodoItem(content='ship', status='in_progress'),)"
    assert len(lab.result.rounds) == 5
    assert len(lab.result.audit) == 4


def test_an_error_of_the_model_leaves_the_agent_usable():
    """A raised entry leaves the run as an exception, the history as before that request, and the way on open."""
    model = ScriptedModelClient([TimeoutError("slow"), say("done")])
    agent = build_agent(P01, model)
    with pytest.raises(TimeoutError, match="slow"):
        agent.run("go")
    assert list(agent.history) == [UserMessage("go")]
    assert agent.run(None).text == "done"
    assert_paired([message.to_openai() for message in agent.history])
