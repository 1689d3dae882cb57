"""``python -m tests.tools [NAME...]``: gets the programs that the tests need, and says which there are."""

from __future__ import annotations

import argparse
import sys
import time

from tests.tools.cache import Installed, MissingError, find, install
from tests.tools.programs import PROGRAMS, Program
from tests.tools.sources import RefusedError


def main() -> int:
    """Exit code 0 if every program is there, 1 if one could not be had."""
    parser = argparse.ArgumentParser(prog="python -m tests.tools", description=__doc__.partition(": ")[2])
    parser.add_argument("names", metavar="NAME", nargs="*", help="only these (all)")
    parser.add_argument("--list", action="store_true", help="say which are there, and get none")
    options = parser.parse_args()
    unknown = set(options.names) - {program.name for program in PROGRAMS}
    if unknown:
        parser.error(f"there is no {', '.join(sorted(unknown))}; there are {', '.join(p.name for p in PROGRAMS)}")
    wanted = [program for program in PROGRAMS if not options.names or program.name in options.names]
    return _list(wanted) if options.list else _install(wanted)


def _list(programs: list[Program]) -> int:
    missing = 0
    for program in programs:
        try:
            where = str(find((*program.source.binaries, program.name)[0]))
        except MissingError:
            where, missing = "missing", missing + 1
        print(f"{program.name:18}{program.version:20}{where}")
    return 1 if missing else 0


def _install(programs: list[Program]) -> int:
    started = time.monotonic()
    rows: list[Installed] = []
    refused: list[tuple[Program, str]] = []
    for program in programs:
        print(f"{program.name} {program.version} …", file=sys.stderr, flush=True)
        try:
            rows.append(install(program))
        except RefusedError as refusal:
            refused.append((program, str(refusal)))
    print(f"{'program':18}{'version':20}{'seconds':>8}{'cpu':>6}  where")
    for row in rows:
        seconds, cpu = (f"{row.seconds:.0f}", f"{row.cpu_seconds:.0f}") if row.fresh else ("-", "-")
        print(f"{row.program.name:18}{row.program.version:20}{seconds:>8}{cpu:>6}  {row.folder}")
    for program, answer in refused:
        print(f"{program.name:18}{program.version:20}{'':14}  not to be had: {answer}")
    print(f"{len(rows)} there, {len(refused)} missing, {time.monotonic() - started:.0f} s")
    return 1 if refused else 0


if __name__ == "__main__":
    sys.exit(main())
