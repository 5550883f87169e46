"""The results of one message stand in the wrong order."""

from labkit import Agent


class Loop(Agent):
    """The last call is answered first."""

    def _commit(self, turn, at):  # type: ignore[no-untyped-def]
        super()._commit(turn, at)
        self._history[at + 1 :] = self._history[:at:-1]

    def _check_pairing(self) -> None:
        self._paired = len(self._history)
