"""``python -m tests.demo [FOLDER]``: serves an archive and a model hub, writes a campaigns repo, and runs it.

On a terminal it goes on serving the results until Ctrl-C; otherwise it ends when everything is read.
"""

from __future__ import annotations

import os
import pathlib
import shutil
import signal
import socket
import subprocess
import sys

from tests.demo.archive import Archive
from tests.demo.repo import write
from tests.wrapper.hub_server import HubServer


def _archive(folder: pathlib.Path) -> Archive:
    """The archive at the address that it had before, which is in the campaign and in the results.

    Where that is taken, the demo begins anew.
    """
    kept = folder / "archive-port"
    try:
        return Archive(int(kept.read_text(encoding="utf-8")))
    except (OSError, ValueError):
        shutil.rmtree(folder / "data", ignore_errors=True)
    archive = Archive()
    folder.mkdir(parents=True, exist_ok=True)
    kept.write_text(str(archive.port), encoding="utf-8")
    return archive


def _site_port(folder: pathlib.Path) -> int:
    """The site's port, the same each time: the results name its address."""
    kept = folder / "site-port"
    try:
        wanted = int(kept.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        wanted = 0
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", wanted))
        except OSError:
            probe.bind(("127.0.0.1", 0))
        port = int(probe.getsockname()[1])
    kept.write_text(str(port), encoding="utf-8")
    return port


def main(folder: pathlib.Path) -> int:
    """Runs the demo in a folder and gives the exit code of ``htrflow-campaigns local``."""
    print("drawing the pages of two volumes", flush=True)
    archive, hub = _archive(folder), HubServer.of_the_demo()
    try:
        write(folder / "repo", archive, hub)
        command = [sys.executable, "-m", "htrflow_campaigns", "local", str(folder / "repo")]
        command += [
            "--data",
            str(folder / "data"),
            "--port",
            os.environ.get("PORT") or str(_site_port(folder)),
            "--slots",
            "1",
        ]
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
