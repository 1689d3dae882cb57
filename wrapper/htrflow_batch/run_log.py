"""The run log: what an attempt at a volume says, as one text that goes to the store and to the pod's own log.

Its grammar, for those who show it. Every line of the file is one of these:

- ``=== attempt 2026-11-29T20:00:00.123Z`` begins an attempt; what follows is all of it, up to the next such line.
- ``2026-11-29T20:00:00.123Z INFO  [stream] message`` is a message. The time is UTC with milliseconds; the level is one
  of ``DEBUG``, ``INFO``, ``WARN`` and ``ERROR``, filled up to five characters; in brackets is the stage, one of
  :data:`STAGES`. Messages that follow each other and have one stage are a group. Those of htrflow and of what it runs
  on say so in the brackets: ``[stream/htrflow]`` is of the stage ``stream``.
- Four spaces and a text belong to the message above, such as the lines of a traceback. A log that was shortened may
  begin with them.
- ``=== left out: 123456 bytes`` stands where lines are missing, or with the words ``of earlier attempts`` after it.

No message can look like another kind of line. An empty file is no log.
"""

from __future__ import annotations

import dataclasses
import datetime
import logging
import sys
import threading
import time
import typing as t

from htrflow_batch import plain
from htrflow_batch.errors import PermanentError
from htrflow_batch.store import Store

STAGES = ("config", "setup", "resume", "load", "stream", "verify", "publish")
CONTENT_TYPE = "text/plain; charset=utf-8"
#: Bytes that are kept: of the beginning of this attempt, of its end, and of the end of the attempts before.
FIRST, LAST, EARLIER = 1024 * 1024, 7 * 1024 * 1024, 256 * 1024

_LOG = logging.getLogger(__name__)
_LEVELS = ((logging.ERROR, "ERROR"), (logging.WARNING, "WARN "), (logging.INFO, "INFO "))
_MODEL = "htrflow"
_TRACEBACKS = logging.Formatter()
_MARK = "==="
#: Seconds between two tries at the end.
_AGAIN = 1.0


class RunLog(logging.Handler):
    """Keeps what is logged, at most :data:`FIRST` + :data:`LAST` bytes of it, and repeats it on a stream.

    Takes up to three times as much memory.

    Any number of threads may log. Addresses lose their secrets and texts their control characters first, see
    :mod:`htrflow_batch.plain`. Nothing here raises because of what is logged or because the stream is closed.
    """

    def __init__(self, stream: t.TextIO | None = None, first: int = FIRST, last: int = LAST) -> None:
        super().__init__(logging.DEBUG)
        self._stage = STAGES[0]
        self._stream = stream or sys.stderr
        self._first, self._last = first, last
        self._head, self._tail = bytearray(), bytearray()
        self._left_out = 0
        self._earlier: bytes | None = None
        self._count = 0
        self._keep(f"{_MARK} attempt {_time(datetime.datetime.now(datetime.UTC).timestamp())}\n")

    @property
    def stage(self) -> str:
        """The stage that messages are of, one of :data:`STAGES`."""
        return self._stage

    @stage.setter
    def stage(self, name: str) -> None:
        if name not in STAGES:
            raise ValueError(f"not a stage: {name!r}")
        self._stage = name

    @property
    def count(self) -> int:
        """How many messages there were. It grows with each."""
        return self._count

    @property
    def size(self) -> int:
        """Bytes of :meth:`content`, but for some tens."""
        return len(self._earlier or b"") + len(self._head) + len(self._tail)

    @property
    def recalled(self) -> bool:
        """Whether :meth:`recall` was called: what is in the store is then of this attempt."""
        return self._earlier is not None

    def recall(self, earlier: bytes) -> None:
        """Sets what stands in front: the log of the attempts before, or the last :data:`EARLIER` bytes of it."""
        cut = earlier.find(b"\n", len(earlier) - EARLIER - 1) + 1 if len(earlier) > EARLIER else 0
        kept = earlier[cut:] if cut or len(earlier) <= EARLIER else b""
        text = kept.decode(errors="replace")
        if left_out := len(earlier) - len(kept):
            text = f"{_MARK} left out: {left_out} bytes of earlier attempts\n{text}"
        if text and not text.endswith("\n"):
            text += "\n"
        with self._locked():
            self._earlier = text.encode()

    def content(self) -> bytes:
        """The whole log, as UTF-8."""
        with self._locked():
            gap = f"{_MARK} left out: {self._left_out} bytes\n".encode() if self._left_out else b""
            return b"".join((self._earlier or b"", self._head, gap, self._tail))

    def ship(self, store: Store, key: str) -> int:
        """Puts the whole log into a store and returns its size in bytes. Raises what the store raises."""
        content = self.content()
        store.put(key, content, CONTENT_TYPE)
        return len(content)

    def emit(self, record: logging.LogRecord) -> None:
        """Takes a message. :meth:`handle` calls it, one thread at a time."""
        text = _formatted(record, self._stage)
        self._keep(text)
        self._count += 1
        try:
            self._stream.write(text)
            self._stream.flush()
        except (OSError, ValueError):
            # Nobody reads it there any more; the store's copy remains.
            return

    def _keep(self, text: str) -> None:
        line = text.encode()
        in_order = not self._tail and not self._left_out
        if in_order and len(self._head) + len(line) <= self._first:
            self._head += line
            return
        self._tail += line
        if (over := len(self._tail) - self._last) > 0:
            cut = self._tail.find(b"\n", over - 1) + 1
            self._left_out += cut
            del self._tail[:cut]

    def _locked(self) -> t.ContextManager[t.Any]:
        assert self.lock is not None
        return self.lock


