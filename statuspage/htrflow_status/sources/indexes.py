"""Sets of a Job's indexes as Kubernetes writes them, ``0,3-5,7``: kept as ranges, so that 100 000 cost what ten do."""

from __future__ import annotations

import bisect
import dataclasses
import re
import typing as t

_RANGE = re.compile("([0-9]{1,9})(?:-([0-9]{1,9}))?")


@dataclasses.dataclass(frozen=True, slots=True)
class Indexes:
    """``ranges`` are in order, do not touch, and have their last index in them."""

    ranges: tuple[tuple[int, int], ...] = ()

    @property
    def count(self) -> int:
        return sum(last - first + 1 for first, last in self.ranges)

    def holds(self, index: int) -> bool:
        place = bisect.bisect_right(self.ranges, (index, 2**31)) - 1
        return place >= 0 and self.ranges[place][0] <= index <= self.ranges[place][1]

    def all(self) -> t.Iterator[int]:
        for first, last in self.ranges:
            yield from range(first, last + 1)

    def without(self, others: Indexes) -> Indexes:
        """Those that are not among the others."""
        if not others.ranges:
            return self
        return _merged((index, index) for index in self.all() if not others.holds(index))


def read(written: str, size: int) -> tuple[Indexes, bool]:
    """The indexes below ``size`` in a text, and whether all of it could be read: it may be cut off."""
    found, whole = [], True
    for part in written.split(",") if written else ():
        match = _RANGE.fullmatch(part.strip())
        first, last = (int(match[1]), int(match[2] or match[1])) if match else (1, 0)
        whole &= first <= last < size
        if first <= min(last, size - 1):
            found.append((first, min(last, size - 1)))
    return _merged(found), whole


def _merged(ranges: t.Iterable[tuple[int, int]]) -> Indexes:
    found: list[tuple[int, int]] = []
    for first, last in sorted(ranges):
        if found and first <= found[-1][1] + 1:
            found[-1] = (found[-1][0], max(found[-1][1], last))
        else:
            found.append((first, last))
    return Indexes(tuple(found))
