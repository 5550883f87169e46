"""Requests are views that behave as copies; pairing is checked in one pass."""

import pytest
from helpers import assert_paired
from hypothesis import given
from hypothesis import strategies as st

from labkit import (
    AssistantMessage,
    MessageView,
    ModelRequest,
    PairingError,
    SystemMessage,
    ToolCall,
    ToolDefinition,
    ToolInput,
    ToolMessage,
    ToolResult,
    UserMessage,
    check_pairing,
)

messages = st.lists(st.integers(0, 9).map(lambda n: UserMessage(str(n))), max_size=6)


class Nothing(ToolInput):
    """No arguments."""


class Optional(ToolInput):
    """An argument that may be left out."""

    text: str = ""


TOOL = ToolDefinition("ping", "Answers.", Nothing, "read", lambda given: ToolResult("pong"))
LOOSE = ToolDefinition("say", "Answers.", Optional, "read", lambda given: ToolResult(given.text))


# ---- views ----


@given(messages, messages, messages, messages)
def test_a_view_is_a_copy_in_all_but_cost(head, history, tail, later):
    """A view equals the list made at its moment, in each way of reading, whatever is appended later."""
    copy = [*head, *history, *tail]
    view = MessageView(history, tuple(head), tuple(tail))
    history.extend(later)
    assert list(view) == copy
    assert len(view) == len(copy)
    assert view == copy
    assert view == tuple(copy)
    assert (view != copy) is False
    assert hash(view) == hash(tuple(copy))
    assert repr(view) == repr(tuple(copy))
    for index in range(-len(copy), len(copy)):
        assert view[index] == copy[index]
    for cut in (slice(None), slice(1, None), slice(-2, None), slice(None, None, -1), slice(0, 99, 2)):
        assert view[cut] == tuple(copy[cut])
    for outside in (len(copy), -len(copy) - 1):
        with pytest.raises(IndexError):
            view[outside]
    assert list(reversed(view)) == copy[::-1]
    assert all(message in view for message in copy)


def test_a_view_cannot_be_changed():
    """A view has no way to set, delete or add."""
    view = MessageView([UserMessage("go")])
    with pytest.raises(TypeError):
        view[0] = UserMessage("stop")
    with pytest.raises(TypeError):
        del view[0]
    assert not hasattr(view, "append")
    with pytest.raises(AttributeError):
        view.more = 1


def test_a_view_equals_no_other_kind_of_thing():
    """Text and sets are no sequence of messages."""
    assert MessageView([]) != ""
    assert MessageView([]) != set()
    assert MessageView([]) == []


# ---- requests ----


def test_a_request_without_tools_sends_no_tools():
    """The body has the key `tools` only where there are some: servers refuse an empty list."""
    body = ModelRequest(MessageView([UserMessage("go")], (SystemMessage("be brief"),))).to_openai()
    assert body == {"messages": [{"role": "system", "content": "be brief"}, {"role": "user", "content": "go"}]}


def test_strict_is_sent_only_when_asked_for_and_only_where_a_schema_allows_it():
    """Compatible servers differ, so strict mode is the client's wish; optional arguments rule it out."""
    request = ModelRequest(MessageView([UserMessage("go")]), (TOOL, LOOSE))
    assert [one["function"].get("strict") for one in request.to_openai()["tools"]] == [None, None]
    assert [one["function"].get("strict") for one in request.to_openai(strict=True)["tools"]] == [True, None]


def test_a_body_is_the_callers_to_change():
    """Changing a body that was sent changes no request and no tool."""
    request = ModelRequest(MessageView([UserMessage("go")]), (TOOL,))
    before = request.to_openai()
    body = request.to_openai()
    body["messages"][0]["content"] = "stop"
    body["tools"][0]["function"]["parameters"]["properties"]["more"] = {}
    assert request.to_openai() == before


# ---- pairing ----

ASK_AB = AssistantMessage("", (ToolCall("a", "f"), ToolCall("b", "f")))
A, B = ToolMessage("a", "1"), ToolMessage("b", "2")


@pytest.mark.parametrize(
    ("bad", "index", "words"),
    [
        ([ASK_AB, A], 2, "the end: the call 'b' has no result"),
        ([ASK_AB, B, A], 1, "message 1: a result for 'b', but 'a' is the next call"),
        ([ASK_AB, A, A], 2, "message 2: a result for 'a', but 'b' is the next call"),
        ([ASK_AB, A, B, B], 3, "message 3: a result for 'b', but no call waits for one"),
        ([A], 0, "message 0: a result for 'a', but no call waits for one"),
        ([ASK_AB, A, SystemMessage("psst"), B], 2, "message 2: the call 'b' has no result before it"),
        ([ASK_AB, ASK_AB], 1, "message 1: the call 'a' has no result before it"),
        (
            [AssistantMessage("", (ToolCall("a", "f"), ToolCall("a", "f"))), A, A],
            0,
            "message 0: the ids of its calls are missing or repeated: ['a', 'a']",
        ),
        (
            [AssistantMessage("", (ToolCall("", "f"),)), ToolMessage("", "1")],
            0,
            "message 0: the ids of its calls are missing or repeated: ['']",
        ),
    ],
)
def test_a_broken_pairing_is_named_with_its_place(bad, index, words):
    """The error says which message is at fault and what was expected there."""
    with pytest.raises(PairingError) as caught:
        check_pairing(bad)
    assert str(caught.value) == words
    assert caught.value.index == index


pieces = st.lists(
    st.one_of(
        st.sampled_from([UserMessage("go"), SystemMessage("psst"), AssistantMessage("hi")]),
        st.lists(st.sampled_from("abc"), min_size=1, max_size=3).map(
            lambda ids: AssistantMessage("", tuple(ToolCall(one, "f") for one in ids))
        ),
        st.sampled_from("abc").map(lambda one: ToolMessage(one, "1")),
    ),
    max_size=7,
)


def answered(found):
    """The same messages with each call answered, some of them then swapped out by hypothesis' own pieces."""
    out = []
    for message in found:
        out.append(message)
        if isinstance(message, AssistantMessage):
            out += [ToolMessage(one.id, "1") for one in message.tool_calls]
    return out


@given(st.one_of(pieces, pieces.map(lambda found: answered(m for m in found if not isinstance(m, ToolMessage)))))
def test_pairing_agrees_with_a_check_of_the_wire(found):
    """check_pairing passes exactly what an independent check of the wire form passes."""
    try:
        assert_paired([message.to_openai() for message in found])
    except (AssertionError, IndexError):
        with pytest.raises(PairingError):
            check_pairing(found)
    else:
        check_pairing(found)
