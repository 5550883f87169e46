"""Exercises: `check` an answer, take a `hint`, see the `solution`, look at your `progress`. All offline.

Read `check` first. An exercise is a number, "08.1": its words are in `texts/<language>/08.toml`, its check is the
function `check_08_1` in `checks/nb08.py`, and student code runs only in `guard.guarded`. An answer that is still the
stub counts as not attempted; that is told by its code, so comments may come and go.
"""

import dis
import re
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module
from pathlib import Path
from types import CodeType, FunctionType
from typing import Any, Literal

from labkit.classroom.checks.common import NotYet
from labkit.classroom.guard import SECONDS, Ran, guarded
from labkit.tools import words_of

TEXTS = Path(__file__).with_name("texts")
LAYERS = 3
_SHOWN = 160

Outcome = Literal["not_attempted", "ok", "not_yet"]


@dataclass(frozen=True, slots=True, repr=False)
class Verdict:
    """What a check says: one line. `failed` names the property that does not hold yet, for programs."""

    exercise: str
    outcome: Outcome
    text: str
    failed: str | None = None

    @property
    def ok(self) -> bool:
        """Is the answer right?"""
        return self.outcome == "ok"

    def __repr__(self) -> str:
        return f"{self.exercise}: {self.text}"


class Words(str):
    """A text that a cell shows as it is, without quotes."""

    __slots__ = ()

    def __repr__(self) -> str:
        return str(self)


@dataclass(slots=True)
class _Notes:
    """What happened in this kernel."""

    language: str = "en"
    verdicts: dict[str, Verdict] = field(default_factory=dict)
    hints: dict[str, int] = field(default_factory=dict)


@cache
def _notes() -> _Notes:
    """Those of this kernel: made at the first use, gone with it."""
    return _Notes()


# ---- what a student calls ----


def check(exercise: str, answer: object = ..., *, seconds: float = SECONDS) -> Verdict:
    """Say in one line whether an answer is right, and if not, which property it lacks. Never raises, never tells."""
    words = common()
    exercise = str(exercise)
    text = _text_of(exercise)
    if text is None:
        known = ", ".join(exercises(exercise[:2]) or exercises())
        return Verdict(exercise, "not_yet", words["no_exercise"].format(exercise=exercise, known=known), "no_exercise")
    ran = guarded(lambda: _judged(exercise, answer), seconds=seconds)
    verdict = _verdict(exercise, text, ran)
    _notes().verdicts[exercise] = verdict
    return verdict


def hint(exercise: str, layer: int | None = None) -> Words:
    """The next hint of an exercise: where to look, then the idea, then almost code, then the solution.

    With a `layer` from 1 to 3 that hint and no other, and nothing is counted: so a cell says the same each time.
    """
    text = _text_of(exercise)
    if text is None:
        return Words(common()["no_exercise"].format(exercise=exercise, known=", ".join(exercises())))
    if layer is None:
        layer = _notes().hints[exercise] = _notes().hints.get(exercise, 0) + 1
    if layer > LAYERS:
        return solution(exercise)
    return Words(common()["hint"].format(layer=layer, exercise=exercise, text=text["hints"][layer - 1].strip()))


def solution(exercise: str) -> Words:
    """One answer that is right. There are others."""
    text = _text_of(exercise)
    if text is None:
        return Words(common()["no_exercise"].format(exercise=exercise, known=", ".join(exercises())))
    return Words(
        common()["solution"].format(exercise=exercise, title=text["title"]) + "\n\n" + text["solution"].strip()
    )


