"""The difference of two texts as lines, bounded in size whatever the texts."""

from __future__ import annotations

import difflib
import typing as t

_LINES, _CHARACTERS, _CONTEXT = 80, 200, 3
#: Lines that are compared with each other; the time for it grows with their product.
_COMPARED = 600


class Diff(t.NamedTuple):
    """Lines that start with a space, ``-``, ``+`` or ``@@``, and how many more there are."""

    lines: list[str]
    left_out: int


def diff(before: str, after: str) -> Diff:
    """The unified difference, without file names. Of a text that is new, every line."""
    old, new = before.splitlines(), after.splitlines()
    start, end = _common(old, new)
    old_part, new_part = old[start : len(old) - end], new[start : len(new) - end]
    if not old:
        lines = [f"+{line}" for line in new]
    elif len(old_part) + len(new_part) > _COMPARED:
        lines = [*(f"-{line}" for line in old_part), *(f"+{line}" for line in new_part)]
    else:
        first, last = max(0, start - _CONTEXT), max(0, end - _CONTEXT)
        pieces = old[first : len(old) - last], new[first : len(new) - last]
        lines = [*difflib.unified_diff(*pieces, n=_CONTEXT, lineterm="")][2:]
        lines = ["@@" if line.startswith("@@ ") else line for line in lines]
    shown = [line if len(line) <= _CHARACTERS else f"{line[:_CHARACTERS]}…" for line in lines[:_LINES]]
    return Diff(shown, len(lines) - len(shown))


def _common(old: list[str], new: list[str]) -> tuple[int, int]:
    """How many lines at the start and at the end are the same."""
    most = min(len(old), len(new))
    start = next((index for index in range(most) if old[index] != new[index]), most)
    most -= start
    end = next((index for index in range(most) if old[-1 - index] != new[-1 - index]), most)
    return start, end
