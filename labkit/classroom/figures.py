"""Figures of a run, each with its words: a title, a text for who cannot see it, and the data as a table.

Read `plan_distance` first, the one measurement with a definition of its own, then `Figure`. What a figure says is plain
Python and compared as text; matplotlib is imported when a picture is asked for, and draws on a canvas of its own, so
nothing of a student's plots is touched. Colours are Okabe and Ito's, and no line is known by its colour alone.
"""

import base64
import html
import io
import json
import logging
import re
import textwrap
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

from labkit.designs import day55, s03
from labkit.frames import frames_of
from labkit.loop import Round, RunResult
from labkit.messages import AssistantMessage, Message, ToolCall, ToolMessage, UserMessage
from labkit.model import ModelRequest
from labkit.todos import TODO_STALE_REMINDER

COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
"""The palette of Okabe and Ito without its yellow, which is too pale for a line on white."""
MARKERS = ("o", "s", "^", "D", "v", "P", "X")
STYLES = ("-", "--", "-.", ":", (0, (5, 1, 1, 1, 1, 1)), (0, (8, 2)), (0, (1, 2)))

TODO_TOOLS = ("todo_write", "todo")
REMINDERS = frozenset({TODO_STALE_REMINDER, day55.REMINDER, s03.REMINDER})
_LIST = re.compile(r'\{"todos":\[|\[[ >x]\] |No todos\.$')

Run = RunResult | Iterable[Round]
"""A finished run, or rounds of one run or of several."""


# ---- what is measured ----


def wire_size(message: Message) -> int:
    """The size of a message: the characters of its wire form as compact JSON, and of the comma behind it.

    Characters, not bytes and not tokens. Frames count in the same way.
    """
    return len(json.dumps(message.to_openai(), ensure_ascii=False, separators=(",", ":"))) + 1


def request_size(request: ModelRequest) -> int:
    """The size of all messages of a request. The tools are not counted: they are the same in each request."""
    return sum(map(wire_size, request.messages))


def holds_plan(call: ToolCall, result: str) -> bool:
    """Is this result a full plan: an answer of a todo tool that gives the whole list back, as JSON or as a checklist?

    A refusal is none, nor is an answer that only says "updated". An accepted empty list is one: it says "no plan now".
    """
    return call.name in TODO_TOOLS and _LIST.match(result) is not None


def plan_distance(request: ModelRequest, holds_plan: Callable[[ToolCall, str], bool] = holds_plan) -> int | None:
    """The characters between the end of the last full plan and the end of the request; None where there is no plan.

    A full plan is a tool result for which `holds_plan(call, text)` is true. Its end is the end of its message. The
    distance is the size (`wire_size`) of all messages behind that one, and 0 where it is the last. So the plan in a
    call's arguments does not count, nor does a reminder, nor the user's words.
    """
    distance: int | None = None
    calls: dict[str, ToolCall] = {}
    for message in request.messages:
        if isinstance(message, AssistantMessage):
            calls = {call.id: call for call in message.tool_calls}
        if isinstance(message, ToolMessage) and holds_plan(calls[message.tool_call_id], message.content):
            distance = 0
        elif distance is not None:
            distance += wire_size(message)
    return distance


def goal_distance(request: ModelRequest) -> int | None:
    """The characters between the end of the first user message, the goal, and the end of the request."""
    messages = list(request.messages)
    for at, message in enumerate(messages):
        if isinstance(message, UserMessage):
            return sum(map(wire_size, messages[at + 1 :]))
    return None


def reminders_in(request: ModelRequest) -> int:
    """So many reminders, of any of the three designs, can be read in a request."""
    return sum(message.content in REMINDERS for message in request.messages)


def timeline(run: Run) -> str:
    """The reminders in each request, a digit for a request: "0001001001". More than nine show as "+"."""
    return "".join("+" if count > 9 else str(count) for count in (reminders_in(r.request) for r in _rounds(run)))


def _rounds(run: Run) -> tuple[Round, ...]:
    return run.rounds if isinstance(run, RunResult) else tuple(run)


# ---- what is shown ----


