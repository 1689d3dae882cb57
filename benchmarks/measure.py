"""Runs a program as a process of its own, and tells what it took."""

from __future__ import annotations

import dataclasses
import os
import pathlib
import statistics
import subprocess
import tempfile
import time
import typing as t

#: A program that takes longer is stopped, and the table says so.
LIMIT_SECONDS = 180


@dataclasses.dataclass
class Run:
    """One measured process: seconds on the clock, seconds of CPU, peak resident MB, and what it printed."""

    wall: float
    cpu: float
    megabytes: float
    output: pathlib.Path


class Stopped(t.NamedTuple):
    """A process that did not end well."""

    why: str


def measure(command: t.Sequence[str | pathlib.Path], output: pathlib.Path, repeat: int = 1) -> Run | Stopped:
    """The run with the median time of ``repeat`` runs. Their peak memory is the largest of them."""
    runs = []
    for _ in range(repeat):
        run = _measure_once(command, output)
        if isinstance(run, Stopped):
            return run
        runs.append(run)
    median = statistics.median_low(run.wall for run in runs)
    best = next(run for run in runs if run.wall == median)
    return dataclasses.replace(best, megabytes=max(run.megabytes for run in runs))


def _measure_once(command: t.Sequence[str | pathlib.Path], output: pathlib.Path) -> Run | Stopped:
    with output.open("wb") as stdout, tempfile.TemporaryFile() as stderr:
        start = time.perf_counter()
        process = subprocess.Popen(
            [str(word) for word in command], stdout=stdout, stderr=stderr, stdin=subprocess.DEVNULL
        )
        while True:
            pid, status, usage = os.wait4(process.pid, os.WNOHANG)
            wall = time.perf_counter() - start
            if pid:
                break
            if wall > LIMIT_SECONDS:
                process.kill()
                os.wait4(process.pid, 0)
                process.returncode = -9
                return Stopped(f"stopped after {LIMIT_SECONDS} s")
            time.sleep(0.0005)
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode:
            stderr.seek(0)
            return Stopped(stderr.read().decode("utf-8", "replace").strip().splitlines()[-1][:120])
    return Run(wall, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024, output)
