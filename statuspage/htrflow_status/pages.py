"""The pages of campaigns and volumes: each reads a snapshot and results in the reader's name, and shows both."""

from __future__ import annotations

import dataclasses
import datetime
import itertools
import typing as t

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from htrflow_status import order, pieces, reading, results_of, run_log, urls, views
from htrflow_status.looks import Looks
from htrflow_status.model import Campaign, Snapshot, Source, Volume, VolumeState
from htrflow_status.order import Filters
from htrflow_status.progress import Progress
from htrflow_status.remembered import Known, Remembered
from htrflow_status.results_of import Reader
from htrflow_status.views import Data
from htrflow_status.words import Words

#: Volumes on one page of a campaign.
VOLUMES = 100
#: Campaigns among the cards whose totals a request has completed.
_SWEPT = 4
_CELLS = ("text", "no text", "low confidence", "failed", "active", "waiting", "deferred")

ReaderOf: t.TypeAlias = t.Callable[[Request], Reader]


class Pages:
    """The handlers. ``reader_of`` gives what reads results for whoever asks."""

    def __init__(self, source: Source, reader_of: ReaderOf, looks: Looks) -> None:
        self._source, self._reader_of, self._looks = source, reader_of, looks
        self._remembered, self._order = Remembered(), order.Order()

    async def campaigns(self, request: Request) -> Response:
        """All campaigns, as cards."""
        w, snapshot, reader = self._looks.words(request), self._snapshot(request), self._reader_of(request)
        filters = _filters(request)
        found = self._order.found(snapshot, filters)
        notes, now = self._remembered.of(reader), _now()
        rows = {
            one.key: _interesting(snapshot, one, found.hits.get(one.key, ()), notes.of(one), now)
            for one in found.campaigns
        }
        shown = [(one, volume) for one in found.campaigns for volume in rows[one.key] if volume.state != "waiting"]
        await self._remembered.look(reader, shown)
        for one in notes.turn([one for one in found.campaigns if not notes.of(one).whole(one)], _SWEPT):
            self._remembered.sweep(reader, snapshot, one, VOLUMES // _SWEPT)
        data = {
            "campaigns": [self._card(snapshot, one, rows[one.key], notes.of(one), w) for one in found.campaigns],
            "total": found.total,
            "page": found.page,
            "pages": found.pages,
            "states": sorted(found.states.items()),
            "pipelines": list(found.pipelines),
            "filters": dataclasses.asdict(filters),
            "filtered": bool(filters.state or filters.pipeline or filters.text),
            "previous": urls.campaigns(filters, page=found.page - 1) if found.page > 1 else None,
            "following": urls.campaigns(filters, page=found.page + 1) if found.page < found.pages else None,
        }
        return self._show(request, reader, "campaigns.html", data, live=True)

    async def campaign(self, request: Request) -> Response:
        """One campaign with its volumes."""
        w, snapshot, reader = self._looks.words(request), self._snapshot(request), self._reader_of(request)
        campaign = _campaign(request, snapshot)
        pages = max(1, -(-campaign.counts.total // VOLUMES))
        page = min(max(_whole(request.query_params.get("page")), 1), pages)
        volumes = snapshot.volumes(campaign, (page - 1) * VOLUMES, VOLUMES)
        notes = await self._remembered.look(
            reader, [(campaign, volume) for volume in volumes if volume.state != "waiting"]
        )
        self._remembered.sweep(reader, snapshot, campaign)
        known = notes.of(campaign)
        rows = [self._row(snapshot, campaign, volume, known[volume.index], w) for volume in volumes]
        data = {
            "card": self._card(snapshot, campaign, volumes[: views.MOST_ROWS], known, w),
            "volumes": rows,
            "page": page,
            "pages": pages,
            "previous": urls.campaign(campaign, page - 1) if page > 1 else None,
            "following": urls.campaign(campaign, page + 1) if page < pages else None,
        }
        return self._show(request, reader, "campaign.html", data, live=True)

    async def volume(self, request: Request) -> Response:
        """One volume: its pages, its attempts, what can be had of it."""
        w, snapshot, reader = self._looks.words(request), self._snapshot(request), self._reader_of(request)
        campaign, volume = volume_of(request, snapshot)
        found, known = await self._progress(reader, campaign, volume)
        cells = found.cells if found else ()
        data = {
            "card": self._card(snapshot, campaign, [volume], known, w),
            "volume": self._row(snapshot, campaign, volume, found, w),
            "first": next(
                (urls.read(campaign, volume.id, cell.page) for cell in cells if cell.state in pieces.READ), None
            ),
            "cells": [pieces.cell(campaign, volume, cell, w) for cell in cells],
            "legend": [state for state in _CELLS if any(cell.state == state for cell in cells)],
            "failed_pages": [
                {**dataclasses.asdict(page), "link": urls.outside(page.source)}
                for page in (found.failed_pages if found else ())
            ],
            "attempts": [views.attempt(one, w) for one in snapshot.attempts(campaign, volume.index)],
            "downloads": pieces.downloads(campaign, volume),
        }
        return self._show(request, reader, "volume.html", data, live=volume.state in ("running", "waiting"))

    async def log(self, request: Request) -> Response:
        """A volume's run log."""
        w, snapshot, reader = self._looks.words(request), self._snapshot(request), self._reader_of(request)
        campaign, volume = volume_of(request, snapshot)
        keys = results_of.keys(campaign, volume.id)
        content = await reader.content(keys.run_log) if keys else None
        query = request.query_params.get("q", "")[:200]
        groups = [pieces.group(one, query, w) for one in run_log.read((content or b"").decode("utf-8", "replace"))]
        found, known = await self._progress(reader, campaign, volume)
        data = {
            "card": self._card(snapshot, campaign, [volume], known, w),
            "volume": self._row(snapshot, campaign, volume, found, w),
            "summary": pieces.summary(campaign, found, w),
            "slowest": pieces.slowest(campaign, volume, found),
            "groups": groups,
            "query": query,
            "hits": sum(line["hit"] for group in groups for line in group["lines"]),
            "raw": urls.result(keys.run_log) if keys else None,
        }
        return self._show(request, reader, "log.html", data, live=volume.state == "running")

    async def read(self, request: Request) -> Response:
        """One page's image and text."""
        w, snapshot, reader = self._looks.words(request), self._snapshot(request), self._reader_of(request)
        campaign, volume = volume_of(request, snapshot)
        number, keys = int(request.path_params["page"]), results_of.keys(campaign, volume.id)
        if keys is None or not 0 < number < 10**6:
            raise HTTPException(404)
        found, known = await self._progress(reader, campaign, volume)
        total = (found.total if found else None) or number
        content = await reader.content(keys.alto(number))
        sheet = reading.sheet(content) if content is not None else None
        failed = next((page for page in (found.failed_pages if found else ()) if page.page == number), None)
        image = await _image(reader, keys.iiif, f"/{number:04}.xml") if sheet else None
        data = {
            "card": self._card(snapshot, campaign, [volume], known, w),
            "volume": self._row(snapshot, campaign, volume, found, w),
            "page": number,
            "total": total,
            "state": next((cell.state for cell in (found.cells if found else ()) if cell.page == number), None),
            "previous": urls.read(campaign, volume.id, number - 1) if number > 1 else None,
            "following": urls.read(campaign, volume.id, number + 1) if number < total else None,
            "problem": (failed.reason if failed else w("read.missing")) if sheet is None else None,
            "image": image,
            "width": sheet.width if sheet else None,
            "height": sheet.height if sheet else None,
            "lines": [pieces.line(line) for line in sheet.lines] if sheet else [],
        }
        return self._show(request, reader, "read.html", data)

    def _snapshot(self, request: Request) -> Snapshot:
        w = self._looks.words(request)
        request.scope["troubles"] = [views.reason(one.reason, w)["text"] for one in self._source.troubles()]
        return self._source.snapshot()

    def _show(self, request: Request, reader: Reader, template: str, data: Data, *, live: bool = False) -> Response:
        w = self._looks.words(request)
        request.scope["troubles"] += [w(f"refusal.{code}") for code in reader.refusals]
        return self._looks.page(request, template, data, json=_wants_json(request), live=live)

    async def _progress(self, reader: Reader, campaign: Campaign, volume: Volume) -> tuple[Progress | None, Known]:
        """What there is of a volume now, with its pages, and what is known of its campaign."""
        found = await results_of.progresses(reader, [(campaign, volume)], cells=True)
        read = found.get((campaign.key, volume.index))
        self._remembered.saw(reader, campaign, volume, read)
        return read, self._remembered.of(reader).of(campaign)

    def _card(
        self, snapshot: Snapshot, campaign: Campaign, volumes: t.Sequence[Volume], known: Known, w: Words
    ) -> Data:
        rows = [self._row(snapshot, campaign, volume, known[volume.index], w) for volume in volumes]
        # Of a long campaign they may be anywhere, and none of them on the page.
        failed = snapshot.volumes_in(campaign, "failed", views.MOST_PROBLEMS) if campaign.counts.failed else ()
        problems = [views.problem(volume, snapshot.attempts(campaign, volume.index), w) for volume in failed]
        stalled = len(_stalled(snapshot, campaign, known, _now()))
        return views.card(campaign, rows, known.tally, [one for one in problems if one], w, stalled)

    def _row(self, snapshot: Snapshot, campaign: Campaign, volume: Volume, found: Progress | None, w: Words) -> Data:
        attempts = snapshot.attempts(campaign, volume.index) if volume.state == "failed" else ()
        return views.row(campaign, volume, found, views.problem(volume, attempts, w), _now())


def _interesting(
    snapshot: Snapshot, campaign: Campaign, hits: t.Sequence[str], known: Known, now: datetime.datetime
) -> list[Volume]:
    """The volumes on a card: those that were searched for, or those that run or failed, then the others."""
    most = views.MOST_ROWS
    if hits:
        found = (snapshot.volume(campaign, name) for name in hits[:most])
        return [volume for volume in found if volume is not None]
    chosen = {volume.index: volume for volume in _stalled(snapshot, campaign, known, now)[:most]}
    groups: tuple[t.Callable[[], t.Sequence[Volume]], ...] = (
        lambda: snapshot.volumes_in(campaign, "running", most),
        lambda: snapshot.volumes_in(campaign, "failed", most),
        lambda: _at(snapshot, campaign, itertools.islice(sorted(known.faulty), most), "done"),
        lambda: snapshot.volumes_in(campaign, "done", 2 * most),
        lambda: snapshot.volumes_in(campaign, "waiting", most),
    )
    for group in groups:
        if len(chosen) >= most:
            break
        for volume in group():
            chosen.setdefault(volume.index, volume)
    return list(chosen.values())[:most]


def _stalled(snapshot: Snapshot, campaign: Campaign, known: Known, now: datetime.datetime) -> list[Volume]:
    """The volumes that should be running and of which no page came out for long, as far as is known."""
    indexes = [index for index in sorted(known.open) if (found := known[index]) and found.stalled(now)]
    return _at(snapshot, campaign, indexes, "running")


def _at(snapshot: Snapshot, campaign: Campaign, indexes: t.Iterable[int], state: VolumeState) -> list[Volume]:
    """The volumes of a list at some places, if they are in a state."""
    found = (volume for index in indexes for volume in snapshot.volumes(campaign, index, 1))
    return [volume for volume in found if volume.state == state]


def _campaign(request: Request, snapshot: Snapshot) -> Campaign:
    campaign = snapshot.campaign(request.path_params["namespace"], request.path_params["campaign"])
    if campaign is None:
        raise HTTPException(404)
    return campaign


def volume_of(request: Request, snapshot: Snapshot) -> tuple[Campaign, Volume]:
    """The campaign and the volume that an address names, or the answer 404."""
    campaign = _campaign(request, snapshot)
    volume = snapshot.volume(campaign, request.path_params["volume"])
    if volume is None:
        raise HTTPException(404)
    return campaign, volume


def _now() -> datetime.datetime:
    return datetime.datetime.now(datetime.UTC)


def _filters(request: Request) -> Filters:
    query = request.query_params
    return Filters(
        state=query.get("state", "")[:40],
        pipeline=query.get("pipeline", "")[:60],
        text=query.get("q", "").strip()[:100],
        page=_whole(query.get("page")) or 1,
    )


def _wants_json(request: Request) -> bool:
    return request.url.path.endswith(".json") or request.url.path.startswith("/api/")


def _whole(text: str | None) -> int:
    return int(text) if text and text.isascii() and text.isdecimal() and len(text) < 8 else 0


async def _image(reader: Reader, key: str, alto: str) -> str | None:
    """The address of a page's image, from the volume's ``iiif.json``: of the canvas whose text is this ALTO."""
    return reading.image_of(await reader.content(key), alto)
