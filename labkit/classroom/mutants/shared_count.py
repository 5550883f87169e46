"""All trackers share one count: one session's rounds bring another's reminder."""

from labkit import SystemMessage, TodoTracker


class Tracker(TodoTracker):
    """Keeps its count in the class."""

    _rounds_without_update = 0

    def __init__(self) -> None:
        super().__init__()
        del self._rounds_without_update

    def _share(self) -> None:
        Tracker._rounds_without_update = self._rounds_without_update
        vars(self).pop("_rounds_without_update", None)

    def record_tool_round(self, names: tuple[str, ...]) -> tuple[SystemMessage, ...]:
        kept = super().record_tool_round(names)
        self._share()
        return kept

    def before_model(self) -> tuple[SystemMessage, ...]:
        said = super().before_model()
        self._share()
        return said
