"""``python -m htrflow_batch``: one attempt at one volume, as the environment describes it."""

from __future__ import annotations

import logging
import os
import sys

from htrflow_batch import attempt

if __name__ == "__main__":
    code = attempt.main()
    logging.shutdown()
    sys.stdout.flush()
    sys.stderr.flush()
    # Threads that wait for a slow server have nothing to say any more.
    os._exit(code)
