"""A run in words: one frame for each round. Pure; the stepper, the command line and the tests show these.

Read `frames_of` first. A frame says what was new in the request and what was in it once, the reply, what came of each
call, the list and the count before and after, and how large the request was. Nothing here runs anything.
"""

import html
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from labkit.loop import Round, RunResult, Settled
from labkit.messages import AssistantMessage, Message, ToolMessage

SHOWN = 300
"""So many characters of one text are shown; of the rest the number is given."""

_UNSEEN = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff]")
"""Characters that show nothing, or tell a terminal to do something: a model could hide with them what it asks for."""

_NOT_RUN = ("unknown_tool", "invalid_json", "invalid_arguments", "truncated", "cancelled")

_PLAIN = 'class="tex2jax_ignore"'
"""JupyterLab takes what stands between two dollar signs for a formula, but not inside this class."""

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
            lines += [f"    {line}".rstrip() for text in part.lines for line in text.split("\n")]
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        return f"<section {_PLAIN}><h4>{html.escape(self.title)}</h4>{self.body_html()}</section>"

    def body_html(self) -> str:
        """The parts as lists, readable without any style."""
        return "".join(
            f'<p style="margin: 0.4em 0 0"><b>{html.escape(part.heading)}</b></p>'
            + ('<ul style="margin: 0">' + "".join(map(_item_html, part.lines)) + "</ul>" if part.lines else "")
            for part in self.parts
        )


class Frames(tuple[Frame, ...]):
    """The frames of a run. Its repr is their whole text."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "\n\n".join(map(repr, self)) or "no rounds yet"

    def _repr_html_(self) -> str:
        frames = "".join(
            f"<details open><summary><b>{html.escape(frame.title)}</b></summary>{frame.body_html()}</details>"
            for frame in self
        )
        return f"<div {_PLAIN}>{frames or '<p>no rounds yet</p>'}</div>"


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
        whole = size + sum(map(_size, once))
        parts = tuple(_parts(turn, new, once, whole, shared))
        yield Frame(turn.number, f"Round {turn.number}: {_what(turn)}", whole, shared, parts)


def checklist(todos: Iterable[Any], before: Iterable[Any] | None = None) -> tuple[str, ...]:
    """A list in words, one line an item; with `before`, what was added, changed and removed since.

    An item is known again by its id, or by its text where the design has no ids.
    """
    now, old = list(todos), list(before or ())
    known = _known_again(now, old)
    lines = []
    for at, item in enumerate(now):
        told = _changes(old[known[at]] if at in known else None, item) if before is not None else []
        lines.append(_whole(item) + (f"  ({', '.join(told)})" if told else ""))
    kept = set(known.values())
    return (*lines, *[f"removed: {_whole(item)}" for at, item in enumerate(old) if at not in kept])


def completed(todos: Iterable[Any]) -> int:
    """How many items of a list say that they are completed."""
    return sum(_field(item, "status") == "completed" for item in todos)


def cut(text: str, shown: int | None = SHOWN) -> str:
    """The text, or its beginning and how much more there is; what cannot be seen in it as an escape."""
    more = 0 if shown is None else len(text) - shown
    text = _UNSEEN.sub(lambda found: found[0].encode("unicode_escape").decode(), text[:shown])
    return f"{text}... [{more} more characters]" if more > 0 else text


# ---- the parts of a frame ----


def _parts(turn: Round, new: tuple[Message, ...], once: tuple[Message, ...], size: int, shared: int) -> Iterator[Part]:
    count = len(turn.request.messages)
    yield Part(
        f"request {turn.number}: {count} message{'s' * (count != 1)}, {size} characters"
        + (f", the first {shared} as in the request before" if shared else ""),
        (*[f"new: {_line(message)}" for message in new], *[f"in this request only: {_line(one)}" for one in once]),
    )
    yield Part("reply", (_line(turn.reply),))
    if turn.settled:
        yield Part("calls", tuple(map(_settled, turn.settled)))
    # subtle: a view is whatever an observer likes, a tuple too, whose `count` is a method
    counts = [getattr(view, "count", None) for view in (turn.before, turn.after)]
    if all(isinstance(count, int) for count in counts):
        yield Part(f"rounds without an update: {counts[0]} before, {counts[1]} after")
    if hasattr(turn.before, "todos") and hasattr(turn.after, "todos"):
        yield _list_part(tuple(turn.before.todos), tuple(turn.after.todos))
    if turn.kept or turn.context:
        yield Part("stays in the history", tuple(map(_line, (*turn.kept, *turn.context))))
    if turn.notes:
        yield Part("notes", tuple(map(_indented, turn.notes)))
    yield Part(f"the run ended: {turn.stop_reason}" if turn.stop_reason else "the run goes on")


def _list_part(before: tuple[Any, ...], after: tuple[Any, ...]) -> Part:
    if before == after:
        return Part("the list: unchanged" if after else "the list: empty", checklist(after))
    heading = f"the list: replaced, {len(before)} items before, {len(after)} after, {completed(after)} completed"
    return Part(heading, checklist(after, before))


_RAN = ("tool_execution_error", "invalid_tool_result")


def _settled(one: Settled) -> str:
    call, result, audit = one
    if audit is None:
        decision = f"run, failed [{result.error}]" if result.error else "run"
        if result.error in _NOT_RUN or (result.error or "").startswith("hook_"):
            decision = f"refused [{result.error}]"
    else:
        word = {"allow": "allowed", "deny": "denied", "ask": "asked"}[audit.decision]
        asked = " after asking" if audit.asked else ""
        decision = f"{word}{asked} ({audit.source}: {audit.reason})"
        decision += f", failed [{result.error}]" if result.error and audit.decision == "allow" else ""
    return f"{cut(call.id)} {cut(call.name)} {_indented(call.arguments)}\n  {decision}\n  {_indented(result.content)}"


def _what(turn: Round) -> str:
    names = [cut(call.name) for call in turn.reply.tool_calls]
    return ", ".join(names) if names else "an answer in text" if turn.stop_reason == "completed" else "a reply in text"


def _line(message: Message) -> str:
    """A message on one line: role, id, text."""
    role = _ROLES[type(message).__name__]
    if isinstance(message, ToolMessage):
        return f"{role} {cut(message.tool_call_id)}: {_indented(message.content)}"
    text = message.content
    if isinstance(message, AssistantMessage):
        calls = ", ".join(f"{cut(call.id)} {cut(call.name)}" for call in message.tool_calls)
        text = " ".join(filter(None, [message.refusal and f"(refusal) {message.refusal}", text]))
        if calls:
            return f"{role}: {_indented(text)} calls {calls}" if text else f"{role}: calls {calls}"
    return f"{role}: {_indented(text) or '(no text)'}"


def _indented(text: str) -> str:
    """The text cut, its further lines set in: a text cannot look like a line of the frame."""
    return cut(text).replace("\n", "\n    ")


def _field(item: Any, name: str) -> Any:
    return item.get(name) if isinstance(item, Mapping) else getattr(item, name, None)


def _text(item: Any) -> str:
    """What an item says; designs call it content or text, and a student's own may be anything."""
    words = _field(item, "content") or _field(item, "text")
    return cut(str(item if words is None else words)).replace("\n", " ")


