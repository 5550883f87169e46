"""A reply of text clears the count."""

from labkit import TodoTracker


class Tracker(TodoTracker):
    """A text ends a run, and each run begins at 0."""

    def begin_run(self) -> None:
        self._rounds_without_update = 0
