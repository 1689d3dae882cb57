"""Sets of a Job's indexes as Kubernetes writes them: ``0,3-5,7``."""

from __future__ import annotations

import re
import typing as t

_RANGE = re.compile("([0-9]{1,6})(?:-([0-9]{1,6}))?")


def read(text: str) -> set[int]:
    """The indexes in a text. What is no range is passed over: the text may come from elsewhere, cut off."""
    found: set[int] = set()
    for part in text.split(","):
        if match := _RANGE.fullmatch(part.strip()):
            found.update(range(int(match[1]), int(match[2] or match[1]) + 1))
    return found


def write(indexes: t.Iterable[int]) -> str:
    """The indexes in order, three or more in a row as a range."""
    ranges: list[tuple[int, int]] = []
    for index in sorted(indexes):
        if ranges and ranges[-1][1] == index - 1:
            ranges[-1] = (ranges[-1][0], index)
        else:
            ranges.append((index, index))
    return ",".join(_shown(first, last) for first, last in ranges)


def _shown(first: int, last: int) -> str:
    if first == last:
        return str(first)
    return f"{first}{',' if last == first + 1 else '-'}{last}"