def progress() -> Words:
    """A table of what was checked in this kernel: the last result of each exercise, and how many hints were taken."""
    words, notes = common(), _notes()
    if not notes.verdicts:
        return Words(words["nothing_checked"])
    rows = [words["columns"]]
    for exercise, verdict in sorted(notes.verdicts.items()):
        title = (_text_of(exercise) or {}).get("title", "")
        rows.append([f"{exercise} {title}", words[verdict.outcome], str(notes.hints.get(exercise, 0))])
    widths = [max(len(row[column]) for row in rows) for column in range(3)]
    lines = ["  ".join(map(str.ljust, row, widths)).rstrip() for row in rows]
    found = [verdict.outcome for verdict in notes.verdicts.values()]
    counts: dict[str, int] = {name: found.count(name) for name in ("ok", "not_yet", "not_attempted")}
    return Words("\n".join([*lines, "", words["total"].format(checked=len(found), **counts)]))


def speak(language: str) -> None:
    """Use the texts of another language from now on; what it lacks stays English. ValueError if there is none."""
    known = sorted(path.name for path in TEXTS.iterdir() if path.is_dir())
    if language not in known:
        raise ValueError(f"there are no texts in {language!r}; choose one of: {', '.join(known)}")
    _notes().language = language


# ---- the texts ----


@cache
def _read(language: str, name: str) -> Mapping[str, Any]:
    path = TEXTS / language / f"{name}.toml"
    return tomllib.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}


def _book(name: str) -> dict[str, Any]:
    return _merged(_read("en", name), _read(_notes().language, name))


def _merged(under: Mapping[str, Any], over: Mapping[str, Any]) -> dict[str, Any]:
    """Tables of two languages in one: a text that is not translated yet stays English, so no sentence is missing."""
    both = {name: _merged(under[name], over[name]) for name in under if isinstance(over.get(name), dict)}
    return {**under, **over, **both}


def common() -> dict[str, Any]:
    """The words that all exercises share."""
    return _book("common")


def mutant_words() -> dict[str, str]:
    """What is wrong with each mutant, in words, by its name."""
    return _book("mutants")


def _text_of(exercise: str) -> dict[str, Any] | None:
    if not re.fullmatch(r"\d\d\.\d", str(exercise)):
        return None
    return _book(exercise[:2]).get(exercise)


def text_of(exercise: str) -> dict[str, Any]:
    """All texts of an exercise: title, difficulty, minutes, name, task, stub, hints, solution, failed. Or KeyError."""
    found = _text_of(exercise)
    if found is None:
        raise KeyError(exercise)
    return found


def exercises(book: str | None = None) -> tuple[str, ...]:
    """The numbers of all exercises, or of one notebook's."""
    books = [book] if book else sorted(path.stem for path in (TEXTS / "en").glob("[0-9][0-9].toml"))
    return tuple(exercise for one in books for exercise in _read("en", one))


# ---- judging; all of it under guard ----


@dataclass(frozen=True, slots=True)
class _Judged:
    outcome: Outcome
    facts: dict[str, object] | None = None


def _judged(exercise: str, answer: object) -> _Judged:
    if holds_gap(answer) or same(answer, stub_of(exercise)):
        return _Judged("not_attempted")
    return _Judged("ok", check_of(exercise)(answer))


def check_of(exercise: str) -> Callable[[Any], dict[str, object] | None]:
    """The function that judges an exercise."""
    module = import_module(f"labkit.classroom.checks.nb{exercise[:2]}")
    found: Callable[[Any], dict[str, object] | None] = getattr(module, f"check_{exercise.replace('.', '_')}")
    return found


def made(exercise: str, code: str) -> Any:
    """What code for an exercise defines under the exercise's name."""
    text = text_of(exercise)
    names: dict[str, Any] = {"__name__": "exercise"}
    exec(compile(text.get("imports", ""), "<imports>", "exec"), names)
    exec(compile(code, f"<{exercise}>", "exec"), names)
    return names[text["name"]]


def stub_of(exercise: str) -> Any:
    """What the stub defines."""
    return made(exercise, text_of(exercise)["stub"])


def holds_gap(value: Any, depth: int = 3) -> bool:
    """Is `...` the value, or does it stand somewhere inside?"""
    if value is ...:
        return True
    if depth and type(value) is dict:
        return any(holds_gap(one, depth - 1) for one in value.values())
    return bool(depth) and type(value) in (list, tuple) and any(holds_gap(one, depth - 1) for one in value)


