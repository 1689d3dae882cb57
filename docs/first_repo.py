"""Writes an example campaigns repo, checks it, renders it and shows what came out, for ``docs/first-repo.md``.

Takes the folder to work in; without it, the top of the project.
"""

from __future__ import annotations

import os
import pathlib
import subprocess
import sys
import typing as t

COMMANDS = (
    "htrflow-campaigns init demo --force",
    "htrflow-campaigns validate demo",
    "htrflow-campaigns render demo --out demo/rendered",
    "head -n 16 demo/rendered/campaigns/example.yaml",
    "sed -n '/^kind: Job/,/^  maxFailedIndexes:/p' demo/rendered/campaigns/example.yaml",
    "htrflow-campaigns generate demo | wc -l",
)


def run(folder: pathlib.Path) -> t.Iterator[str]:
    """Runs each command in ``folder`` and gives it with what it printed.

    Raises :class:`subprocess.CalledProcessError` when one fails.
    """
    path = os.pathsep.join((str(pathlib.Path(sys.executable).parent), os.environ.get("PATH", os.defpath)))
    for command in COMMANDS:
        done = subprocess.run(
            ["/bin/sh", "-c", command],
            cwd=folder,
            env={**os.environ, "PATH": path},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            text=True,
            encoding="utf-8",
            check=True,
        )
        yield f"$ {command}\n{done.stdout}"


if __name__ == "__main__":
    top = pathlib.Path(__file__).parent.parent
    for part in run(pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else top):
        print(part, flush=True)
