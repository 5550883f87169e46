"""Items are written while they are checked: a refused update leaves half of it in the list."""

import json
from dataclasses import replace

from labkit import TodoItem, TodoTracker, ToolResult
from labkit.todos import TODO_STATUSES
from labkit.tools import OpenInput


class Tracker(TodoTracker):
    """Checks by hand, item by item."""

    def __init__(self) -> None:
        super().__init__()
        self._strict = self.tool_definition
        self.tool_definition = replace(
            self._strict, input=OpenInput, schema=self._strict.parameters, handler=self._write_each
        )

    def _write_each(self, given: OpenInput) -> ToolResult:
        self._todos = ()
        for item in given.given["todos"]:
            if not item.get("content") or item.get("status") not in TODO_STATUSES:
                return ToolResult.refusal("invalid_arguments", "an item is wrong.")
            self._todos += (TodoItem(item["content"], item["status"]),)
        return self._write(self._strict.input.model_validate_json(json.dumps(given.given)))  # type: ignore[arg-type]
