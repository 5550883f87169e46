"""The design called day55: a tolerant `todo_write` whose reminder stays in the history and then starts counting anew.

Read `TodoManager._write` first, then `record_tool_round`; beside them lie `labkit.todos` and `labkit.designs.s03`. The
quirks and the words are the published ones and the lesson is in them, so nothing is mended here. Two things differ: a
list belongs to whom the tracker is given to, not to the process, and text that a model wrote has bounds.
"""

import ast
import json
import re
import warnings
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from itertools import accumulate
from typing import Any

from labkit.messages import ToolResult, UserMessage, sendable
from labkit.tools import OpenInput, ToolDefinition

MAX_TODOS = 20
MAX_TEXT = 100_000
"""A list sent as text is read up to so many characters ..."""
MAX_TEXT_DEPTH = 50
"""... and so many brackets inside each other."""
STALE_TOOL_ROUNDS = 3
STATUSES = ("pending", "in_progress", "completed")
REMINDER = "<reminder>Update your todos.</reminder>"
SYSTEM_PROMPT = "\nBefore starting any multi-step task, use todo_write to plan your steps. Update status as you go."

_MARKS = {"pending": "[ ]", "in_progress": "[>]", "completed": "[x]"}
# A text in quotes, also one that never ends: what stands in it is no bracket.
_QUOTED = re.compile(r""" "(?:[^"\\]|\\.)*"? | '(?:[^'\\]|\\.)*'? """, re.VERBOSE | re.DOTALL)


@dataclass(frozen=True, slots=True)
class Item:
    """One line of the list."""

    content: str
    status: str


@dataclass(frozen=True, slots=True)
class View:
    """The list and the count at one moment."""

    todos: tuple[Item, ...]
    count: int


class TodoManager:
    """A tracker with the published name. `show` is told, for the person who watches, of each list that was accepted."""

    system_prompt = SYSTEM_PROMPT

    def __init__(self, show: Callable[[str], object] | None = None) -> None:
        self._show = show
        self._todos: tuple[Item, ...] = ()
        self._rounds_without_update = 0
        self.tool_definition = ToolDefinition(
            name="todo_write",
            description="Create and manage a task list for your current coding session.",
            input=OpenInput,
            effect="write",
            handler=self._write,
            schema=_schema(),
        )

    @property
    def todos(self) -> tuple[Item, ...]:
        """The list: the same object on each read, until an accepted call replaces it."""
        return self._todos

    def _write(self, given: OpenInput) -> ToolResult:
        try:
            todos = _checked(given.given.get("todos"))
        except _Fault as fault:
            return ToolResult(f"Error: {fault}", "invalid_arguments")
        text = _checklist(todos)
        self._todos = todos
        if self._show:
            with suppress(Exception):  # subtle: the list is replaced; a broken screen must not tell the model otherwise
                self._show(f"## Current Tasks\n{text}")
        return ToolResult(text)

    # ---- what the loop tells and asks ----

    def begin_run(self) -> None:
        """A new run begins: the count starts anew, the list stays."""
        self._rounds_without_update = 0

    def before_model(self) -> tuple[UserMessage, ...]:
        """Nothing: this design says nothing that is for one request only."""
        return ()

    def record_tool_round(self, names: tuple[str, ...]) -> tuple[UserMessage, ...]:
        """Counts the round. The third without `todo_write` returns the reminder, which stays, and clears the count."""
        if not names:
            return ()
        self._rounds_without_update = 0 if "todo_write" in names else self._rounds_without_update + 1
        if self._rounds_without_update < STALE_TOOL_ROUNDS:
            return ()
        self._rounds_without_update = 0
        return (UserMessage(REMINDER),)

    def view(self) -> View:
        """The list and the count, frozen."""
        return View(self._todos, self._rounds_without_update)


def in_yellow(panel: str) -> str:
    """The panel as the published terminal shows it: its first line in yellow."""
    title, _, rest = panel.partition("\n")
    return f"\x1b[33m{title}\x1b[0m\n{rest}"


def _schema() -> dict[str, Any]:
    """What is sent. The tracker takes more than it shows: that is a quirk, too."""
    item = {
        "type": "object",
        "properties": {
            "content": {"type": "string", "minLength": 1},
            "status": {"type": "string", "enum": list(STATUSES)},
        },
        "required": ["content", "status"],
    }
    return {
        "type": "object",
        "properties": {"todos": {"type": "array", "items": item, "maxItems": MAX_TODOS}},
        "required": ["todos"],
    }


# ---- from whatever a model sent to a list, or to the first fault ----


class _Fault(Exception):
    """Why a list was refused, in the published words."""


def _checked(given: object) -> tuple[Item, ...]:
    todos = _parsed(given) if isinstance(given, str) else given
    if not isinstance(todos, list):
        raise _Fault("todos must be a list")
    if len(todos) > MAX_TODOS:
        raise _Fault(f"Max {MAX_TODOS} todos allowed")
    items = tuple([_item(at, todo) for at, todo in enumerate(todos)])
    if sum(item.status == "in_progress" for item in items) > 1:
        raise _Fault("Only one todo can be in_progress at a time")
    return items


def _parsed(text: str) -> object:
    """The value of a list sent as text: JSON, or else a Python literal. Nothing in it is ever run."""
    if len(text) <= MAX_TEXT and _depth(text) <= MAX_TEXT_DEPTH:
        with suppress(ValueError, RecursionError):
            return json.loads(text)
        # subtle: minus signs and comments nest where no bracket shows, so the parser's own limits are needed as well.
        with suppress(ValueError, TypeError, SyntaxError, MemoryError, RecursionError), warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the model's text has odd escapes; nobody here can mend them
            return ast.literal_eval(text)
    raise _Fault("todos must be a list or JSON array string")


def _depth(text: str) -> int:
    """How deep its brackets nest."""
    brackets = re.findall(r"[][(){}]", _QUOTED.sub("", text))
    return max(accumulate(1 if bracket in "[({" else -1 for bracket in brackets), default=0)


def _item(at: int, todo: object) -> Item:
    if not isinstance(todo, dict):
        raise _Fault(f"todos[{at}] must be an object")
    content = _text(todo.get("content", "")).strip()
    status = _text(todo.get("status", "pending")).lower()
    if not content:
        raise _Fault(f"todos[{at}] requires content")
    if status not in STATUSES:
        raise _Fault(f"todos[{at}] has invalid status '{status}'")
    return Item(content, status)


def _text(value: object) -> str:
    """Any value as text: 123 is "123", null is "None". A number too long to be written out is blank."""
    try:
        return sendable(str(value))
    except (ValueError, RecursionError):
        return ""


def _checklist(todos: tuple[Item, ...]) -> str:
    if not todos:
        return "No todos."
    lines = [f"{_MARKS[item.status]} {item.content}" for item in todos]
    done = sum(item.status == "completed" for item in todos)
    return "\n".join([*lines, "", f"({done}/{len(todos)} completed)"])
