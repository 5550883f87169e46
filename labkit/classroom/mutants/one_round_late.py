"""The reminder comes after four rounds, not after three."""

from labkit import SystemMessage, TodoTracker
from labkit.todos import STALE_TOOL_ROUNDS


class Tracker(TodoTracker):
    """More than three, where at least three is meant."""

    def before_model(self) -> tuple[SystemMessage, ...]:
        return super().before_model() if self._rounds_without_update > STALE_TOOL_ROUNDS else ()
