"""Times functions in the processor time of the thread that calls them."""

from __future__ import annotations

import collections
import functools
import json
import pathlib
import threading
import time
import typing as t


class Timed:
    """What each kind of work has taken. Work inside of other work counts as its own kind alone."""

    def __init__(self) -> None:
        self.seconds: collections.defaultdict[str, float] = collections.defaultdict(float)
        self._lock = threading.Lock()
        self._inner = threading.local()

    def wrap(self, owner: t.Any, name: str, kind: str) -> None:
        """Has every call of ``owner.name`` timed from here on."""
        function = getattr(owner, name)

        @functools.wraps(function)
        def timed(*values: t.Any, **named: t.Any) -> t.Any:
            before, self._inner.seconds = getattr(self._inner, "seconds", 0.0), 0.0
            started = time.thread_time()
            try:
                return function(*values, **named)
            finally:
                whole = time.thread_time() - started
                with self._lock:
                    self.seconds[kind] += whole - self._inner.seconds
                self._inner.seconds = before + whole

        setattr(owner, name, timed)

    def write(self, path: pathlib.Path) -> None:
        with self._lock:
            path.write_text(json.dumps({**self.seconds, "whole": time.process_time()}))
