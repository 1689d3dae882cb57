"""The processes of pods, which are told from all others by a variable in their environment.

Whatever a container starts inherits the variable, and keeps it when the process that started it is gone.
"""

from __future__ import annotations

import contextlib
import pathlib
import time
import typing as t

import psutil

#: Holds the pod's folder.
VARIABLE = "HTRFLOW_CAMPAIGNS_POD"


def below(folder: pathlib.Path) -> list[psutil.Process]:
    """The processes of the pod that has this folder, or of all pods whose folders are in it."""
    found = []
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error, OSError):
            value = process.environ().get(VARIABLE)
            if value and pathlib.Path(value).is_relative_to(folder) and process.pid != psutil.Process().pid:
                found.append(process)
    return found


def end(folder: pathlib.Path, seconds: float) -> None:
    """Ends them: the first process of each container is asked to, and after so many seconds nothing is left."""
    found = below(folder)
    pids = {process.pid for process in found}
    _each(found, lambda process: process.terminate() if process.ppid() not in pids else None)
    _wait(folder, seconds)
    kill(folder)


def kill(folder: pathlib.Path) -> None:
    """Ends them at once."""
    _each(below(folder), lambda process: process.kill())
    _wait(folder, 1)


def _wait(folder: pathlib.Path, seconds: float) -> None:
    # Nothing is reaped here: the exit code is for whoever started the process.
    until = time.monotonic() + seconds
    while below(folder) and time.monotonic() < until:
        time.sleep(0.02)


def _each(found: t.Iterable[psutil.Process], do: t.Callable[[psutil.Process], object]) -> None:
    for process in found:
        with contextlib.suppress(psutil.Error):
            do(process)
