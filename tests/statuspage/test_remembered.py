"""What a session has read of volumes: whose it is, how much is read at once, and how totals come to be whole."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import datetime
import json
import pathlib
import time
import typing as t

import anyio

from htrflow_status import views
from htrflow_status.model import Campaign, Snapshot, Volume
from htrflow_status.progress import Progress
from htrflow_status.remembered import Remembered
from htrflow_status.results.accounts import Account
from htrflow_status.results.cache import Cache
from htrflow_status.results.folder_reader import FolderReader
from htrflow_status.results.places import Places
from htrflow_status.results.reader import READ_BYTES, Found
from htrflow_status.results.refusal import Code, Refusal
from htrflow_status.results.s3_place import S3Place
from htrflow_status.results.s3_reader import S3Reader
from htrflow_status.results_of import AT_ONCE, MOST, Reader
from htrflow_status.words import Words
from tests.statuspage import object_cases
from tests.statuspage.results_site import awaited
from tests.testbed.plugin import processes

_VOLUMES, _PAGES = 300, 10


class _Counting(FolderReader):
    """Reads a folder, and counts what it reads and how much of it at once."""

    def __init__(self, folder: pathlib.Path) -> None:
        super().__init__(folder, Places([object_cases.NAMESPACE]))
        self.reads = self.now = self.most_at_once = 0

    async def read(self, key: str, most: int = READ_BYTES) -> Found | Refusal:
        self.reads += 1
        self.now += 1
        self.most_at_once = max(self.most_at_once, self.now)
        try:
            return await super().read(key, most)
        finally:
            self.now -= 1


def test_what_one_session_has_read_is_never_shown_to_another(tmp_path: pathlib.Path) -> None:
    snapshot, campaign = _campaign(3)
    _write(tmp_path / "one", range(3))
    (tmp_path / "other").mkdir()
    allowed, refused = _Counting(tmp_path / "one"), _Counting(tmp_path / "other")
    remembered = Remembered()

    async def look() -> list[tuple[int, Progress | None]]:
        found = []
        for reader in (allowed, refused, allowed):
            notes = await remembered.look(Reader(reader), _shown(snapshot, campaign))
            found.append((notes.of(campaign).tally.done, notes.of(campaign)[0]))
        return found

    first, second, third = awaited(look())
    assert first == third
    assert first[0] == 3 * _PAGES
    assert second == (0, None)
    assert refused.reads == 3


def test_what_was_read_goes_with_its_session(tmp_path: pathlib.Path) -> None:
    snapshot, campaign = _campaign(3)
    _write(tmp_path, range(3))
    remembered = Remembered()

    async def look() -> list[int]:
        reads = []
        for _ in range(2):
            reader = _Counting(tmp_path)
            await remembered.look(Reader(reader), _shown(snapshot, campaign))
            reads.append(reader.reads)
        return reads

    assert awaited(look()) == [3, 3]


def test_a_campaign_made_anew_has_nothing_of_the_one_before(tmp_path: pathlib.Path) -> None:
    _write(tmp_path, range(3))
    reader, remembered = Reader(_Counting(tmp_path)), Remembered()
    snapshot, campaign = _campaign(3)
    anew = dataclasses.replace(campaign, created=datetime.datetime.now(datetime.UTC))

    notes = awaited(remembered.look(reader, _shown(snapshot, campaign)))

    assert notes.of(campaign).tally.volumes == 3
    assert notes.of(anew).tally.volumes == 0


def test_totals_become_whole_while_a_page_is_open_and_each_request_reads_a_bounded_number(
    tmp_path: pathlib.Path,
) -> None:
    snapshot, campaign = _campaign(_VOLUMES)
    _write(tmp_path, range(_VOLUMES))
    reader, remembered = _Counting(tmp_path), Remembered()
    seen: list[tuple[int, int]] = []

    async def poll() -> None:
        before, until = 0, time.monotonic() + 40
        while time.monotonic() < until and (not seen or seen[-1][0] < _VOLUMES):
            notes = await remembered.look(Reader(reader), _shown(snapshot, campaign)[:100])
            remembered.sweep(Reader(reader), snapshot, campaign)
            seen.append((notes.of(campaign).tally.volumes, reader.reads - before))
            before = reader.reads
            await asyncio.sleep(0.5)

    awaited(poll())

    known = [volumes for volumes, _ in seen]
    assert known == sorted(known)
    assert known[0] >= 100
    assert known[-1] == _VOLUMES
    assert all(reads <= MOST for _, reads in seen)
    assert reader.most_at_once <= 2 * AT_ONCE
    # What has ended stays as it is, so nothing was read twice.
    assert reader.reads == _VOLUMES
    card = views.card(campaign, [], remembered.of(Reader(reader)).of(campaign).tally, [], Words("en"))
    assert card["pages"] == {"done": 10 * _VOLUMES, "failed": 0, "total": 10 * _VOLUMES, "volumes_known": _VOLUMES}


def test_a_volume_of_which_no_page_comes_out_stands_still_though_its_wrapper_writes_on() -> None:
    snapshot, campaign = _campaign(1, running=True)
    (volume,) = snapshot.volumes(campaign)
    now = datetime.datetime.now(datetime.UTC)

    def state(updated: int, advanced: int | None) -> str:
        ago = [
            None if minutes is None else now - datetime.timedelta(minutes=minutes) for minutes in (updated, advanced)
        ]
        found = Progress(condition="running", total=10, done=3, updated=ago[0], advanced=ago[1])
        return t.cast(str, views.row(campaign, volume, found, None, now)["state"])

    assert state(updated=0, advanced=14) == "running"
    assert state(updated=0, advanced=16) == "stalled"
    assert state(updated=16, advanced=None) == "stalled"
    assert state(updated=0, advanced=None) == "running"


def test_a_reader_is_told_again_why_there_is_nothing_while_it_is_remembered() -> None:
    snapshot, campaign = _campaign(2)
    (port,) = processes.free_ports(1)
    place = S3Place("bucket", Places([object_cases.NAMESPACE]), f"http://127.0.0.1:{port}", attempts=1)

    async def look() -> tuple[list[list[Code]], set[float]]:
        own = S3Reader(place, Account("name", "key", "secret"), "session", Cache(), anyio.CapacityLimiter(4))
        said, moments = [], set()
        with contextlib.closing(own):
            for _ in range(2):
                reader = Reader(own)
                notes = await remembered.look(reader, _shown(snapshot, campaign))
                said.append(list(reader.refusals))
                moments |= {note.at for note in notes.of(campaign).notes.values()}
        return said, moments

    remembered = Remembered()
    said, moments = awaited(look())
    assert said == [["store_away"], ["store_away"]]
    assert len(moments) == 2


def _campaign(volumes: int, *, running: bool = False) -> tuple[Snapshot, Campaign]:
    job = object_cases.base("Job")
    job["spec"]["completions"] = volumes
    job["status"] = {} if running else {"completedIndexes": f"0-{volumes - 1}"}
    lines = "".join(f"R{index:05}\thttps://example.org/{index}\n" for index in range(volumes))
    listed = {**object_cases.base("ConfigMap"), "kind": "ConfigMap", "data": {"volumes.txt": lines}}
    pods = [object_cases.base("Pod")] if running else []
    snapshot = object_cases.read([job, listed, *pods]).snapshot()
    (campaign,) = snapshot.campaigns()
    return snapshot, campaign


def _shown(snapshot: Snapshot, campaign: Campaign) -> list[tuple[Campaign, Volume]]:
    return [(campaign, volume) for volume in snapshot.volumes(campaign)]


def _write(folder: pathlib.Path, indexes: t.Iterable[int]) -> None:
    for index in indexes:
        place = folder / object_cases.NAMESPACE / "demo-v1" / f"R{index:05}"
        place.mkdir(parents=True)
        counts = {"total": _PAGES, "done": _PAGES, "failed": 0}
        (place / "progress.json").write_text(json.dumps({"state": "finished", "counts": counts}), encoding="utf-8")
