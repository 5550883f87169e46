"""A refused update does not clear the count."""

from labkit import SystemMessage, TodoTracker, ToolResult
from labkit.todos import TodoWriteInput


class Tracker(TodoTracker):
    """Looks at what came of the call, not at its name."""

    _accepted = False

    def _write(self, given: TodoWriteInput) -> ToolResult:
        self._accepted = True
        return super()._write(given)

    def record_tool_round(self, names: tuple[str, ...]) -> tuple[SystemMessage, ...]:
        seen = names if self._accepted else tuple("a tool" for _ in names)
        self._accepted = False
        return super().record_tool_round(seen)
