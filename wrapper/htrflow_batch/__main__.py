"""``python -m htrflow_batch``: one attempt at one volume, as the environment describes it."""

from __future__ import annotations

import logging
import os
import signal
import sys
import types

from htrflow_batch import config, termination
from htrflow_batch.errors import ExitCode


def _end(number: int, frame: types.FrameType | None) -> None:
    """Ends an attempt that has not begun: loading the rest of the program takes a second."""
    termination.write(config.termination_log(), "config", False, "the pod was asked to end before it began")
    os._exit(ExitCode.TERMINATED)


if __name__ == "__main__":
    # A container's first process is not ended by a signal that it does not handle.
    signal.signal(signal.SIGTERM, _end)

    from htrflow_batch import attempt

    code = attempt.main()
    logging.shutdown()
    sys.stdout.flush()
    sys.stderr.flush()
    # Threads that wait for a slow server have nothing to say any more.
    os._exit(code)
