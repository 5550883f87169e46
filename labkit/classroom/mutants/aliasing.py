"""The list is changed in place: who holds the old snapshot sees it change."""

from typing import Any

from labkit import TodoTracker, ToolResult
from labkit.todos import TodoWriteInput


class Tracker(TodoTracker):
    """Gives out one list for its whole life."""

    def __init__(self) -> None:
        super().__init__()
        self._given_out: list[Any] = []

    @property
    def todos(self) -> Any:
        """The one list."""
        return self._given_out

    def _write(self, given: TodoWriteInput) -> ToolResult:
        result = super()._write(given)
        self._given_out[:] = self._todos
        return result
