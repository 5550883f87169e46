"""`todo_write`: a note that the model keeps reading. The tool, the frozen snapshot, the count of rounds without it.

Read `TodoTracker` from top to bottom. It does nothing to the world: it checks a whole list, puts it in the place of the
old one, and hands it back as the newest tool result. It never merges, and it never asks whether "completed" is true.
"""

from dataclasses import dataclass
from typing import Annotated, Literal, NamedTuple

from pydantic import Field, WithJsonSchema, with_config
from pydantic_core import to_json
from typing_extensions import TypedDict

from labkit.messages import SystemMessage, ToolResult
from labkit.tools import ToolDefinition, ToolInput

MAX_TODOS = 50
STALE_TOOL_ROUNDS = 3
TODO_STATUSES = ("pending", "in_progress", "completed")
TODO_STALE_REMINDER = (
    "Keep the TODO list current. Call todo_write with the complete task snapshot when the plan changes."
)
TODO_SYSTEM_PROMPT = (
    "\nFor complex tasks, call todo_write with the complete task snapshot and update it when the plan changes."
)

_WHITE = "\t\n\v\f\r\x1c\x1d\x1e\x1f \x85\xa0\u1680\u2028\u2029\u202f\u205f\u3000\ufeff" + "".join(
    map(chr, range(0x2000, 0x200B))
)
"""White space, and U+FEFF, which some editors put at the front of a text."""

_VISIBLE = r"[^\p{Z}\p{Cc}\p{Cf}\x{034F}\x{115F}\x{1160}\x{2800}\x{3164}\x{FFA0}]"
"""One character that a reader can see. Blank is more than white space: U+200B and its like show nothing either."""


Status = Literal["pending", "in_progress", "completed"]


class TodoItem(NamedTuple):
    """One line of the plan, frozen."""

    content: str
    status: Status


@with_config(ToolInput.model_config)
class TodoArguments(TypedDict):
    """One line as a model sends it, checked. A dict and no class of its own, since it is dropped at once."""

    content: Annotated[str, Field(pattern=_VISIBLE), WithJsonSchema({"type": "string", "minLength": 1})]
    status: Status


class TodoWriteInput(ToolInput):
    """The whole list, each time."""

    todos: Annotated[tuple[TodoArguments, ...], Field(max_length=MAX_TODOS)]


@dataclass(frozen=True, slots=True)
class TodoView:
    """The list and the count at one moment."""

    todos: tuple[TodoItem, ...]
    count: int


class TodoTracker:
    """One agent's list. A tool to the model, an observer to the loop; nothing on disk, nothing shared."""

    system_prompt = TODO_SYSTEM_PROMPT

    def __init__(self) -> None:
        self._todos: tuple[TodoItem, ...] = ()
        self._rounds_without_update = 0
        self.tool_definition = ToolDefinition(
            name="todo_write",
            description="Replace the current TODO list with a complete task snapshot.",
            input=TodoWriteInput,
            effect="write",
            handler=self._write,
        )

    @property
    def todos(self) -> tuple[TodoItem, ...]:
        """The snapshot: the same frozen object on each read, until an accepted call replaces it."""
        return self._todos

    def _write(self, given: TodoWriteInput) -> ToolResult:
        for item in given.todos:
            item["content"] = item["content"].strip(_WHITE)
        result = ToolResult(to_json({"todos": given.todos}, ensure_ascii=True).decode())
        lines = [(item["content"], item["status"]) for item in given.todos]
        # a line that did not change is not made again
        known: dict[tuple[str, Status], TodoItem] = {line: line for line in self._todos}
        # the only line that changes the list, and the last
        self._todos = tuple([known.get(line) or TodoItem(*line) for line in lines])
        return result

    # ---- what the loop tells and asks ----

    def begin_run(self) -> None:
        """A new run begins. The list and the count stay: they live as long as the agent."""

    def before_model(self) -> tuple[SystemMessage, ...]:
        """What is said in the next request only: the reminder, after three rounds of other tools. Clears the count."""
        if self._rounds_without_update < STALE_TOOL_ROUNDS:
            return ()
        self._rounds_without_update = 0
        return (SystemMessage(TODO_STALE_REMINDER),)

    def record_tool_round(self, names: tuple[str, ...]) -> tuple[SystemMessage, ...]:
        """A round is over; these tools were called. Counts the round, not the calls; no messages that stay."""
        if names:
            self._rounds_without_update = 0 if "todo_write" in names else self._rounds_without_update + 1
        return ()

    def view(self) -> TodoView:
        """The list and the count, frozen."""
        return TodoView(self._todos, self._rounds_without_update)
