"""The nouns: what is said between a person, a model and a tool. Frozen values; this room imports nothing of labkit.

Read `ToolCall` first: it is where text that a model made up becomes text that can be stored and sent.
What is in a message is fixed when it is made. That a message stands in the right place is checked elsewhere
(`labkit.model.check_pairing`), and whether a call makes sense is for `labkit.tools` to say.
"""

import json
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple


def sendable(text: str) -> str:
    """The text as UTF-8 can hold it: each lone surrogate becomes U+FFFD, all else stays."""
    try:
        text.isascii() or text.encode()
    except UnicodeEncodeError:
        return "".join("\ufffd" if "\ud800" <= character <= "\udfff" else character for character in text)
    return text


def _settle(message: object, field: str, value: object) -> None:
    """Put a value into a frozen message while it is made."""
    object.__setattr__(message, field, value)


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A model's request to run a tool. `arguments` is always text, as the model wrote it; nothing here says it is JSON.

    Settled on the way in, because servers differ: absent or blank arguments become "{}", a dict becomes its JSON text.
    """

    id: str
    name: str
    arguments: str = "{}"

    def __post_init__(self) -> None:
        given: Any = self.arguments
        if type(given) is not str:
            given = "" if given is None else json.dumps(given, ensure_ascii=False)
        text = sendable(given) if given and not given.isspace() else "{}"
        if text is not self.arguments:
            _settle(self, "arguments", text)
        if not (self.id and self.name and self.id.isascii() and self.name.isascii()):
            _settle(self, "id", sendable(self.id or ""))
            _settle(self, "name", sendable(self.name or ""))

    def to_openai(self) -> dict[str, Any]:
        """The wire form: only the fields that a server asked for."""
        return {"id": self.id, "type": "function", "function": {"name": self.name, "arguments": self.arguments}}


class ToolResult(NamedTuple):
    """What came back from a call: the text that the model reads, and a code for programs (None: it went well)."""

    content: str
    error: str | None = None

    @classmethod
    def refusal(cls, code: str, text: str) -> "ToolResult":
        """A result that says no. The code stands in the text too, for the model cannot see the field."""
        return cls(sendable(f"Error [{code}]: {text}"), code)


@dataclass(frozen=True, slots=True)
class _Words:
    """A message that is text and no more."""

    content: str

    def __post_init__(self) -> None:
        _settle(self, "content", sendable(self.content))


class SystemMessage(_Words):
    """Words of the harness: the system prompt, a reminder, a hook's context."""

    __slots__ = ()

    def to_openai(self) -> dict[str, Any]:
        """The wire form."""
        return {"role": "system", "content": self.content}


class UserMessage(_Words):
    """Words of the person (or of a Stop hook that speaks for the person)."""

    __slots__ = ()

    def to_openai(self) -> dict[str, Any]:
        """The wire form."""
        return {"role": "user", "content": self.content}


@dataclass(frozen=True, slots=True)
class AssistantMessage:
    """One reply of the model: text, calls, or both. `finish_reason` and `refusal` are for us and never sent back."""

    content: str = ""
    tool_calls: tuple[ToolCall, ...] = ()
    finish_reason: str | None = None
    refusal: str | None = None

    def __post_init__(self) -> None:
        if self.content is None or not self.content.isascii():
            _settle(self, "content", sendable(self.content or ""))
        if type(self.tool_calls) is not tuple:
            _settle(self, "tool_calls", tuple(self.tool_calls or ()))
        if self.refusal is not None:
            _settle(self, "refusal", sendable(self.refusal))

    def to_openai(self) -> dict[str, Any]:
        """The wire form; content is null only beside calls, since servers refuse an empty message of nothing."""
        if not self.tool_calls:
            return {"role": "assistant", "content": self.content}
        calls = [call.to_openai() for call in self.tool_calls]
        return {"role": "assistant", "content": self.content or None, "tool_calls": calls}


@dataclass(frozen=True, slots=True)
class ToolMessage:
    """The result of one call, as the model reads it. It belongs right after the message that made the call."""

    tool_call_id: str
    content: str

    def to_openai(self) -> dict[str, Any]:
        """The wire form."""
        return {"role": "tool", "tool_call_id": self.tool_call_id, "content": self.content}


Message = SystemMessage | UserMessage | AssistantMessage | ToolMessage
Effect = Literal["read", "write", "execute", "external"]
Decision = Literal["allow", "ask", "deny"]
