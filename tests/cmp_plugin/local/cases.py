"""How pods end, and the Job status that Kubernetes makes of it: one table for the runner and for the Job controller.

The status is as the Kubernetes documentation of Jobs has it, in "Handling Pod and container failures", "Backoff limit
per index", "Pod failure policy", "Suspending a Job" and "Job termination and cleanup". The Jobs are those that the
converter renders.
"""

from __future__ import annotations

import copy
import dataclasses
import pathlib
import typing as t

from htrflow_campaigns.local import repo
from htrflow_campaigns.local.repo import Wanted
from tests.cmp_plugin.conftest import CONVERTER, PIPELINE

Object = dict[str, t.Any]

#: What runs at once, in all: GPUs in the cluster, slots of the runner.
SLOTS = 50
#: The container of a campaign's pod, the one that runs before it, and that of a warm-up's.
WRAPPER, WAIT, WARMUP = "wrapper", "warmup-wait", "warmup"


class End(t.NamedTuple):
    """How one pod ends: by itself with ``code``, or, where that is None, when it is asked to."""

    code: int | None
    container: str = ""


OK, REFUSED, FAILED, TERMINATED, FOREVER = End(0), End(13), End(1), End(143), End(None)


class Condition(t.NamedTuple):
    type: str
    status: str
    reason: str
    message: str


SUSPENDED = Condition("Suspended", "True", "JobSuspended", "Job suspended")
RESUMED = Condition("Suspended", "False", "JobResumed", "Job resumed")


def complete(*before: Condition) -> tuple[Condition, ...]:
    said = ("CompletionsReached", "Reached expected number of succeeded pods")
    return (*before, Condition("SuccessCriteriaMet", "True", *said), Condition("Complete", "True", *said))


def failed(reason: str, message: str, *before: Condition) -> tuple[Condition, ...]:
    said = (reason, message)
    return (*before, Condition("FailureTarget", "True", *said), Condition("Failed", "True", *said))


SOME_FAILED = failed("FailedIndexes", "Job has failed indexes", RESUMED)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Case:
    """One Job: how its pods end, in the order in which each index gets them, and the status that it ends in.

    ``retries`` and ``deadline`` replace what is rendered, where a test has no time for it. ``meanwhile`` is what
    happens when all pods that can be there are.
    """

    name: str
    ends: tuple[tuple[End, ...], ...]
    warmup: bool = False
    retries: int | None = None
    deadline: int | None = None
    meanwhile: t.Literal["", "pause", "pause and resume", "disrupt"] = ""
    conditions: tuple[Condition, ...]
    completed: str = ""
    failed: str | None = ""
    succeeded: int = 0
    failures: int = 0
    pods: tuple[int, ...]

    @property
    def job(self) -> str:
        """The name of its Job."""
        return f"htr-warmup-{self.name}" if self.warmup else self.name

    @property
    def counts(self) -> list[list[str | None]]:
        """How many failures were charged to each index when it got each of its pods; nothing where no one is told."""
        found: list[list[str | None]] = []
        for ends, pods in zip(self.ends, self.pods, strict=True):
            charged = [sum(end.code is not None for end in ends[:number]) for number in range(pods)]
            found.append([None if self.warmup else str(count) for count in charged])
        return found


