"""Three designs, one script: the same words said to each, and what came of it as a table.

Read `Design` first: it puts one list into each design's own terms. Then `comparison`, a table of which no cell is
written by hand: each comes from a run on the loop with a scripted model.
"""

import json
import re
import tempfile
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

from labkit.classroom.figures import REMINDERS, html_table, request_size, table, timeline, wire_size
from labkit.clients.scripted import Entry, ScriptedModelClient, call, say
from labkit.designs import day55, s03
from labkit.loop import Round
from labkit.messages import ToolCall, UserMessage
from labkit.model import MessageView
from labkit.profiles import P05, Tracker, build_agent
from labkit.todos import TodoTracker


@dataclass(frozen=True, slots=True)
class Design:
    """A design and its words: how to make its tracker, and what it calls its tool, the list and the text of an item."""

    name: str
    tracker: Callable[[], Tracker]
    tool: str
    key: str
    word: str

    def items(self, *todos: tuple[object, str | None]) -> list[dict[str, object]]:
        """Pairs of text and status as this design's items, with ids where it has them; a status of None is left out."""
        made = []
        for at, (text, status) in enumerate(todos, 1):
            item: dict[str, object] = {"id": str(at)} if self.word == "text" else {}
            made.append({**item, self.word: text, **({"status": status} if status is not None else {})})
        return made

    def update(self, *todos: tuple[object, str | None]) -> ToolCall:
        """A call of this design's tool with these items."""
        return self.send(self.items(*todos))

    def send(self, value: object) -> ToolCall:
        """A call of this design's tool with any value in the place of the list."""
        arguments: dict[str, Any] = {self.key: value}
        return call(self.tool, **arguments)


DESIGNS = (
    Design("P05", TodoTracker, "todo_write", "todos", "content"),
    Design("day55", day55.TodoManager, "todo_write", "todos", "content"),
    Design("s03", s03.TodoManager, "todo", "items", "text"),
)

Script = Callable[[Design], Iterable[Entry]]


class Ran(NamedTuple):
    """What a design made of a script: the rounds of all its runs, its list at the end, its history."""

    design: Design
    rounds: tuple[Round, ...]
    todos: Sequence[Any]
    history: MessageView

    @property
    def answers(self) -> tuple[str, ...]:
        """What each call of the todo tool got back, in order."""
        settled = chain.from_iterable(one.settled for one in self.rounds)
        return tuple([one.result.content for one in settled if one.call.name == self.design.tool])

    @property
    def plan(self) -> str:
        """The list at the end in one line: `read: completed, edit: pending`."""
        return ", ".join(f"{getattr(item, self.design.word)}: {item.status}" for item in self.todos) or "empty"


def run_in(design: Design, script: Script, prompts: Sequence[str] = ("go",), **parts: Any) -> Ran:
    """Say a script to a fresh agent of a design, in a workspace of its own that holds `a.txt`; one run for a prompt.

    `parts` are arguments of `build_agent` in place of those chosen here, such as `todos` or `hooks`.
    """
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "a.txt").write_text(" ".join(["a line;"] * 20) + ".", encoding="utf-8")
        model = ScriptedModelClient(script(design))
        parts = {"todos": design.tracker(), "max_rounds": 100, **parts}
        agent = build_agent(P05, model, workspace=folder, **parts)
        rounds = tuple(chain.from_iterable([agent.run(prompt).rounds for prompt in prompts]))
        return Ran(design, rounds, agent.todos, agent.history)


_WIDE = 110
"""A table of several columns with longer lines is written as blocks, one for a row."""


class Table(NamedTuple):
    """Rows of text under names. `repr` is the whole of it; a browser shows the same cells as an HTML table."""

    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]

    def __repr__(self) -> str:
        # A checklist has lines of its own; in the table they stand beside each other.
        rows = [[re.sub("\n+", " / ", cell) for cell in row] for row in self.rows]
        side_by_side = table(self.columns, rows)
        if len(self.columns) == 2 or max(map(len, side_by_side.splitlines())) <= _WIDE:
            return side_by_side
        widest = max(map(len, self.columns[1:]))
        lines = []
        for first, *others in rows:
            lines.append(first)
            lines += [f"  {name:{widest}}  {cell}" for name, cell in zip(self.columns[1:], others, strict=True)]
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        return html_table(self.columns, self.rows)


