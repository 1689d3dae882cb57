"""A campaign's record: what stays in the cluster of a Job that is gone.

It is the ConfigMap ``campaign-<job>-status``, one for each Job, with the labels ``pipeline`` and ``campaign`` (and
``part``) of the Job and without ``managed-by``, so that no prune removes it. Its key ``record.json`` is one JSON
object, described by ``schemas/record.schema.json``::

    {"version": 1, "job": "letters", "uid": "…", "phase": "Failed",
     "volumes": 3, "completedIndexes": "0,2", "failedIndexes": "1",
     "created": "2026-01-05T10:00:00Z", "started": "…", "finished": "…",
     "pages": {"done": 681, "failed": 1},
     "window": 20, "priority": "htr-bulk", "image": "…@sha256:…", "results": "https://…/results/htr-batch/demo-v1",
     "failedVolumes": {"1": {"exitCode": 13, "stage": "load", "reason": "", "message": "…"}}}

``phase`` is the condition that ended the Job, ``Complete`` or ``Failed``, or ``""`` while it has not ended; the indexes
are written as in a Job's status, so ``volumes.txt`` of the ConfigMap ``campaign-<job>`` names the volumes as before.
Only ``version``, ``job``, ``uid``, ``phase`` and ``volumes`` have to be there. ``failedVolumes`` are the last words of
failed volumes by index. It has two writers, ``apply`` and the status site, so a writer changes what it knows, keeps
the rest, and sends the ``resourceVersion`` that it read.
"""

from __future__ import annotations

import dataclasses
import json
import typing as t

from htrflow_campaigns import names
from htrflow_status.model import Attempt, Moment, Pages, Reason
from htrflow_status.sources import fields, indexes, pods
from htrflow_status.sources.fields import Object
from htrflow_status.sources.indexes import Indexes

KEY = "record.json"
VERSION = 1

_PREFIX, _SUFFIX = names.campaign_config_map(""), "-status"
_MOST_INDEXES = 100_000


@dataclasses.dataclass(frozen=True, slots=True)
class Record:
    """What a record says. ``words`` are the last attempts of failed volumes, by index."""

    namespace: str
    name: str
    uid: str
    campaign: str
    part: int | None
    pipeline: str
    image: str
    priority: str
    ended: t.Literal["", "Complete", "Failed"]
    volumes: int
    done: Indexes
    failed: Indexes
    created: Moment | None
    started: Moment | None
    finished: Moment | None
    window: int
    pages: Pages | None
    results: str
    words: t.Mapping[int, Attempt]
    problems: tuple[Reason, ...]


def job_of_config_map(name: str) -> str | None:
    """The Job whose record a ConfigMap of this name is. No campaign's name ends in ``-status``."""
    if name.startswith(_PREFIX) and name.endswith(_SUFFIX) and len(name) > len(_PREFIX) + len(_SUFFIX):
        return name[len(_PREFIX) : -len(_SUFFIX)]
    return None


def config_map_of_job(job: str) -> str:
    return f"{names.campaign_config_map(job)}{_SUFFIX}"


def read(config_map: Object) -> Record:
    """Reads a record, whatever is in it."""
    name = fields.text(config_map, "metadata", "name")
    labels = fields.at(config_map, "metadata", "labels")
    unreadable = Reason("record-unreadable", {"config_map": name}, "platform")
    problems = []
    try:
        found = json.loads(fields.text(config_map, "data", KEY))
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict) or found.get("version") != VERSION:
        found, problems = {}, [unreadable]
    volumes = min(fields.number(found, "volumes") or 0, _MOST_INDEXES)
    done, all_done = indexes.read(fields.text(found, "completedIndexes"), volumes)
    failed, all_failed = indexes.read(fields.text(found, "failedIndexes"), volumes)
    if not (all_done and all_failed):
        problems = [unreadable]
    phase = fields.text(found, "phase")
    return Record(
        namespace=fields.text(config_map, "metadata", "namespace"),
        name=job_of_config_map(name) or name,
        uid=fields.text(found, "uid"),
        campaign=fields.text(labels, names.CAMPAIGN_LABEL),
        part=fields.digits(fields.text(labels, names.PART_LABEL)),
        pipeline=fields.text(labels, names.PIPELINE_LABEL),
        image=fields.text(found, "image"),
        priority=fields.text(found, "priority"),
        ended="Complete" if phase == "Complete" else "Failed" if phase == "Failed" else "",
        volumes=volumes,
        done=done,
        failed=failed.without(done),
        created=fields.moment(found, "created"),
        started=fields.moment(found, "started"),
        finished=fields.moment(found, "finished"),
        window=fields.number(found, "window") or 0,
        pages=_pages(fields.at(found, "pages")),
        results=fields.text(found, "results"),
        words=dict(_words(fields.at(found, "failedVolumes"))),
        problems=tuple(problems),
    )


def _pages(found: t.Any) -> Pages | None:
    done, failed = fields.number(found, "done"), fields.number(found, "failed")
    return None if done is None or failed is None else Pages(done, failed, done + failed)


def _words(found: t.Any) -> t.Iterator[tuple[int, Attempt]]:
    for key, value in found.items() if isinstance(found, dict) else ():
        index = fields.digits(key)
        if index is not None and isinstance(value, dict):
            yield (
                index,
                Attempt(
                    pod="",
                    state="failed",
                    finished=fields.moment(value, "finished"),
                    exit_code=fields.number(value, "exitCode"),
                    stage=fields.text(value, "stage"),
                    message=pods.sentence(fields.text(value, "message")),
                    reason=fields.text(value, "reason"),
                ),
            )