CASES = (
    Case(
        name="ends-well",
        ends=((OK,), (OK,), (OK,)),
        conditions=complete(RESUMED),
        completed="0-2",
        succeeded=3,
        pods=(1, 1, 1),
    ),
    Case(
        name="is-refused",
        ends=((REFUSED,),),
        conditions=SOME_FAILED,
        failed="0",
        failures=1,
        pods=(1,),
    ),
    Case(
        name="fails-until-retries-are-spent",
        ends=((FAILED, FAILED),),
        retries=1,
        conditions=SOME_FAILED,
        failed="0",
        failures=2,
        pods=(2,),
    ),
    Case(
        name="ends-well-at-the-second-attempt",
        ends=((FAILED, OK),),
        conditions=complete(RESUMED),
        completed="0",
        succeeded=1,
        failures=1,
        pods=(2,),
    ),
    Case(
        name="is-terminated-and-tried-again",
        ends=((TERMINATED, OK),),
        conditions=complete(RESUMED),
        completed="0",
        succeeded=1,
        failures=1,
        pods=(2,),
    ),
    Case(
        name="takes-too-long",
        ends=((FOREVER,),),
        retries=0,
        deadline=1,
        conditions=SOME_FAILED,
        failed="0",
        failures=1,
        pods=(1,),
    ),
    Case(
        name="waits-in-vain-for-the-warm-up",
        ends=((End(13, WAIT),), (OK,)),
        conditions=SOME_FAILED,
        completed="1",
        failed="0",
        succeeded=1,
        failures=1,
        pods=(1, 1),
    ),
    Case(
        name="cannot-start-and-is-tried-again",
        ends=((End(1, WAIT), OK),),
        conditions=complete(RESUMED),
        completed="0",
        succeeded=1,
        failures=1,
        pods=(2,),
    ),
    Case(
        name="is-disrupted",
        ends=((FOREVER, OK), (FOREVER, OK)),
        retries=0,
        meanwhile="disrupt",
        conditions=complete(RESUMED),
        completed="0,1",
        succeeded=2,
        pods=(2, 2),
    ),
    Case(
        name="has-mixed-ends",
        ends=((OK,), (REFUSED,), (FAILED, OK), (OK,), (OK,), (End(13, WAIT),), (FAILED, REFUSED)),
        conditions=SOME_FAILED,
        completed="0,2-4",
        failed="1,5,6",
        succeeded=4,
        failures=5,
        pods=(1, 1, 2, 1, 1, 1, 2),
    ),
    Case(
        name="is-paused",
        ends=((OK,), (FOREVER,)),
        meanwhile="pause",
        conditions=(SUSPENDED,),
        completed="0",
        succeeded=1,
        pods=(1, 1),
    ),
    Case(
        name="is-paused-and-goes-on",
        ends=((OK,), (FOREVER, OK), (REFUSED,)),
        meanwhile="pause and resume",
        conditions=SOME_FAILED,
        completed="0,1",
        failed="2",
        succeeded=2,
        failures=1,
        pods=(1, 2, 1),
    ),
    Case(
        name="asks-for-more-than-there-is",
        ends=((OK,),) * (SLOTS + 1),
        conditions=(SUSPENDED,),
        pods=(0,) * (SLOTS + 1),
    ),
    Case(
        name="downloads-well",
        ends=((OK,),),
        warmup=True,
        conditions=complete(),
        failed=None,
        succeeded=1,
        pods=(1,),
    ),
    Case(
        name="names-no-model",
        ends=((REFUSED,),),
        warmup=True,
        conditions=failed("PodFailurePolicy", ""),
        failed=None,
        failures=1,
        pods=(1,),
    ),
    Case(
        name="has-no-network",
        ends=((FAILED, FAILED, FAILED),),
        warmup=True,
        conditions=failed("BackoffLimitExceeded", "Job has reached the specified backoff limit"),
        failed=None,
        failures=3,
        pods=(3,),
    ),
)


def rendered(folder: pathlib.Path, cases: t.Iterable[Case], namespace: str = "htr-batch") -> Wanted:
    """What the converter makes of a repo with a campaign, or a pipeline, for each case."""
    found = dict.fromkeys(("campaigns", "pipelines"))
    for name in found:
        (folder / name).mkdir(parents=True, exist_ok=True)
    (folder / "converter.yaml").write_text(f"{CONVERTER}namespace: {namespace}\nwindow: 60\n", encoding="utf-8")
    (folder / "pipelines/demo-v1.yaml").write_text(PIPELINE, encoding="utf-8")
    jobs = {}
    for case in cases:
        volumes = "".join(f"  - V{number:04}\n" for number in range(len(case.ends)))
        file = folder / ("pipelines" if case.warmup else "campaigns") / f"{case.name}.yaml"
        file.write_text(PIPELINE if case.warmup else f"pipeline: demo-v1\nvolumes:\n{volumes}", encoding="utf-8")
        jobs[case.job] = case
    wanted, problems, _ = repo.read(folder)
    assert wanted is not None, problems
    made = {name: _hurried(job, jobs[name]) for name, job in wanted.jobs.items() if name in jobs}
    return dataclasses.replace(wanted, jobs=made)


def status_of(job: Object) -> Object:
    """What a Job's status says, without times and with its conditions as the table has them."""
    status = copy.deepcopy(job["status"])
    conditions = status.pop("conditions", [])
    for field in ("startTime", "completionTime"):
        if field in status:
            status[field] = "a time"
    for condition in conditions:
        assert {"type", "status", "reason", "message", "lastProbeTime", "lastTransitionTime"} == {*condition}
        if condition["reason"] == "PodFailurePolicy":
            condition["message"] = ""
    shown = [Condition(*(row[field] for field in Condition._fields)) for row in conditions]
    return {**status, "conditions": shown, "suspend": job["spec"].get("suspend", False)}


def expected(case: Case) -> Object:
    """The status that a Job ends in, all of it."""
    done = any(row.type == "Complete" for row in case.conditions)
    suspended = SUSPENDED in case.conditions
    found: Object = {
        "conditions": [*case.conditions],
        "suspend": suspended,
        "ready": 0,
        "terminating": 0,
        "uncountedTerminatedPods": {},
        "startTime": None if suspended else "a time",
        "completionTime": "a time" if done else None,
        "completedIndexes": case.completed or None,
        "failedIndexes": case.failed,
        "succeeded": case.succeeded or None,
        "failed": case.failures or None,
    }
    return {field: value for field, value in found.items() if value is not None}


def _hurried(job: Object, case: Case) -> Object:
    made = copy.deepcopy(job)
    if case.retries is not None:
        assert "backoffLimitPerIndex" in made["spec"]
        made["spec"]["backoffLimitPerIndex"] = case.retries
    if case.deadline is not None:
        made["spec"]["template"]["spec"]["activeDeadlineSeconds"] = case.deadline
    return made
