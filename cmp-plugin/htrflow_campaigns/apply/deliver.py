"""Carries out what was decided, in order: pipelines, campaigns, pauses, prune.

A refusal is the problem of one object and of what depends on it; the rest goes on. What this loses, because it is
killed or the cluster is gone, the next run finds undone.
"""

from __future__ import annotations

import time
import typing as t

from htrflow_campaigns import names
from htrflow_campaigns.apply import decide, live, records
from htrflow_campaigns.apply.cluster import CONFIG_MAP, JOB, Cluster, Kind, RefusedError
from htrflow_campaigns.apply.decide import Verdict
from htrflow_campaigns.apply.lease import Lease
from htrflow_campaigns.apply.live import Live
from htrflow_campaigns.apply.pauses import Pauses
from htrflow_campaigns.apply.report import Report
from htrflow_campaigns.apply.wanted import Part, Pipeline, Wanted
from htrflow_campaigns.objects.pod import Object

#: Seconds for a deleted Job to be gone.
_DELETED = 60.0
_INVALID = 422


class Delivery:
    """One run. ``at`` names the object that is being worked on."""

    def __init__(self, cluster: Cluster, lease: Lease, report: Report, wanted: Wanted, found: Live) -> None:
        self._cluster, self._lease, self._report = cluster, lease, report
        self._wanted, self._live = wanted, found
        self._jobs = {name: job for name, job in found.jobs.items() if live.is_ours(job)}
        #: Pipelines of which something was refused.
        self._broken: set[str] = set()
        self.at = "the start"

    def carry_out(self, *, pause_wait: float, prune: bool) -> None:
        """All of it. Raises :class:`TakenError` and :class:`UnreachableError` where it stops."""
        self._record_endings()
        pipelines = decide.pipelines(self._wanted, self._live)
        verdicts = self._verdicts(pipelines)
        self._lease.renew()
        for pipeline in self._wanted.pipelines:
            self._pipeline(pipeline, pipelines[pipeline.id])
        self._lease.renew()
        for part in self._wanted.parts:
            self._part(part, verdicts[part.name])
        self._lease.renew()
        pauses = Pauses(self._cluster, self._report, pause_wait, self._lease.keep)
        self.at = "the pauses"
        pauses.carry_out([(part, self._jobs[part.name]) for part in self._wanted.parts if part.name in self._jobs])
        if prune:
            self._lease.renew()
            self._prune()

    def _turn_to(self, kind: Kind, name: str) -> str:
        self.at = f"{kind.name}/{name}"
        self._lease.keep()
        return self.at

    def _record_endings(self) -> None:
        """Writes what each Job says into its record, before a TTL can take the Job."""
        for job in self._live.campaign_jobs():
            self._record(job, self._live.config_maps.get(records.name(job["metadata"]["name"])))

    def _record(self, job: Object, known: Object | None) -> None:
        thing = self._turn_to(CONFIG_MAP, records.name(job["metadata"]["name"]))
        try:
            changed = records.write(self._cluster, job, known)
        except records.UnknownFormError as error:
            self._report.left(thing, f"{thing}: {error}, so nothing is written there — delete it if nobody needs it")
        except RefusedError as error:
            self._report.left(thing, f"{thing}: the record cannot be written: {error}")
        else:
            if changed and live.ended(job):
                self._report.done("recorded", f"Job/{job['metadata']['name']}", f"it ended as {live.ended(job)}")

    def _verdicts(self, pipelines: t.Mapping[str, Verdict]) -> dict[str, Verdict]:
        """The verdict on each part of a campaign, with the API server's on its Job."""
        verdicts, said = decide.parts(self._wanted, self._live)
        for sentence in said:
            self._report.say(sentence)
        for part in self._wanted.parts:
            if verdicts[part.name].action == "send" and pipelines[part.pipeline].action == "send":
                verdicts[part.name] = self._dry_run(part)
        sent = {one for one, verdict in pipelines.items() if verdict.action == "send"}
        return verdicts | decide.held(self._wanted, self._live, verdicts, sent)

    def _dry_run(self, part: Part) -> Verdict:
        thing = self._turn_to(JOB, part.name)
        try:
            self._cluster.apply(JOB, self._job(part), dry_run=True)
        except RefusedError as error:
            instead = "put right what the API server names, and run apply again"
            known = self._live.jobs.get(part.name)
            if known and error.status == _INVALID:
                if ended := live.ended(known):
                    sentence = "and is left alone; what changed since then cannot change it"
                    return Verdict("over", f"it ended as {ended}, {sentence}")
                instead = "a campaign's Job is never replaced: let it end as it is, or undo the change"
            return Verdict("refuse", f"{thing}: {error} — {instead}")
        return decide.SEND

    def _job(self, part: Part) -> Object:
        return decide.adopted(part.job, self._live.jobs.get(part.name))

    def _pipeline(self, pipeline: Pipeline, verdict: Verdict) -> None:
        if verdict.action != "send":
            self._broken.add(pipeline.id)
            self._refuse(verdict, pipeline.config_map, pipeline.warmup)
        elif self._send(CONFIG_MAP, pipeline.config_map, self._live.config_maps) is None:
            self._broken.add(pipeline.id)
            self._leave_with(_thing(pipeline.config_map), pipeline.warmup)
        elif not self._warmup(pipeline):
            self._broken.add(pipeline.id)

    def _refuse(self, verdict: Verdict, *items: Object) -> None:
        """Says why an object is refused, and of the others in ``items`` that they are with it."""
        thing = verdict.sentence.partition(":")[0]
        self._report.left(thing, verdict.sentence)
        self._leave_with(thing, *(item for item in items if _thing(item) != thing))

    def _leave_with(self, needed: str, *items: Object) -> None:
        for item in items:
            self._report.left(_thing(item), f"{_thing(item)}: it needs {needed}, which was refused")

    def _warmup(self, pipeline: Pipeline) -> bool:
        name = names.warmup_job(pipeline.id)
        thing = self._turn_to(JOB, name)
        known = self._live.jobs.get(name)
        refusal: RefusedError | None = None
        if known:
            try:
                self._cluster.apply(JOB, pipeline.warmup, dry_run=True)
            except RefusedError as error:
                refusal = error
        if refusal and refusal.status != _INVALID:
            self._report.left(thing, f"{thing}: {refusal}")
            return False
        deed = decide.warmup(known, refusal is None)
        if deed == "refuse":
            self._report.left(
                thing,
                f"{thing}: its template changed, and it is running, so it is not replaced — wait until it has ended, or"
                " delete it, and run apply again",
            )
            return False
        if deed == "replace" and known is not None:
            return self._replace(pipeline.warmup, known)
        return self._send(JOB, pipeline.warmup, self._live.jobs) is not None

    def _replace(self, item: Object, known: Object) -> bool:
        name = item["metadata"]["name"]
        thing = f"Job/{name}"
        try:
            self._cluster.delete(JOB, name, uid=live.uid(known))
            until = time.monotonic() + _DELETED
            while (found := self._cluster.get(JOB, name)) and live.uid(found) == live.uid(known):
                if time.monotonic() > until:
                    self._report.left(thing, f"{thing}: it is being deleted — run apply again when it is gone")
                    return False
                time.sleep(0.1)
                self._lease.keep()
            self._cluster.apply(JOB, item)
        except RefusedError as error:
            self._report.left(thing, f"{thing}: {error}")
            return False
        self._report.done("replaced", thing)
        return True

    def _part(self, part: Part, verdict: Verdict) -> None:
        thing = f"Job/{part.name}"
        if verdict.action == "over":
            self._report.done("over", thing, verdict.sentence)
            return
        if part.pipeline in self._broken:
            self._leave_with(f"the pipeline {part.pipeline}", part.job)
            return
        if verdict.action != "send":
            self._refuse(verdict, part.job)
            return
        name = part.config_map["metadata"]["name"]
        live_map, live_job = self._live.config_maps.get(name), self._live.jobs.get(part.name)
        before = live.uid(live_job) if live_job else ""
        if not before and live_map:
            before = live.annotation(live_map, names.JOB_UID_ANNOTATION)
        if self._send(CONFIG_MAP, decide.with_job(part.config_map, before), self._live.config_maps) is None:
            self._leave_with(f"ConfigMap/{name}", part.job)
            return
        job = self._send(JOB, self._job(part), self._live.jobs)
        if job is None:
            return
        self._jobs[part.name] = job
        if live.uid(job) != before:
            self._turn_to(CONFIG_MAP, name)
            try:
                self._cluster.apply(CONFIG_MAP, decide.with_job(part.config_map, live.uid(job)))
            except RefusedError as error:
                self._report.left(f"ConfigMap/{name}", f"ConfigMap/{name}: {error}")
        if live_job is None:
            self._record(job, self._live.config_maps.get(records.name(part.name)))

    def _send(self, kind: Kind, item: Object, known: t.Mapping[str, Object]) -> Object | None:
        """Applies an object, and says so; None when that is refused."""
        name = item["metadata"]["name"]
        thing = self._turn_to(kind, name)
        try:
            after = self._cluster.apply(kind, item)
        except RefusedError as error:
            self._report.left(thing, f"{thing}: {error}")
            return None
        before = known.get(name)
        same = before is not None and _is_same(item, before, after)
        self._report.done("created" if before is None else "unchanged" if same else "updated", thing)
        return after

    def _prune(self) -> None:
        wanted = self._wanted.names
        for kind in (JOB, CONFIG_MAP):
            self.at = f"the {kind.name}s to prune"
            try:
                found = live.managed(self._cluster, kind)
            except RefusedError as error:
                self._report.left(f"the {kind.name}s to prune", f"the {kind.name}s to prune cannot be read: {error}")
                continue
            for item in found:
                name = item["metadata"]["name"]
                if (kind.name, name) in wanted or live.is_going(item):
                    continue
                thing = self._turn_to(kind, name)
                try:
                    self._cluster.delete(kind, name, uid=live.uid(item))
                except RefusedError as error:
                    self._report.left(thing, f"{thing}: it cannot be pruned: {error}")
                else:
                    self._report.done("pruned", thing)


def _thing(item: Object) -> str:
    return f"{item['kind']}/{item['metadata']['name']}"


def _is_same(sent: Object, before: Object, after: Object) -> bool:
    """Whether what was sent changed nothing. Kueue may have changed other fields meanwhile."""
    labels = [item["metadata"].get("labels") for item in (before, after)]
    parts: Object = {key: sent[key] for key in ("spec", "data") if key in sent}
    parts["metadata"] = {"annotations": sent["metadata"].get("annotations", {})}
    return labels[0] == labels[1] and _agree(parts, before, after)


def _agree(sent: t.Any, before: t.Any, after: t.Any) -> bool:
    if isinstance(sent, dict) and isinstance(before, dict) and isinstance(after, dict):
        return all(_agree(value, before.get(key), after.get(key)) for key, value in sent.items())
    return bool(before == after)
