"""Runs what a campaigns repo asks for: Jobs that start when there is room, pods as processes, state in a folder."""

from __future__ import annotations

import copy
import dataclasses
import logging
import secrets
import time
import typing as t
import uuid

from htrflow_campaigns import names
from htrflow_campaigns.local import quota, repo
from htrflow_campaigns.local.data import Data
from htrflow_campaigns.local.job import FIRST_PAUSE, Job, Object, timestamp
from htrflow_campaigns.local.pod import Place, Pod
from htrflow_campaigns.local.repo import Wanted

_LOG = logging.getLogger(__name__)
#: Of a Job's manifest, what tells that it is another Job: neither its window nor its labels.
_FIXED = ("completions", "completionMode", "template")


@dataclasses.dataclass(frozen=True, slots=True)
class Settings:
    """``slots``: how many pods of campaigns run at once. ``secrets`` by name, ``extra`` variables for every pod."""

    slots: int
    secrets: t.Mapping[str, t.Mapping[str, str]]
    extra: t.Mapping[str, str]
    pause: float = FIRST_PAUSE


class Runner:
    """What runs on this machine. :meth:`step` does what is to be done now, and never waits."""

    def __init__(self, data: Data, settings: Settings) -> None:
        self._data, self._settings = data, settings
        self._paused: frozenset[str] = frozenset()
        self._classes: tuple[str, ...] = ()
        self._pods: dict[tuple[str, int], Pod] = {}
        if orphans := data.end_orphans():
            _LOG.warning("ended %s pods of a runner that was killed; their volumes go on from where they were", orphans)
        self.jobs = {job.name: Job(job.object, job.failures, settings.pause) for job in data.jobs()}

    @property
    def idle(self) -> bool:
        """Whether nothing runs, and nothing will unless the repo changes."""
        return not self._pods and not self._can_go_on()

    @property
    def paused(self) -> frozenset[str]:
        """The Jobs that the repo pauses."""
        return self._paused

    def never(self) -> list[str]:
        """The Jobs that ask for more slots than there are, in the order of their names."""
        waiting = (job for job in self.jobs.values() if self._queued(job) and not job.finished)
        return sorted(job.name for job in waiting if quota.need(job) > self._settings.slots)

    def want(self, wanted: Wanted) -> list[str]:
        """Takes up what the repo asks for, and says in sentences what of it is refused."""
        refused = []
        for name, manifest in wanted.jobs.items():
            sentence = self._take_up(name, manifest, wanted)
            if sentence:
                refused.append(sentence)
        for name in [name for name in self.jobs if name not in wanted.jobs]:
            self._remove(name)
        self._paused, self._classes = wanted.paused, wanted.priority_classes
        for name, job in self.jobs.items():
            was, job.paused = job.paused, name in self._paused
            if job.paused and not job.suspended and not job.finished:
                self._suspend(job)
            elif job.paused != was:
                self._data.keep_job(job)
        self._fit()
        return refused

    def step(self) -> bool:
        """Goes on by what can be done now. True when anything happened."""
        now, changed = time.time(), False
        for (name, index), pod in list(self._pods.items()):
            changed |= self._follow(name, index, pod, now)
        line = quota.order((job for job in self.jobs.values() if self._queued(job)), self._classes)
        for job in quota.admitted(line, self._settings.slots, self._paused):
            _LOG.info("%s starts", job.name)
            job.resume(now)
            self._data.keep_job(job)
            changed = True
        for job in self.jobs.values():
            for index in job.wanted(now):
                self._start(job, index, now)
                changed = True
        return changed

    def stop(self, at_once: t.Callable[[], bool] = lambda: False) -> None:
        """Ends every pod, within its grace period or ``at_once``. Nothing of it counts as a failure."""
        for pod in self._pods.values():
            pod.stop()
        while self._pods:
            if at_once():
                for pod in self._pods.values():
                    pod.kill()
            for (name, index), pod in list(self._pods.items()):
                self._follow(name, index, pod, time.time())
            time.sleep(0.05)

    def _can_go_on(self) -> bool:
        for job in self.jobs.values():
            if job.finished:
                continue
            if not job.suspended:
                return True
            if job.name not in self._paused and quota.need(job) <= self._settings.slots:
                return True
        return False

    def _fit(self) -> None:
        """Puts Jobs back into the line, the last first, as long as more is running than there is room for."""
        line = quota.order((job for job in self.jobs.values() if self._queued(job)), self._classes)
        running = [job for job in line if not job.suspended and not job.finished]
        while sum(map(quota.need, running)) > self._settings.slots:
            self._suspend(running.pop())

    @staticmethod
    def _queued(job: Job) -> bool:
        """Whether a Job waits for its turn, as those with a queue's label do."""
        return names.QUEUE_LABEL in job.object["metadata"]["labels"]

    def _take_up(self, name: str, manifest: Object, wanted: Wanted) -> str | None:
        volumes = manifest["spec"]["template"]["spec"]["volumes"]
        config_maps = {
            volume["configMap"]["name"]: wanted.config_maps[volume["configMap"]["name"]]
            for volume in volumes
            if "configMap" in volume
        }
        job = self.jobs.get(name)
        if job is not None and self._may_be_replaced(job, manifest, config_maps):
            self._remove(name)
            job = None
        if job is None:
            self._create(name, manifest, config_maps)
            return None
        if not self._data.config_maps(name):
            _LOG.warning("the files of %s cannot be read, and are those of the repo again", name)
            self._data.keep_config_maps(name, manifest["metadata"]["namespace"], config_maps)
        if repo.is_warmup(manifest):
            return None
        if changed := self._changed(job, manifest, config_maps):
            return changed
        if job.parallelism != manifest["spec"]["parallelism"]:
            job.spec["parallelism"] = manifest["spec"]["parallelism"]
            self._data.keep_job(job)
        return None

    def _create(self, name: str, manifest: Object, config_maps: t.Mapping[str, t.Mapping[str, str]]) -> None:
        now = time.time()
        made = copy.deepcopy(manifest)
        made["metadata"] |= {"uid": str(uuid.uuid4()), "creationTimestamp": timestamp(now)}
        job = Job(made, pause=self._settings.pause)
        if self._queued(job):
            job.suspend(now)
        self._data.keep_config_maps(name, made["metadata"]["namespace"], config_maps)
        self.jobs[name] = job
        self._data.keep_job(job)

    def _may_be_replaced(self, job: Job, manifest: Object, config_maps: t.Mapping[str, t.Mapping[str, str]]) -> bool:
        """A campaign that is another one and never ran, and a warm-up that failed or whose recipe is another one."""
        differs = any(job.spec.get(field) != manifest["spec"].get(field) for field in _FIXED)
        if repo.is_warmup(manifest):
            return differs or bool(job.condition("Failed"))
        differs |= job.object["metadata"]["labels"] != manifest["metadata"]["labels"]
        differs |= self._data.config_maps(job.name) != config_maps
        return differs and job.suspended and not self._data.pods(job.name)

    def _changed(self, job: Job, manifest: Object, config_maps: t.Mapping[str, t.Mapping[str, str]]) -> str | None:
        """Why the Job is not what the repo asks for, where it cannot become it."""
        campaign, kept = manifest["metadata"]["labels"][names.CAMPAIGN_LABEL], self._data.config_maps(job.name)
        for name, files in config_maps.items():
            if kept.get(name) == files:
                continue
            if "volumes.txt" in files:
                return (
                    f"campaigns/{campaign}.yaml: its volumes changed after it was started — put them back, and write"
                    " new volumes into a new campaign file"
                )
            pipeline = manifest["metadata"]["labels"][names.PIPELINE_LABEL]
            return (
                f"pipelines/{pipeline}.yaml: its steps changed while the campaign {campaign} uses them — put them back,"
                " and write the new steps into a new pipeline file"
            )
        if any(job.spec.get(field) != manifest["spec"].get(field) for field in _FIXED):
            return (
                f"campaigns/{campaign}.yaml: what its pods are made of changed after it was started — put it back, or"
                " rename the campaign to run it again"
            )
        return None

    def _remove(self, name: str) -> None:
        job = self.jobs.pop(name)
        for index in list(job.active):
            if pod := self._pods.pop((name, index), None):
                pod.stop()
                while pod.ended is None:
                    pod.poll()
                    time.sleep(0.05)
        self._data.forget(name)
        _LOG.info("%s is removed; its results stay", name)

    def _suspend(self, job: Job) -> None:
        job.suspend(time.time())
        for index in job.active:
            if pod := self._pods.get((job.name, index)):
                pod.stop()
        self._data.keep_job(job)

    def _follow(self, name: str, index: int, pod: Pod, now: float) -> bool:
        if not pod.poll():
            return False
        if pod.ended is not None:
            del self._pods[name, index]
            job = self.jobs[name]
            before = job.finished
            job.ended(index, pod.ended, now)
            self._data.keep_job(job)
            if job.finished and not before:
                _LOG.info("%s has ended: %s", name, "Complete" if job.condition("Complete") else "Failed")
        # After the Job: if this process is killed in between, the index has ended all the same.
        self._data.keep_pod(pod.object)
        return True

    def _start(self, job: Job, index: int, now: float) -> None:
        name = f"{job.name}-{index}-{secrets.token_hex(3)}" if job.indexed else f"{job.name}-{secrets.token_hex(3)}"
        place = Place(
            self._data.pod_folder(name),
            self._data.config_maps(job.name),
            self._data.plain / "claims",
            self._settings.secrets,
            self._settings.extra,
        )
        pod = Pod(name, job.object, index, job.failures.get(index, 0), place)
        self._pods[job.name, index] = pod
        self._data.keep_pod(pod.object)
        job.started(index, now)
        self._data.keep_job(job)
        self._follow(job.name, index, pod, now)
