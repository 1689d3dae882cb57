"""What the pages show, as plain data: it is the ``.json`` twin of a page as it is, and the page's template words it."""

from __future__ import annotations

import datetime
import typing as t
import zlib

from htrflow_status import urls
from htrflow_status.model import Attempt, Campaign, Pages, Reason, Volume
from htrflow_status.order import HITS
from htrflow_status.progress import Progress, Tally
from htrflow_status.words import Words

Data: t.TypeAlias = dict[str, t.Any]
#: Of problems, and of volumes on a card.
MOST_PROBLEMS, MOST_ROWS = 5, HITS
#: What is measured of pages an hour may be off by so much, up or down.
_SPREAD = 0.3


def reason(found: Reason, w: Words) -> Data:
    """A reason with its sentence in the reader's language."""
    key = f"reason.{found.code}"
    text = w(key, **found.facts) if w.has(key) else str(found.facts.get("message", found.code))
    return {"code": found.code, "facts": dict(found.facts), "owner": found.owner, "text": text}


def card(
    campaign: Campaign, rows: t.Sequence[Data], tally: Tally, problems: t.Sequence[Data], w: Words, stalled: int = 0
) -> Data:
    """A campaign. ``tally`` is of those of its volumes whose progress is known, ``stalled`` how many of them are."""
    pages, known = _pages(campaign, tally)
    pipeline = campaign.pipeline
    # Kubernetes counts volumes; that pages of them failed is in the results only.
    state = "partial pages" if campaign.state == "succeeded" and pages.failed else campaign.state
    return {
        "id": f"campaign-{campaign.namespace}-{campaign.name}",
        "namespace": campaign.namespace,
        "name": campaign.name,
        "url": urls.campaign(campaign),
        "version": _version(campaign, tally, rows, stalled),
        "state": state,
        "removed": campaign.removed,
        "created": moment(campaign.created),
        "started": moment(campaign.started),
        "finished": moment(campaign.finished),
        "window": campaign.window,
        "priority": campaign.priority,
        "waiting": [reason(one, w) for one in campaign.waiting],
        "problems": list(problems[:MOST_PROBLEMS]),
        "volumes": {
            "total": campaign.counts.total,
            "done": campaign.counts.done,
            "failed": campaign.counts.failed,
            "running": campaign.counts.running,
            "waiting": campaign.counts.waiting,
            "stalled": stalled,
        },
        "pages": {"done": pages.done, "failed": pages.failed, "total": pages.total, "volumes_known": known},
        "time_left": time_left(campaign, tally),
        "pipeline": {
            "id": pipeline.id,
            "image": pipeline.image,
            "models": [{"name": model.name, "revision": model.revision} for model in pipeline.models],
            "warmup": reason(pipeline.warmup, w) if pipeline.warmup else None,
        },
        "shown": list(rows),
    }


def row(
    campaign: Campaign, volume: Volume, known: Progress | None, problem: Data | None, now: datetime.datetime
) -> Data:
    """A volume of a campaign."""
    state = volume.state
    if state == "running" and known is not None and known.stalled(now):
        state = "stalled"
    if state == "done" and known is not None and known.failed:
        state = "done with failures"
    pages = Pages(known.done, known.failed, known.total) if known else Pages()
    return {
        "index": volume.index,
        "id": volume.id,
        "state": state,
        "stage": known.stage if known else "",
        "url": urls.volume(campaign, volume.id),
        "viewer": urls.viewer(campaign, volume.id),
        "log": urls.log(campaign, volume.id),
        "manifest": volume.manifest
        if volume.manifest and volume.manifest.startswith(("http://", "https://"))
        else None,
        "pages": {"done": pages.done, "failed": pages.failed, "total": pages.total},
        "problem": problem,
    }


def problem(volume: Volume, attempts: t.Sequence[Attempt], w: Words) -> Data | None:
    """Why a volume failed: the words of its last attempt that has any."""
    if volume.state != "failed":
        return None
    for attempt in reversed(attempts):
        if attempt.message or attempt.reason:
            facts: dict[str, str | int] = {"volume": volume.id, "message": attempt.message or attempt.reason}
            code, owner = _kind(attempt)
            return reason(Reason(code, facts, owner), w)
    return reason(Reason("volume-failed", {"volume": volume.id}, "platform"), w)


def attempt(found: Attempt, w: Words) -> Data:
    return {
        "pod": found.pod,
        "state": found.state,
        "state_text": w(f"attempt.{found.state}"),
        "started": moment(found.started),
        "finished": moment(found.finished),
        "exit_code": found.exit_code,
        "stage": found.stage,
        "message": found.message,
        "reason": found.reason,
        "node": found.node,
    }


def time_left(campaign: Campaign, tally: Tally) -> Data | None:
    """Seconds until a campaign is done, as a range, from the pages an hour that its running volumes measure.

    None where nothing is measured yet. Volumes of which nothing is known count as the others do on average, and the
    range is the wider the fewer of those that run are known.
    """
    if campaign.state != "running" or not tally.paced or not tally.total:
        return None
    counts = campaign.counts
    running = max(counts.running, tally.paced)
    pace = tally.pace * running / tally.paced
    unknown = max(0, counts.waiting + counts.running - tally.open)
    left = tally.left + unknown * tally.total / tally.sized
    seconds, spread = 3600 * left / pace, _SPREAD * (2 - tally.paced / running)
    return {"low": round(seconds * (1 - spread)), "high": round(seconds * (1 + spread))}


def moment(at: datetime.datetime | None) -> str | None:
    return None if at is None else at.astimezone(datetime.UTC).isoformat(timespec="seconds").replace("+00:00", "Z")


def _kind(attempt: Attempt) -> tuple[str, t.Literal["requester", "platform", "nobody"]]:
    if attempt.exit_code == 13:
        return "volume-wrong", "requester"
    return "volume-broke", "platform"


def _pages(campaign: Campaign, tally: Tally) -> tuple[Pages, int]:
    """A campaign's pages, and of how many volumes they are. The record of a campaign that is gone has them all."""
    if campaign.removed and campaign.pages is not None:
        return campaign.pages, campaign.counts.done + campaign.counts.failed
    return Pages(tally.done, tally.failed, tally.total if tally.sized else None), tally.volumes


def _version(campaign: Campaign, tally: Tally, rows: t.Sequence[Data], stalled: int) -> str:
    """Changes with what a card shows, so that a browser replaces only cards that are other ones."""
    parts = (tally.done, tally.failed, tally.volumes, round(tally.pace), stalled)
    shown = [(row["index"], row["state"], row["pages"]["done"], row["pages"]["failed"]) for row in rows]
    return f"{campaign.version}-{zlib.crc32(repr((parts, shown)).encode()):x}"
