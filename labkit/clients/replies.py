"""What servers really answer, read into one `AssistantMessage`. Servers differ; what they mean does not.

Read `whole` for a reply in one piece, then `Pieces` for one that streams; both end in `_message`, so both give the same
message. Nothing here is trusted to have its type: what can be read is read, the rest is left out.
"""

import json
from collections.abc import Iterable, Iterator
from typing import Any

from labkit.messages import AssistantMessage, ToolCall


class BadReply(Exception):
    """An answer that holds no reply. The text says what it was; `elsewhere`: no model's server would say that."""

    def __init__(self, text: str, *, elsewhere: bool = False) -> None:
        super().__init__(text)
        self.elsewhere = elsewhere


def whole(answer: object) -> AssistantMessage:
    """The reply in a decoded answer. BadReply when there is none in it."""
    choice = _first_choice(_checked(answer))
    if choice is None:
        raise BadReply("it holds no choices", elsewhere=isinstance(answer, dict) and "choices" not in answer)
    message = choice.get("message")
    if not isinstance(message, dict):
        raise BadReply("its first choice holds no message")
    calls = [_call(one) for one in _list(message.get("tool_calls"))]
    return _message(_text(message.get("content")), calls, choice.get("finish_reason"), _refusal(message))


class Pieces:
    """A reply that comes in pieces: `add` each, `message` in the end."""

    def __init__(self) -> None:
        self._text: list[str] = []
        self._refusal: list[str] = []
        self._calls: list[dict[str, Any]] = []
        self._finish: object = None
        self.usage: object = None

    def add(self, piece: object) -> str:
        """Take one decoded piece; returns the text it brought, if any. BadReply for an error in the stream."""
        answer = _checked(piece)
        self.usage = answer.get("usage") or self.usage
        choice = _first_choice(answer)
        if choice is None:
            return ""  # a piece that only reports usage
        self._finish = choice.get("finish_reason") or self._finish
        delta = choice.get("delta") or choice.get("message")
        if not isinstance(delta, dict):
            return ""
        for one in _list(delta.get("tool_calls")):
            self._add_call(one)
        self._refusal.append(_refusal(delta) or "")
        text = _text(delta.get("content"))
        self._text.append(text)
        return text

    def _add_call(self, piece: dict[str, Any]) -> None:
        """Join a piece to its call: by index; but another id is another call, since some servers index all with 0."""
        index, name = piece.get("index"), piece.get("id")
        mine = [one for one in self._calls if index is None or one["index"] == index]
        if not mine or (name and mine[-1]["id"] and name != mine[-1]["id"]):
            mine = [{"index": index, "id": None, "name": None, "arguments": []}]
            self._calls += mine
        call, function = mine[-1], piece.get("function")
        call["id"] = call["id"] or name
        if isinstance(function, dict):
            call["name"] = call["name"] or function.get("name")
            call["arguments"].append(function.get("arguments"))

    def message(self, *, ended: bool) -> AssistantMessage:
        """The reply. BadReply if the stream neither said how it finished nor ended as streams end."""
        if not (self._finish or ended):
            raise BadReply("it broke off in the middle of the reply")
        calls = []
        for one in self._calls:
            texts = [part for part in one["arguments"] if isinstance(part, str)]
            objects = [part for part in one["arguments"] if isinstance(part, dict)]
            given = "".join(texts) or (objects[-1] if objects else None)
            calls.append(_call({"id": one["id"], "function": {"name": one["name"], "arguments": given}}))
        return _message("".join(self._text), calls, self._finish, "".join(self._refusal) or None)


def events(chunks: Iterable[bytes]) -> Iterator[str]:
    """The data of each server-sent event. Comments and other fields are left out."""
    rest, data = b"", list[bytes]()
    for chunk in chunks:
        # subtle: only \n and \r end a line here; text methods would also cut at U+2028 inside a JSON string.
        *lines, rest = (rest + chunk).split(b"\n")
        for line in lines:
            line = line.removesuffix(b"\r")
            if line.startswith(b"data:"):
                data.append(line[5:].removeprefix(b" "))
            elif not line and data:
                yield b"\n".join(data).decode("utf-8", "replace")
                data = []
    if rest.startswith(b"data:"):
        data.append(rest[5:].strip())
    if data and _is_whole(b"\n".join(data)):
        yield b"\n".join(data).decode("utf-8", "replace")


def _is_whole(data: bytes) -> bool:
    """Whether an event whose closing line never came was all there; else the connection broke inside it."""
    try:
        return data == b"[DONE]" or bool(json.loads(data))
    except ValueError:
        return False


def decoded(text: str | bytes) -> object:
    """The JSON. BadReply, with a hint where it is a web page."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        start = text[:200].lstrip()[:1]
        kind = "a web page, not JSON" if start in ("<", b"<") else "not JSON" if start else "empty"
        raise BadReply(f"it is {kind}", elsewhere=True) from None


def words_of(error: object) -> str:
    """What an error body says, in whichever place this server says it."""
    if isinstance(error, dict):
        for key in ("error", "message", "detail", "msg"):
            if error.get(key):
                return words_of(error[key])
    return error if isinstance(error, str) else json.dumps(error, default=str)


def _checked(answer: object) -> dict[str, Any]:
    if not isinstance(answer, dict):
        raise BadReply(f"it is JSON, but a {type(answer).__name__} and no object", elsewhere=True)
    if answer.get("error"):
        raise BadReply(f"it is an error: {words_of(answer)}")
    return answer


def _first_choice(answer: dict[str, Any]) -> dict[str, Any] | None:
    choices = _list(answer.get("choices"))
    return choices[0] if choices else None


def _list(value: object) -> list[dict[str, Any]]:
    """The objects in a list; a lone object counts as a list of one, null as none."""
    found = [value] if isinstance(value, dict) else value if isinstance(value, list) else []
    return [one for one in found if isinstance(one, dict)]


def _text(content: object) -> str:
    """Content as text: null is none, of a list the text parts."""
    if isinstance(content, str):
        return content
    return "".join(part["text"] for part in _list(content) if isinstance(part.get("text"), str))


def _refusal(message: dict[str, Any]) -> str | None:
    found = [message, *_list(message.get("content"))]
    return "".join(one["refusal"] for one in found if isinstance(one.get("refusal"), str)) or None


def _call(given: dict[str, Any]) -> ToolCall:
    function = given.get("function")
    function = function if isinstance(function, dict) else {}
    ident, name = given.get("id"), function.get("name")
    return ToolCall(
        "" if ident is None else str(ident), "" if name is None else str(name), function.get("arguments", "{}")
    )


def _message(text: str, calls: list[ToolCall], finish: object, refusal: str | None) -> AssistantMessage:
    return AssistantMessage(text, tuple(calls), finish if isinstance(finish, str) else None, refusal)
