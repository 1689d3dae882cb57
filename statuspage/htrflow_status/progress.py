"""What a volume's ``progress.json`` says, read as input: half of it may be missing, and numbers may be none."""

from __future__ import annotations

import dataclasses
import datetime
import json
import sys
import typing as t

#: The letters of ``pages.states``, see schemas/progress.schema.json.
STATES: t.Final[t.Mapping[str, str]] = {
    "t": "text",
    "n": "no text",
    "l": "low confidence",
    "f": "failed",
    "w": "waiting",
    "d": "deferred",
}
#: Without a new page for so long, a running volume is stalled.
STALLED = datetime.timedelta(minutes=15)
#: Conditions of a volume that has pages to come.
_OPEN = ("running", "stopped")


@dataclasses.dataclass(frozen=True, slots=True)
class Cell:
    """One page of a volume. ``seconds`` and ``confidence`` are None where they are unknown."""

    page: int
    state: str
    seconds: float | None = None
    confidence: float | None = None


@dataclasses.dataclass(frozen=True, slots=True)
class FailedPage:
    page: int
    cause: str
    reason: str
    source: str


@dataclasses.dataclass(frozen=True, slots=True)
class Progress:
    """How far a volume is. Counts are of pages; ``total`` is None where nothing is known.

    ``updated`` is when it was written, which a wrapper does also while no page comes out; ``advanced`` is when it last
    came further.
    """

    condition: str = ""
    stage: str = ""
    error: str = ""
    updated: datetime.datetime | None = None
    advanced: datetime.datetime | None = None
    total: int | None = None
    done: int = 0
    failed: int = 0
    no_text: int = 0
    low_confidence: int = 0
    pages_per_hour: float | None = None
    engine: str = ""
    image: str = ""
    cells: tuple[Cell, ...] = ()
    failed_pages: tuple[FailedPage, ...] = ()

    @property
    def open(self) -> bool:
        """Whether pages are to come."""
        return self.condition in _OPEN

    def stalled(self, now: datetime.datetime) -> bool:
        """Whether it should be running and nothing came out of it for long."""
        moments = [at for at in (self.updated, self.advanced) if at is not None]
        return self.condition == "running" and bool(moments) and now - min(moments) > STALLED


@dataclasses.dataclass(slots=True)
class Tally:
    """What is known of a campaign's volumes together; what is added can be taken away again.

    ``volumes`` is how many there is anything known of, ``sized`` how many have a known number of pages, ``open`` how
    many have pages to come, which are ``left``. ``pace`` is the pages an hour of ``paced`` volumes together.
    """

    volumes: int = 0
    sized: int = 0
    open: int = 0
    total: int = 0
    done: int = 0
    failed: int = 0
    left: int = 0
    paced: int = 0
    pace: float = 0.0

    @classmethod
    def of(cls, found: t.Iterable[Progress]) -> Tally:
        made = cls()
        for one in found:
            made.add(one)
        return made

    def add(self, one: Progress, sign: int = 1) -> None:
        """Adds a volume, or with -1 takes it away."""
        self.volumes += sign
        self.open += sign * one.open
        self.done += sign * one.done
        self.failed += sign * one.failed
        if one.total is not None:
            self.sized += sign
            self.total += sign * one.total
            self.left += sign * (max(0, one.total - one.done - one.failed) if one.open else 0)
        if one.condition == "running" and one.pages_per_hour:
            self.paced += sign
            self.pace += sign * one.pages_per_hour


def read(content: bytes, *, cells: bool = True) -> Progress | None:
    """The progress in a file, or None where it is no such file. ``cells`` says whether single pages are wanted."""
    try:
        found = json.loads(content)
    except (ValueError, RecursionError):
        return None
    if not isinstance(found, dict):
        return None
    counts = _mapping(found.get("counts"))
    return Progress(
        condition=sys.intern(_text(found.get("state"))),
        stage=sys.intern(_text(found.get("stage"))),
        error=_text(found.get("error")),
        updated=_moment(found.get("updated")),
        advanced=_moment(found.get("advanced")),
        total=_whole(counts.get("total")),
        done=_whole(counts.get("done")) or 0,
        failed=_whole(counts.get("failed")) or 0,
        no_text=_whole(counts.get("no_text")) or 0,
        low_confidence=_whole(counts.get("low_confidence")) or 0,
        pages_per_hour=_number(found.get("pages_per_hour")),
        engine=sys.intern(_text(found.get("engine"))),
        image=sys.intern(_text(found.get("image"))),
        cells=_cells(found) if cells else (),
        failed_pages=tuple(_failed(_listed(found.get("failed")))) if cells else (),
    )


def _cells(found: dict[str, t.Any]) -> tuple[Cell, ...]:
    pages = _mapping(found.get("pages"))
    letters = _text(pages.get("states"))
    seconds, confidence = _listed(pages.get("seconds")), _listed(pages.get("confidence"))
    active = {number for number in _listed(found.get("active")) if isinstance(number, int)}
    cells = []
    for at, letter in enumerate(letters):
        state = STATES.get(letter, "waiting")
        if state == "waiting" and at + 1 in active:
            state = "active"
        took = _number(seconds[at]) if at < len(seconds) else None
        sure = _number(confidence[at]) if at < len(confidence) else None
        cells.append(Cell(at + 1, state, took, sure))
    return tuple(cells)


def _failed(entries: list[t.Any]) -> t.Iterator[FailedPage]:
    for entry in entries:
        if isinstance(entry, dict) and (page := _whole(entry.get("page"))) is not None:
            yield FailedPage(page, _text(entry.get("cause")), _text(entry.get("reason")), _text(entry.get("source")))


def _mapping(value: object) -> dict[str, t.Any]:
    return value if isinstance(value, dict) else {}


def _listed(value: object) -> list[t.Any]:
    return value if isinstance(value, list) else []


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""


def _whole(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 10**9 else None


def _number(value: object) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < 1e12:
        return None
    return float(value)


def _moment(value: object) -> datetime.datetime | None:
    try:
        found = datetime.datetime.fromisoformat(_text(value))
    except ValueError:
        return None
    return found if found.tzinfo else None
