"""The reminder does not clear the count: it comes again in each request."""

from labkit import SystemMessage, TodoTracker


class Tracker(TodoTracker):
    """Forgets that it has spoken."""

    def before_model(self) -> tuple[SystemMessage, ...]:
        count = self._rounds_without_update
        said = super().before_model()
        self._rounds_without_update = count
        return said
