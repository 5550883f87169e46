"""A tool that raises ends the run."""

from labkit import PreparedCall, ToolRegistry, ToolResult


class Registry(ToolRegistry):
    """Calls the handler with no net."""

    def invoke(self, prepared: PreparedCall) -> ToolResult:
        return prepared.tool.handler(prepared.input)
