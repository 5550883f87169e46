"""Wrong fields are dropped, and the tool runs although its arguments were wrong."""

import json

from labkit import PreparedCall, ToolCall, ToolRegistry, ToolResult


class Registry(ToolRegistry):
    """Keeps the fields it knows and goes on."""

    def prepare(self, call: ToolCall) -> PreparedCall | ToolResult:
        prepared = super().prepare(call)
        if isinstance(prepared, ToolResult) and prepared.error == "invalid_arguments":
            given = json.loads(call.arguments)
            known = self._by_name[call.name].parameters["properties"]
            if isinstance(given, dict):
                fewer = json.dumps({name: value for name, value in given.items() if name in known})
                return super().prepare(ToolCall(call.id, call.name, fewer))
        return prepared
