"""The result names the last item only, not the whole list."""

import json

from labkit import TodoTracker, ToolResult
from labkit.todos import TodoWriteInput


class Tracker(TodoTracker):
    """Answers with what is newest."""

    def _write(self, given: TodoWriteInput) -> ToolResult:
        whole = json.loads(super()._write(given).content)
        return ToolResult(json.dumps({"todos": whole["todos"][-1:]}, separators=(",", ":")))
