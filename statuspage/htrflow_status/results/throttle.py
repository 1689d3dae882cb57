"""How often somebody may try."""

from __future__ import annotations

import collections
import time


class Throttle:
    """Lets each one through ``burst`` times at once, and as often again in ``seconds``; it forgets all but ``most``.

    This is the generic cell rate algorithm: of each one only the time is kept at which all would be forgotten.
    """

    def __init__(self, burst: int, seconds: float, most: int = 10_000) -> None:
        self._interval, self._room, self._most = seconds / burst, seconds, most
        self._until: collections.OrderedDict[str, float] = collections.OrderedDict()

    def take(self, who: str, now: float | None = None) -> float:
        """Takes one try. Gives 0 if it is there, else the seconds until the next one, and takes none."""
        at = time.monotonic() if now is None else now
        until = max(self._until.get(who, at), at) + self._interval
        # The tolerance is for sums of floats that stand for the same moment.
        if until - at > self._room + 1e-6:
            return until - at - self._room
        self._until[who] = until
        self._until.move_to_end(who)
        while len(self._until) > self._most:
            self._until.popitem(last=False)
        return 0.0

    def give_back(self, who: str) -> None:
        """Takes back one try that does not count."""
        if who in self._until:
            self._until[who] -= self._interval
