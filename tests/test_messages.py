"""Messages: what is text stays text, frozen, and only what a server asked for goes out."""

import dataclasses
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from labkit import AssistantMessage, SystemMessage, ToolCall, ToolMessage, ToolResult, UserMessage

any_text = st.text(st.characters())  # surrogates too


def as_utf8(text):
    """What UTF-8 can hold of a text, in the plainest way."""
    return "".join("\ufffd" if "\ud800" <= char <= "\udfff" else char for char in text)


# ---- calls ----


@pytest.mark.parametrize("absent", [None, "", " ", "\n\t ", {}])
def test_absent_or_blank_arguments_become_an_empty_object(absent):
    """No arguments, however a server says so, are the text of an empty object."""
    assert ToolCall("c1", "f", absent).arguments == "{}"


@pytest.mark.parametrize("value", [{"path": "a.txt"}, {"n": [1, {"x": None}]}, {"name": "日本語"}])
def test_a_dict_becomes_its_json_text(value):
    """Arguments that a server decoded are text again."""
    text = ToolCall("c1", "f", value).arguments
    assert type(text) is str
    assert json.loads(text) == value


@given(any_text)
def test_arguments_are_kept_byte_for_byte(text):
    """All text that is not blank stays as the model wrote it; only a raw surrogate becomes U+FFFD."""
    expected = "{}" if not text.strip() else as_utf8(text)
    assert ToolCall("c1", "f", text).arguments == expected


@pytest.mark.parametrize("text", ['{"a":NaN}', "{'a': 1}", '{"a":1,}', ' {"a":1} ', '{"a":"\\ud800"}', "\ufeff{}"])
def test_text_that_is_no_json_is_kept_too(text):
    """A call says nothing about whether its text is JSON, and mends nothing."""
    assert ToolCall("c1", "f", text).arguments == text


def test_a_call_keeps_id_and_name_and_both_can_be_sent():
    """Absent ids and names are empty text; surrogates in them become U+FFFD."""
    assert ToolCall(None, None).to_openai()["id"] == ""
    bad = ToolCall("c\ud800", "f\udfff")
    assert (bad.id, bad.name) == ("c\ufffd", "f\ufffd")
    assert ToolCall("c1", "读").name == "读"


# ---- the wire ----


WIRE = [
    (SystemMessage("be brief"), {"role": "system", "content": "be brief"}),
    (UserMessage("go"), {"role": "user", "content": "go"}),
    (ToolMessage("c1", "hello"), {"role": "tool", "tool_call_id": "c1", "content": "hello"}),
    (AssistantMessage("hi"), {"role": "assistant", "content": "hi"}),
    (AssistantMessage(""), {"role": "assistant", "content": ""}),
    (AssistantMessage(None), {"role": "assistant", "content": ""}),
    (AssistantMessage("no", refusal="never", finish_reason="stop"), {"role": "assistant", "content": "no"}),
    (
        AssistantMessage("", [ToolCall("c1", "f")], "tool_calls"),
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [{"id": "c1", "type": "function", "function": {"name": "f", "arguments": "{}"}}],
        },
    ),
    (
        AssistantMessage("first", [ToolCall("c1", "f", '{"a":1}')]),
        {
            "role": "assistant",
            "content": "first",
            "tool_calls": [{"id": "c1", "type": "function", "function": {"name": "f", "arguments": '{"a":1}'}}],
        },
    ),
]


@pytest.mark.parametrize(("message", "expected"), WIRE)
def test_the_wire_form_holds_only_what_was_asked_for(message, expected):
    """Content is null only beside calls; `finish_reason` and `refusal` are never sent."""
    assert message.to_openai() == expected


@given(any_text)
def test_every_message_can_be_sent(text):
    """No message holds text that UTF-8 cannot."""
    for message in (
        SystemMessage(text),
        UserMessage(text),
        AssistantMessage(text, (ToolCall(text, text, text),), refusal=text),
    ):
        sent = json.dumps(message.to_openai(), ensure_ascii=False)
        assert sent.encode("utf-8").decode("utf-8") == sent
        assert message.content == as_utf8(text)
    assert AssistantMessage("", refusal=text).refusal == as_utf8(text)


# ---- frozen ----


@pytest.mark.parametrize("message", [message for message, _ in WIRE] + [ToolCall("c1", "f"), ToolResult("hi")])
def test_messages_are_frozen_and_hashable(message):
    """No field of a message can be set or added, so that a history can be shared."""
    fields = message._fields if isinstance(message, tuple) else [one.name for one in dataclasses.fields(message)]
    for field in (*fields, "more"):
        with pytest.raises((AttributeError, TypeError)):
            setattr(message, field, "changed")
    assert hash(message) == hash(message)


def test_calls_of_a_message_are_a_tuple_of_its_own():
    """A list of calls that was handed in can change later, and the message does not."""
    calls = [ToolCall("c1", "f")]
    message = AssistantMessage("", calls)
    calls.clear()
    assert message.tool_calls == (ToolCall("c1", "f"),)
    assert AssistantMessage("", None).tool_calls == ()


# ---- results ----


def test_a_refusal_has_its_code_in_the_field_and_in_the_text():
    """Programs read `error`, the model reads the text, and both know the code."""
    refusal = ToolResult.refusal("invalid_json", "send it again")
    assert refusal == ToolResult("Error [invalid_json]: send it again", "invalid_json")
    assert ToolResult("fine").error is None


@given(any_text)
def test_a_refusal_can_always_be_sent(text):
    """Whatever words come into a refusal, UTF-8 can hold them."""
    assert ToolResult.refusal("x", text).content == f"Error [x]: {as_utf8(text)}"
