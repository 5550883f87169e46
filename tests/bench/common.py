"""What adapters share. Standard library only, so that it loads in every peer's environment."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, Literal, NamedTuple

from typing_extensions import TypedDict
from workloads import MAX_ITEMS, NOTE, STATUSES


class TodoItem(TypedDict):
    content: str
    status: Literal["pending", "in_progress", "completed"]


class Outcome(NamedTuple):
    """What a finished conversation holds, counted from its own history after the clock has stopped."""

    text: str
    reads: int
    writes: int
    errors: int


class Adapter(NamedTuple):
    """`run` is timed: one whole conversation from a fresh history. `outcome` reads what it returned."""

    run: Callable[[], Any]
    outcome: Callable[[Any], Outcome]


def count(text: str, contents: list[str], is_write: Callable[[str], bool] | None = None) -> Outcome:
    """Sort tool results by what they say."""
    reads = writes = errors = 0
    for content in contents:
        if content == NOTE or NOTE in content:
            reads += 1
        elif is_write(content) if is_write else content.startswith("[{"):
            writes += 1
        else:
            errors += 1
    return Outcome(text, reads, writes, errors)


def hand_checked(todos: Any) -> list[dict[str, str]]:
    """The checks a tutorial writes by hand."""
    if not isinstance(todos, list) or len(todos) > MAX_ITEMS:
        raise ValueError(f"todos must be a list of at most {MAX_ITEMS} items")
    for at, item in enumerate(todos):
        if not isinstance(item, dict):
            raise ValueError(f"todos[{at}] must be an object")
        content = item.get("content")
        if not isinstance(content, str) or not content:
            raise ValueError(f"todos[{at}].content must be a non-empty string")
        if item.get("status") not in STATUSES:
            raise ValueError(f"todos[{at}].status must be one of {', '.join(STATUSES)}")
    return todos


def write_todos(todos: list[dict[str, str]]) -> str:
    """The tool of peers whose framework has validated the arguments already."""
    return json.dumps(todos)


def read_note(path: str) -> str:
    """The trivial read tool: no disk, so only the framework is measured."""
    return NOTE
