"""``python -m tests.demo [FOLDER]``: serves an archive and a model hub, writes a campaigns repo, and runs it.

On a terminal it goes on serving the results until Ctrl-C; otherwise it ends when everything is read.
"""

from __future__ import annotations

import os
import pathlib
import signal
import subprocess
import sys

from tests.demo.archive import Archive
from tests.demo.repo import write
from tests.wrapper.hub_server import HubServer


def main(folder: pathlib.Path) -> int:
    """Runs the demo in a folder and gives the exit code of ``htrflow-campaigns local``."""
    print("drawing the pages of two volumes", flush=True)
    archive, hub = Archive(), HubServer.of_the_demo()
    try:
        write(folder / "repo", archive, hub)
        command = [sys.executable, "-m", "htrflow_campaigns", "local", str(folder / "repo")]
        command += ["--data", str(folder / "data"), "--port", os.environ.get("PORT", "0"), "--slots", "1"]
        if not sys.stdout.isatty():
            command.append("--once")
        print("$ htrflow-campaigns", *command[3:], flush=True)
        # Ctrl-C is for the command, which ends what it started.
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        with subprocess.Popen(
            command,
            env={**os.environ, "HF_ENDPOINT": hub.url},
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
        ) as process:
            return process.wait()
    finally:
        hub.close()
        archive.close()


if __name__ == "__main__":
    sys.exit(main(pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else "demo")))
