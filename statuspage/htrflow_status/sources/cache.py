"""What is known of everything, and who waits for news of it.

An event replaces the entry of one Job in a persistent map (rpds, which ``jsonschema`` brings along), so it costs the
same whether there are ten campaigns or a thousand, and a snapshot is a reference. Campaigns are made of their facts
when a page asks for them, and kept until something of them changes.
"""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import functools
import itertools
import secrets
import threading
import typing as t

import rpds

from htrflow_status.sources import objects
from htrflow_status.sources.jobs import Job
from htrflow_status.sources.objects import Around, Facts
from htrflow_status.sources.pipelines import Known, Steps, Warmup
from htrflow_status.sources.pods import NO_INDEX, Pod
from htrflow_status.sources.records import Record
from htrflow_status.sources.snapshot import CacheSnapshot, Entry, Key
from htrflow_status.sources.volume_list import VolumeList
from htrflow_status.sources.workloads import Workload

_Change = t.Callable[[Facts], Facts]
_KnownChange = t.Callable[[Known], Known]


class Cache:
    """Facts by Job. Any thread may change it and read it; what changes nothing makes no new version."""

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._entries: rpds.HashTrieMap[Key, Entry] = rpds.HashTrieMap()
        self._pipelines: dict[Key, Known] = {}
        self._campaigns_of: dict[Key, set[Key]] = {}
        self._classes: frozenset[str] | None = None
        # Versions of another process, before a restart, are other ones.
        self._mark, self._numbers = secrets.token_hex(4), itertools.count(1)
        # Readers and waiters are on the loop that serves pages, which must not stand still while a list is taken in.
        self._snapshot = CacheSnapshot(self._entries, f"{self._mark}.0")
        self._waiting = threading.Lock()
        self._waiters: set[_Waiter] = set()
        self._held, self._news = 0, False

    def snapshot(self) -> CacheSnapshot:
        return self._snapshot

    def facts(self) -> list[Facts]:
        """The facts of every Job that there is, or was."""
        with self._lock:
            return [entry.facts for entry in self._entries.values()]

    async def changed(self, version: str, seconds: float) -> str:
        """Waits until the version is another than this one, but no longer; gives the version then."""
        waiter = _Waiter(asyncio.get_running_loop(), asyncio.Event())
        with self._waiting:
            if self._snapshot.version != version:
                return self._snapshot.version
            self._waiters.add(waiter)
        try:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(waiter.event.wait(), seconds)
        finally:
            with self._waiting:
                self._waiters.discard(waiter)
        return self._snapshot.version

    @contextlib.contextmanager
    def at_once(self) -> t.Iterator[None]:
        """Makes one new version of all changes inside."""
        with self._lock:
            self._held += 1
            try:
                yield
            finally:
                self._held -= 1
                if self._news and not self._held:
                    self._news = False
                    self._announce()

    def touch(self) -> None:
        """Makes a new version, though no campaign changed: what cannot be read is another thing now."""
        with self._lock:
            self._changed()

    def set_job(self, namespace: str, name: str, job: Job | None) -> None:
        def change(facts: Facts) -> Facts:
            same = job and facts.job and job.uid == facts.job.uid
            around = (
                facts.around if same else Around(self._classes, slots=facts.around.slots, paused=facts.around.paused)
            )
            return dataclasses.replace(facts, job=job, around=around)

        self._change((namespace, name), change)

    def set_record(self, namespace: str, name: str, record: Record | None) -> None:
        self._change((namespace, name), lambda facts: dataclasses.replace(facts, record=record))

    def set_volumes(self, namespace: str, name: str, volumes: VolumeList | None) -> None:
        self._change((namespace, name), lambda facts: dataclasses.replace(facts, volumes=volumes))

    def set_around(self, namespace: str, name: str, **around: t.Any) -> None:
        """Sets fields of :class:`Around`."""

        def change(facts: Facts) -> Facts:
            return dataclasses.replace(facts, around=dataclasses.replace(facts.around, **around))

        self._change((namespace, name), change)

    def put_workload(self, workload: Workload) -> None:
        def change(facts: Facts) -> Facts:
            others = (row for row in facts.workloads if row.uid != workload.uid)
            return dataclasses.replace(facts, workloads=(*others, workload))

        self._change((workload.namespace, workload.job), change)

    def drop_workload(self, workload: Workload) -> None:
        def change(facts: Facts) -> Facts:
            left = tuple(row for row in facts.workloads if row.uid != workload.uid)
            return dataclasses.replace(facts, workloads=left)

        self._change((workload.namespace, workload.job), change)

    def put_pod(self, pod: Pod) -> None:
        self._change((pod.namespace, pod.job), lambda facts: _with_pods(facts, pod.index, pod.uid, pod))

    def drop_pod(self, pod: Pod) -> None:
        self._change((pod.namespace, pod.job), lambda facts: _with_pods(facts, pod.index, pod.uid, None))

    def set_steps(self, namespace: str, pipeline: str, steps: Steps | None) -> None:
        self._change_pipeline((namespace, pipeline), lambda known: dataclasses.replace(known, steps=steps))

    def set_warmup(self, namespace: str, pipeline: str, warmup: Warmup | None) -> None:
        self._change_pipeline((namespace, pipeline), lambda known: dataclasses.replace(known, warmup=warmup))

    def put_warmup_pod(self, pipeline: str, pod: Pod) -> None:
        def change(known: Known) -> Known:
            return dataclasses.replace(known, pods=_replaced(known.pods, pod.uid, pod))

        self._change_pipeline((pod.namespace, pipeline), change)

    def drop_warmup_pod(self, pipeline: str, pod: Pod) -> None:
        def change(known: Known) -> Known:
            return dataclasses.replace(known, pods=_replaced(known.pods, pod.uid, None))

        self._change_pipeline((pod.namespace, pipeline), change)

    def set_classes(self, classes: frozenset[str] | None) -> None:
        """Sets the priority classes of the cluster, None where nobody may know."""
        with self.at_once():
            self._classes = classes
            for namespace, name in list(self._entries):
                self.set_around(namespace, name, classes=classes)

    def retain(self, namespace: str, kind: str, seen: t.Container[str]) -> None:
        """Forgets what a list of a kind does not have any more: ``seen`` are uids, or of ConfigMaps the Jobs."""
        with self.at_once():
            for facts in [facts for facts in self.facts() if facts.namespace == namespace]:
                self._change((facts.namespace, facts.name), _only(kind, seen))

    def retain_pipelines(
        self, namespace: str, kind: t.Literal["steps", "warmup", "pods"], seen: t.Container[str]
    ) -> None:
        """The same for pipelines: ``seen`` are their ids, or uids of pods."""
        with self.at_once():
            for key in [key for key in self._pipelines if key[0] == namespace]:
                if kind == "pods":
                    kept = tuple(pod for pod in self._pipelines[key].pods if pod.uid in seen)
                    self._change_pipeline(key, functools.partial(dataclasses.replace, pods=kept))
                elif key[1] not in seen:
                    self._change_pipeline(key, functools.partial(dataclasses.replace, **{kind: None}))

    def _change(self, key: Key, change: _Change) -> None:
        with self._lock:
            entry = self._entries.get(key)
            before = entry.facts if entry else Facts(*key, around=Around(self._classes))
            after = change(before)
            # Pods are compared where they are changed, since there may be many.
            if before.pods is after.pods and before == after:
                return
            if before.pipeline_id != after.pipeline_id:
                after = self._moved(key, before.pipeline_id, after)
            if _is_empty(after):
                self._entries = self._entries.discard(key)
            else:
                self._entries = self._entries.insert(key, Entry(after, f"{self._mark}.{next(self._numbers)}"))
            self._changed()

    def _moved(self, key: Key, before: str, facts: Facts) -> Facts:
        """The facts of a Job that is of another pipeline than before, with those of that one."""
        self._campaigns_of.get((key[0], before), set()).discard(key)
        if not facts.pipeline_id:
            return dataclasses.replace(facts, pipeline=Known())
        pipeline = (key[0], facts.pipeline_id)
        self._campaigns_of.setdefault(pipeline, set()).add(key)
        return dataclasses.replace(facts, pipeline=self._pipelines.get(pipeline, Known()))

    def _change_pipeline(self, pipeline: Key, change: _KnownChange) -> None:
        with self.at_once():
            before = self._pipelines.get(pipeline, Known())
            after = change(before)
            if after == before:
                return
            self._pipelines[pipeline] = after
            for key in self._campaigns_of.get(pipeline, ()):
                self._change(key, lambda facts: dataclasses.replace(facts, pipeline=after))

    def _changed(self) -> None:
        if self._held:
            self._news = True
        else:
            self._announce()

    def _announce(self) -> None:
        with self._waiting:
            self._snapshot = CacheSnapshot(self._entries, f"{self._mark}.{next(self._numbers)}")
            waiters, self._waiters = self._waiters, set()
        for waiter in waiters:
            # A loop that has ended has nobody who waits.
            with contextlib.suppress(RuntimeError):
                waiter.loop.call_soon_threadsafe(waiter.event.set)


