"""Progress of long work: a line on a terminal, nothing in a pipe."""

from __future__ import annotations

import contextlib
import sys
import time
import typing as t

_SECONDS = 0.2


@contextlib.contextmanager
def bar(work: str, things: str) -> t.Iterator[t.Callable[[int, int], None] | None]:
    """Gives a function to call with how many ``things`` are done and how many there are; None when nobody would see."""
    if not sys.stderr.isatty():
        yield None
        return
    shown = time.monotonic()

    def advance(done: int, total: int) -> None:
        nonlocal shown
        now = time.monotonic()
        if now - shown >= _SECONDS:
            shown = now
            sys.stderr.write(f"\r{work}: {done} of {total} {things}\x1b[K")
            sys.stderr.flush()

    try:
        yield advance
    finally:
        sys.stderr.write("\r\x1b[K")
        sys.stderr.flush()
