"""How much is asked of each server at a time, and when a server wants quiet."""

from __future__ import annotations

import collections
import contextlib
import dataclasses
import threading
import time
import typing as t

from htrflow_batch import errors

_FIRST_PAUSE = 1.0
_LONGEST_GUESS = 60.0


class Closing(errors.TransientError):
    """The attempt ends, and no more is asked of anyone."""

    def __init__(self) -> None:
        super().__init__("Downloads were ended — nothing to do, the next attempt goes on from here.")


@dataclasses.dataclass(slots=True)
class _Host:
    limit: int
    busy: int = 0
    #: Who waits, in order of arrival.
    queue: collections.deque[object] = dataclasses.field(default_factory=collections.deque)
    #: When the pause ends, on the monotonic clock.
    quiet_until: float = 0.0
    #: What to guess at the next refusal that does not say how long.
    guess: float = _FIRST_PAUSE


class Hosts:
    """The servers that are asked, each by a name of the caller's choice. Safe for threads.

    Args:
        connections: how many requests a server gets at once.
        by_host: the same, of single servers.
        patience: how many seconds of a server's pause a caller sits out. A longer one is a ``LaterError`` at once, so
            that the thread can do other work.
        longest: the cap of a pause in seconds, whatever the server asks for.
    """

    def __init__(
        self,
        connections: int = 2,
        *,
        by_host: t.Mapping[str, int] | None = None,
        patience: float = 15.0,
        longest: float = 600.0,
    ) -> None:
        if min([connections, *(by_host or {}).values()]) < 1:
            raise ValueError("a server that gets no connection is never asked")
        self._connections = connections
        self._by_host = dict(by_host or {})
        self._patience = patience
        self._longest = longest
        self._changed = threading.Condition()
        self._hosts: dict[str, _Host] = {}
        self._closed = False

    @property
    def closed(self) -> bool:
        """Whether :meth:`close` was called."""
        return self._closed

    @contextlib.contextmanager
    def turn(self, host: str) -> t.Iterator[None]:
        """Waits for a free connection to the server, first come, first served, and holds it.

        A thread that holds a turn must not ask for another one.

        Raises:
            errors.LaterError: the server wants more quiet than ``patience``; ``after`` says how much.
            Closing: :meth:`close` was called, before or while waiting.
        """
        state = self._take(host)
        try:
            yield
        finally:
            with self._changed:
                state.busy -= 1
                self._changed.notify_all()

    def pause(self, host: str, seconds: float | None = None) -> float:
        """Leaves the server alone: for so many seconds, or if it did not say, for a time that doubles with each call.

        Requests that are under way go on. A pause never shortens one that runs. Returns its length in seconds, capped.
        """
        with self._changed:
            state, now = self._state(host), time.monotonic()
            if seconds is None:
                if state.quiet_until > now:
                    # The other requests that were under way are refused as well. That is one refusal.
                    return state.quiet_until - now
                seconds = state.guess
                state.guess = min(state.guess * 2, _LONGEST_GUESS)
            seconds = min(max(seconds, 0.0), self._longest)
            state.quiet_until = max(state.quiet_until, now + seconds)
            self._changed.notify_all()
            return seconds

    def quiet(self, host: str) -> float:
        """How many seconds of the server's pause are left."""
        with self._changed:
            return max(0.0, self._state(host).quiet_until - time.monotonic())

    def fine(self, host: str) -> None:
        """Notes that the server answered, so that the next guess is short."""
        with self._changed:
            self._state(host).guess = _FIRST_PAUSE

    def close(self) -> None:
        """Wakes everyone who waits with :class:`Closing`, and everyone who comes later."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()

    def _take(self, host: str) -> _Host:
        ticket = object()
        with self._changed:
            state = self._state(host)
            state.queue.append(ticket)
            try:
                while True:
                    if self._closed:
                        raise Closing
                    left = state.quiet_until - time.monotonic()
                    if left > self._patience:
                        raise errors.LaterError(f"{host} wants no requests for another {left:.0f} s.", left)
                    if left <= 0 and state.queue[0] is ticket and state.busy < state.limit:
                        state.busy += 1
                        return state
                    self._changed.wait(left if left > 0 else None)
            finally:
                state.queue.remove(ticket)
                self._changed.notify_all()

    def _state(self, host: str) -> _Host:
        if host not in self._hosts:
            self._hosts[host] = _Host(self._by_host.get(host, self._connections))
        return self._hosts[host]
