"""All trackers share one list: one session sees the plan of another."""

from labkit import TodoItem, TodoTracker, ToolResult
from labkit.todos import TodoWriteInput


class Tracker(TodoTracker):
    """Keeps its list in the class."""

    _todos: tuple[TodoItem, ...] = ()

    def __init__(self) -> None:
        super().__init__()
        del self._todos

    def _write(self, given: TodoWriteInput) -> ToolResult:
        result = super()._write(given)
        Tracker._todos = self._todos
        del self._todos
        return result
