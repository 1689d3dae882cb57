"""What readers read a moment ago."""

from __future__ import annotations

import collections
import dataclasses
import typing as t

from htrflow_status.results.reader import Found
from htrflow_status.results.refusal import Refusal


@dataclasses.dataclass(frozen=True, slots=True)
class Kept:
    """An answer of the store, and when it came, on the monotonic clock."""

    answer: Found | Refusal
    at: float

    @property
    def size(self) -> int:
        """Bytes, with what an entry takes beside its content."""
        return 500 + (len(self.answer.content) if isinstance(self.answer, Found) else 0)


class Cache:
    """The newest answers, each for the owner that got it and for nobody else; the least used ones go first.

    It holds at most ``total`` bytes, an answer at most ``single``.
    """

    def __init__(self, total: int = 48 * 1024 * 1024, single: int = 2 * 1024 * 1024) -> None:
        self._total, self._single, self._held = total, single, 0
        self._kept: collections.OrderedDict[tuple[str, str], Kept] = collections.OrderedDict()

    def get(self, owner: str, key: str) -> Kept | None:
        kept = self._kept.get((owner, key))
        if kept:
            self._kept.move_to_end((owner, key))
        return kept

    def put(self, owner: str, key: str, kept: Kept) -> None:
        self.drop(owner, key)
        if kept.size <= self._single:
            self._kept[owner, key] = kept
            self._held += kept.size
        while self._held > self._total:
            self._held -= self._kept.popitem(last=False)[1].size

    def drop(self, owner: str, key: str) -> None:
        old = self._kept.pop((owner, key), None)
        self._held -= old.size if old else 0

    def forget(self, owner: str) -> None:
        """Drops all of one owner's."""
        for key in self._of(owner):
            self.drop(owner, key)

    def _of(self, owner: str) -> t.Sequence[str]:
        return [key for whose, key in self._kept if whose == owner]
