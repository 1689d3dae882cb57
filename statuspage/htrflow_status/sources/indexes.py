"""Sets of a Job's indexes as Kubernetes writes them, ``0,3-5,7``: kept as ranges, so that 100 000 cost what ten do."""

from __future__ import annotations

import bisect
import dataclasses
import itertools
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
        left = []
        for first, last in self.ranges:
            for start, end in others.gaps(last + 1, first):
                left.append((start, end))
        return Indexes(tuple(left))

    def gaps(self, size: int, first: int = 0) -> t.Iterator[tuple[int, int]]:
        """The ranges from ``first`` on and below ``size`` that are not among these."""
        place = max(0, bisect.bisect_right(self.ranges, (first, 2**31)) - 1)
        for start, end in itertools.islice(self.ranges, place, None):
            if start >= size:
                break
            if first < start:
                yield first, start - 1
            first = max(first, end + 1)
        if first < size:
            yield first, size - 1


def joined(one: Indexes, other: Indexes) -> Indexes:
    """Those that are among one of the two."""
    return _merged((*one.ranges, *other.ranges))


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
