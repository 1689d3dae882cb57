"""Publishes what changes while a volume runs, in a thread of its own. No failure of it ends a run."""

from __future__ import annotations

import logging
import threading
import time

from htrflow_batch.errors import AttemptError
from htrflow_batch.run_log import Shipper
from htrflow_batch.store import Store

_LOG = logging.getLogger(__name__)
#: Seconds between two writes of one document, and the bytes a second that it may cost on average.
_LEAST_PAUSE = 1.0
_BYTES_A_SECOND = 16 * 1024
_TICK = 0.2


class Publisher:
    """Writes the newest of each document, at most once a second, and seldomer as it grows."""

    def __init__(self, store: Store, shipper: Shipper) -> None:
        self._store = store
        self._shipper = shipper
        self._lock = threading.Condition()
        self._newest: dict[str, bytes] = {}
        self._next: dict[str, float] = {}
        self._said: set[str] = set()
        self._busy = False
        self._ended = False
        self._thread = threading.Thread(target=self._run, name="publisher", daemon=True)
        self._thread.start()

    def wants(self, key: str) -> bool:
        """Whether a newer document of this key would be written at once."""
        with self._lock:
            return key not in self._newest and self._next.get(key, 0.0) <= time.monotonic()

    def publish(self, key: str, content: bytes) -> None:
        """Has a document written, in place of an older one that is still waiting."""
        with self._lock:
            self._newest[key] = content
            self._lock.notify_all()

    def flush(self, seconds: float = 30.0) -> None:
        """Waits until everything that was given is written, but no longer than ``seconds``."""
        until = time.monotonic() + seconds
        with self._lock:
            self._next.clear()
            self._lock.notify_all()
            while (self._newest or self._busy) and (left := until - time.monotonic()) > 0:
                self._lock.wait(left)

    def end(self) -> None:
        """Writes nothing more. What is being written is written to its end."""
        with self._lock:
            self._ended = True
            self._newest.clear()
            self._lock.notify_all()
        self._thread.join(60.0)

    def _run(self) -> None:
        while True:
            with self._lock:
                self._busy = False
                self._lock.notify_all()
                if not self._due():
                    self._lock.wait(_TICK)
                if self._ended:
                    return
                due = {key: self._newest.pop(key) for key in self._due()}
                self._busy = bool(due)
            for key, content in due.items():
                self._write(key, content)
            self._shipper.tick()

    def _due(self) -> list[str]:
        now = time.monotonic()
        return [key for key in self._newest if self._next.get(key, 0.0) <= now]

    def _write(self, key: str, content: bytes) -> None:
        try:
            self._store.put(key, content, "application/json")
            self._said.discard(key)
        except AttemptError as error:
            if key not in self._said:
                _LOG.warning("%s", error)
            self._said.add(key)
        pause = max(_LEAST_PAUSE, len(content) / _BYTES_A_SECOND)
        with self._lock:
            self._next[key] = time.monotonic() + pause
