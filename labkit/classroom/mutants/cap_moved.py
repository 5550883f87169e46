"""The limit is 40 items and not 50."""

from labkit import TodoTracker, ToolResult
from labkit.todos import TodoWriteInput


class Tracker(TodoTracker):
    """Refuses lists that are long, but not too long."""

    def _write(self, given: TodoWriteInput) -> ToolResult:
        if len(given.todos) > 40:
            return ToolResult.refusal("invalid_arguments", "todos: 40 are allowed at the most.")
        return super()._write(given)
