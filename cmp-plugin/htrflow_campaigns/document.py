"""A file's data, and where each part of it stands in the text."""

from __future__ import annotations

import array
import bisect
import io
import itertools
import typing as t

from htrflow_campaigns.problems import Position

Key = str | int
Path = tuple[Key, ...]

_SMALL_MAPPING = 32
#: io.StringIO takes four bytes a character, so a text goes through it in pieces.
_PIECE_CHARACTERS = 1 << 20

_NO_SOURCES: t.Mapping[Key, str] = {}


class Mapping(dict[str, t.Any]):
    """A mapping. ``offsets`` holds a key's and its value's place in turn, in the order of the keys."""

    __slots__ = ("offset", "offsets", "size", "sources")

    def __init__(self, offset: int) -> None:
        self.offset = offset
        self.offsets = array.array("L")
        self.sources = _NO_SOURCES
        self.size = 0


class Sequence(list[t.Any]):
    """A list. ``offsets`` holds the place of each item."""

    __slots__ = ("offset", "offsets", "size", "sources")

    def __init__(self, offset: int) -> None:
        self.offset = offset
        self.offsets = array.array("L")
        self.sources = _NO_SOURCES
        self.size = 0


class Text:
    """A file's text, and the way from an offset in it to a line and column."""

    def __init__(self, path: str, text: str) -> None:
        self.path = path
        self.text = text
        self._starts: array.array[int] | None = None

    def position(self, offset: int) -> Position:
        if self._starts is None:
            self._starts = _line_starts(self.text)
        line = bisect.bisect_right(self._starts, offset)
        return Position(self.path, line, offset - self._starts[line - 1] + 1)

    def character(self, position: Position) -> str:
        """What stands at a position that :meth:`position` gave, or nothing at the end."""
        assert self._starts is not None
        offset = self._starts[position.line - 1] + position.column - 1
        return self.text[offset : offset + 1]


def _line_starts(text: str) -> array.array[int]:
    """The offsets at which lines start. Ten million empty lines take a second and four bytes each."""
    starts, start = array.array("I", [0]), 0
    while start < len(text):
        stop = start + _PIECE_CHARACTERS
        stop += text[stop - 1 : stop + 1] == "\r\n"
        lines = io.StringIO(text[start:stop], newline="")
        starts.extend(itertools.islice(itertools.accumulate(map(len, lines), initial=start), 1, None))
        if text[min(stop, len(text)) - 1] not in "\r\n":
            starts.pop()
        start = stop
    return starts


class Document(Text):
    """One file's data.

    ``root`` is made of :class:`Mapping`, :class:`Sequence`, str, int, float, bool and None. What YAML reads as one of
    the last four, or as a date, and what was written for it stands in ``sources`` of the mapping or list around it.
    """

    def __init__(self, path: str, text: str) -> None:
        super().__init__(path, text)
        self.root: t.Any = None
        self.root_source: str | None = None
        self._orders: dict[int, dict[str, int]] = {}

    def at(self, path: Path, *, key: bool = False) -> Position:
        """Where the value at ``path`` stands, or with ``key`` the key that leads to it."""
        container: t.Any = self.root
        offset = container.offset if isinstance(container, Mapping | Sequence) else 0
        for step in path:
            if isinstance(container, Mapping) and step in container:
                index = 2 * self.index(container, t.cast(str, step)) + (0 if key and step == path[-1] else 1)
            elif isinstance(container, Sequence) and isinstance(step, int) and step < len(container):
                index = step
            else:
                break
            offset = container.offsets[index]
            container = container[step]
        return self.position(offset)

    def index(self, mapping: Mapping, key: str) -> int:
        """The place of ``key`` among the keys of ``mapping``, counted from 0."""
        order = self._orders.get(id(mapping))
        if order is None:
            order = {known: number for number, known in enumerate(mapping)}
            # Small ones are not worth keeping; a large one would be gone through again for each of its problems.
            if len(mapping) > _SMALL_MAPPING:
                self._orders[id(mapping)] = order
        return order[key]

    def source(self, path: Path) -> str | None:
        """What is written at ``path``, when YAML read it as something other than text."""
        if not path:
            return self.root_source
        container: t.Any = self.root
        for step in path[:-1]:
            container = container[step]
        return t.cast("str | None", container.sources.get(path[-1]))


def keep_source(container: Mapping | Sequence, key: Key, source: str | None) -> None:
    # Most containers hold nothing but text, so all of those share one empty mapping.
    if container.sources is _NO_SOURCES:
        container.sources = {}
    sources = t.cast("dict[Key, str]", container.sources)
    if source is None:
        del sources[key]
    else:
        sources[key] = source
