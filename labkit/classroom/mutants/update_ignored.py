"""An update does not clear the count."""

from labkit import SystemMessage, TodoTracker


class Tracker(TodoTracker):
    """Counts every round, whatever was called in it."""

    def record_tool_round(self, names: tuple[str, ...]) -> tuple[SystemMessage, ...]:
        return super().record_tool_round(tuple("a tool" for _ in names))
