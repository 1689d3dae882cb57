"""The pages of campaigns and volumes: each reads a snapshot and results in the reader's name, and shows both."""

from __future__ import annotations

import dataclasses
import datetime
import typing as t

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from htrflow_status import order, pieces, reading, results_of, run_log, urls, views
from htrflow_status.looks import Looks
from htrflow_status.model import Campaign, Snapshot, Source, Volume
from htrflow_status.order import Filters
from htrflow_status.progress import Progress
from htrflow_status.results_of import Reader
from htrflow_status.views import Data
from htrflow_status.words import Words

#: Volumes on one page of a campaign.
VOLUMES = 100
_CELLS = ("text", "no text", "low confidence", "failed", "active", "waiting", "deferred")

ReaderOf: t.TypeAlias = t.Callable[[Request], Reader]


class Pages:
    """The handlers. ``reader_of`` gives what reads results for whoever asks."""

    def __init__(self, source: Source, reader_of: ReaderOf, looks: Looks) -> None:
        self._source, self._reader_of, self._looks = source, reader_of, looks

    async def campaigns(self, request: Request) -> Response:
        """All campaigns, as cards."""
        w, snapshot, reader = self._looks.words(request), self._snapshot(request), self._reader_of(request)
        filters = _filters(request)
        found = order.found(snapshot, filters)
        rows = {one.key: _interesting(snapshot, one, found.hits.get(one.key, ())) for one in found.campaigns}
        wanted = [(one, volume) for one in found.campaigns for volume in rows[one.key] if volume.state != "waiting"]
        known = await results_of.progresses(reader, wanted)
        data = {
            "campaigns": [self._card(snapshot, one, rows[one.key], known, w) for one in found.campaigns],
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
        wanted = [(campaign, volume) for volume in volumes if volume.state != "waiting"]
        known = await results_of.progresses(reader, wanted)
        data = {
            "card": self._card(snapshot, campaign, volumes, known, w),
            "volumes": [self._row(snapshot, campaign, volume, known, w) for volume in volumes],
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
        known = await results_of.progresses(reader, [(campaign, volume)], cells=True)
        found = known.get((campaign.key, volume.index))
        cells = found.cells if found else ()
        data = {
            "card": self._card(snapshot, campaign, [volume], known, w),
            "volume": self._row(snapshot, campaign, volume, known, w),
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
        known = await results_of.progresses(reader, [(campaign, volume)], cells=True)
        found = known.get((campaign.key, volume.index))
        data = {
            "card": self._card(snapshot, campaign, [volume], known, w),
            "volume": self._row(snapshot, campaign, volume, known, w),
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
        known = await results_of.progresses(reader, [(campaign, volume)], cells=True)
        found = known.get((campaign.key, volume.index))
        total = (found.total if found else None) or number
        content = await reader.content(keys.alto(number))
        sheet = reading.sheet(content) if content is not None else None
        failed = next((page for page in (found.failed_pages if found else ()) if page.page == number), None)
        image = await _image(reader, keys.iiif, f"/{number:04}.xml") if sheet else None
        data = {
            "card": self._card(snapshot, campaign, [volume], known, w),
            "volume": self._row(snapshot, campaign, volume, known, w),
            "page": number,
            "total": total,
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

    def _card(
        self,
        snapshot: Snapshot,
        campaign: Campaign,
        volumes: t.Sequence[Volume],
        known: t.Mapping[tuple[str, int], Progress],
        w: Words,
    ) -> Data:
        own = {index: found for (key, index), found in known.items() if key == campaign.key}
        rows = [self._row(snapshot, campaign, volume, known, w) for volume in volumes[: views.MOST_ROWS]]
        failed = [volume for volume in volumes if volume.state == "failed"][: views.MOST_PROBLEMS]
        problems = [views.problem(volume, snapshot.attempts(campaign, volume.index), w) for volume in failed]
        return views.card(campaign, rows, own, [one for one in problems if one], w)

    def _row(
        self,
        snapshot: Snapshot,
        campaign: Campaign,
        volume: Volume,
        known: t.Mapping[tuple[str, int], Progress],
        w: Words,
    ) -> Data:
        attempts = snapshot.attempts(campaign, volume.index) if volume.state == "failed" else ()
        now = datetime.datetime.now(datetime.UTC)
        found = known.get((campaign.key, volume.index))
        return views.row(campaign, volume, found, views.problem(volume, attempts, w), now)


def _interesting(snapshot: Snapshot, campaign: Campaign, hits: t.Sequence[str]) -> list[Volume]:
    """The volumes on a card: those that were searched for, or those that run or failed, then the others."""
    if hits:
        found = (snapshot.volume(campaign, name) for name in hits[: views.MOST_ROWS])
        return [volume for volume in found if volume is not None]
    volumes = snapshot.volumes(campaign, 0, 10 * VOLUMES)
    ranks = {"running": 0, "stalled": 0, "failed": 1, "done with failures": 2, "done": 3, "waiting": 4}
    return sorted(volumes, key=lambda volume: (ranks[volume.state], volume.index))[: views.MOST_ROWS]


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
