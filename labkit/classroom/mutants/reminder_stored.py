"""The reminder goes into the history and stays there."""

from labkit import SystemMessage, TodoTracker


class Tracker(TodoTracker):
    """Says it one moment too early, where words are kept."""

    def record_tool_round(self, names: tuple[str, ...]) -> tuple[SystemMessage, ...]:
        super().record_tool_round(names)
        return super().before_model()
