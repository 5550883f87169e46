"""The result holds Chinese characters as they are, not as escapes."""

import json

from labkit import TodoTracker, ToolResult
from labkit.todos import TodoWriteInput


class Tracker(TodoTracker):
    """Writes JSON with ensure_ascii off."""

    def _write(self, given: TodoWriteInput) -> ToolResult:
        text = super()._write(given).content
        return ToolResult(json.dumps(json.loads(text), ensure_ascii=False, separators=(",", ":")))
