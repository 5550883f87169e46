"""What a model is to us: something that answers a request. Requests are views, so recording one costs nothing.

Read `ModelRequest` first. This room knows neither how a reply is made (`labkit.clients`) nor what is done with it
(`labkit.loop`). `check_pairing` is the protocol's one hard rule, which every server enforces.
"""

from collections.abc import Iterator, Sequence
from itertools import chain, islice
from typing import Any, NamedTuple, Protocol, overload

from labkit.errors import PairingError
from labkit.messages import AssistantMessage, Message, ToolMessage


class MessageView(Sequence[Message]):
    """Messages as they stood at one moment: a head, the first `length` of a history that only grows, a tail.

    As immutable as a copy, for frozen messages are only ever appended behind `length`; and as cheap as three pointers,
    so a thousand recorded requests cost a thousand small objects and not half a million references.
    """

    __slots__ = ("_head", "_history", "_length", "_tail")

    def __init__(
        self,
        history: list[Message],
        head: tuple[Message, ...] = (),
        tail: tuple[Message, ...] = (),
    ) -> None:
        self._head = head
        self._history = history
        self._length = len(history)
        self._tail = tail

    @property
    def head(self) -> tuple[Message, ...]:
        """What stands before the history: in a request, the system prompt."""
        return self._head

    @property
    def tail(self) -> tuple[Message, ...]:
        """What stands behind the history: in a request, its guidance."""
        return self._tail

    def __len__(self) -> int:
        return len(self._head) + self._length + len(self._tail)

    def __iter__(self) -> Iterator[Message]:
        return chain(self._head, islice(self._history, self._length), self._tail)

    @overload
    def __getitem__(self, index: int) -> Message: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[Message, ...]: ...
    def __getitem__(self, index: int | slice) -> Message | tuple[Message, ...]:
        if isinstance(index, slice):
            return tuple([self[at] for at in range(len(self))[index]])
        at = range(len(self))[index]
        if at < len(self._head):
            return self._head[at]
        at -= len(self._head)
        return self._history[at] if at < self._length else self._tail[at - self._length]

    def __eq__(self, other: object) -> bool:
        if isinstance(other, str) or not isinstance(other, Sequence):
            return NotImplemented
        return len(self) == len(other) and all(a == b for a, b in zip(self, other, strict=True))

    def __hash__(self) -> int:
        return hash(tuple(self))

    def __repr__(self) -> str:
        return repr(tuple(self))


class SentTool(Protocol):
    """A tool as far as a request needs it."""

    @property
    def name(self) -> str:
        """What the model calls it."""
        ...

    def to_openai(self, *, strict: bool = False) -> dict[str, Any]:
        """The wire form."""
        ...


class ModelRequest(NamedTuple):
    """All that the model will know: the system prompt, the history, what is said once (guidance), and the tools."""

    messages: MessageView
    tools: tuple[SentTool, ...] = ()

    def to_openai(self, *, strict: bool = False) -> dict[str, Any]:
        """The body's `messages` and `tools`; no tools, no key. `strict` is asked for where a schema allows it."""
        body: dict[str, Any] = {"messages": [message.to_openai() for message in self.messages]}
        if self.tools:
            body["tools"] = [tool.to_openai(strict=strict) for tool in self.tools]
        return body


class ModelClient(Protocol):
    """Anything that answers a request with one assistant message, or raises."""

    def complete(self, request: ModelRequest) -> AssistantMessage:
        """One reply. It may raise; the history then is as it was before the request."""
        ...


def check_pairing(messages: Sequence[Message]) -> None:
    """Raise PairingError unless each message with k calls is followed at once by its k results, in order, and no other.

    Ids within one message must differ. `messages` may begin anywhere but between a call and its result.
    """
    due: list[str] = []
    for index, message in enumerate(messages):
        if isinstance(message, ToolMessage):
            if not due:
                raise PairingError(
                    f"message {index}: a result for {message.tool_call_id!r}, but no call waits for one", index
                )
            if message.tool_call_id != due[0]:
                raise PairingError(
                    f"message {index}: a result for {message.tool_call_id!r}, but {due[0]!r} is the next call", index
                )
            del due[0]
            continue
        if due:
            raise PairingError(f"message {index}: the call {due[0]!r} has no result before it", index)
        if isinstance(message, AssistantMessage) and message.tool_calls:
            due = [call.id for call in message.tool_calls]
            if len(set(due)) < len(due) or "" in due:
                raise PairingError(f"message {index}: the ids of its calls are missing or repeated: {due}", index)
    if due:
        raise PairingError(f"the end: the call {due[0]!r} has no result", len(messages))
