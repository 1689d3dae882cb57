"""What each session has read of the progress of volumes, kept for that session alone.

A page of campaigns shows many volumes, and a total is of more volumes than are on the page. Each request waits for what
it shows and was never read; what was read before is shown again and read anew afterwards, and so are the volumes that
the totals lack. All reads are made in the name of the session that asked, so many a second together, and what came of
them is kept with the reader of that session and goes with it. Of a volume that has ended, it is used for up to an hour.
"""

from __future__ import annotations

import asyncio
import collections
import dataclasses
import time
import typing as t
import weakref

from htrflow_status import progress
from htrflow_status.model import Campaign, Moment, Snapshot, Volume
from htrflow_status.progress import Progress, Tally
from htrflow_status.results import reader as results
from htrflow_status.results.reader import Found
from htrflow_status.results.refusal import Refusal
from htrflow_status.results_of import AT_ONCE, MOST, Reader, keys

#: Seconds after which progress is read again: of a volume that runs, of one that has ended and whose progress does not
#: say so, and of one whose progress does.
_RUNNING, _ENDED, _FINAL = 5.0, 60.0, 3600.0
#: Older than this, a page waits for what it shows to be read again, if that can be at once.
_OLD = 20.0
#: Reads in a second of all sessions together that nobody waits for, and how many can be saved up.
_RATE, _SAVED = 30.0, 200.0
#: Volumes that are kept in mind, of all sessions together.
_KEPT = 150_000
#: After so many reads they are counted.
_COUNTED = 1000
#: Volumes of one campaign that a request looks through for what its total lacks.
_SWEPT = 200


@dataclasses.dataclass(frozen=True, slots=True)
class Note:
    """What was read of a volume: its progress, or why there is none; ``state`` is the volume's then."""

    found: Progress | Refusal | None
    state: str
    at: float

    def due(self, state: str, now: float, grace: float = 0.0) -> bool:
        """Whether to read it again, with the volume in this state; ``grace`` seconds are forgiven."""
        return now - self.at > self._lasts(state) + grace

    def _lasts(self, state: str) -> float:
        if state in ("running", "stalled", "waiting") or state != self.state:
            return _RUNNING
        ended = isinstance(self.found, Progress) and self.found.condition == "finished"
        return _FINAL if ended else _ENDED


class Known:
    """What one session has read of one campaign."""

    def __init__(self) -> None:
        self.tally = Tally()
        #: Indexes of volumes that have pages to come, and of those of which pages failed.
        self.open: set[int] = set()
        self.faulty: set[int] = set()
        self.notes: dict[int, Note] = {}
        #: Where to look next for volumes that were not read.
        self.next = 0

    def __getitem__(self, index: int) -> Progress | None:
        note = self.notes.get(index)
        return note.found if note and isinstance(note.found, Progress) else None

    def put(self, index: int, note: Note) -> None:
        before = self[index]
        if before is not None:
            self.tally.add(before, -1)
        self.notes[index] = note
        found = self[index]
        if found is not None:
            self.tally.add(found)
        for group, belongs in (
            (self.open, found is not None and found.open),
            (self.faulty, found is not None and found.failed > 0),
        ):
            (group.add if belongs else group.discard)(index)

    def whole(self, campaign: Campaign) -> bool:
        """Whether all volumes that have begun are read, and those that have ended since then again."""
        counts = campaign.counts
        begun = len(self.notes) >= counts.total - counts.waiting
        return (campaign.removed and campaign.pages is not None) or (
            begun and len(self.open) <= counts.running + counts.failed
        )


_Wanted = tuple[Campaign, Volume]
_Identity = tuple[str, str, Moment | None, int]


class Notes:
    """What one session has read, by campaign, the least used first, what is to be read next, and what is being read."""

    def __init__(self) -> None:
        self.campaigns: collections.OrderedDict[_Identity, Known] = collections.OrderedDict()
        self.slots, self._turns = asyncio.Semaphore(AT_ONCE), 0
        self.wanted: collections.OrderedDict[tuple[str, int], _Wanted] = collections.OrderedDict()
        self.reading: set[tuple[str, int]] = set()

    def of(self, campaign: Campaign) -> Known:
        # Another campaign may have had the same name, and other volumes.
        identity = (campaign.key, campaign.pipeline.id, campaign.created, campaign.counts.total)
        if (known := self.campaigns.get(identity)) is None:
            known = self.campaigns[identity] = Known()
        else:
            self.campaigns.move_to_end(identity)
        return known

    def turn(self, campaigns: t.Sequence[Campaign], most: int) -> t.Sequence[Campaign]:
        """Some of the campaigns: others the next time."""
        self._turns += 1
        first = self._turns * most % max(1, len(campaigns))
        return [*campaigns[first:], *campaigns[:first]][:most]


