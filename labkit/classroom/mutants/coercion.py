"""Values are made to fit: the number 5 is accepted as the text "5"."""

from labkit import PreparedCall, ToolCall, ToolRegistry, ToolResult


class Registry(ToolRegistry):
    """Lax where the package is strict: a bare number is given quotation marks before it is checked."""

    def prepare(self, call: ToolCall) -> PreparedCall | ToolResult:
        import re

        softened = re.sub(r'("content"|"path"): (\d+)', r'\1: "\2"', call.arguments)
        return super().prepare(ToolCall(call.id, call.name, softened))
