"""The volumes of a campaign as ``volumes.txt`` has them: one text and where its lines begin, and no object a line."""

from __future__ import annotations

import array
import bisect
import typing as t

_IMAGES = "images:"


class Line(t.NamedTuple):
    """One line. Exactly one of ``manifest`` and ``images`` is there."""

    id: str
    manifest: str | None
    images: tuple[str, ...]


class VolumeList:
    """The lines of one list, which never changes."""

    def __init__(self, text: str) -> None:
        self._text = text if text.endswith("\n") or not text else f"{text}\n"
        # As the shell of the pods does: lines end at a line feed and nowhere else.
        starts, place = array.array("I"), 0
        while place < len(self._text):
            starts.append(place)
            place = self._text.index("\n", place) + 1
        self._starts = starts
        # Here, since the first one who searches should not wait for it.
        self._folded = "".join(f"{self.id(index).casefold()}\n" for index in range(len(starts)))

    def __len__(self) -> int:
        return len(self._starts)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, VolumeList) and self._text == other._text

    def __hash__(self) -> int:
        return hash(self._text)

    def __getitem__(self, index: int) -> Line:
        id_, _, source = self._line(index).partition("\t")
        if source.startswith(_IMAGES):
            return Line(id_, None, tuple(source.removeprefix(_IMAGES).split()))
        return Line(id_, source, ())

    def id(self, index: int) -> str:
        return self._line(index).partition("\t")[0]

    def index(self, id_: str) -> int | None:
        """The place of an id in the list. It costs a search through the text, and no table of all ids."""
        if not id_ or "\n" in id_ or "\t" in id_:
            return None
        if self._text.startswith(f"{id_}\t"):
            return 0
        place = self._text.find(f"\n{id_}\t")
        return None if place < 0 else bisect.bisect_right(self._starts, place + 1) - 1

    def find(self, folded: str, most: int) -> list[str]:
        """The first ids that hold a text, which is case-folded and has no line feed."""
        found: list[str] = []
        ids, line, last = self._folded, 0, 0
        place = ids.find(folded)
        while place >= 0 and len(found) < most:
            line += ids.count("\n", last, place)
            found.append(self.id(line))
            last = ids.find("\n", place)
            place = ids.find(folded, last)
        return found

    def _line(self, index: int) -> str:
        end = self._starts[index + 1] if index + 1 < len(self._starts) else len(self._text)
        return self._text[self._starts[index] : end - 1]
