"""Which Jobs may run within so many slots, as Kueue admits Workloads within a quota of GPUs."""

from __future__ import annotations

import typing as t

from htrflow_campaigns import names
from htrflow_campaigns.local.job import Job

#: The class of a campaign that names none.
DEFAULT_CLASS = "htr-bulk"


def need(job: Job) -> int:
    """How many slots a Job asks for: one for each pod that it may have at once. Zero when it is done."""
    return 0 if job.finished else min(job.parallelism, len(job.left))


def order(jobs: t.Iterable[Job], classes: t.Sequence[str]) -> list[Job]:
    """The Jobs as they stand in line: by priority, then by age. ``classes`` are the highest first."""
    ranks = {name: rank for rank, name in enumerate(classes)}
    default = ranks.get(DEFAULT_CLASS, len(ranks))

    def place(job: Job) -> tuple[int, str, str]:
        metadata = job.object["metadata"]
        name = metadata.get("labels", {}).get(names.PRIORITY_LABEL, "")
        return ranks.get(name, default), metadata.get("creationTimestamp", ""), job.name

    return sorted(jobs, key=place)


def admitted(jobs: t.Sequence[Job], slots: int, paused: t.Collection[str]) -> list[Job]:
    """The Jobs, in line, that are to start now beside those that run.

    A Job starts when its whole window fits, and a smaller one behind it may start before it; none is ever taken away.
    """
    used = sum(need(job) for job in jobs if not job.suspended)
    found = []
    for job in jobs:
        if job.suspended and not job.finished and job.name not in paused and used + need(job) <= slots:
            used += need(job)
            found.append(job)
    return found
