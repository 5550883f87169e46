"""The round limit lets one more round through."""

from labkit import Agent


class Loop(Agent):
    """Compares with the wrong sign."""

    def _stop_reason(self, number, reply, stopped):  # type: ignore[no-untyped-def]
        return super()._stop_reason(number - 1, reply, stopped)
