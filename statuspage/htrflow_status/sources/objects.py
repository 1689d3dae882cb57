"""From the facts of one Job to what the pages show of it. Pure: the same facts give the same campaign.

The states follow the Workload and not the pods: a campaign is queued while its Job is suspended and running once it is
admitted; why nothing of it runs is in ``waiting``. A Job with one failed index ends as ``Failed``; the campaign has
failed only if no volume came out.
"""

from __future__ import annotations

import dataclasses
import typing as t

import rpds

from htrflow_campaigns import names
from htrflow_status.model import Attempt, Campaign, CampaignState, Counts, Moment, Reason, Volume, VolumeState
from htrflow_status.sources import indexes, pipelines
from htrflow_status.sources.indexes import Indexes
from htrflow_status.sources.jobs import Job
from htrflow_status.sources.pipelines import Known
from htrflow_status.sources.pods import NO_INDEX, Pod
from htrflow_status.sources.records import Record
from htrflow_status.sources.volume_list import VolumeList
from htrflow_status.sources.workloads import Workload

#: Pods of one volume by index, the oldest first.
Pods: t.TypeAlias = "rpds.HashTrieMap[int, tuple[Pod, ...]]"
#: Kueue starts nothing of a queued campaign as long as one of these holds, so its place in the queue says nothing.
_NO_PLACE = frozenset(
    {"never-fits", "queue-missing", "queue-stopped", "cluster-queue-missing", "cluster-queue-stopped"}
)
_EPOCH = 0.0


@dataclasses.dataclass(frozen=True, slots=True)
class Around:
    """What is known beside the objects of a Job.

    ``classes`` are the priority classes of the cluster, None where nobody may know. ``overdue`` says that Kueue has had
    the time to make a Workload. ``place`` says how many are ahead in the queue, or why that is not known. ``slots``
    says what the runner of a single machine lacks, ``paused`` that it was told to leave the Job alone.
    """

    classes: frozenset[str] | None = None
    overdue: bool = False
    place: Reason | None = None
    slots: Reason | None = None
    paused: bool = False


@dataclasses.dataclass(frozen=True, slots=True)
class Facts:
    """All that is known of one Job. ``live`` are the indexes that have a pod which has not ended."""

    namespace: str
    name: str
    job: Job | None = None
    record: Record | None = None
    workloads: tuple[Workload, ...] = ()
    volumes: VolumeList | None = None
    pipeline: Known = pipelines.NOTHING
    pods: Pods = dataclasses.field(default_factory=rpds.HashTrieMap)
    live: rpds.HashTrieSet[int] = dataclasses.field(default_factory=rpds.HashTrieSet)
    around: Around = Around()

    @property
    def known(self) -> bool:
        return self.job is not None or self.record is not None

    @property
    def pipeline_id(self) -> str:
        return self.job.pipeline if self.job else self.record.pipeline if self.record else ""

    @property
    def size(self) -> int:
        return self.job.completions if self.job else self.record.volumes if self.record else 0

    @property
    def done(self) -> Indexes:
        return self.job.done if self.job else self.record.done if self.record else Indexes()

    @property
    def failed(self) -> Indexes:
        return self.job.failed if self.job else self.record.failed if self.record else Indexes()

    @property
    def workload(self) -> Workload | None:
        """The Workload of this Job: not of one of the same name before it, and the newest."""
        own = [row for row in self.workloads if self.job is None or row.job_uid in ("", self.job.uid)]
        own = [row for row in own if not row.over] or own
        return max(own, key=lambda row: (_seconds(row.created), row.uid), default=None)


def campaign(facts: Facts, version: str) -> Campaign:
    """What the pages show of a Job, or of its record. ``facts`` know one of the two."""
    if facts.job is None:
        return _recorded(facts, version)
    job = facts.job
    state, waiting = _state(facts, job)
    running = len(_running(facts)) if not job.ended else 0
    done, failed = job.succeeded, job.failed.count
    running = min(running, job.completions - done - failed)
    return Campaign(
        namespace=job.namespace,
        name=job.name,
        state=state,
        version=version,
        pipeline=pipelines.pipeline(job.pipeline, job.image, facts.pipeline),
        counts=Counts(job.completions - done - failed - running, running, done, failed),
        created=job.created,
        started=job.started,
        finished=job.finished if job.ended else None,
        window=job.window,
        priority=job.priority,
        waiting=waiting,
        campaign=job.campaign,
        part=job.part,
        problems=(*job.problems, *_problems(facts)),
    )


def volume(facts: Facts, index: int) -> Volume:
    """One volume; its list is known and has the index."""
    assert facts.volumes is not None
    line = facts.volumes[index]
    return Volume(index, line.id, state_of(facts, index), line.manifest, line.images)


def state_of(facts: Facts, index: int) -> VolumeState:
    """The state of a volume, as far as its Job and its pods tell it."""
    if facts.done.holds(index):
        return "done"
    if facts.failed.holds(index):
        return "failed"
    return "running" if facts.job and not facts.job.ended and _runs(facts, index) else "waiting"


def indexes_in(facts: Facts, state: VolumeState) -> t.Iterator[int]:
    """The volumes of a state, in order."""
    if state == "done":
        return facts.done.all()
    if state == "failed":
        return facts.failed.all()
    if state == "running":
        return iter(sorted(index for index in facts.live if state_of(facts, index) == "running"))
    ended = indexes.joined(facts.done, facts.failed)
    left = (index for first, last in ended.gaps(facts.size) for index in range(first, last + 1))
    return (index for index in left if state_of(facts, index) == state)


