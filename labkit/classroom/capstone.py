"""The capstone: `acceptance` puts a student's change to hidden traces and says what was seen, one line for each rubric.

Read `acceptance` first, then `Report`. The traces and invariants are in `checks/nb12.py`; each runs in `guarded`, so
that no change stops the notebook. Two lines of the rubric, evidence and limits, are for a reader: here only their form
is looked at.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from types import FunctionType
from typing import Any

from labkit.classroom.checks import nb12
from labkit.classroom.checks.common import function_wanted, read, todo, update
from labkit.classroom.checks.nb12 import PLAN_BUDGET, VERIFY_NUDGE, Trace, long_read, plain, trace
from labkit.classroom.exercises import Words, common, holds_gap, in_words, text_of
from labkit.classroom.figures import request_size, table
from labkit.classroom.guard import SECONDS, Ran, guarded
from labkit.clients.scripted import say
from labkit.messages import sendable

__all__ = [
    "PLAN_BUDGET",
    "VERIFY_NUDGE",
    "Report",
    "acceptance",
    "long_read",
    "plain",
    "read",
    "run_tests",
    "todo",
    "trace",
    "update",
]

EXERCISE = "12.1"


@dataclass(frozen=True, slots=True)
class Line:
    """One line of the rubric: what it asks, how it stands, and what was seen."""

    rubric: str
    outcome: str
    seen: str


@dataclass(frozen=True, slots=True, repr=False)
class Report:
    """What came of an acceptance. `failed` names the properties that do not hold, `measured` two runs of one script."""

    heading: str
    lines: tuple[Line, ...]
    failed: tuple[str, ...]
    measured: str
    attempted: bool

    @property
    def ok(self) -> bool:
        """Does all hold that a program can see?"""
        return self.attempted and not self.failed

    def __repr__(self) -> str:
        widths = [max(len(getattr(one, name)) for one in self.lines) for name in ("rubric", "outcome")]
        rows = [f"{one.rubric:{widths[0]}}  {one.outcome:{widths[1]}}  {one.seen}".rstrip() for one in self.lines]
        return "\n".join([self.heading, *rows])

    def export(
        self, path: str | PathLike[str], *, title: object = "", evidence: object = "", limits: object = ""
    ) -> Words:
        """Write the report as Markdown to a file; its folder must be there. What is not written yet says so."""
        words = _words()
        text = sendable(self._markdown(title, evidence, limits))
        try:
            target = Path(path)
            target.write_text(text, encoding="utf-8", newline="\n")
        except (OSError, TypeError, ValueError) as error:
            return Words(words["not_exported"].format(reason=type(error).__name__))
        return Words(words["exported"].format(name=target.name, lines=text.count("\n"), heading=self.heading))

    def _markdown(self, title: object, evidence: object, limits: object) -> str:
        words = _words()
        told = {"evidence": (evidence, nb12.evidence), "limits": (limits, nb12.limits)}
        lines = [
            _judged(words[name], *told[name]) if name in told else one
            for name, one in zip(_RUBRIC, self.lines, strict=True)
        ]
        head = words["rubric_heads"]
        rows = [[one.rubric, one.outcome, one.seen] for one in lines]
        rubric = [_row(head), _row(["---"] * len(head)), *map(_row, rows)]
        return "\n".join(
            [
                f"# {' '.join(_text(title).split()) or words['untitled']}",
                f"\n{self.heading}.",
                f"\n## {words['rubric_title']}\n",
                *rubric,
                f"\n## {words['measured_title']}\n\n```text\n{self.measured}\n```",
                f"\n## {words['evidence_title']}\n\n{_text(evidence) or words['missing']}",
                f"\n## {words['limits_title']}\n\n{_text(limits) or words['missing']}",
                f"\n## {words['not_shown_title']}\n\n{words['not_shown']}\n",
            ]
        )


_RUBRIC = ("correct", "invariants", "evidence", "limits")


def acceptance(build: Any, change: Any = "A", tests: Any = (), *, seconds: float = SECONDS) -> Report:
    """Put `build(model, workspace)` to the hidden traces of a change, to the invariants and to the student's own tests.

    Never raises, whatever the student's code does; where it has to be stopped, the parts behind it are not run.
    """
    words = _words()
    if holds_gap([build, change]):
        return _not_attempted()
    chosen = type(change) is str and change in nb12.CHANGES
    name = words["names"].get(change) if chosen else None
    heading = words["heading"].format(change=change, name=name) if name else words["no_change"]
    judge = _Judge(build, seconds)
    if not chosen or not judge.holds(_builds_an_agent):
        sentence = judge.sentence or text_of(EXERCISE)["failed"]["one_of_four"]
        lines = [Line(words[name], common()["not_yet"], sentence) for name in ("correct", "invariants")]
        return Report(
            heading, (*lines, *_to_write()), (*judge.failed,) or ("one_of_four",), words["not_measured"], True
        )
    own = () if _is_empty(tests) and change != "D" else (nb12.own_tests(tests, change),)
    correct = judge.line(words["correct"], (*nb12.CHANGES[change], *own))
    kept = judge.line(words["invariants"], nb12.INVARIANTS)
    measured = words["not_measured"] if judge.stopped else _measured(build, change, seconds)
    return Report(heading, (correct, kept, *_to_write()), tuple(judge.failed), measured, True)


def _builds_an_agent(build: Any) -> None:
    function_wanted(build)
    trace(build, [say("done")])


class _Judge:
    """Runs one part after the other, each under guard, and remembers what failed."""

    def __init__(self, build: Any, seconds: float) -> None:
        self._build = build
        self._seconds = seconds
        self.failed: list[str] = []
        self.sentence = ""
        self.stopped = False

    def line(self, rubric: str, parts: Sequence[nb12.Part]) -> Line:
        """One line of the rubric: how many parts hold, and what the first that does not says."""
        self.sentence = ""
        held = sum(map(self.holds, parts))
        words = _words()
        if held == len(parts):
            return Line(rubric, common()["ok"], words["all_hold"].format(held=held, count=len(parts)))
        seen = words["some_fail"].format(held=held, count=len(parts), first=self.sentence or words["stopped"])
        return Line(rubric, common()["not_yet"], seen)

    def holds(self, part: nb12.Part) -> bool:
        """Does it hold? What fails is kept, of the first its sentence too. Behind a part that hung, none is run."""
        if self.stopped:
            return False
        ran = guarded(lambda: part(self._build), seconds=self._seconds)
        if not ran.stopped and ran.failure is None:
            return True
        self.stopped = bool(ran.stopped)
        name = in_words(EXERCISE, ran).failed or ""
        if name not in self.failed:
            self.failed.append(name)
        self.sentence = self.sentence or _sentence(EXERCISE, ran)
        return False


# ---- two runs of one script ----


def script_of(change: str) -> list[Any]:
    """The script on which a change is shown beside the agent without it."""
    done = update(*[todo(content, "completed") for content in ("read config.py", "fix the port", "update the notes")])
    busy = update(todo("read config.py", "in_progress"), todo("fix the port", "in_progress"))
    plan = update(todo("read config.py", "in_progress"), todo("fix the port"))
    scripts: dict[str, list[Any]] = {
        "A": [done, read(), read()],
        "B": [plan, busy, plan, read()],
        "C": [plan, long_read(), read(), long_read(), plan, read()],
        "D": [plan, busy, *[read()] * 4, long_read(), done, read()],
    }
    return [*scripts[change], say("done")]


def _measured(build: Any, change: str, seconds: float) -> str:
    words = _words()
    rows: list[Sequence[object]] = []
    for name, one in ((words["without_change"], plain), (words["with_change"], build)):
        ran = guarded(lambda one=one: _numbers(trace(one, script_of(change))), seconds=seconds)  # type: ignore[misc]
        if ran.failure is not None or ran.stopped:
            return str(words["not_measured"])
        rows.append((name, *ran.value))
    return table(words["measured_heads"], rows)


def _numbers(seen: Trace) -> tuple[str, str, str]:
    told = [number for number, one in enumerate(seen.guidance, 1) if one]
    refused = sum(one.result.error is not None for one in seen.settled)
    size = request_size(seen.rounds[-1].request)
    return ", ".join(map(str, told)) or "none", str(refused), f"{size:,} characters"


# ---- a student's tests ----


def _is_empty(tests: Any) -> bool:
    return type(tests) in (list, tuple) and not tests


def run_tests(tests: Any, build: Any, *, seconds: float = SECONDS) -> Words:
    """Run tests, each a function of `build`, under guard: a line for each."""
    words = _words()
    lines = []
    for test in tests if type(tests) in (list, tuple) else [tests]:
        ran = guarded(lambda test=test: test(build), seconds=seconds)  # type: ignore[misc]
        name = test.__name__[:60] if isinstance(test, FunctionType) else words["a_test"]
        if ran.stopped:
            lines.append(f"{name}: {words['stopped']}")
        elif isinstance(ran.failure, AssertionError | None):
            lines.append(f"{name}: {words['test_fails' if ran.failure else 'test_passes']}")
        else:
            lines.append(f"{name}: {words['test_fails']}: {_sentence(EXERCISE, ran)}")
    return Words("\n".join(lines) or words["no_tests"])


# ---- words ----


def _words() -> Mapping[str, Any]:
    found: Mapping[str, Any] = text_of(EXERCISE)["report"]
    return found


def _sentence(exercise: str, ran: Ran) -> str:
    return in_words(exercise, ran).text.removeprefix(common()["not_yet"] + ": ")


def _to_write() -> tuple[Line, Line]:
    words = _words()
    return (
        Line(words["evidence"], words["reader"], words["to_write"]),
        Line(words["limits"], words["reader"], words["to_write"]),
    )


def _not_attempted() -> Report:
    words = _words()
    lines = [Line(words[name], common()["not_attempted"], "") for name in _RUBRIC]
    return Report(words["no_change"], tuple(lines), (), words["not_measured"], False)


def _judged(rubric: str, text: object, form: Callable[[str], None]) -> Line:
    """The line of a text that a reader judges: is it there, and does it have the form?"""
    words = _words()
    if not _text(text):
        return Line(rubric, common()["not_attempted"], words["missing"])
    ran = guarded(lambda: form(_text(text)))
    if ran.failure is None:
        return Line(rubric, words["reader"], words["given"])
    return Line(rubric, common()["not_yet"], _sentence("12.2", ran))


def _text(given: object) -> str:
    return given.strip() if type(given) is str else ""


def _row(parts: Iterable[str]) -> str:
    return "| " + " | ".join(part.replace("|", "\\|") for part in parts) + " |"
