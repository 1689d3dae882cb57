"""Runs a program and notes as it goes on what processor time it and its child have taken."""

from __future__ import annotations

import bisect
import os
import pathlib
import subprocess
import threading
import time
import typing as t

_TICK = 1 / os.sysconf("SC_CLK_TCK")
_PAUSE = 0.02


class Sample(t.NamedTuple):
    """Seconds on the clock since 1970, and of processor time: of the process, and of its first child."""

    at: float
    own: float
    child: float


class Watched:
    """One run. ``ended`` is when it ended, ``samples`` what it had taken before."""

    def __init__(
        self, command: t.Sequence[str | pathlib.Path], output: pathlib.Path, environment: t.Mapping[str, str]
    ) -> None:
        self.output = output
        self.samples: list[Sample] = []
        with output.open("wb") as said:
            self.started = time.time()
            self._process = subprocess.Popen(
                [str(word) for word in command],
                stdout=said,
                stderr=subprocess.STDOUT,
                stdin=subprocess.DEVNULL,
                env=dict(environment),
                cwd=output.parent,
            )
        watcher = threading.Thread(target=self._watch)
        watcher.start()
        try:
            code = self._process.wait()
        finally:
            self._process.kill()
            self.ended = time.time()
            watcher.join()
        if code:
            raise RuntimeError(f"{command} ended with {code}:\n{output.read_text(errors='replace')[-3000:]}")

    def between(self, start: float, end: float) -> tuple[float, float]:
        """Seconds of processor time that the process and its child took between two moments."""
        first, last = self._at(start), self._at(end)
        return last.own - first.own, last.child - first.child

    def _at(self, moment: float) -> Sample:
        place = bisect.bisect_left(self.samples, moment, key=lambda sample: sample.at)
        return self.samples[min(place, len(self.samples) - 1)]

    def _watch(self) -> None:
        pid, child = self._process.pid, 0.0
        while (own := _cpu(pid)) is not None:
            found = _children(pid)
            child = (_cpu(found[0]) if found else None) or child
            self.samples.append(Sample(time.time(), own, child))
            time.sleep(_PAUSE)


def _children(pid: int) -> list[int]:
    try:
        return [int(word) for word in pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    except OSError:
        return []


def _cpu(pid: int) -> float | None:
    """Of a process that has not ended, without its children."""
    try:
        state, *fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2].split()
    except OSError:
        return None
    return None if state in "ZX" else (int(fields[10]) + int(fields[11])) * _TICK
