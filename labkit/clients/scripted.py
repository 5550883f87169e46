"""A model that reads its lines from a script. No mock: it is honest about being scripted, and tells what it was asked.

Read `ScriptedModelClient.complete` first. It knows nothing of tools; it says what the script says, word for word, so
that a lesson or a test can be exact about what follows.
"""

import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any

from labkit.errors import ScriptError
from labkit.messages import AssistantMessage, ToolCall
from labkit.model import ModelRequest

Entry = (
    AssistantMessage
    | ToolCall
    | Sequence[ToolCall]
    | BaseException
    | type[BaseException]
    | Callable[[ModelRequest], Any]
)


def say(text: str) -> AssistantMessage:
    """A reply of text."""
    return AssistantMessage(text, finish_reason="stop")


def call(name: str, raw: Any = None, /, *, id: str | None = None, **arguments: Any) -> ToolCall:
    """One call: its arguments by name, or as the raw text of a model. Ids are counted unless one is fixed."""
    if raw is not None and arguments:
        raise TypeError(f"call({name!r}): give the arguments by name or as raw text, not both")
    return ToolCall(id or "", name, raw if raw is not None else json.dumps(arguments, ensure_ascii=False))


def reply(
    *,
    text: str | None = None,
    calls: Iterable[ToolCall] = (),
    finish_reason: str | None = None,
    refusal: str | None = None,
) -> AssistantMessage:
    """A reply in full, for everything that `say` and `call` don't cover."""
    return AssistantMessage(text or "", tuple(calls), finish_reason, refusal)


class ScriptedModelClient:
    """Answers each request with the next entry of its script, and keeps the requests.

    An entry is `say(...)`, `call(...)`, a list of calls (one message), `reply(...)`, a function from the request to one
    of these, or an exception to raise. ScriptError when the script has run out, or when an entry is none of these.
    """

    def __init__(self, script: Iterable[Entry]) -> None:
        self._script = list(script)
        self._requests: list[ModelRequest] = []
        self._calls = 0

    @property
    def requests(self) -> tuple[ModelRequest, ...]:
        """Each request as it was made."""
        return tuple(self._requests)

    def complete(self, request: ModelRequest) -> AssistantMessage:
        """The next reply of the script."""
        self._requests.append(request)
        count = len(self._requests)
        if count > len(self._script):
            raise ScriptError(
                f"the script has {len(self._script)} replies, and this was request {count}; "
                "add replies, or let the last one be say(...)",
                requests=count,
            )
        entry: Any = self._script[count - 1]
        if not isinstance(entry, type | BaseException) and callable(entry):
            entry = entry(request)
        if isinstance(entry, BaseException) or (isinstance(entry, type) and issubclass(entry, BaseException)):
            raise entry
        return self._numbered(entry)

    def _numbered(self, entry: Any) -> AssistantMessage:
        """The entry as a message, its nameless calls numbered through the whole script: call_1, call_2, ..."""
        if isinstance(entry, ToolCall):
            entry = (entry,)
        if isinstance(entry, list | tuple) and entry and all(isinstance(one, ToolCall) for one in entry):
            entry = AssistantMessage("", tuple(entry), "tool_calls")
        if not isinstance(entry, AssistantMessage):
            raise ScriptError(
                f"reply {len(self._requests)} of the script is a {type(entry).__name__}; an entry is "
                "say(...), call(...), a list of calls, reply(...), a function to one of these, or an exception",
                requests=len(self._requests),
            )
        if not entry.tool_calls:
            return entry
        calls = []
        for one in entry.tool_calls:
            self._calls += 1
            calls.append(one if one.id else replace(one, id=f"call_{self._calls}"))
        return replace(entry, tool_calls=tuple(calls))
