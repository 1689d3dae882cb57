"""Parts of the pages of a volume, as plain data."""

from __future__ import annotations

import dataclasses
import typing as t

from htrflow_status import reading, results_of, run_log, urls
from htrflow_status.model import Campaign, Volume
from htrflow_status.progress import Cell, Progress
from htrflow_status.views import Data
from htrflow_status.words import Words

#: States of pages that have files.
READ = ("text", "no text", "low confidence")
SLOWEST = 5


def first(campaign: Campaign, volume: Volume, cells: t.Sequence[Cell]) -> str | None:
    """The address of the first page that can be read."""
    numbers = (one.page for one in cells if one.state in READ)
    number = next(numbers, None)
    return None if number is None else urls.read(campaign, volume.id, number)


def cell(campaign: Campaign, volume: Volume, found: Cell, w: Words) -> Data:
    """One page among the cells of a volume."""
    state = w(f"page.{found.state}")
    came_out = found.state in (*READ, "failed")
    facts = {"page": found.page, "state": state}
    if found.seconds is None:
        text = w("volume.cell", **facts)
    else:
        text = w("volume.cell_seconds", **facts, seconds=w.number(found.seconds, 1))
    return {
        "page": found.page,
        "state": found.state,
        "seconds": found.seconds,
        "confidence": found.confidence,
        "text": text,
        "url": urls.read(campaign, volume.id, found.page) if came_out else None,
    }


def downloads(campaign: Campaign, volume: Volume) -> list[Data]:
    """What can be had of a volume as a file."""
    keys = results_of.keys(campaign, volume.id)
    if keys is None:
        return []
    made = [{"kind": kind, "url": urls.download(campaign, volume.id, kind)} for kind in ("alto", "page", "text")]
    return [*made, {"kind": "manifest", "url": urls.result(keys.manifest)}]


def group(found: run_log.Group, query: str, w: Words) -> Data:
    """Lines of the run log that belong together; open where there is something to see."""
    wanted = query.casefold()
    lines = [
        {
            **dataclasses.asdict(line),
            "at": line.time or None,
            "time": line.time[11:19],
            "hit": bool(wanted) and wanted in line.text.casefold(),
        }
        for line in found.lines
    ]
    titles = {
        "attempt": lambda: w("log.attempt", at=w.moment(found.name) if found.name[:4].isdecimal() else found.name),
        "left out": lambda: w("log.left_out", n=int(found.name)),
        "stage": lambda: found.name,
    }
    bad = any(line["level"] in ("WARN", "ERROR") for line in lines)
    is_open = any(line["hit"] for line in lines) if query else bad or found.name in ("stream", "publish")
    return {"kind": found.kind, "name": found.name, "title": titles[found.kind](), "open": is_open, "lines": lines}


def summary(campaign: Campaign, found: Progress | None, w: Words) -> list[tuple[str, str]]:
    """The head of a run log: names and values."""
    facts = [(w("card.pipeline"), campaign.pipeline.id)]
    if found is not None:
        counts = w("card.of", done=found.done, total=found.total or 0)
        failed = f" · {w('card.failed', n=found.failed)}" if found.failed else ""
        facts += [("htrflow", found.engine), ("image", found.image), (w("card.pages"), counts + failed)]
    return [(name, value) for name, value in facts if value]


def slowest(campaign: Campaign, volume: Volume, found: Progress | None) -> list[Data]:
    """The pages that took longest."""
    cells = [cell for cell in (found.cells if found else ()) if cell.seconds is not None]
    cells.sort(key=lambda cell: -(cell.seconds or 0))
    return [
        {"page": c.page, "state": c.state, "seconds": c.seconds, "url": urls.read(campaign, volume.id, c.page)}
        for c in cells[:SLOWEST]
    ]


def line(found: reading.Line) -> Data:
    """A line of a page with its outfound."""
    return {
        "text": found.text,
        "points": " ".join(f"{x},{y}" for x, y in found.points),
        "tint": found.tint,
        "confidence": found.confidence,
        "percent": None if found.confidence is None else round(100 * found.confidence),
    }
