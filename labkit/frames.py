"""A run in words: one frame for each round. Pure; the stepper, the command line and the tests show these.

Read `frames_of` first. A frame says what was new in the request and what was in it once, the reply, what came of each
call, the list and the count before and after, and how large the request was. Nothing here runs anything.
"""

import html
import json
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from labkit.loop import Round, RunResult, Settled
from labkit.messages import AssistantMessage, Message, ToolMessage

SHOWN = 300
"""So many characters of one text are shown; of the rest the number is given."""

_ROLES = {"SystemMessage": "system", "UserMessage": "user", "AssistantMessage": "assistant", "ToolMessage": "tool"}


class Part(NamedTuple):
    """A heading and its lines."""

    heading: str
    lines: tuple[str, ...] = ()


class Frame(NamedTuple):
    """One round in words. `size` is the request's, in characters of its messages' JSON; `shared` is the part of it that
    stood at the front of the request before, unchanged, in whole messages."""

    number: int
    title: str
    size: int
    shared: int
    parts: tuple[Part, ...]

    def __repr__(self) -> str:
        lines = [self.title]
        for part in self.parts:
            lines.append(f"  {part.heading}")
            lines += [f"    {line}" for text in part.lines for line in text.split("\n")]
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        return f"<section><h4>{html.escape(self.title)}</h4>{self.body_html()}</section>"

    def body_html(self) -> str:
        """The parts as lists, readable without any style."""
        return "".join(
            f"<p><b>{html.escape(part.heading)}</b></p>"
            + ("<ul>" + "".join(map(_item_html, part.lines)) + "</ul>" if part.lines else "")
            for part in self.parts
        )


class Frames(tuple[Frame, ...]):
    """The frames of a run. Its repr is their whole text."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "\n\n".join(map(repr, self)) or "no rounds yet"

    def _repr_html_(self) -> str:
        return (
            "".join(
                f"<details open><summary><b>{html.escape(frame.title)}</b></summary>{frame.body_html()}</details>"
                for frame in self
            )
            or "<p>no rounds yet</p>"
        )


def frames_of(source: RunResult | Iterable[Round]) -> Frames:
    """The frames of a run, or of any rounds of one agent, in order. Linear in the rounds."""
    return Frames(framed(source.rounds if isinstance(source, RunResult) else source))


def framed(rounds: Iterable[Round]) -> Iterator[Frame]:
    """Each round as a frame, as it comes."""
    known = size = 0  # of the request before: its messages without guidance, and their characters
    for turn in rounds:
        messages = turn.request.messages
        once = messages.tail
        new = messages[known : len(messages) - len(once)]
        shared, known = size, len(messages) - len(once)
        size += sum(map(_size, new))
        yield Frame(
            turn.number,
            f"Round {turn.number}: {_what(turn)}",
            size + sum(map(_size, once)),
            shared,
            tuple(_parts(turn, new, once, size + sum(map(_size, once)), shared)),
        )


def checklist(todos: Iterable[Any], before: Iterable[Any] | None = None) -> tuple[str, ...]:
    """A list in words, one line an item; with `before`, what was added, changed and removed since."""
    old = list(before or ())
    lines = []
    for item in todos:
        match = next((other for other in old if _label(other) == _label(item)), None)
        if match is not None:
            old.remove(match)
        told = f"was {match.status}" if match is not None and match.status != item.status else ""
        told = "added" if match is None and before is not None else told
        lines.append(f"[{item.status}] {cut(_label(item))}" + (f"  ({told})" if told else ""))
    return (*lines, *[f"removed: [{item.status}] {cut(_label(item))}" for item in old])


def cut(text: str, shown: int = SHOWN) -> str:
    """The text, or its beginning and how much more there is."""
    return text if len(text) <= shown else f"{text[:shown]}... [{len(text) - shown} more characters]"


# ---- the parts of a frame ----


def _parts(turn: Round, new: tuple[Message, ...], once: tuple[Message, ...], size: int, shared: int) -> Iterator[Part]:
    count = len(turn.request.messages)
    yield Part(
        f"request {turn.number}: {count} message{'s' * (count != 1)}, {size} characters, "
        f"the first {shared} as in the request before",
        (*[f"new: {_line(message)}" for message in new], *[f"in this request only: {_line(one)}" for one in once]),
    )
    yield Part("reply", (_line(turn.reply),))
    if turn.settled:
        yield Part("calls", tuple(map(_settled, turn.settled)))
    if hasattr(turn.before, "count"):
        yield Part(f"rounds without an update: {turn.before.count} before, {turn.after.count} after")
    if hasattr(turn.before, "todos"):
        yield from _list_part(turn.before.todos, turn.after.todos)
    if turn.kept or turn.context:
        yield Part("stays in the history", tuple(map(_line, (*turn.kept, *turn.context))))
    if turn.notes:
        yield Part("notes", turn.notes)
    yield Part(f"the run ended: {turn.stop_reason}" if turn.stop_reason else "the run goes on")


def _list_part(before: Any, after: Any) -> Iterator[Part]:
    if tuple(before) == tuple(after):
        yield Part("the list: unchanged" if after else "the list: empty", checklist(after))
    else:
        done = sum(item.status == "completed" for item in after)
        heading = f"the list: replaced, {len(before)} items before, {len(after)} after, {done} completed"
        yield Part(heading, checklist(after, before))


def _settled(one: Settled) -> str:
    call, result, audit = one
    if audit is None:
        decision = f"refused [{result.error}]" if result.error else "run"
    else:
        word = {"allow": "allowed", "deny": "denied", "ask": "asked"}[audit.decision]
        asked = " after asking" if audit.asked else ""
        decision = f"{word}{asked} ({audit.source}: {audit.reason})"
        decision += f", failed [{result.error}]" if result.error and audit.decision == "allow" else ""
    return f"{call.id} {call.name} {cut(call.arguments)}\n  {decision}\n  {cut(result.content)}"


def _what(turn: Round) -> str:
    names = [call.name for call in turn.reply.tool_calls]
    return ", ".join(names) if names else "an answer in text" if turn.stop_reason == "completed" else "a reply in text"


def _line(message: Message) -> str:
    """A message on one line: role, id, text."""
    role = _ROLES[type(message).__name__]
    if isinstance(message, ToolMessage):
        return f"{role} {message.tool_call_id}: {cut(message.content)}"
    text = message.content
    if isinstance(message, AssistantMessage):
        calls = ", ".join(f"{call.id} {call.name}" for call in message.tool_calls)
        text = " ".join(filter(None, [message.refusal and f"(refusal) {message.refusal}", text]))
        if calls:
            return f"{role}: {cut(text)} calls {calls}" if text else f"{role}: calls {calls}"
    return f"{role}: {cut(text) or '(no text)'}"


def _label(item: Any) -> str:
    """An item's text, with its id where the design has one."""
    text: str = item.content if hasattr(item, "content") else item.text
    return f"#{item.id}: {text}" if hasattr(item, "id") else text


def _size(message: Message) -> int:
    """Characters of a message as JSON, and of the comma behind it."""
    return len(json.dumps(message.to_openai(), ensure_ascii=False, separators=(",", ":"))) + 1


def _item_html(line: str) -> str:
    return f'<li style="white-space: pre-wrap">{html.escape(line)}</li>'
