"""A refused call gets no result."""

from labkit import Agent


class Loop(Agent):
    """Leaves refusals out of the history, and does not check."""

    def _commit(self, turn, at):  # type: ignore[no-untyped-def]
        super()._commit(turn, at)
        refused = {one.call.id for one in turn.settled if one.result.error}
        self._history[at:] = [one for one in self._history[at:] if getattr(one, "tool_call_id", "") not in refused]

    def _check_pairing(self) -> None:
        self._paired = len(self._history)
