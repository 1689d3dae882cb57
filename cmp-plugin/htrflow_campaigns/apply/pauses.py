"""Pauses: a campaign is paused by its Workload, which keeps its place in the queue and what is finished of it.

``spec.suspend`` of a Job is Kueue's own: what others write there is undone, after the pods have been stopped for it.
"""

from __future__ import annotations

import time
import typing as t

from htrflow_campaigns.apply import live
from htrflow_campaigns.apply.cluster import JOB, WORKLOAD, Cluster, RefusedError
from htrflow_campaigns.apply.report import Report
from htrflow_campaigns.apply.wanted import Part
from htrflow_campaigns.objects.pod import Object

_LOOK = 0.2
_GONE = 404


class Pauses:
    """Sets Workloads active or not. ``wait`` is how long Kueue is given, in seconds, to make those of new Jobs."""

    def __init__(self, cluster: Cluster, report: Report, wait: float, keep: t.Callable[[], None]) -> None:
        self._cluster, self._report, self._keep = cluster, report, keep
        self._wait, self._until = wait, 0.0

    def carry_out(self, jobs: t.Sequence[tuple[Part, Object]]) -> None:
        """Pauses or resumes each Job that has not ended."""
        self._until = time.monotonic() + self._wait
        for part, job in jobs:
            self._keep()
            if not live.ended(job):
                self._one(part, job)

    def _one(self, part: Part, job: Object) -> None:
        thing = f"Job/{part.name}"
        try:
            workloads, turned = self._turn(part, job)
            if turned:
                self._report.done("paused" if part.suspend else "resumed", thing)
        except RefusedError as error:
            if part.suspend:
                sentence = f"the pause is not enforced: {error} — see to it, and run apply again"
                self._report.unenforced(thing, f"{thing}: {sentence}")
            else:
                self._report.left(thing, f"{thing}: whether it is paused cannot be known or changed: {error}")
            return
        if part.suspend and not workloads:
            sentence = (
                f"the pause is not enforced: Kueue has made no Workload of it in {self._wait:g} seconds — see whether"
                " Kueue runs and the priority class exists, and run apply again"
            )
            self._report.unenforced(thing, f"{thing}: {sentence}")

    def _turn(self, part: Part, job: Object) -> tuple[list[Object], bool]:
        """The Workloads of a Job, set as they should be, and whether one was not.

        Kueue replaces the Workload of a Job whose number of pods has changed, so one that is gone is looked for again.
        """
        turned = False
        while True:
            workloads = self._workloads(part, job)
            try:
                for workload in workloads:
                    if live.is_active(workload) == part.suspend:
                        turned = True
                        self._set(workload, not part.suspend)
                return workloads, turned
            except RefusedError as error:
                if error.status != _GONE or time.monotonic() >= self._until:
                    raise
            time.sleep(_LOOK)
            self._keep()

    def _workloads(self, part: Part, job: Object) -> list[Object]:
        """The Workloads of a Job; those of one that is to pause are waited for."""
        while True:
            found = live.workloads(self._cluster, job)
            if found or not part.suspend or time.monotonic() >= self._until:
                return found
            current = self._cluster.get(JOB, part.name)
            if current is None or live.ended(current):
                return [_FINISHED]
            time.sleep(_LOOK)
            self._keep()

    def _set(self, workload: Object, active: bool) -> None:
        self._cluster.patch(WORKLOAD, workload["metadata"]["name"], {"spec": {"active": active}})


#: In place of the Workload of a Job that has ended meanwhile: it is as paused as can be.
_FINISHED: Object = {"metadata": {}, "spec": {"active": False}}
