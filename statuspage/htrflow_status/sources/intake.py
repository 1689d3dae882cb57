"""Takes objects of the cluster into the cache: which kind goes where, one at a time or as a whole list."""

from __future__ import annotations

import functools
import typing as t

from htrflow_campaigns import names
from htrflow_status.sources import fields, jobs, pipelines, pods, records, workloads
from htrflow_status.sources.cache import Cache
from htrflow_status.sources.fields import Object
from htrflow_status.sources.volume_list import VolumeList

Kind = t.Literal["jobs", "workloads", "pods", "configmaps", "workloadpriorityclasses"]

_WARMUP = names.warmup_job("")
_CAMPAIGN = names.campaign_config_map("")
_LIST = "volumes.txt"
_Change = t.Callable[[], None]


class Intake:
    """Reads objects into a cache. ``namespace`` is that of every object, but of those of the whole cluster."""

    def __init__(self, cache: Cache, namespace: str) -> None:
        self._cache, self._namespace = cache, namespace
        self._classes: set[str] = set()

    def put(self, kind: Kind, thing: Object) -> None:
        """Takes an object that is new or has changed."""
        self._read(kind, thing)()

    def drop(self, kind: Kind, thing: Object) -> None:
        """Forgets an object that was deleted."""
        name = fields.text(thing, "metadata", "name")
        match kind:
            case "jobs":
                if name.startswith(_WARMUP):
                    self._cache.set_warmup(self._namespace, name.removeprefix(_WARMUP), None)
                else:
                    self._cache.set_job(self._namespace, name, None)
            case "workloads":
                self._cache.drop_workload(workloads.read(thing))
            case "pods":
                if pipeline := _warmup_of_pod(thing):
                    self._cache.drop_warmup_pod(pipeline, pods.read(thing))
                elif not pods.is_warmup(thing):
                    self._cache.drop_pod(pods.read(thing))
            case "configmaps":
                self._drop_config_map(name)
            case "workloadpriorityclasses":
                self._classes.discard(name)
                self._cache.set_classes(frozenset(self._classes))

    def replace(self, kind: Kind, things: t.Iterable[Object]) -> None:
        """Takes all objects of a kind that there are; others are gone."""
        uids, own_jobs, maps, changes = set(), set(), set(), []
        # They may come slowly, and nobody waits for the cache meanwhile.
        for thing in things:
            name = fields.text(thing, "metadata", "name")
            uids.add(fields.text(thing, "metadata", "uid") or name)
            own_jobs.add(name.removeprefix(_WARMUP))
            maps.add(name)
            changes.append(self._read(kind, thing))
        with self._cache.at_once():
            if kind == "workloadpriorityclasses":
                self._classes = maps
                self._cache.set_classes(frozenset(maps))
                return
            for change in changes:
                change()
            if kind == "configmaps":
                listed = {name.removeprefix(_CAMPAIGN) for name in maps if not records.job_of_config_map(name)}
                recorded = {job for name in maps if (job := records.job_of_config_map(name))}
                steps = {id_ for name in maps if (id_ := pipelines.id_of_config_map(name))}
                self._cache.retain(self._namespace, "volumes", listed)
                self._cache.retain(self._namespace, "records", recorded)
                self._cache.retain_pipelines(self._namespace, "steps", steps)
                return
            self._cache.retain(self._namespace, kind, uids)
            if kind == "jobs":
                self._cache.retain_pipelines(self._namespace, "warmup", own_jobs)
            if kind == "pods":
                self._cache.retain_pipelines(self._namespace, "pods", uids)

    def _read(self, kind: Kind, thing: Object) -> _Change:
        """Reads an object, and gives what puts it into the cache."""
        match kind:
            case "jobs":
                return self._read_job(thing)
            case "workloads":
                return functools.partial(self._cache.put_workload, workloads.read(thing))
            case "pods":
                if pipeline := _warmup_of_pod(thing):
                    return functools.partial(self._cache.put_warmup_pod, pipeline, pods.read(thing))
                return _nothing if pods.is_warmup(thing) else functools.partial(self._cache.put_pod, pods.read(thing))
            case "configmaps":
                return self._read_config_map(thing)
            case "workloadpriorityclasses":
                return functools.partial(self._put_class, fields.text(thing, "metadata", "name"))

    def _put_class(self, name: str) -> None:
        self._classes.add(name)
        self._cache.set_classes(frozenset(self._classes))

    def _read_job(self, thing: Object) -> _Change:
        name, namespace = fields.text(thing, "metadata", "name"), self._namespace
        if name.startswith(_WARMUP):
            warmup = pipelines.read_warmup(thing)
            return functools.partial(self._cache.set_warmup, namespace, name.removeprefix(_WARMUP), warmup)
        if jobs.is_campaign(thing):
            return functools.partial(self._cache.set_job, namespace, name, jobs.read(thing))
        return _nothing

    def _read_config_map(self, thing: Object) -> _Change:
        name, namespace = fields.text(thing, "metadata", "name"), self._namespace
        if job := records.job_of_config_map(name):
            return functools.partial(self._cache.set_record, namespace, job, records.read(thing))
        if name.startswith(_CAMPAIGN):
            volumes = VolumeList(fields.text(thing, "data", _LIST))
            return functools.partial(self._cache.set_volumes, namespace, name.removeprefix(_CAMPAIGN), volumes)
        if pipeline := pipelines.id_of_config_map(name):
            return functools.partial(self._cache.set_steps, namespace, pipeline, pipelines.read_config_map(thing))
        return _nothing

    def _drop_config_map(self, name: str) -> None:
        if job := records.job_of_config_map(name):
            self._cache.set_record(self._namespace, job, None)
        elif name.startswith(_CAMPAIGN):
            self._cache.set_volumes(self._namespace, name.removeprefix(_CAMPAIGN), None)
        elif pipeline := pipelines.id_of_config_map(name):
            self._cache.set_steps(self._namespace, pipeline, None)


def _warmup_of_pod(thing: Object) -> str:
    """The pipeline whose warm-up a pod is, or nothing."""
    job = fields.text(thing, "metadata", "labels", pods.JOB_LABEL)
    return job.removeprefix(_WARMUP) if job.startswith(_WARMUP) else ""


def _nothing() -> None:
    """Of an object that is none of ours."""
