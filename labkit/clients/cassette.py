"""A conversation with a live model in one readable file: recorded once, played back anywhere, without server and key.

Read `CassetteModelClient.complete` first. A cassette is no cache: it plays its replies in order, and only to the
requests they were given to. Messages and tool names must match; the wording of schemas may change between versions.
"""

import datetime
import difflib
import json
import os
from dataclasses import dataclass, field
from itertools import islice
from os import PathLike
from pathlib import Path
from typing import Any

from labkit.errors import CassetteError
from labkit.messages import AssistantMessage, ToolCall
from labkit.model import ModelClient, ModelRequest

FORMAT = 1

Wire = list[dict[str, Any]]


@dataclass(frozen=True, slots=True)
class Exchange:
    """One request and its reply: the messages in the wire form, the names of the tools, the tokens it took."""

    messages: Wire
    tools: list[str]
    reply: AssistantMessage
    usage: dict[str, int] = field(default_factory=dict)


class Recorder:
    """A client that passes each request on to another, and writes what was asked and answered to a file.

    The file is whole after each reply, so that an interrupted run leaves a cassette too. `date` is today's unless
    given. Of the client, `model`, `calls` and `usage` are noted where it has them; no address and no key ever.
    """

    def __init__(self, client: ModelClient, path: str | PathLike[str], *, date: str | None = None) -> None:
        self._client = client
        self._path = Path(path)
        self._head: dict[str, Any] = {
            "cassette": FORMAT,
            "model": str(getattr(client, "model", type(client).__name__)),
            "calls": str(getattr(client, "calls", "native")),
            "date": date or datetime.date.today().isoformat(),
        }
        self._exchanges: list[dict[str, Any]] = []
        self._last: Wire = []

    def complete(self, request: ModelRequest) -> AssistantMessage:
        """The other client's reply."""
        before = getattr(self._client, "usage", None)
        reply = self._client.complete(request)
        after = getattr(self._client, "usage", None)
        messages = [message.to_openai() for message in request.messages]
        kept = _common(self._last, messages)
        self._exchanges.append(
            {
                "request": {"kept": kept, "messages": messages[kept:], "tools": [tool.name for tool in request.tools]},
                "reply": _written(reply),
                "usage": _spent(before, after),
            }
        )
        self._last = messages
        self._save()
        return reply

    def _save(self) -> None:
        text = json.dumps({**self._head, "exchanges": self._exchanges}, ensure_ascii=False, indent=1)
        beside = self._path.with_name(self._path.name + ".part")
        with open(beside, "w", encoding="utf-8", newline="\n") as file:
            file.write(text + "\n")
        os.replace(beside, self._path)


class CassetteModelClient:
    """Plays a cassette back. CassetteError for a file that is none, a request that differs, and one too many."""

    def __init__(self, path: str | PathLike[str]) -> None:
        self._path = Path(path)
        known = _read(self._path)
        self.model: str = known["model"]
        self.calls: str = known["calls"]
        self.date: str = known["date"]
        self.exchanges: tuple[Exchange, ...] = tuple(known["exchanges"])
        self._requests: list[ModelRequest] = []

    @property
    def requests(self) -> tuple[ModelRequest, ...]:
        """Each request as it was made."""
        return tuple(self._requests)

    def complete(self, request: ModelRequest) -> AssistantMessage:
        """The recorded reply to this request, if it is the one that was recorded next."""
        number = len(self._requests) + 1
        if number > len(self.exchanges):
            raise CassetteError(
                f"{self._path.name} holds {len(self.exchanges)} replies, and this was request {number}; record it again"
            )
        exchange = self.exchanges[number - 1]
        diff = list(
            difflib.unified_diff(
                _lines(exchange.messages, exchange.tools),
                _lines([message.to_openai() for message in request.messages], [tool.name for tool in request.tools]),
                f"request {number} as recorded",
                f"request {number} as asked now",
                n=1,
                lineterm="",
            )
        )
        if diff:
            raise CassetteError(
                f"{self._path.name}: request {number} is not the one that was recorded; "
                "record the cassette again if the change is meant\n" + "\n".join(diff)
            )
        self._requests.append(request)
        return exchange.reply


# ---- the file ----


def _read(path: Path) -> dict[str, Any]:
    """The content of a cassette, checked."""
    try:
        with open(path, encoding="utf-8") as file:
            known = json.load(file)
    except FileNotFoundError:
        raise CassetteError(f"there is no cassette {path.name} in {path.parent.name or 'this folder'}") from None
    except (ValueError, RecursionError):
        raise CassetteError(
            f"{path.name} is damaged or cut off: it is not whole JSON; get the file again, or record it again"
        ) from None
    try:
        if known["cassette"] != FORMAT:
            raise CassetteError(f"{path.name} has the format {known['cassette']!r}, and this is for format {FORMAT}")
        exchanges: list[Exchange] = []
        last: Wire = []
        for one in known["exchanges"]:
            last = last[: one["request"]["kept"]] + one["request"]["messages"]
            exchanges.append(Exchange(last, one["request"]["tools"], _reply(one["reply"]), one["usage"]))
        return {**{key: known[key] for key in ("model", "calls", "date")}, "exchanges": exchanges}
    except (KeyError, TypeError, AttributeError):
        raise CassetteError(f"{path.name} is no cassette, or parts of it are missing; record it again") from None


def _written(reply: AssistantMessage) -> dict[str, Any]:
    """A reply with only what it has."""
    calls = [{"id": call.id, "name": call.name, "arguments": call.arguments} for call in reply.tool_calls]
    full = {"text": reply.content, "calls": calls, "finish_reason": reply.finish_reason, "refusal": reply.refusal}
    return {key: value for key, value in full.items() if value}


def _reply(written: dict[str, Any]) -> AssistantMessage:
    calls = tuple([ToolCall(**call) for call in written.get("calls", ())])
    return AssistantMessage(written.get("text", ""), calls, written.get("finish_reason"), written.get("refusal"))


def _spent(before: Any, after: Any) -> dict[str, int]:
    """What one exchange added to a client's usage; {} where it does not count."""
    if before is None or after is None:
        return {}
    return {name: getattr(after, name) - getattr(before, name) for name in after._fields if name != "requests"}


def _common(old: Wire, new: Wire) -> int:
    """How many messages two requests begin with alike."""
    same = 0
    for one, other in zip(old, islice(new, len(old)), strict=False):
        if one != other:
            break
        same += 1
    return same


def _lines(messages: Wire, tools: list[str]) -> list[str]:
    """A request in lines, for a diff that a person can read."""
    lines = ["tools: " + ", ".join(tools)]
    for message in messages:
        text = json.dumps({key: value for key, value in message.items() if key != "role"}, ensure_ascii=False)
        lines.append(f"{message['role']}: {text}")
    return lines
