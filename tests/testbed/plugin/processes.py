"""Servers on this machine that end when the run of tests ends, however it ends."""

from __future__ import annotations

import contextlib
import dataclasses
import os
import pathlib
import random
import select
import signal
import socket
import sys
import time
import typing as t

_KEEPER = pathlib.Path(__file__).with_name("keeper.py")
#: Below the ports that Linux gives to outgoing connections.
_PORTS = range(15_000, 32_000)


class StartError(Exception):
    """A server did not start. The message ends with the last lines of its log."""


@dataclasses.dataclass(frozen=True)
class Process:
    """A server, by the process id of its keeper."""

    name: str
    pid: int
    log: str

    def stop(self, seconds: float = 15) -> None:
        """Asks the server to end and waits for it, then kills it."""
        with contextlib.suppress(ProcessLookupError):
            handle = os.pidfd_open(self.pid)
            try:
                for way, limit in ((signal.SIGTERM, seconds), (signal.SIGKILL, 5.0)):
                    signal.pidfd_send_signal(handle, way)
                    if _ended(handle, limit):
                        return
            finally:
                os.close(handle)

    def alive(self) -> bool:
        """Whether the server runs."""
        try:
            handle = os.pidfd_open(self.pid)
        except ProcessLookupError:
            return False
        try:
            return not _ended(handle, 0)
        finally:
            os.close(handle)

    def wait_until(self, ready: t.Callable[[], bool], seconds: float = 120) -> None:
        """Waits until ``ready`` says so; raises :class:`StartError` when the server ends first or time is up."""
        limit = time.monotonic() + seconds
        while not ready():
            if not self.alive():
                raise StartError(f"{self.name} ended before it was ready\n{self.tail()}")
            if time.monotonic() > limit:
                raise StartError(f"{self.name} was not ready after {seconds:.0f} s\n{self.tail()}")
            time.sleep(0.1)

    def tail(self, lines: int = 30) -> str:
        """The last lines of the log."""
        return "\n".join(pathlib.Path(self.log).read_text("utf-8", "replace").splitlines()[-lines:])


def start(
    name: str,
    command: t.Sequence[str | pathlib.Path],
    folder: pathlib.Path,
    owner: int,
    environment: t.Mapping[str, str] | None = None,
) -> Process:
    """Starts a command in ``folder``; ``NAME.log`` there gets what it prints. It ends with the process ``owner``."""
    folder.mkdir(parents=True, exist_ok=True)
    log = str(folder / f"{name}.log")
    arguments = [sys.executable, "-I", str(_KEEPER), str(owner), str(folder), *map(str, command)]
    pid = os.posix_spawn(
        sys.executable,
        arguments,
        {**os.environ, **(environment or {})},
        file_actions=[
            (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
            (os.POSIX_SPAWN_OPEN, 1, log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644),
            (os.POSIX_SPAWN_DUP2, 1, 2),
        ],
        setsid=True,
    )
    return Process(name, pid, log)


def heed_signals() -> None:
    """For ``preexec_fn``: lets a command end by Ctrl-C though a shell runs the tests in the background."""
    for number in (signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_DFL)


def free_ports(count: int) -> list[int]:
    """Ports of 127.0.0.1 that nobody listens on."""
    found: list[int] = []
    while len(found) < count:
        port = random.choice(_PORTS)  # noqa: S311
        if port not in found and _is_free(port):
            found.append(port)
    return found


def listens(port: int) -> bool:
    """Whether a server takes connections on the port."""
    with socket.socket() as client:
        # A server with a full queue lets the first attempt go unheard, and hears the next one a second later.
        client.settimeout(5)
        return client.connect_ex(("127.0.0.1", port)) == 0


def _is_free(port: int) -> bool:
    with socket.socket() as server:
        try:
            server.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True


def _ended(handle: int, seconds: float) -> bool:
    poll = select.poll()
    poll.register(handle, select.POLLIN)
    return bool(poll.poll(seconds * 1000))
