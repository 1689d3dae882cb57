"""What the processes of one run of tests share: a folder, and the servers that one of them started."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import pathlib
import shutil
import tempfile
import typing as t

import pytest

from tests.testbed.plugin.processes import Process, StartError

KEEP = "TESTBED_KEEP"
_INPUT = "testbed"
#: What they hold is thrown away: no use to wait for a proper end.
_SECONDS_TO_STOP = 3


class Run:
    """One run of tests. With pytest-xdist its controller makes it, and its workers join it."""

    def __init__(self, folder: pathlib.Path, owner: int) -> None:
        self.folder = folder
        #: The process id of the process that outlives all others of the run.
        self.owner = owner

    def once(self, name: str, start: t.Callable[[pathlib.Path], dict[str, t.Any]]) -> dict[str, t.Any]:
        """What ``start`` returned to the first process of the run that asked for ``name``.

        ``start`` gets an empty folder. When it raises an error, the others get a :class:`StartError` of it.
        """
        with self.locked(name):
            state, failure = self.folder / f"{name}.json", self.folder / f"{name}.failed"
            if failure.is_file():
                raise StartError(failure.read_text(encoding="utf-8"))
            if state.is_file():
                return t.cast(dict[str, t.Any], json.loads(state.read_text(encoding="utf-8")))
            folder = self.folder / name
            folder.mkdir()
            try:
                started = start(folder)
            except Exception as error:
                failure.write_text(f"{type(error).__name__}: {error}", encoding="utf-8")
                raise
            state.write_text(json.dumps(started), encoding="utf-8")
            return started

    def started(self, process: Process) -> Process:
        """Notes a server that :meth:`close` has to stop."""
        with self.locked("processes"), (self.folder / "processes").open("a", encoding="utf-8") as stream:
            stream.write(json.dumps([process.name, process.pid, process.log]) + "\n")
        return process

    def close(self) -> None:
        """Stops the servers, the last one first, and removes the folder."""
        notes = self.folder / "processes"
        rows = notes.read_text(encoding="utf-8").splitlines() if notes.is_file() else []
        for row in reversed(rows):
            Process(*json.loads(row)).stop(_SECONDS_TO_STOP)
        if not os.environ.get(KEEP):
            shutil.rmtree(self.folder, ignore_errors=True)

    @contextlib.contextmanager
    def locked(self, name: str) -> t.Iterator[None]:
        """Lets one process of the run in at a time."""
        with (self.folder / f"{name}.lock").open("w") as stream:
            fcntl.flock(stream, fcntl.LOCK_EX)
            yield


RUN = pytest.StashKey[Run]()


def pytest_configure(config: pytest.Config) -> None:
    """Makes the run, or joins the one of the controller."""
    # A proxy that the machine has for the world outside leads to no server of this machine.
    os.environ["NO_PROXY"] = ",".join(filter(None, [os.environ.get("NO_PROXY"), "127.0.0.1", "localhost"]))
    given = getattr(config, "workerinput", {}).get(_INPUT)
    if given:
        config.stash[RUN] = Run(pathlib.Path(given[0]), given[1])
    else:
        config.stash[RUN] = Run(pathlib.Path(tempfile.mkdtemp(prefix="testbed-")), os.getpid())


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: t.Any) -> None:
    """Tells a worker of pytest-xdist of the run."""
    run = node.config.stash[RUN]
    node.workerinput[_INPUT] = [str(run.folder), run.owner]


def pytest_unconfigure(config: pytest.Config) -> None:
    """Ends the run in the process that made it."""
    run = config.stash.get(RUN, None)
    if run and run.owner == os.getpid():
        run.close()


@pytest.fixture(scope="session")
def testbed_run(pytestconfig: pytest.Config) -> Run:
    """The run of tests that this process is part of."""
    return pytestconfig.stash[RUN]
