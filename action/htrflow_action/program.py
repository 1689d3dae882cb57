"""Runs another program, which sees of the runner's environment only what it is given."""

from __future__ import annotations

import subprocess
import typing as t


def run(command: t.Sequence[str], environment: t.Mapping[str, str], seconds: float) -> subprocess.CompletedProcess[str]:
    """What it printed, and how it ended. Raises ``subprocess.TimeoutExpired``, and ``OSError`` where it cannot run."""
    return subprocess.run(
        command,
        capture_output=True,
        stdin=subprocess.DEVNULL,
        encoding="utf-8",
        errors="replace",
        env=environment,
        timeout=seconds,
        check=False,
    )