def in_each(script: Script, see: Callable[[Ran], str], prompts: Sequence[str] = ("go",)) -> Table:
    """Run a script in each design, and what `see` finds in it: a row for a design."""
    return Table(
        ("design", "what came of it"),
        tuple([(design.name, see(run_in(design, script, prompts))) for design in DESIGNS]),
    )


# ---- the scripts of the comparison, each with what to look at ----


def read() -> ToolCall:
    """A call that is no update."""
    return call("read_file", path="a.txt")


def ten_requests(design: Design) -> list[Entry]:
    """Nine rounds of another tool, then an answer: ten requests and no update."""
    return [*[read()] * 9, say("done")]


def first_answer(ran: Ran) -> str:
    """What the first todo call got back."""
    return ran.answers[0]


def _update(design: Design) -> list[Entry]:
    return [design.update(("read", "completed"), ("edit", "in_progress")), say("done")]


def _as_text(design: Design) -> list[Entry]:
    return [design.send(json.dumps(design.items(("read", "pending")))), say("done")]


def _two_in_progress(design: Design) -> list[Entry]:
    return [design.update(("read", "in_progress"), ("edit", "in_progress")), say("done")]


def _no_status(design: Design) -> list[Entry]:
    return [design.update(("read", None)), say("done")]


def _refused(design: Design) -> list[Entry]:
    return [design.update(("read", "pending")), design.update((" ", "pending")), say("done")]


def _two_updates(design: Design) -> list[Entry]:
    return [[design.update(("read", "pending")), design.update(("edit", "pending"))], say("done")]


def _new_turn(design: Design) -> list[Entry]:
    return [design.update(("read", "pending")), read(), read(), say("done"), read(), say("done")]


def _grown(ran: Ran) -> str:
    """The size of the last request, and how much of it is reminders."""
    request = ran.rounds[-1].request
    held = [wire_size(message) for message in request.messages if message.content in REMINDERS]
    return f"{request_size(request):,} characters, {sum(held):,} of them in {len(held)} reminder{'s'[: len(held) > 1]}"


def _tool(ran: Ran) -> str:
    tool = ran.rounds[0].request.tools[-1]
    return f"{tool.name}({ran.design.key})"


def _reminder(ran: Ran) -> str:
    """Who says the reminder in request 4, and where in the request it stands."""
    request = ran.rounds[3].request
    who = "user" if isinstance(request.messages[-1], UserMessage) else "system"
    stays = request.messages[-1] in list(ran.history)
    return f"last message, role {who}, " + ("stays in the history" if stays else "in this request only")


def _counts(ran: Ran) -> str:
    return (
        "list "
        + ("kept" if ran.todos else "gone")
        + ", count before each request "
        + " ".join(str(one.before.count) for one in ran.rounds)
    )


_ROWS: tuple[tuple[str, Script, Callable[[Ran], str], tuple[str, ...]], ...] = (
    ("tool", ten_requests, _tool, ("go",)),
    ("an update's result", _update, first_answer, ("go",)),
    ("a list sent as text", _as_text, first_answer, ("go",)),
    ("two in_progress", _two_in_progress, first_answer, ("go",)),
    ("missing status", _no_status, first_answer, ("go",)),
    ("the list after a refused update", _refused, lambda ran: ran.plan, ("go",)),
    ("the list after two updates in one message", _two_updates, lambda ran: ran.plan, ("go",)),
    ("a new user turn after request 4", _new_turn, _counts, ("go", "and now?")),
    ("reminders in requests 1 to 10", ten_requests, lambda ran: timeline(ran.rounds), ("go",)),
    ("the reminder in request 4", ten_requests, _reminder, ("go",)),
    ("request 10", ten_requests, _grown, ("go",)),
)


def comparison() -> Table:
    """The whole comparison: a row for a question, a column for a design, each cell from a run made now."""
    rows = [
        (title, *[see(run_in(design, script, prompts)) for design in DESIGNS]) for title, script, see, prompts in _ROWS
    ]
    return Table(("question", *[design.name for design in DESIGNS]), tuple(rows))
