"""Run what a student wrote so that nothing in it stops the notebook: not a loop, not an exit, not a patched module.

Read `guarded` first. The code runs on a thread of its own, each of its lines is counted, and its prints go nowhere.

What stops an endless loop: a budget of traced lines (of instructions, to be exact: `while True: pass` never leaves its
line). A bare `except` survives that, for Python stops tracing once a trace function has raised; so, where threads
exist, the waiting thread then throws exceptions into the working one until one of them hits outside the `try`, and
leaves it behind if none does. The gap that is left: one long call inside C that never lets go of the interpreter
(`sum(itertools.count())`, `10**10**10`), a process that ends itself (`os._exit`), and, where there are no threads (in a
browser), a bare `except` around an endless loop. Against these only a restart of the kernel helps.
"""

import builtins
import contextlib
import io
import os
import sys
import sysconfig
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cache
from inspect import getattr_static
from pathlib import Path
from types import FrameType, FunctionType, ModuleType
from typing import Any, Literal

from labkit.designs import day55, s03

INSTRUCTIONS = 1_000_000
"""So many instructions of a student's code are run in one check, a line being some ten; solutions need thousands."""
SECONDS = 20.0
"""So long a check waits where lines cannot be counted: a sleep, a lock. Nothing that is right comes near it."""
PATIENCE = 0.25
"""So long a thread may go on after its lines were used up, before exceptions are thrown into it ..."""
THROWS = 200
"""... and so many are thrown, one every few milliseconds, before it is left behind."""


class OutOfBudget(SystemExit):
    """Ends student code. A SystemExit, since a thread that dies of one dies silently."""


@dataclass(slots=True)
class Ran:
    """What came of a guarded call: a value, or a failure with its line, or that it had to be stopped."""

    value: Any = None
    failure: BaseException | None = None
    line: int | None = None
    stopped: Literal["lines", "seconds"] | None = None
    patched: tuple[str, ...] = ()


def guarded(function: Callable[[], object], *, instructions: int = INSTRUCTIONS, seconds: float = SECONDS) -> Ran:
    """Call a function that calls student code. It returns always, but for the gap named above; an interrupt passes.

    The package is put back as it was imported, before and after; `patched` names what had been changed in it.
    """
    ran = Ran()
    work = _Work(function, ran, _Budget(instructions))
    found = put_back()
    folder = _folder()
    with _quiet(), _tame():
        thread = threading.Thread(target=work, daemon=True)
        try:
            thread.start()
        except RuntimeError:  # no threads here
            work()
        else:
            ran.stopped = _wait(thread, work.budget, seconds)
    if folder and _folder() != folder:
        os.chdir(folder)
    ran.patched = tuple(dict.fromkeys((*found, *put_back())))
    if work.budget.spent:
        ran.stopped = "lines"
    if ran.failure is not None:
        ran.line = _student_line(ran.failure)
    return ran


class _Budget:
    """Counts the instructions of student code, and those of no one else; raises OutOfBudget when there are too many."""

    def __init__(self, instructions: int) -> None:
        self.left = instructions
        self.spent = False

    def trace(self, frame: FrameType, event: str, arg: object) -> Any:
        """For sys.settrace: watch a new frame if a student wrote its code."""
        if not is_students(frame.f_code.co_filename):
            return None
        frame.f_trace_opcodes = True
        return self._count(frame, event, arg)

    def _count(self, frame: FrameType, event: str, arg: object) -> Any:
        self.left -= 1
        if self.left < 0:
            self.spent = True
            raise OutOfBudget
        return self._count


class _Work:
    """What the thread does."""

    def __init__(self, function: Callable[[], object], ran: Ran, budget: _Budget) -> None:
        self.function = function
        self.ran = ran
        self.budget = budget

    def __call__(self) -> None:
        before = sys.gettrace()
        sys.settrace(self.budget.trace)
        try:
            self.ran.value = self.function()
        except BaseException as failure:
            self.ran.failure = failure
        finally:
            sys.settrace(before)


def _wait(thread: threading.Thread, budget: _Budget, seconds: float) -> Literal["seconds"] | None:
    """Until the thread has ended, or for so long; then make it end, or leave it behind. Says whether it had to."""
    end = time.monotonic() + seconds
    try:
        while thread.is_alive() and time.monotonic() < end:
            thread.join(0.02)
            if budget.spent:
                thread.join(PATIENCE)
                break
        return "seconds" if thread.is_alive() else None
    finally:  # also when the person interrupts the kernel
        for _ in range(THROWS):
            if not thread.is_alive() or not _throw(thread):
                break
            thread.join(0.005)