@dataclasses.dataclass(frozen=True, eq=False)
class _Waiter:
    loop: asyncio.AbstractEventLoop
    event: asyncio.Event


def _is_empty(facts: Facts) -> bool:
    return not (facts.known or facts.workloads or facts.volumes is not None or len(facts.pods))


def _replaced(pods: tuple[Pod, ...], uid: str, pod: Pod | None) -> tuple[Pod, ...]:
    return objects.ordered([*(one for one in pods if one.uid != uid), *([pod] if pod else [])])


def _with_pods(facts: Facts, index: int, uid: str, pod: Pod | None) -> Facts:
    before = facts.pods.get(index, ())
    after = _replaced(before, uid, pod)
    if after == before:
        return facts
    pods = facts.pods.insert(index, after) if after else facts.pods.discard(index)
    live = index != NO_INDEX and any(one.live for one in after)
    indexes = facts.live.insert(index) if live else facts.live.discard(index)
    return dataclasses.replace(facts, pods=pods, live=indexes)


def _only(kind: str, seen: t.Container[str]) -> _Change:
    """Takes away what is not among the seen."""

    def change(facts: Facts) -> Facts:
        if kind == "jobs" and facts.job and facts.job.uid not in seen:
            return dataclasses.replace(
                facts, job=None, around=dataclasses.replace(facts.around, overdue=False, place=None)
            )
        if kind == "workloads":
            return dataclasses.replace(facts, workloads=tuple(row for row in facts.workloads if row.uid in seen))
        if kind == "volumes" and facts.name not in seen:
            return dataclasses.replace(facts, volumes=None)
        if kind == "records" and facts.name not in seen:
            return dataclasses.replace(facts, record=None)
        if kind == "pods":
            for index, pods in facts.pods.items():
                for pod in pods:
                    if pod.uid not in seen:
                        facts = _with_pods(facts, index, pod.uid, None)
        return facts

    return change