def attempts(facts: Facts, index: int) -> tuple[Attempt, ...]:
    """The pods of a volume, and what its record says of the last one where none of them is there any more."""
    own = tuple(pod.attempt for pod in facts.pods.get(index, ()) if _is_own(facts, pod))
    if own or facts.record is None or index not in facts.record.words:
        return own
    same_run = facts.job is None or facts.job.uid == facts.record.uid
    return (facts.record.words[index],) if same_run else ()


def ordered(pods: t.Iterable[Pod]) -> tuple[Pod, ...]:
    """Pods of one volume, the oldest first."""
    return tuple(sorted(pods, key=lambda pod: (_seconds(pod.created), pod.attempt.pod)))


def _seconds(moment: Moment | None) -> float:
    return moment.timestamp() if moment else _EPOCH


def _is_own(facts: Facts, pod: Pod) -> bool:
    return facts.job is None or pod.job_uid in ("", facts.job.uid)


def _runs(facts: Facts, index: int) -> bool:
    return any(pod.attempt.state == "running" and _is_own(facts, pod) for pod in facts.pods.get(index, ()))


def _running(facts: Facts) -> list[int]:
    return [index for index in facts.live if state_of(facts, index) == "running"]


def _ended(kind: str, done: int) -> CampaignState:
    if kind == "Complete":
        return "succeeded"
    return "partial volumes" if done else "failed"


def _state(facts: Facts, job: Job) -> tuple[CampaignState, tuple[Reason, ...]]:
    workload = facts.workload
    if job.ended:
        failure = (Reason("job-failed", {"why": job.reason, "message": job.message}),)
        # That volumes failed is said of each of them; only what stopped the whole Job is its own reason.
        return _ended(job.ended, job.succeeded), (
            failure if job.ended == "Failed" and job.reason not in ("FailedIndexes", "") else ()
        )
    if not job.completions:
        return "unknown", ()
    if job.window == 0 or facts.around.paused or (workload and workload.paused):
        return "paused", (Reason("paused", {}, "requester"),)
    if not job.suspended:
        return "running", _starting(facts)
    reasons = list(_queued(facts, job, workload))
    if any(reason.code == "deactivated" for reason in reasons):
        return "paused", tuple(reasons)
    if facts.around.place and workload and workload.pending and not _NO_PLACE & {row.code for row in reasons}:
        reasons.append(facts.around.place)
    warmup = pipelines.pipeline(job.pipeline, job.image, facts.pipeline).warmup
    return "queued", tuple([*reasons, warmup] if warmup else reasons)


def _queued(facts: Facts, job: Job, workload: Workload | None) -> t.Iterator[Reason]:
    if facts.around.slots:
        yield facts.around.slots
        return
    if not job.queue:
        yield Reason("no-queue", {}, "platform")
        return
    if workload is not None:
        yield from workload.reasons
        return
    if job.priority and facts.around.classes is not None and job.priority not in facts.around.classes:
        yield Reason("class-missing", {"class": job.priority}, "platform")
    elif facts.around.overdue:
        yield Reason("not-taken-up", {"queue": job.queue, "class": job.priority}, "platform")
    else:
        yield Reason("evaluating")


def _starting(facts: Facts) -> tuple[Reason, ...]:
    """Why no pod of an admitted campaign runs; empty where one does."""
    live = [pod for index in facts.live for pod in facts.pods.get(index, ()) if pod.live and _is_own(facts, pod)]
    if any(pod.attempt.state == "running" for pod in live):
        return ()
    if not live:
        return (Reason("pods-missing"),)
    reasons = dict.fromkeys(_hashable(pod.waiting) for pod in live if pod.waiting)
    found = [Reason(code, {"pods": len(live), **dict(items)}, owner) for code, items, owner in reasons]
    warmup = None
    if facts.job is not None and any(row.code == "pods-models" for row in found):
        warmup = pipelines.pipeline(facts.job.pipeline, facts.job.image, facts.pipeline).warmup
    return tuple([*found, warmup] if warmup else found)


_Hashable = tuple[str, tuple[tuple[str, str | int], ...], t.Any]


def _hashable(reason: Reason) -> _Hashable:
    return reason.code, tuple(sorted(reason.facts.items())), reason.owner


def _problems(facts: Facts) -> t.Iterator[Reason]:
    if facts.volumes is None:
        yield Reason("volumes-missing", {"config_map": names.campaign_config_map(facts.name)}, "platform")
    elif len(facts.volumes) != facts.size:
        yield Reason("volumes-differ", {"listed": len(facts.volumes), "asked": facts.size}, "platform")
    yield from pipelines.problems(facts.pipeline_id, facts.pipeline)
    if odd := facts.pods.get(NO_INDEX):
        yield Reason("pod-index-unreadable", {"pod": odd[0].attempt.pod}, "platform")


def _recorded(facts: Facts, version: str) -> Campaign:
    record = facts.record
    assert record is not None
    done, failed = record.done.count, record.failed.count
    # Without an end its Job was deleted while it ran or waited.
    state = _ended(record.ended, done) if record.ended else "unknown"
    if state == "succeeded" and record.pages is not None and record.pages.failed:
        state = "partial pages"
    known = pipelines.pipeline(record.pipeline, record.image, facts.pipeline)
    return Campaign(
        namespace=record.namespace,
        name=record.name,
        state=state,
        version=version,
        # Of no use to a campaign that is over, and a warm-up that was removed is no fault.
        pipeline=dataclasses.replace(known, warmup=None),
        counts=Counts(max(0, record.volumes - done - failed), 0, done, failed),
        created=record.created,
        started=record.started,
        finished=record.finished,
        window=record.window,
        priority=record.priority,
        removed=True,
        campaign=record.campaign,
        part=record.part,
        pages=record.pages,
        problems=(*record.problems, *_problems(facts)),
    )