def same(one: Any, other: Any) -> bool:
    """Is this the same code? Docstrings, comments, names of files and numbers of lines do not count."""
    if isinstance(one, FunctionType) and isinstance(other, FunctionType):
        return _same_code(one.__code__, other.__code__)
    if isinstance(one, type) and isinstance(other, type):
        return _class_parts(one) == _class_parts(other) and all(
            same(vars(one)[name], vars(other)[name]) for name in _class_parts(one)[2]
        )
    if type(one) is not type(other):
        return False
    if type(one) is list or type(one) is tuple:
        return len(one) == len(other) and all(map(same, one, other))
    if type(one) is dict:
        return list(one) == list(other) and all(map(same, one.values(), other.values()))
    return one is other or (type(one) in (str, int, float, bool) and one == other)


def _class_parts(one: type) -> tuple[list[str], str, list[str]]:
    """Bases, pydantic's fields and settings, and the names of what was defined in the body."""
    fields = {name: repr(part) for name, part in getattr(one, "model_fields", {}).items()}
    config = repr(getattr(one, "model_config", None))
    own = [
        name
        for name, part in vars(one).items()
        if isinstance(part, FunctionType) or (not name.startswith("_") and type(part) in (str, int, float, tuple, bool))
    ]
    return [base.__name__ for base in one.__bases__], f"{fields} {config}", own


def _same_code(one: CodeType, other: CodeType) -> bool:
    mine, theirs = list(dis.get_instructions(one)), list(dis.get_instructions(other))
    return len(mine) == len(theirs) and all(map(_same_instruction, mine, theirs))


def _same_instruction(one: dis.Instruction, other: dis.Instruction) -> bool:
    a, b = one.argval, other.argval
    if isinstance(a, CodeType) and isinstance(b, CodeType):
        return _same_code(a, b)
    return (one.opname, type(a), repr(a)) == (other.opname, type(b), repr(b))


# ---- from what came of it to one line ----


def in_words(exercise: str, ran: Ran) -> Verdict:
    """What a guarded part of a check that did not come to its end says: the capstone has many such parts."""
    return _verdict(exercise, text_of(exercise), ran)


def _verdict(exercise: str, text: Mapping[str, Any], ran: Ran) -> Verdict:
    words = common()
    outcome: Outcome
    failed: str | None
    sentence: str | None
    if ran.stopped:
        outcome, failed, sentence = "not_yet", ran.stopped, words[ran.stopped]
    elif isinstance(ran.failure, NotYet):
        failed, facts = ran.failure.failed, ran.failure.facts
        for name, meanings in (("mutant", mutant_words()), ("wanted", words["wanted"])):
            if name in facts:
                facts = {**facts, name: meanings[facts[name]]}
        outcome, sentence = "not_yet", (text["failed"].get(failed) or words[failed]).format(**facts)
    elif ran.failure is not None:
        outcome, (failed, sentence) = "not_yet", _failure(ran.failure, ran.line)
    else:
        outcome, failed = ran.value.outcome, None
        sentence = text["passed"].format(**ran.value.facts) if ran.value.facts else None
    line = words[outcome] + (f": {sentence}" if sentence else "")
    if ran.patched:
        line += " (" + words["patched"].format(names=", ".join(ran.patched[:3])) + ")"
    return Verdict(exercise, outcome, " ".join(line.split()), failed)


def _failure(failure: BaseException, line: int | None) -> tuple[str, str]:
    words = common()
    if isinstance(failure, SystemExit):
        return "exit", words["exit"]
    if isinstance(failure, RecursionError):
        return "recursion", words["recursion"]
    # An exception's own words may be student code, too.
    said = guarded(lambda: words_of(failure) if isinstance(failure, Exception) else "").value
    said = (said or type(failure).__name__).splitlines()[0][:_SHOWN]
    if line is None:
        return "raised_inside", words["raised_inside"].format(words=said)
    return "raised", words["raised"].format(words=said, line=line)
