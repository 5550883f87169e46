"""A refused update empties the list."""

from labkit import PreparedCall, TodoItem, ToolCall, ToolRegistry, ToolResult


class Registry(ToolRegistry):
    """Clears first, then checks."""

    def prepare(self, call: ToolCall) -> PreparedCall | ToolResult:
        prepared = super().prepare(call)
        if isinstance(prepared, ToolResult) and call.name == "todo_write":
            tracker = self._by_name["todo_write"].handler.__self__  # type: ignore[attr-defined]
            empty: tuple[TodoItem, ...] = ()
            tracker._todos = empty
        return prepared
