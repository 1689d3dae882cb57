"""What the pages show, as plain data: it is the ``.json`` twin of a page as it is, and the page's template words it."""

from __future__ import annotations

import dataclasses
import datetime
import typing as t
import zlib

from htrflow_status import urls
from htrflow_status.model import Attempt, Campaign, Pages, Reason, Volume
from htrflow_status.progress import Progress
from htrflow_status.words import Words

Data: t.TypeAlias = dict[str, t.Any]
#: Of problems, and of volumes on a card.
MOST_PROBLEMS, MOST_ROWS = 5, 6
#: What is measured of pages an hour may be off by so much, up or down.
_SPREAD = 0.3


def reason(found: Reason, w: Words) -> Data:
    """A reason with its sentence in the reader's language."""
    key = f"reason.{found.code}"
    text = w(key, **found.facts) if w.has(key) else str(found.facts.get("message", found.code))
    return {"code": found.code, "facts": dict(found.facts), "owner": found.owner, "text": text}


def card(
    campaign: Campaign,
    rows: t.Sequence[Data],
    known: t.Mapping[int, Progress],
    problems: t.Sequence[Data],
    w: Words,
) -> Data:
    """A campaign. ``known`` is the progress of those of its volumes that could be read, by their index."""
    pages = total(known.values())
    pipeline = campaign.pipeline
    # Kubernetes counts volumes; that pages of them failed is in the results only.
    state = "partial pages" if campaign.state == "succeeded" and pages.failed else campaign.state
    return {
        "id": f"campaign-{campaign.namespace}-{campaign.name}",
        "namespace": campaign.namespace,
        "name": campaign.name,
        "url": urls.campaign(campaign),
        "version": _version(campaign, known),
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
        },
        "pages": {**dataclasses.asdict(pages), "volumes_known": len(known)},
        "time_left": time_left(campaign, known),
        "pipeline": {
            "id": pipeline.id,
            "image": pipeline.image,
            "models": [dataclasses.asdict(model) for model in pipeline.models],
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
        "pages": dataclasses.asdict(pages),
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


def total(known: t.Iterable[Progress]) -> Pages:
    """The pages of volumes together; the total is None when nothing is known."""
    found = [one for one in known if one.total is not None]
    whole = sum(one.total or 0 for one in found)
    return Pages(sum(one.done for one in found), sum(one.failed for one in found), whole if found else None)


def time_left(campaign: Campaign, known: t.Mapping[int, Progress]) -> Data | None:
    """Seconds until a campaign is done, as a range, from the pages an hour that its running volumes measure.

    None where nothing is measured yet. Volumes of which nothing is known count as the others do on average.
    """
    paces = [one.pages_per_hour for one in known.values() if one.condition == "running" and one.pages_per_hour]
    sizes = [one.total for one in known.values() if one.total]
    if campaign.state != "running" or not paces or not sizes:
        return None
    pages, counts = total(known.values()), campaign.counts
    unknown = max(0, counts.waiting + counts.running - sum(1 for one in known.values() if one.condition != "finished"))
    left = (pages.total or 0) - pages.done - pages.failed + unknown * sum(sizes) / len(sizes)
    seconds = 3600 * left / sum(paces)
    return {"low": round(seconds * (1 - _SPREAD)), "high": round(seconds * (1 + _SPREAD))}


def moment(at: datetime.datetime | None) -> str | None:
    return None if at is None else at.astimezone(datetime.UTC).isoformat(timespec="seconds").replace("+00:00", "Z")


def _kind(attempt: Attempt) -> tuple[str, t.Literal["requester", "platform", "nobody"]]:
    if attempt.exit_code == 13:
        return "volume-wrong", "requester"
    return "volume-broke", "platform"


def _version(campaign: Campaign, known: t.Mapping[int, Progress]) -> str:
    """Changes with what a card shows, so that a browser replaces only cards that are other ones."""
    parts = sorted((index, one.done, one.failed, one.condition) for index, one in known.items())
    return f"{campaign.version}-{zlib.crc32(repr(parts).encode()):x}"