def _throw(thread: threading.Thread) -> bool:
    """Let OutOfBudget appear in a thread between two of its instructions. False where this Python cannot."""
    try:
        import ctypes
    except ImportError:
        return False
    ident = ctypes.c_ulong(thread.ident or 0)
    return bool(ctypes.pythonapi.PyThreadState_SetAsyncExc(ident, ctypes.py_object(OutOfBudget)))


# ---- whose code is it? ----


@cache
def _ours() -> tuple[str, ...]:
    """Where code lies that no student wrote: labkit, the standard library, installed packages."""
    places = [sysconfig.get_path(name) for name in ("stdlib", "platstdlib", "purelib", "platlib")]
    return (str(Path(__file__).resolve().parents[1]) + os.sep, "<frozen", *[place + os.sep for place in places])


@cache
def is_students(filename: str) -> bool:
    """Is this a file (or a cell) that a student may have written?"""
    return not filename.startswith(_ours())


def _student_line(failure: BaseException) -> int | None:
    """The line of student code in which it went wrong, counted in its cell; None where no student code took part."""
    line, at = None, failure.__traceback__
    while at:
        if is_students(at.tb_frame.f_code.co_filename):
            line = at.tb_lineno
        at = at.tb_next
    return line


# ---- what student code must not reach ----


class _Ear(io.TextIOBase):
    """Hears all that is printed and keeps none of it."""

    def writable(self) -> bool:
        return True

    def write(self, text: str) -> int:
        return len(text)


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    with contextlib.redirect_stdout(_Ear()), contextlib.redirect_stderr(_Ear()):
        yield


def _no_input(*_: object) -> str:
    raise RuntimeError("a check asks nobody; leave input() out of this exercise")


@contextlib.contextmanager
def _tame() -> Iterator[None]:
    """Nobody is asked, no kernel is ended, and the builtins come back as they were."""
    main = vars(sys.modules["__main__"])
    theirs: dict[str, Any] = {
        name: main[name] for name in ("exit", "quit") if name in main
    }  # IPython's own end the kernel
    before = dict(vars(builtins))
    vars(builtins).update(input=_no_input, exit=sys.exit, quit=sys.exit, breakpoint=_no_input)
    main.update(dict.fromkeys(theirs, sys.exit))
    try:
        yield
    finally:
        now = vars(builtins)
        for name in [name for name in now if name not in before]:
            del now[name]
        now.update(before)
        main.update(theirs)


def _folder() -> str | None:
    try:
        return os.getcwd()
    except OSError:
        return None


@dataclass(frozen=True, slots=True)
class _Part:
    """One name in a module or class of labkit, and what it was when the package was imported."""

    holder: Any
    name: str
    value: Any = field(repr=False)

    @property
    def title(self) -> str:
        return f"{self.holder.__name__.removeprefix('labkit.')}.{self.name}"

    def put_back(self) -> bool:
        """True if it had been changed."""
        if getattr_static(self.holder, self.name, self) is self.value:
            return False
        setattr(self.holder, self.name, self.value)
        return True


def _parts() -> Iterator[_Part]:
    """Functions and constants of the package, where a student's assignment could land by mistake."""
    places = [module for name, module in sys.modules.items() if name.startswith("labkit.") and "classroom" not in name]
    for module in dict.fromkeys([sys.modules["labkit"], *places, day55, s03]):
        for name, value in list(vars(module).items()):
            if name.startswith("__") or isinstance(value, ModuleType):
                continue
            yield _Part(module, name, value)
            if isinstance(value, type) and value.__module__ == module.__name__:
                own = [base for base in reversed(value.__mro__) if base.__module__ == value.__module__]
                for inner, part in {name: part for base in own for name, part in vars(base).items()}.items():
                    if isinstance(part, FunctionType | property | staticmethod | classmethod | str | int | tuple):
                        if inner.startswith("__") and not isinstance(part, FunctionType):
                            continue
                        yield _Part(value, inner, part)


# subtle: taken when this is imported, before the first line of a student runs
_AS_IMPORTED = tuple(_parts())


def put_back() -> tuple[str, ...]:
    """Make the package what it was when it was imported; the names that had been changed."""
    return tuple([part.title for part in _AS_IMPORTED if part.put_back()])
