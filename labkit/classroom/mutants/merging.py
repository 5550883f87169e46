"""An update is merged into the old list: what is left out stays."""

from labkit import TodoTracker, ToolResult
from labkit.todos import TodoWriteInput


class Tracker(TodoTracker):
    """todo_write adds and changes, it never removes."""

    def _write(self, given: TodoWriteInput) -> ToolResult:
        old = {item.content: item for item in self._todos}
        result = super()._write(given)
        self._todos = tuple((old | {item.content: item for item in self._todos}).values())
        return result