def _label(item: Any) -> str:
    """An item's text, with its id where the design has one."""
    id = _field(item, "id")
    return _text(item) if id is None else f"#{cut(str(id))}: {_text(item)}"


def _whole(item: Any) -> str:
    """An item in words: its status, its id, its text."""
    return f"[{_field(item, 'status')}] {_label(item)}"


def _known_again(now: list[Any], old: list[Any]) -> dict[int, int]:
    """Which of the new items (by place) was which of the old."""
    known: dict[int, int] = {}
    # twins first: of equal items none is called changed while another is called removed
    for key in (_whole, _label, lambda item: str(_field(item, "id") or "")):
        waiting: dict[str, list[int]] = {}
        for at, item in enumerate(old):
            if at not in known.values():
                waiting.setdefault(key(item), []).append(at)
        for at, item in enumerate(now):
            if at not in known and key(item) and waiting.get(key(item)):
                known[at] = waiting[key(item)].pop(0)
    return known


def _changes(old: Any, item: Any) -> list[str]:
    """What became of an item."""
    if old is None:
        return ["added"]
    told = [f"was {_field(old, 'status')}"] if _field(old, "status") != _field(item, "status") else []
    return [*told, *[f"was: {_text(old)}"] * (_text(old) != _text(item))]


def _size(message: Message) -> int:
    """Characters of a message as JSON, and of the comma behind it."""
    return len(json.dumps(message.to_openai(), ensure_ascii=False, separators=(",", ":"))) + 1


def _item_html(line: str) -> str:
    return f'<li style="white-space: pre-wrap; overflow-wrap: anywhere">{html.escape(line)}</li>'
