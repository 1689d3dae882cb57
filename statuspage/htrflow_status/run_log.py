"""Reads a run log, whose grammar is in :mod:`htrflow_batch.run_log`, into groups of lines."""

from __future__ import annotations

import dataclasses
import re
import typing as t

_LINE = re.compile(r"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z) (DEBUG|INFO |WARN |ERROR) \[([a-z]+)(/htrflow)?\] ?(.*)")
_ATTEMPT = re.compile(r"=== attempt (\S+)")
_LEFT_OUT = re.compile(r"=== left out: (\d+) bytes")
#: Lines of a log that are shown at most; the whole is a download.
MOST_LINES = 20_000


@dataclasses.dataclass(frozen=True, slots=True)
class Line:
    """One line of the file; ``number`` counts from 1. ``htrflow`` says that the library said it."""

    number: int
    time: str
    level: str
    text: str
    htrflow: bool = False


@dataclasses.dataclass(frozen=True, slots=True)
class Group:
    """Lines of one stage of one attempt that follow each other. ``kind`` is stage, attempt or left out."""

    kind: t.Literal["stage", "attempt", "left out"]
    name: str
    lines: tuple[Line, ...] = ()


def read(text: str) -> tuple[Group, ...]:
    """The groups of a log, in its order. Lines of an unknown form belong to the group before."""
    groups: list[tuple[t.Literal["stage", "attempt", "left out"], str, list[Line]]] = []
    level = "INFO"
    for number, raw in enumerate(text.split("\n")[:MOST_LINES], 1):
        if match := _ATTEMPT.fullmatch(raw):
            groups.append(("attempt", match[1], []))
        elif match := _LEFT_OUT.match(raw):
            groups.append(("left out", match[1], []))
        elif match := _LINE.fullmatch(raw):
            level = match[2].strip()
            if not groups or groups[-1][:2] != ("stage", match[3]):
                groups.append(("stage", match[3], []))
            groups[-1][2].append(Line(number, match[1], level, match[5], bool(match[4])))
        elif raw:
            if not groups:
                groups.append(("stage", "", []))
            groups[-1][2].append(Line(number, "", level, raw))
    return tuple(Group(kind, name, tuple(lines)) for kind, name, lines in groups)