@dataclass(frozen=True, slots=True, repr=False)
class Figure:
    """A picture and its words. The words are its repr, and what tests compare; the picture is made when asked for."""

    title: str
    alt: str
    columns: tuple[str, ...]
    rows: tuple[tuple[object, ...], ...]
    draw: Callable[[Any], None] = field(compare=False)
    height: float = 3.6

    def __repr__(self) -> str:
        return f"Figure: {self.title}\n{textwrap.fill(self.alt, 100)}\n\n{self.table}"

    @property
    def table(self) -> str:
        """The data, in columns; "-" where there is none."""
        return table(self.columns, self.rows)

    def _repr_png_(self) -> tuple[bytes, dict[str, str]] | None:
        """The picture and its alternative text; None where matplotlib is not installed."""
        # Its note about building a font cache, on a first start, would become part of the cell's output.
        logging.getLogger("matplotlib").setLevel(logging.ERROR)
        try:
            from matplotlib.backends.backend_agg import FigureCanvasAgg
            from matplotlib.figure import Figure as Drawing
        except ImportError:
            return None
        drawing = Drawing(figsize=(7.6, self.height), dpi=100, layout="constrained")
        FigureCanvasAgg(drawing)
        self.draw(drawing)
        drawing.suptitle(_plain(self.title), fontsize=11)
        picture = io.BytesIO()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # a label with characters that the font lacks; the table has them
            # Without "Software", whose value is matplotlib's version.
            drawing.savefig(picture, format="png", metadata={"Software": None})
        return picture.getvalue(), {"alt": self.alt}

    def outputs(self) -> list[tuple[dict[str, str], dict[str, Any]]]:
        """What a cell shows, as (data, metadata): the picture with its words, and the words again to be opened.

        subtle: JupyterLab shows one form of an output and gives pictures no alternative text. So for who does not see
        the picture the words are an output of their own, and that one holds no picture.
        """
        picture = self._repr_png_()
        data, metadata = {"text/plain": repr(self)}, {}
        if picture:
            data["image/png"] = base64.b64encode(picture[0]).decode()
            metadata["image/png"] = picture[1]
        words = f"<details><summary>{html.escape(self.title)}: in words and numbers</summary>"
        words += f"<p>{html.escape(self.alt)}</p>{html_table(self.columns, self.rows)}</details>"
        return [(data, metadata), ({"text/html": words}, {})]

    def _ipython_display_(self) -> None:
        from IPython.display import display

        for data, metadata in self.outputs():
            display(data, metadata=metadata, raw=True)  # type: ignore[no-untyped-call]


