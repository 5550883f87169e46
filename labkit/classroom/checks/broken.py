"""Broken agents for tests to find: each mutant is a short file in `mutants/`, read as text and run here.

Read `build_with` first. A mutant's file holds one class named `Tracker`, `Loop` or `Registry`, which stands on the
package's own and changes one thing; which thing is said in its first line, and in `texts/<language>/mutants.toml`.
"""

from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from types import CodeType
from typing import Any

from labkit.classroom.checks.common import NotYet, folder, require
from labkit.model import ModelClient
from labkit.profiles import P05, Agent, build_agent

MUTANTS = Path(__file__).parents[1] / "mutants"

Build = Callable[..., Agent]
Test = Callable[[Build], object]


@cache
def _code_of(name: str) -> CodeType:
    path = MUTANTS / f"{name}.py"
    return compile(path.read_text(encoding="utf-8"), str(path), "exec")


def parts_of(name: str) -> Mapping[str, Any]:
    """What a mutant's file defines. Anew each time, since some mutants keep in a class what belongs to an object."""
    parts: dict[str, Any] = {"__name__": f"mutant_{name}"}
    exec(_code_of(name), parts)
    return parts


def names() -> tuple[str, ...]:
    """All mutants."""
    return tuple(sorted(path.stem for path in MUTANTS.glob("*.py")))


def build_with(name: str | None, place: Path) -> Build:
    """`build(model, **options)`: a P05 agent in this folder with the mutant's part in it, or the true one for None."""
    parts = parts_of(name) if name else {}

    def build(model: ModelClient, **options: Any) -> Agent:
        options.setdefault("workspace", place)
        if "Tracker" in parts:
            options.setdefault("todos", parts["Tracker"]())
        agent = build_agent(P05, model, **options)
        # subtle: an object may change its class, so a mutant needs no composition root of its own
        if "Loop" in parts:
            agent.__class__ = parts["Loop"]
        if "Registry" in parts:
            agent._registry.__class__ = parts["Registry"]
        return agent

    return build


def survives(name: str | None, test: Test) -> bool:
    """Does the test pass on this mutant (on the true agent for None)? Anything it raises kills."""
    with folder() as place:
        try:
            test(build_with(name, place))
        except Exception:
            return False
    return True


def tests_wanted(tests: Any) -> list[Test]:
    """A list of functions, or one function."""
    found = [tests] if callable(tests) else list(tests) if isinstance(tests, list | tuple) else []
    require(found and all(map(callable, found)), "shape", wanted="list_of_tests")
    return found


def judge_tests(answer: Any, mutants: tuple[str, ...]) -> dict[str, object]:
    """The tests must pass on the true agent, and each mutant must fail one of them. The facts say how many died."""
    tests = tests_wanted(answer)
    for test in tests:
        require(survives(None, test), "fails_on_the_true_agent", test=getattr(test, "__name__", "one of them"))
    alive = [name for name in mutants if all(survives(name, test) for test in tests)]
    if alive:
        raise NotYet("survivors", died=len(mutants) - len(alive), all=len(mutants), mutant=alive[0])
    return {"all": len(mutants)}