@dataclasses.dataclass(frozen=True, slots=True)
class Pace:
    """Seconds before the first shipment, and between others; bytes a second that all shipments together may cost.

    Only ``most`` lets them cost more: a log of its full size is 28 KiB a second.
    """

    first: float = 3.0
    least: float = 3.0
    most: float = 300.0
    bytes_per_second: float = 2048.0

    def pause(self, size: int) -> float:
        """Seconds to wait after a shipment of so many bytes."""
        return min(self.most, max(self.least, size / self.bytes_per_second))


class Shipper:
    """Decides when a run log goes to the store: soon, but a long log not over and over.

    What is in the store at the start, the log of earlier attempts, stays in front. A store that fails is logged once
    each time that it begins to, and tried again later. Nothing is raised.
    """

    def __init__(self, log: RunLog, store: Store, key: str, pace: Pace | None = None) -> None:
        self._log, self._store, self._key, self._pace = log, store, key, pace or Pace()
        self._next = time.monotonic() + self._pace.first
        self._shipped = -1
        self._failing = self._ended = False
        # One shipment at a time, so that an older one does not come after a newer one.
        self._turn = threading.Lock()

    def tick(self) -> None:
        """Ships if it is time and there is something new. To be called often; it takes as long as the store does."""
        if time.monotonic() < self._next or self._log.count == self._shipped or self._ended:
            return
        if self._turn.acquire(blocking=False):
            try:
                self._ship(self._store)
                self._next = time.monotonic() + self._pace.pause(self._log.size)
            finally:
                self._turn.release()

    def finish(self, deadline_seconds: float, store: Store | None = None) -> bool:
        """Puts the log as it is at the end, within a time, and says whether the store has it. No tick ships after it.

        ``store`` may be another way to the same place, with shorter time-outs. A shipment that is under way in another
        thread gets half of the time. May be called again.
        """
        self._ended = True
        end = time.monotonic() + deadline_seconds
        done = threading.Event()
        arguments = (store or self._store, end - deadline_seconds / 2, end, done)
        # A store may take longer than there is time; the thread is left behind then.
        threading.Thread(target=self._finish, args=arguments, name="run-log", daemon=True).start()
        return done.wait(deadline_seconds)

    def _finish(self, store: Store, turn_by: float, end: float, done: threading.Event) -> None:
        in_turn = self._turn.acquire(timeout=max(0.0, turn_by - time.monotonic()))
        try:
            while not self._ship(store):
                if time.monotonic() + _AGAIN > end:
                    return
                time.sleep(_AGAIN)
        finally:
            if in_turn:
                self._turn.release()
        if in_turn:
            done.set()
        elif self._turn.acquire(timeout=max(0.0, end - time.monotonic())):
            # The older one came to its end after all, and may have come after this one.
            if self._ship(store):
                done.set()
            self._turn.release()

    def _ship(self, store: Store) -> bool:
        """Whether all that was logged before is in the store."""
        try:
            if not self._log.recalled:
                # If this fails, nothing is written: it would put an end to the log of the attempts before.
                self._recall(store)
            count = self._log.count
            self._log.ship(store, self._key)
        except Exception as error:
            # Whatever it is, the volume is worth more than its log.
            if not self._failing:
                self._failing = True
                _LOG.warning("the run log is not in the store yet: %s", error)
            return False
        self._shipped, self._failing = count, False
        return True

    def _recall(self, store: Store) -> None:
        try:
            found = store.get(self._key)
        except PermanentError as error:
            _LOG.warning("the log of earlier attempts is lost: %s", error)
            found = None
        self._log.recall(found.content if found else b"")


def _formatted(record: logging.LogRecord, stage: str) -> str:
    try:
        message = record.getMessage()
    except Exception:
        # Arguments that do not fit their message: a mistake of the caller's that must not hide what it had to say.
        message = f"{record.msg} {record.args}"
    details = [message]
    if record.exc_info and record.exc_info[0]:
        details.append(_TRACEBACKS.formatException(record.exc_info))
    elif record.exc_text:
        details.append(record.exc_text)
    if record.stack_info:
        details.append(record.stack_info)
    level = next((name for least, name in _LEVELS if record.levelno >= least), "DEBUG")
    source = f"/{_MODEL}" if record.name == _MODEL or record.name.startswith(f"{_MODEL}.") else ""
    first, *more = "\n".join(map(plain.text, details)).rstrip().split("\n")
    head = f"{_time(record.created)} {level} [{stage}{source}] {first.rstrip()}\n"
    return head + "".join(f"    {line.rstrip()}\n" for line in more)


def _time(seconds: float) -> str:
    moment = datetime.datetime.fromtimestamp(seconds, datetime.UTC)
    return f"{moment:%Y-%m-%dT%H:%M:%S}.{moment.microsecond // 1000:03}Z"