def table(columns: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """Rows as text, columns of numbers to the right, all else to the left; "-" for None."""
    rows = list(rows)
    cells = [list(columns), *[list(map(_cell, row)) for row in rows]]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    right = [all(isinstance(row[at], int | None) for row in rows) for at in range(len(columns))]
    return "\n".join(
        "  ".join(
            text.rjust(width) if number else text.ljust(width)
            for text, width, number in zip(line, widths, right, strict=True)
        ).rstrip()
        for line in cells
    )


def html_table(columns: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """The same as HTML; the first cell of a row is its head."""
    style = "text-align:left; vertical-align:top; white-space:pre-wrap"
    head = "".join(f'<th scope="col" style="{style}">{html.escape(name)}</th>' for name in columns)
    body = ""
    for row in rows:
        first, *others = [html.escape(_cell(value)) for value in row]
        cells = "".join(f'<td style="{style}">{cell}</td>' for cell in others)
        body += f'<tr><th scope="row" style="{style}">{first}</th>{cells}</tr>'
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def _cell(value: object) -> str:
    return "-" if value is None else f"{value:,}" if isinstance(value, int) else str(value)


def _plain(text: str) -> str:
    """A text in which matplotlib finds no formula."""
    return text.replace("$", r"\$")


def plan_distance_figure(
    runs: Mapping[str, Run],
    *,
    title: str = "How far the plan is from the end of each request",
    measure: Callable[[ModelRequest], int | None] = plan_distance,
) -> Figure:
    """One line for each run: `measure` over its requests, with a gap where there is no plan."""
    lines = {name: [measure(one.request) for one in _rounds(run)] for name, run in runs.items()}
    length = max(map(len, lines.values()), default=0)
    rows = [(at + 1, *[_at(line, at) for line in lines.values()]) for at in range(length)]
    alt = "Line chart, characters over requests. " + " ".join(_told(name, line) for name, line in lines.items())

    def draw(drawing: Any) -> None:
        axes = _axes(drawing.subplots(), length, "characters behind the plan")
        for at, (name, line) in enumerate(lines.items()):
            _line(axes, at, name, line)
        _legend(axes)

    return Figure(title, alt.strip(), ("request", *lines), tuple(rows), draw)


def request_size_figure(run: Run, *, title: str = "What each request holds, and what it shares") -> Figure:
    """The size of each request, and how much of it is the beginning of the one before."""
    frames = frames_of(_rounds(run))
    sizes = [frame.size for frame in frames]
    shared = [frame.shared if at else None for at, frame in enumerate(frames)]
    rows = [(at, *both) for at, both in enumerate(zip(sizes, shared, strict=True), 1)]
    names = ("size", "shared with the request before")
    alt = f"Line chart, characters over requests. {_told(names[0], sizes)} {_told(names[1], shared)}"

    def draw(drawing: Any) -> None:
        axes = _axes(drawing.subplots(), len(sizes), "characters")
        _line(axes, 0, names[0], sizes)
        _line(axes, 1, names[1], shared)
        _legend(axes)

    return Figure(title, alt, ("request", *names), tuple(rows), draw)


def timeline_figure(runs: Mapping[str, Run], *, title: str = "Count, updates and reminders") -> Figure:
    """One panel for each run: the count when the request was made, calls of the todo tool, reminders in the request."""
    seen = {name: [_moment(one) for one in _rounds(run)] for name, run in runs.items()}
    length = max(map(len, seen.values()), default=0)
    rows = []
    for at in range(length):
        row: list[object] = [at + 1]
        for moments in seen.values():
            row.extend(moments[at] if at < len(moments) else (None, None, None))
        rows.append(tuple(row))
    columns = [f"{name} {what}" for name in seen for what in ("count", "update", "reminders")]
    alt = "Over requests, one panel for each run. " + " ".join(
        f"{name}: the count goes {_listed([count for count, _, _ in moments])}; "
        f"reminders in the requests: {_listed([reminders for _, _, reminders in moments])}; "
        f"updates in {_listed([at + 1 for at, moment in enumerate(moments) if moment[1]]) or 'no round'}."
        for name, moments in seen.items()
    )

    def draw(drawing: Any) -> None:
        panels = drawing.subplots(max(1, len(seen)), 1, sharex=True, squeeze=False)[:, 0]
        for axes, (name, moments) in zip(panels, seen.items(), strict=False):
            _panel(_axes(axes, length, _plain(name)), moments)
        for axes in panels[:-1]:
            axes.set_xlabel("")
        if seen:
            drawing.legend(*panels[0].get_legend_handles_labels(), loc="outside lower center", ncols=4, fontsize=8)

    return Figure(title, alt.strip(), ("request", *columns), tuple(rows), draw, height=1.2 + 1.5 * max(1, len(seen)))


_Moment = tuple[int | None, str | None, int]


def _moment(one: Round) -> _Moment:
    """What the tracker knew when the request was made, what became of an update in its reply, reminders to be read."""
    results = [settled.result for settled in one.settled if settled.call.name in TODO_TOOLS]
    update = None if not results else "refused" if all(result.error for result in results) else "accepted"
    return getattr(one.before, "count", None), update, reminders_in(one.request)


def _at(line: Sequence[int | None], at: int) -> int | None:
    return line[at] if at < len(line) else None


def _told(name: str, line: Sequence[int | None]) -> str:
    """A line in one sentence: where it begins, its highest point, its end, how often it falls."""
    known = [value for value in line if value is not None]
    if not known:
        return f"{name}: no value in any request."
    falls = sum(after < before for before, after in pairwise(known))
    first = next(at for at, value in enumerate(line) if value is not None) + 1
    return (
        f"{name}: from {known[0]:,} in request {first} to {known[-1]:,} in request {len(line)}, "
        f"highest {max(known):,}, falling {falls} times."
    )


def _listed(values: Iterable[object]) -> str:
    return ", ".join(map(_cell, values))


# ---- how it is drawn ----


def _axes(axes: Any, length: int, label: str) -> Any:
    axes.set_xlabel("request")
    axes.set_ylabel(label)
    axes.set_xlim(0.5, max(length, 1) + 0.5)
    axes.set_ylim(bottom=0)
    axes.xaxis.get_major_locator().set_params(integer=True, nbins=20)
    axes.yaxis.get_major_locator().set_params(integer=True)
    axes.grid(color="#dddddd", linewidth=0.6)
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)
    return axes


def _line(axes: Any, at: int, name: str, line: Sequence[int | None]) -> None:
    """One line, known by colour, marker, dashes and its name at its end."""
    look = at % len(COLOURS)
    axes.plot(
        range(1, len(line) + 1),
        [float("nan") if value is None else value for value in line],
        color=COLOURS[look],
        marker=MARKERS[look],
        linestyle=STYLES[look],
        markersize=5,
        linewidth=1.6,
        label=_plain(name) if any(value is not None for value in line) else f"{_plain(name)}: none",
        clip_on=False,
    )
    axes.set_ylim(bottom=0, top=max(axes.get_ylim()[1], 1.1 * max((v for v in line if v is not None), default=1)))


def _legend(axes: Any) -> None:
    if axes.lines:
        axes.legend(fontsize=8, framealpha=0.9)


def _panel(axes: Any, moments: Sequence[_Moment]) -> None:
    """Bars for reminders, a stepped line for the count, marks for updates."""
    numbers = range(1, len(moments) + 1)
    axes.bar(
        numbers,
        [reminders for _, _, reminders in moments],
        width=0.5,
        color="#E69F00",
        edgecolor="black",
        hatch="//",
        linewidth=0.6,
        label="reminders in the request",
    )
    counts = [float("nan") if count is None else count for count, _, _ in moments]
    axes.plot(
        numbers,
        counts,
        color=COLOURS[0],
        marker="o",
        markersize=4,
        drawstyle="steps-mid",
        label="count before",
        clip_on=False,
    )
    for what, marker, colour in (("accepted", "^", COLOURS[2]), ("refused", "X", COLOURS[1])):
        places = [at for at, (_, update, _) in zip(numbers, moments, strict=True) if update == what]
        axes.plot(
            places,
            [0.4] * len(places),
            color=colour,
            marker=marker,
            markeredgecolor="black",
            linestyle="none",
            markersize=8,
            label=f"update, {what}",
        )
    top = max([4.0, *[reminders + 1.0 for _, _, reminders in moments], *[c + 1 for c in counts if c == c]])
    axes.set_ylim(0, top)
