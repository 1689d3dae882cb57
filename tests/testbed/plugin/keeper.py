"""``keeper.py OWNER FOLDER COMMAND...`` runs a command in a folder until it ends or the process OWNER is gone.

A run of tests that is killed cannot stop its servers. Each has a keeper that does.
"""

from __future__ import annotations

import ctypes
import os
import select
import signal
import subprocess
import sys

_SECONDS_TO_STOP = 10
_PR_SET_PDEATHSIG = 1


def main(owner: int, folder: str, command: list[str]) -> int:
    """Returns the exit code of the command."""
    try:
        owners = os.pidfd_open(owner)
    except ProcessLookupError:
        return 1
    child = subprocess.Popen(command, cwd=folder, preexec_fn=_die_with_parent)
    signal.signal(signal.SIGTERM, lambda *_: child.terminate())
    own = os.pidfd_open(child.pid)
    poll = select.poll()
    poll.register(owners, select.POLLIN)
    poll.register(own, select.POLLIN)
    ended = {descriptor for descriptor, _ in poll.poll()}
    if own not in ended:
        child.terminate()
        try:
            child.wait(_SECONDS_TO_STOP)
        except subprocess.TimeoutExpired:
            child.kill()
    return child.wait()


def _die_with_parent() -> None:
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]), sys.argv[2], sys.argv[3:]))
