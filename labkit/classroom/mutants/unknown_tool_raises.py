"""A made-up tool name ends the run with an exception."""

from labkit import PreparedCall, ToolCall, ToolRegistry, ToolResult


class Registry(ToolRegistry):
    """Looks the name up and hopes."""

    def prepare(self, call: ToolCall) -> PreparedCall | ToolResult:
        self._by_name[call.name]
        return super().prepare(call)
