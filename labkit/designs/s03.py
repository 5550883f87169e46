"""The design called s03: items with ids, checked by hand, and a reminder that comes again each round once it has begun.

Read `TodoManager._write` first, then `record_tool_round`; beside them lie `labkit.todos` and `labkit.designs.day55`.
The quirks and the words are the published ones and the lesson is in them, so nothing is mended here. What differs: a
list belongs to whom the tracker is given to, not to the process.
"""

from dataclasses import dataclass
from typing import Any

from labkit.messages import ToolResult, UserMessage, sendable
from labkit.tools import OpenInput, ToolDefinition

MAX_TODOS = 20
STALE_TOOL_ROUNDS = 3
STATUSES = ("pending", "in_progress", "completed")
REMINDER = "<reminder>Update your todos.</reminder>"
SYSTEM_PROMPT = (
    "\nUse the todo tool to plan multi-step tasks. "
    "Mark in_progress before starting, completed when done. Prefer tools over prose."
)

_MARKS = {"pending": "[ ]", "in_progress": "[>]", "completed": "[x]"}


@dataclass(frozen=True, slots=True)
class Item:
    """One line of the list."""

    id: str
    text: str
    status: str


@dataclass(frozen=True, slots=True)
class View:
    """The list and the count at one moment."""

    todos: tuple[Item, ...]
    count: int


class TodoManager:
    """A tracker with the published name."""

    system_prompt = SYSTEM_PROMPT

    def __init__(self) -> None:
        self._todos: tuple[Item, ...] = ()
        self._rounds_without_update = 0
        self.tool_definition = ToolDefinition(
            name="todo",
            description="Update task list. Track progress on multi-step tasks.",
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
            todos = _checked(given.given)
        except _Fault as fault:
            return ToolResult(f"Error: {fault}", "invalid_arguments")
        self._todos = todos
        return ToolResult(_checklist(todos))

    # ---- what the loop tells and asks ----

    def begin_run(self) -> None:
        """A new run begins: the count starts anew, the list stays."""
        self._rounds_without_update = 0

    def before_model(self) -> tuple[UserMessage, ...]:
        """Nothing: this design says nothing that is for one request only."""
        return ()

    def record_tool_round(self, names: tuple[str, ...]) -> tuple[UserMessage, ...]:
        """Counts the round. From the third without `todo` on, each returns the reminder, which stays in the history."""
        if not names:
            return ()
        # Only the tool clears the count; the reminder does not. So one is added each round until the model answers.
        self._rounds_without_update = 0 if "todo" in names else self._rounds_without_update + 1
        return (UserMessage(REMINDER),) if self._rounds_without_update >= STALE_TOOL_ROUNDS else ()

    def view(self) -> View:
        """The list and the count, frozen."""
        return View(self._todos, self._rounds_without_update)


def _schema() -> dict[str, Any]:
    """What is sent. The cap of 20 is not in it: the model learns of it by a refusal."""
    item = {
        "type": "object",
        "properties": {
            "id": {"type": "string"},
            "text": {"type": "string"},
            "status": {"type": "string", "enum": list(STATUSES)},
        },
        "required": ["id", "text", "status"],
    }
    return {
        "type": "object",
        "properties": {"items": {"type": "array", "items": item}},
        "required": ["items"],
    }


# ---- from whatever a model sent to a list, or to the first fault ----


class _Fault(Exception):
    """Why a list was refused, in the published words."""


def _checked(given: dict[str, Any]) -> tuple[Item, ...]:
    # The odd words below are Python's own: the published code never asks what shape it was given.
    if "items" not in given:
        raise _Fault("'items'")
    found = given["items"]
    if not isinstance(found, list | str | dict):
        raise _Fault(f"object of type '{type(found).__name__}' has no len()")
    if len(found) > MAX_TODOS:
        raise _Fault(f"Max {MAX_TODOS} todos allowed")  # subtle: of a list sent as text, these are its characters
    if not isinstance(found, list):
        raise _Fault("'str' object has no attribute 'get'")
    items = tuple([_item(at, todo) for at, todo in enumerate(found)])
    if sum(item.status == "in_progress" for item in items) > 1:
        raise _Fault("Only one task can be in_progress at a time")
    return items


def _item(at: int, todo: object) -> Item:
    if not isinstance(todo, dict):
        raise _Fault(f"'{type(todo).__name__}' object has no attribute 'get'")
    text = _text(todo.get("text", "")).strip()
    status = _text(todo.get("status", "pending")).lower()
    number = _text(todo.get("id", at + 1))
    if not text:
        raise _Fault(f"Item {number}: text required")
    if status not in STATUSES:
        raise _Fault(f"Item {number}: invalid status '{status}'")
    return Item(number, text, status)


def _text(value: object) -> str:
    """Any value as text: 123 is "123", null is "None"."""
    return sendable(str(value))


def _checklist(todos: tuple[Item, ...]) -> str:
    if not todos:
        return "No todos."
    lines = [f"{_MARKS[item.status]} #{item.id}: {item.text}" for item in todos]
    done = sum(item.status == "completed" for item in todos)
    return "\n".join([*lines, "", f"({done}/{len(todos)} completed)"])
