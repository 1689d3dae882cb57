"""Says what a benchmark has measured, and keeps it in ``docs/benchmarks.md``."""

from __future__ import annotations

import argparse
import os
import pathlib
import platform
import sys
import time

PAGE = pathlib.Path(__file__).parent.parent / "docs" / "benchmarks.md"


def command_line(doc: str | None) -> argparse.ArgumentParser:
    """The arguments of the benchmark whose module says ``doc``: so far ``--write``."""
    parser = argparse.ArgumentParser(description=doc.splitlines()[0] if doc else None)
    parser.add_argument("--write", action="store_true", help="write the tables into docs/benchmarks.md")
    return parser


def publish(part: str, size: str, tables: str, *, write: bool) -> None:
    """Prints the tables with day, machine and ``size``; with ``write``, also between the page's marks of ``part``."""
    machine = f"{os.cpu_count()} cores, {platform.system()} {platform.machine()}, Python {platform.python_version()}"
    measured = f"{machine}: {size}" if size else machine
    text = f"Measured {time.strftime('%Y-%m-%d')} on {measured}.\n\n{tables}"
    sys.stdout.write(text + "\n")
    if write:
        begin, end = f"<!-- {part}: begin -->", f"<!-- {part}: end -->"
        before, _, rest = PAGE.read_text(encoding="utf-8").partition(begin)
        after = rest.partition(end)[2]
        PAGE.write_text(f"{before}{begin}\n\n{text}\n\n{end}{after}", encoding="utf-8")
