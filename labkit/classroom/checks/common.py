"""What checks have in common: how one says no, and how one runs an agent in a folder that is gone afterwards.

A check is a function of the answer. It returns None (or a dict of facts for the "ok" sentence), or raises NotYet with
the name of the property that failed; the sentence for that name is in the texts, since it is for a reader.
"""

import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from labkit.clients.scripted import ScriptedModelClient, call, say
from labkit.loop import RunResult
from labkit.messages import Message
from labkit.model import ModelRequest
from labkit.profiles import P05, Agent, build_agent
from labkit.todos import TODO_STALE_REMINDER

SHOWN = 60
"""So many characters of something that a student made are shown."""

WRONG = {"content": "ship", "status": "blocked"}
"""An item that no design accepts."""


class NotYet(Exception):
    """An answer lacks a property. `facts` fill the places in its sentence: numbers and short texts only."""

    def __init__(self, failed: str, **facts: object) -> None:
        super().__init__(failed)
        self.failed = failed
        self.facts = {name: shown(value) for name, value in facts.items()}


def require(holds: object, failed: str, **facts: object) -> None:
    """Raise NotYet unless it holds."""
    if not holds:
        raise NotYet(failed, **facts)


def shown(value: object) -> str:
    """A short text for a value: numbers and texts themselves, of anything else its type."""
    if value is None or type(value) in (int, bool, float):
        return repr(value)
    text = value if type(value) is str else f"a {type(value).__name__}"
    return text if len(text) <= SHOWN else text[:SHOWN] + "..."


def function_wanted(answer: object) -> None:
    """The answer must be something that can be called."""
    require(callable(answer) and not isinstance(answer, type), "shape", wanted="function")


def class_wanted(answer: object) -> None:
    """The answer must be a class."""
    require(isinstance(answer, type), "shape", wanted="class")


def todo(content: str, status: str = "pending") -> dict[str, str]:
    """One item as a model sends it."""
    return {"content": content, "status": status}


def update(*items: dict[str, str]) -> Any:
    """A todo_write call with these items."""
    return call("todo_write", todos=list(items))


def read() -> Any:
    """A call that reads the one file that is there."""
    return call("read_file", path="a.txt")


@contextmanager
def folder() -> Iterator[Path]:
    """A workspace with one file, a.txt; gone afterwards."""
    with tempfile.TemporaryDirectory() as made:
        Path(made, "a.txt").write_text("hello", encoding="utf-8")
        yield Path(made)


class Ran(NamedTuple):
    """An agent that went through a script."""

    agent: Agent
    model: ScriptedModelClient
    result: RunResult

    @property
    def requests(self) -> tuple[ModelRequest, ...]:
        """What the model was asked."""
        return self.model.requests


def run(script: Iterable[Any], *, prompt: str = "go", profile: Any = P05, **parts: Any) -> Ran:
    """A run of a fresh agent in a fresh folder."""
    model = ScriptedModelClient([*script])
    with folder() as place:
        agent = build_agent(profile, model, workspace=place, **parts)
        return Ran(agent, model, agent.run(prompt))


def ten_requests() -> list[Any]:
    """Nine rounds that read, then a text: the script of which the reminder timelines are told."""
    return [*[read() for _ in range(9)], say("done")]


def copies(messages: Iterable[Message], text: str = TODO_STALE_REMINDER) -> int:
    """So many messages are this text."""
    return sum(message.content == text for message in messages)


def line(requests: Iterable[ModelRequest], text: str = TODO_STALE_REMINDER) -> str:
    """The copies in each request, a digit for a request."""
    return "".join(str(copies(request.messages, text)) for request in requests)


def observer_wanted(make: Callable[[], Any], *also: str) -> Any:
    """A new observer of the student's class; another of it has shown that its methods return messages."""
    class_wanted(make)
    made = make()
    needed = ("begin_run", "before_model", "record_tool_round", "view", *also)
    missing = [name for name in needed if not hasattr(made, name)]
    require(not missing, "lacks", names=", ".join(missing))
    other = make()
    for method, given in (
        ("before_model", other.before_model()),
        ("record_tool_round", other.record_tool_round(("a",))),
    ):
        require(isinstance(given, tuple | list), "returns_messages", method=method, kind=given)
    return made


def tracker_wanted(make: Callable[[], Any]) -> Any:
    """A new tracker of the student's class."""
    return observer_wanted(make, "tool_definition", "todos")
