"""A Job as Kubernetes' Job controller sees it: which pods it wants, and what their ends make of its status.

Rules are from the Kubernetes documentation of Jobs: "Backoff limit per index", "Pod failure policy", "Suspending a
Job", "Job termination and cleanup". The status has Kubernetes' own fields, so that one reader serves both. Nothing here
starts anything or looks at a clock: times are given, in seconds since 1970.
"""

from __future__ import annotations

import dataclasses
import datetime
import typing as t

from htrflow_campaigns.local import indexes

Object = dict[str, t.Any]

#: Seconds before an index or a Job is tried again after its first failure; each further one waits twice as long.
FIRST_PAUSE, LONGEST_PAUSE = 10.0, 360.0
#: The index of the one pod of a Job that is not Indexed.
ONLY = 0


@dataclasses.dataclass(frozen=True, slots=True)
class Ended:
    """How a pod ended.

    ``exit_codes`` are by the names of its containers, of those that ran. ``disrupted`` says that its node wanted to be
    rid of it, ``removed`` that whoever runs the Job took it away: that is no failure.
    """

    exit_codes: t.Mapping[str, int]
    succeeded: bool = False
    disrupted: bool = False
    removed: bool = False


class Job:
    """One Job. ``object`` is its manifest with ``metadata.uid`` and ``status``, as an API server would give it.

    ``failures`` counts the failed pods of each index that were charged to it.
    """

    def __init__(
        self, object_: Object, failures: t.Mapping[int, int] | None = None, pause: float = FIRST_PAUSE
    ) -> None:
        self.object = object_
        self.failures = dict(failures or {})
        self._pause = pause
        self._not_before: dict[int, float] = {}
        #: Whether the repo pauses it. Kubernetes has no field for that: in a cluster it is Kueue's.
        self.paused = False
        #: The indexes that have a pod.
        self.active: set[int] = set()
        self.object.setdefault("status", {})
        if "backoffLimitPerIndex" in self.spec:
            self.status.setdefault("failedIndexes", "")
        self._count()

    @property
    def name(self) -> str:
        return str(self.object["metadata"]["name"])

    @property
    def spec(self) -> Object:
        return t.cast(Object, self.object["spec"])

    @property
    def status(self) -> Object:
        return t.cast(Object, self.object["status"])

    @property
    def indexed(self) -> bool:
        return self.spec.get("completionMode") == "Indexed"

    @property
    def completions(self) -> int:
        return int(self.spec.get("completions", 1))

    @property
    def parallelism(self) -> int:
        return int(self.spec.get("parallelism", 1))

    @property
    def completed(self) -> set[int]:
        if self.indexed:
            return indexes.read(self.status.get("completedIndexes", ""))
        return {ONLY} if self.status.get("succeeded") else set()

    @property
    def failed(self) -> set[int]:
        return indexes.read(self.status.get("failedIndexes", ""))

    @property
    def left(self) -> set[int]:
        """The indexes that are not decided yet."""
        return set(range(self.completions)) - self.completed - self.failed

    @property
    def suspended(self) -> bool:
        return bool(self.spec.get("suspend"))

    def condition(self, kind: str) -> Object | None:
        """The condition of this kind, if it is true."""
        found = (one for one in self.status.get("conditions", []) if one["type"] == kind)
        return next((one for one in found if one["status"] == "True"), None)

    @property
    def finished(self) -> bool:
        return bool(self.condition("Complete") or self.condition("Failed"))

    def wanted(self, now: float) -> list[int]:
        """The indexes that are to get a pod now, lowest first."""
        if self.suspended or self.finished:
            return []
        free = self.parallelism - len(self.active)
        ready = (i for i in sorted(self.left - self.active) if self._not_before.get(i, 0.0) <= now)
        return [index for index, _ in zip(ready, range(max(0, free)), strict=False)]

    def started(self, index: int, now: float) -> None:
        """Notes that an index has a pod."""
        self.active.add(index)
        self.status.setdefault("startTime", timestamp(now))
        self._count()

    def ended(self, index: int, end: Ended, now: float) -> None:
        """Notes that the pod of an index has ended."""
        self.active.discard(index)
        if end.succeeded:
            self.status["succeeded"] = self.status.get("succeeded", 0) + 1
            if self.indexed:
                self.status["completedIndexes"] = indexes.write({*self.completed, index})
        elif not end.removed and (action := self._action(end)) != "Ignore":
            self.status["failed"] = self.status.get("failed", 0) + 1
            self._charge(index, action, end, now)
        self._count()
        self._conclude(now)

    def suspend(self, now: float) -> None:
        """Notes that the Job has no place, or is paused. Its pods are to be taken away."""
        if not self.suspended and not self.finished:
            self.spec["suspend"] = True
            self.status.pop("startTime", None)
            self._set("Suspended", True, "JobSuspended", "Job suspended", now)
            self._count()

    def resume(self, now: float) -> None:
        """Notes that the Job may run."""
        if self.suspended:
            self.spec["suspend"] = False
            self.status["startTime"] = timestamp(now)
            if self.status.get("conditions"):
                self._set("Suspended", False, "JobResumed", "Job resumed", now)

    def _action(self, end: Ended) -> str:
        """What the pod failure policy says of a pod: the first rule that fits."""
        for rule in self.spec.get("podFailurePolicy", {}).get("rules", []):
            wanted = rule.get("onExitCodes")
            if wanted is None:
                fits = end.disrupted and any(
                    one["type"] == "DisruptionTarget" for one in rule.get("onPodConditions", [])
                )
            else:
                name = wanted.get("containerName")
                codes = [code for container, code in end.exit_codes.items() if name in (None, container) and code]
                inside = [code in wanted["values"] for code in codes]
                fits = any(inside if wanted["operator"] == "In" else [not one for one in inside])
            if fits:
                return str(rule["action"])
        return "Count"

    def _charge(self, index: int, action: str, end: Ended, now: float) -> None:
        self.failures[index] = self.failures.get(index, 0) + 1
        if action == "FailJob":
            container, code = next((name, code) for name, code in end.exit_codes.items() if code)
            message = f"Container {container} failed with exit code {code} matching a FailJob rule"
            self._fail("PodFailurePolicy", message, now)
        elif self.indexed and "backoffLimitPerIndex" in self.spec:
            if action == "FailIndex" or self.failures[index] > self.spec["backoffLimitPerIndex"]:
                self.status["failedIndexes"] = indexes.write({*self.failed, index})
        elif sum(self.failures.values()) > self.spec.get("backoffLimit", 6):
            self._fail("BackoffLimitExceeded", "Job has reached the specified backoff limit", now)
        pause = self._pause * 2 ** (self.failures[index] - 1)
        self._not_before[index] = now + min(pause, LONGEST_PAUSE)

    def _conclude(self, now: float) -> None:
        if self.finished or self.left or self.active:
            return
        if self.failed:
            self._fail("FailedIndexes", "Job has failed indexes", now)
        elif len(self.completed) == self.completions:
            for kind in ("SuccessCriteriaMet", "Complete"):
                self._set(kind, True, "CompletionsReached", "Reached expected number of succeeded pods", now)
            self.status["completionTime"] = timestamp(now)

    def _fail(self, reason: str, message: str, now: float) -> None:
        for kind in ("FailureTarget", "Failed"):
            self._set(kind, True, reason, message, now)

    def _count(self) -> None:
        # What is still there of a suspended Job is on its way out.
        ending = len(self.active) if self.suspended else 0
        running = len(self.active) - ending
        self.status.update({"active": running, "ready": running, "terminating": ending, "uncountedTerminatedPods": {}})
        if not running:
            self.status.pop("active")

    def _set(self, kind: str, value: bool, reason: str, message: str, now: float) -> None:
        conditions = self.status.setdefault("conditions", [])
        at = timestamp(now)
        condition = {
            "type": kind,
            "status": str(value),
            "lastProbeTime": at,
            "lastTransitionTime": at,
            "reason": reason,
            "message": message,
        }
        places = [place for place, one in enumerate(conditions) if one["type"] == kind]
        if places:
            conditions[places[0]] = condition
        else:
            conditions.append(condition)


def timestamp(seconds: float) -> str:
    """A time as Kubernetes writes it."""
    return datetime.datetime.fromtimestamp(seconds, datetime.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