class Remembered:
    """The notes of all sessions."""

    def __init__(self) -> None:
        self._notes: weakref.WeakKeyDictionary[results.Reader, Notes] = weakref.WeakKeyDictionary()
        self._reading: set[asyncio.Task[None]] = set()
        self._pump: asyncio.Task[None] | None = None
        self._saved, self._at, self._reads = _SAVED, time.monotonic(), 0

    def of(self, reader: Reader) -> Notes:
        """What the session of a reader has read."""
        return self._notes.setdefault(reader.own, Notes())

    def saw(self, reader: Reader, campaign: Campaign, volume: Volume, found: Progress | None) -> None:
        """Keeps what was read of a volume by the way."""
        if found is not None:
            kept = dataclasses.replace(found, cells=(), failed_pages=())
            self.of(reader).of(campaign).put(volume.index, Note(kept, volume.state, time.monotonic()))

    async def look(self, reader: Reader, shown: t.Sequence[_Wanted]) -> Notes:
        """Reads what is shown and was never read, or long ago, and gives what is known then."""
        notes, now = self.of(reader), time.monotonic()
        missing: list[_Wanted] = []
        for campaign, volume in shown:
            note = notes.of(campaign).notes.get(volume.index)
            if note is None:
                # One that has just begun says little, and where much is read nobody waits for it.
                begun = volume.state == "running" and bool(notes.of(campaign).notes)
                if begun and self._save() <= len(missing):
                    self._want(notes, campaign, volume)
                else:
                    missing.append((campaign, volume))
            elif note.due(volume.state, now):
                if note.due(volume.state, now, _OLD) and self._save() > len(missing) < MOST:
                    missing.append((campaign, volume))
                else:
                    self._want(notes, campaign, volume)
            if note and isinstance(note.found, Refusal):
                reader.refuse(note.found)
        at_once, later = missing[:MOST], missing[MOST:]
        # Reads that somebody waits for hold up the others, but not for long.
        self._saved = max(-_RATE, self._save() - len(at_once))
        await asyncio.gather(*(self._read(reader.own, notes, *one) for one in at_once))
        for campaign, volume in at_once:
            note = notes.of(campaign).notes.get(volume.index)
            if note and isinstance(note.found, Refusal):
                reader.refuse(note.found)
        for one in later:
            self._want(notes, *one)
        self._go_on()
        return notes

    def sweep(self, reader: Reader, snapshot: Snapshot, campaign: Campaign, most: int = _SWEPT) -> None:
        """Has some volumes read that the total of a campaign lacks, after the answer."""
        notes, now = self.of(reader), time.monotonic()
        known = notes.of(campaign)
        if campaign.removed and campaign.pages is not None:
            return
        if known.next >= campaign.counts.total:
            known.next = 0
        for volume in snapshot.volumes(campaign, known.next, most):
            known.next = volume.index + 1
            note = known.notes.get(volume.index)
            if volume.state != "waiting" and (note is None or note.due(volume.state, now)):
                self._want(notes, campaign, volume)
        self._go_on()

    def _want(self, notes: Notes, campaign: Campaign, volume: Volume) -> None:
        key = (campaign.key, volume.index)
        if key not in notes.reading and len(notes.wanted) < 2 * MOST:
            notes.wanted.setdefault(key, (campaign, volume))

    def _save(self) -> float:
        """How many reads can be made now."""
        now = time.monotonic()
        self._saved = min(_SAVED, self._saved + (now - self._at) * _RATE)
        self._at = now
        return self._saved

    def _go_on(self) -> None:
        if self._pump is None or self._pump.done():
            self._pump = asyncio.get_running_loop().create_task(self._run())

    async def _run(self) -> None:
        """Reads what is wanted, one of each session in turn, at the rate that is set."""
        while True:
            turns = [(reader, notes) for reader, notes in self._notes.items() if notes.wanted]
            if not turns:
                return
            for reader, notes in turns:
                _, (campaign, volume) = notes.wanted.popitem(last=False)
                while self._save() < 1.0 or len(self._reading) >= AT_ONCE:
                    await asyncio.sleep(1.0 / _RATE)
                self._saved -= 1.0
                notes.reading.add((campaign.key, volume.index))
                task = asyncio.get_running_loop().create_task(self._read(reader, notes, campaign, volume))
                self._reading.add(task)
                task.add_done_callback(self._reading.discard)
            del reader, notes, turns

    async def _read(self, reader: results.Reader, notes: Notes, campaign: Campaign, volume: Volume) -> None:
        key, found = (campaign.key, volume.index), t.cast("Progress | Refusal | None", None)
        notes.wanted.pop(key, None)
        notes.reading.add(key)
        try:
            if (place := keys(campaign, volume.id)) is not None:
                async with notes.slots:
                    answer = await reader.read(place.progress)
                if isinstance(answer, Found):
                    found = progress.read(answer.content, cells=False)
                elif answer.code != "not_found":
                    found = answer
            notes.of(campaign).put(volume.index, Note(found, volume.state, time.monotonic()))
        finally:
            notes.reading.discard(key)
        self._forget()

    def _forget(self) -> None:
        """Lets go of the campaigns that were not looked at for longest where there are too many volumes."""
        self._reads += 1
        if self._reads % _COUNTED:
            return
        if (held := sum(len(k.notes) for n in self._notes.values() for k in n.campaigns.values())) <= _KEPT:
            return
        while held > _KEPT:
            largest = max(self._notes.values(), key=lambda notes: len(notes.campaigns))
            held -= len(largest.campaigns.popitem(last=False)[1].notes)
