"""The length is looked at before the white space is gone: a blank item passes."""

from dataclasses import replace
from typing import Annotated

from pydantic import Field

from labkit import TodoTracker, ToolInput, ToolResult
from labkit.todos import Status, TodoWriteInput


class Line(ToolInput):
    """One item; a space is long enough for it."""

    content: Annotated[str, Field(min_length=1)]
    status: Status


class Lines(ToolInput):
    """The list."""

    todos: Annotated[tuple[Line, ...], Field(max_length=50)]


class Tracker(TodoTracker):
    """Has an argument model of its own, with the check in the wrong place."""

    def __init__(self) -> None:
        super().__init__()
        self.tool_definition = replace(self.tool_definition, input=Lines, handler=self._write_lines)

    def _write_lines(self, given: Lines) -> ToolResult:
        return self._write(TodoWriteInput.model_construct(todos=tuple(line.model_dump() for line in given.todos)))
