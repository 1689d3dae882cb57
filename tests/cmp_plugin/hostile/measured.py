"""Runs the real command, measures it, and holds it to what is true of every run.

Memory is the peak resident set of the command's own process, since that is what a container's limit counts. An address
space limit would count memory that is reserved and never touched, and it turns growth into tracebacks of its own; it is
set all the same, far above the bound, so that a test that fails does not take the machine with it.
"""

from __future__ import annotations

import json
import pathlib
import re
import subprocess
import sys
import typing as t

MIB = 1024 * 1024
MEMORY = 200 * MIB
SECONDS = 20.0

#: Starts a command and writes its exit code, seconds and peak memory in KiB. A process of its own: a child begins with
#: the peak of the process that started it, and pytest's is larger than some of what is measured.
_MEASURE = """
import json, os, resource, sys
fuse = int(sys.argv[1])
child = os.fork()
if not child:
    resource.setrlimit(resource.RLIMIT_AS, (fuse, fuse))
    resource.setrlimit(resource.RLIMIT_CPU, (60, 60))
    os.execv(sys.argv[3], sys.argv[3:])
_, status, usage = os.wait4(child, 0)
seconds = usage.ru_utime + usage.ru_stime
measured = {"code": os.waitstatus_to_exitcode(status), "seconds": seconds, "kib": usage.ru_maxrss}
open(sys.argv[2], "w").write(json.dumps(measured))
"""
_FUSE = 4096 * MIB


class Ran(t.NamedTuple):
    """What a command did. ``memory`` is in bytes; ``seconds`` are the processor's: other work takes none of them."""

    code: int
    seconds: float
    memory: int
    stdout: bytes
    stderr: str


def run(command: str, repo: pathlib.Path, *arguments: str, prefix: t.Sequence[str] = ()) -> Ran:
    """Runs ``htrflow-campaigns COMMAND REPO ARGUMENTS`` and measures it."""
    result, out, err = (repo.parent / f"{command}.{name}" for name in ("json", "out", "err"))
    measured = [sys.executable, "-I", "-S", "-c", _MEASURE, str(_FUSE), str(result)]
    with out.open("wb") as stdout, err.open("wb") as stderr:
        subprocess.run(
            [*prefix, *measured, sys.executable, "-m", "htrflow_campaigns", command, str(repo), *arguments],
            cwd=repo.parent,
            stdin=subprocess.DEVNULL,
            stdout=stdout,
            stderr=stderr,
            timeout=90,
            check=True,
        )
    told = json.loads(result.read_text(encoding="utf-8"))
    stderr_text = err.read_text(encoding="utf-8")
    return Ran(told["code"], told["seconds"], told["kib"] * 1024, out.read_bytes(), stderr_text)


_LINE = re.compile(r".+:[1-9][0-9]*:[1-9][0-9]*: .+ — .+ \[HTR[0-9]{3}\]")
_COUNT = re.compile(r"(?:no|[0-9]+) problems? in [0-9]+ files?(?:, [0-9]+ warnings?)?")


def check(command: str, ran: Ran) -> None:
    """What holds of every command on every repo."""
    assert ran.code in (0, 1), ran.stderr[-2000:]
    assert "Traceback" not in ran.stderr
    assert ran.memory <= MEMORY, f"{ran.memory / MIB:.0f} MiB"
    assert ran.seconds <= SECONDS
    if command == "validate":
        *problems, count = ran.stdout.decode().removesuffix("\n").split("\n")
        assert ran.stderr == ""
        assert _COUNT.fullmatch(count)
        assert all(_LINE.fullmatch(line) and line.isprintable() for line in problems)
        assert all(len(line) < 1500 for line in problems)
        assert (ran.code == 0) == count.startswith("no ")
    elif command == "generate":
        assert len(ran.stderr.encode()) <= 6 * 1024 + 1
        assert (ran.code == 0) == bool(ran.stdout)
        assert (ran.code == 0) == (ran.stderr == "")
    else:
        assert (ran.code == 0) == (ran.stderr == "")
        assert not ran.code or not ran.stdout


def run_and_check(command: str, repo: pathlib.Path, *, prefix: t.Sequence[str] = ()) -> Ran:
    out = ("--out", str(repo.parent / "out")) if command == "render" else ()
    ran = run(command, repo, *out, prefix=prefix)
    check(command, ran)
    return ran
