"""What a campaign's Job says."""

from __future__ import annotations

import dataclasses
import typing as t

from htrflow_campaigns import names
from htrflow_status.model import Moment, Reason
from htrflow_status.sources import fields, indexes
from htrflow_status.sources.fields import Object
from htrflow_status.sources.indexes import Indexes

#: More indexes than a Job can have (Kubernetes' own limit for Indexed Jobs).
_MOST_INDEXES = 100_000


@dataclasses.dataclass(frozen=True, slots=True)
class Job:
    """The Job of a campaign or of a part of one. ``ended`` is the condition that ended it."""

    namespace: str
    name: str
    uid: str
    campaign: str
    part: int | None
    pipeline: str
    image: str
    queue: str
    priority: str
    completions: int
    window: int
    suspended: bool
    done: Indexes
    failed: Indexes
    #: How many are done: the Job counts them also where their list cannot be read.
    succeeded: int
    created: Moment | None
    started: Moment | None
    finished: Moment | None
    ended: t.Literal["", "Complete", "Failed"]
    reason: str
    message: str
    problems: tuple[Reason, ...]


def is_campaign(job: Object) -> bool:
    """Whether a Job is a campaign's, and not a warm-up or none of ours."""
    return bool(fields.text(job, "metadata", "labels", names.CAMPAIGN_LABEL))


def read(job: Object) -> Job:
    """Reads a Job, whatever is in it."""
    problems: list[Reason] = []
    completions = fields.number(job, "spec", "completions")
    if completions is None or completions > _MOST_INDEXES:
        problems.append(Reason("job-unreadable", {"field": "completions"}, "platform"))
        completions = 0
    done = _indexes(job, "completedIndexes", completions, problems)
    failed = _indexes(job, "failedIndexes", completions, problems).without(done)
    succeeded = min(max(done.count, fields.number(job, "status", "succeeded") or 0), completions - failed.count)
    condition = next(
        (row for kind in ("Complete", "Failed") if fields.is_true(row := fields.condition(job, kind))), None
    )
    kind = fields.text(condition, "type")
    finished = fields.moment(job, "status", "completionTime") or fields.moment(condition, "lastTransitionTime")
    return Job(
        namespace=fields.text(job, "metadata", "namespace"),
        name=fields.text(job, "metadata", "name"),
        uid=fields.text(job, "metadata", "uid"),
        campaign=_label(job, names.CAMPAIGN_LABEL),
        part=_part(job, problems),
        pipeline=_label(job, names.PIPELINE_LABEL),
        image=_image(job),
        queue=_label(job, names.QUEUE_LABEL),
        priority=_label(job, names.PRIORITY_LABEL),
        completions=completions,
        window=_window(job),
        suspended=fields.at(job, "spec", "suspend") is True,
        done=done,
        failed=failed,
        succeeded=succeeded,
        created=fields.moment(job, "metadata", "creationTimestamp"),
        started=fields.moment(job, "status", "startTime"),
        finished=finished,
        ended="Complete" if kind == "Complete" else "Failed" if kind == "Failed" else "",
        reason=fields.text(condition, "reason"),
        message=fields.text(condition, "message"),
        problems=tuple(problems),
    )


def _label(job: Object, label: str) -> str:
    return fields.text(job, "metadata", "labels", label)


def _part(job: Object, problems: list[Reason]) -> int | None:
    written = _label(job, names.PART_LABEL)
    number = fields.digits(written)
    if written and number is None:
        problems.append(Reason("label-unreadable", {"label": names.PART_LABEL, "value": written}, "platform"))
    return number


def _window(job: Object) -> int:
    found = fields.number(job, "spec", "parallelism")
    return 1 if found is None else found


def _image(job: Object) -> str:
    containers = fields.rows(job, "spec", "template", "spec", "containers")
    return fields.text(containers[0], "image") if containers else ""


def _indexes(job: Object, field: str, size: int, problems: list[Reason]) -> Indexes:
    found, whole = indexes.read(fields.text(job, "status", field), size)
    if not whole:
        problems.append(Reason("indexes-unreadable", {"field": field}, "platform"))
    return found
