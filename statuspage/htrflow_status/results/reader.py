"""What can be read of the results, in a reader's name."""

from __future__ import annotations

import contextlib
import dataclasses
import datetime
import typing as t

from starlette.requests import HTTPConnection

from htrflow_status.results.refusal import Refusal

#: What :meth:`Reader.read` takes into memory, in bytes.
READ_BYTES = 16 * 1024 * 1024


@dataclasses.dataclass(frozen=True, slots=True)
class Info:
    """What is known of a result without its content: bytes, UTC, and a tag that changes with the content."""

    size: int
    modified: datetime.datetime
    etag: str


@dataclasses.dataclass(frozen=True, slots=True)
class Found:
    """A result as it was at one moment; of a range, ``content`` is that and ``info`` is of the whole."""

    content: bytes
    info: Info


@dataclasses.dataclass(frozen=True, slots=True)
class Unchanged:
    """The result is what its reader has already."""

    etag: str


@dataclasses.dataclass(frozen=True, slots=True)
class Span:
    """Bytes from ``first`` to ``last``, which is one of them and may be None; or the last ones, that is ``-first``."""

    first: int
    last: int | None = None

    def __str__(self) -> str:
        """As the header ``Range`` has it."""
        return (
            f"bytes={self.first}" if self.first < 0 else f"bytes={self.first}-{'' if self.last is None else self.last}"
        )

    def within(self, size: int) -> range | None:
        """The places of the bytes in so many, or None if there are none."""
        if self.first < 0:
            found = range(max(0, size + self.first), size)
        else:
            found = range(self.first, size if self.last is None else min(size, self.last + 1))
        return found or None


class Opened:
    """A result that is being read: ``places`` are those of the bytes that come, ``part`` says that it is a span.

    Close it. ``blocks`` ends with a :class:`CutOffError` if the rest does not come.
    """

    def __init__(
        self, info: Info, places: range, blocks: t.AsyncIterator[bytes], close: t.Callable[[], None], *, part: bool
    ) -> None:
        self.info, self.places, self.blocks, self.part = info, places, blocks, part
        self._close = close

    def close(self) -> None:
        """Lets the store go. The rest of the blocks does not come then."""
        self._close()


class CutOffError(Exception):
    """The rest of a result does not come."""

    def __init__(self, refusal: Refusal) -> None:
        super().__init__(refusal.code)
        self.refusal = refusal


class Reader(t.Protocol):
    """Reads results with the rights of one account. A key is a whole one, such as ``htr-batch/demo-v1/R1/iiif.json``.

    A key that is none of a result is refused as one that is not there, and the store is not asked.
    """

    async def read(self, key: str, most: int = READ_BYTES) -> Found | Refusal:
        """A result. It may be as old as the reader's cache lets it be, which is a few seconds."""
        ...

    async def get_range(self, key: str, span: Span, most: int = READ_BYTES) -> Found | Refusal:
        """A part of a result, as it is now."""
        ...

    async def head(self, key: str) -> Info | Refusal:
        """What is known of a result, as it is now."""
        ...

    async def open(self, key: str, span: Span | None = None, known: str | None = None) -> Opened | Unchanged | Refusal:
        """A result or a part of it, block by block. ``known`` is the tag of the one that is there already."""
        ...


class Readers(t.Protocol):
    """Whose reader a request has."""

    def of(self, connection: HTTPConnection) -> Reader | Refusal: ...


async def collected(opened: Opened | Unchanged | Refusal, most: int) -> Found | Unchanged | Refusal:
    """All that is opened, in one piece of at most ``most`` bytes; it is closed."""
    if not isinstance(opened, Opened):
        return opened
    with contextlib.closing(opened):
        if len(opened.places) > most:
            return Refusal("too_large")
        try:
            return Found(b"".join([block async for block in opened.blocks]), opened.info)
        except CutOffError as error:
            return error.refusal
