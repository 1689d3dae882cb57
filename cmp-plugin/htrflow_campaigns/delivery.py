"""The two ways in which objects reach the cluster, and everything in which they differ.

``apply`` is the command of a platform team without Argo CD; ``argocd`` is the config management plugin.
"""

from __future__ import annotations

import abc
import json
import typing as t

from htrflow_campaigns import limits
from htrflow_campaigns.load import Loaded
from htrflow_campaigns.model import Campaign, Converter, Pipeline
from htrflow_campaigns.objects import campaign as campaign_objects
from htrflow_campaigns.objects import pipeline as pipeline_objects
from htrflow_campaigns.objects.pod import Object

_HOOK = "argocd.argoproj.io/hook"
_SYNC_OPTIONS = "argocd.argoproj.io/sync-options"
_IGNORE_UPDATES = "argocd.argoproj.io/ignore-resource-updates"


class Delivered(t.NamedTuple):
    """What one of the user's files becomes: ``source`` is its path, ``name`` the rendered file's without ending."""

    source: str
    name: str
    objects: t.Iterator[Object]


class Delivery(abc.ABC):
    """Turns campaigns and pipelines into the objects of one delivery."""

    def everything(self, loaded: Loaded) -> t.Iterator[Delivered]:
        """The objects of every good file, pipelines first.

        Whatever is wrong with a campaign is among ``loaded.problems`` at the end, and its objects are left out.
        """
        assert loaded.converter is not None
        for id_, pipeline in loaded.pipelines.items():
            yield Delivered(pipeline.path, f"pipelines/{id_}", self.pipeline(pipeline, loaded.converter))
        for campaign, _ in loaded.campaigns():
            if own := loaded.pipelines.get(campaign.pipeline):
                objects = self.campaign(campaign, own, loaded.converter)
                yield Delivered(campaign.path, f"campaigns/{campaign.name}", objects)

    def campaign(self, campaign: Campaign, pipeline: Pipeline, converter: Converter) -> t.Iterator[Object]:
        """The ConfigMap and the Job of each part of a campaign."""
        for part in campaign_objects.cut(campaign):
            yield self.config_map(campaign_objects.config_map(campaign, part, converter))
            job = campaign_objects.job(campaign, part, pipeline, converter)
            yield self.campaign_job(job, campaign, pipeline, converter)

    def pipeline(self, pipeline: Pipeline, converter: Converter) -> t.Iterator[Object]:
        """The ConfigMap and the warm-up Job of a pipeline."""
        yield self.config_map(pipeline_objects.config_map(pipeline, converter))
        yield self.warmup_job(pipeline_objects.warmup_job(pipeline, converter))

    @abc.abstractmethod
    def config_map(self, config_map: Object) -> Object: ...

    @abc.abstractmethod
    def campaign_job(self, job: Object, campaign: Campaign, pipeline: Pipeline, converter: Converter) -> Object: ...

    @abc.abstractmethod
    def warmup_job(self, job: Object) -> Object: ...


class Apply(Delivery):
    """The objects of ``render`` and ``apply``. Argo CD, should it see them, leaves them alone.

    A pause is not in them: ``apply`` sets the Workload inactive, which keeps the campaign's place in the queue.
    """

    def config_map(self, config_map: Object) -> Object:
        return _annotate(config_map, {_HOOK: "Skip"})

    def campaign_job(self, job: Object, campaign: Campaign, pipeline: Pipeline, converter: Converter) -> Object:
        seconds = pipeline.ttl_seconds_after_finished or converter.ttl_seconds_after_finished
        spec = {**job["spec"]}
        template = spec.pop("template")
        spec |= {"ttlSecondsAfterFinished": seconds, "template": template}
        return _annotate({**job, "spec": spec}, {_HOOK: "Skip"})

    def warmup_job(self, job: Object) -> Object:
        return _annotate(job, {_HOOK: "Skip"})


class ArgoCD(Delivery):
    """The objects of ``generate``. Argo CD creates, keeps and prunes them.

    No Job has a TTL, since the next sync would create it again and run every volume again; no object is a hook or in a
    wave, since Argo CD would wait for queued campaigns for ever.
    """

    def config_map(self, config_map: Object) -> Object:
        config_map = {**config_map, "immutable": True}
        # Client-side apply keeps a second copy in an annotation, which has a smaller limit than the object.
        if _is_large(config_map):
            return _annotate(config_map, {_SYNC_OPTIONS: "ServerSideApply=true"})
        return config_map

    def campaign_job(self, job: Object, campaign: Campaign, pipeline: Pipeline, converter: Converter) -> Object:
        # Without this, every pod of the Job would make Argo CD compare the whole application again.
        quiet = {_IGNORE_UPDATES: "true"}
        template = _annotate(job["spec"]["template"], quiet)
        spec = {**job["spec"], "template": template}
        if campaign.suspend:
            # Kueue owns spec.suspend; with no pods to run it takes them away and gives the quota back.
            spec["parallelism"] = 0
        return _annotate({**job, "spec": spec}, {**quiet, **({_HOOK: "Skip"} if campaign.finished else {})})

    def warmup_job(self, job: Object) -> Object:
        # A Job's template is fixed. Nothing is lost when a warm-up runs again: it finds its models in the cache.
        return _annotate(job, {_SYNC_OPTIONS: "Force=true,Replace=true"})


def _is_large(config_map: Object) -> bool:
    """Whether client-side apply's copy of ``config_map`` would be too large: JSON as Go writes it."""
    # Go takes at most six bytes for a character, which is what it writes for "<".
    if 6 * sum(map(len, config_map["data"].values())) < limits.CLIENT_SIDE_APPLY_BYTES // 2:
        return False
    text = json.dumps(config_map, ensure_ascii=False, separators=(",", ":"))
    return len(text.encode()) + 5 * sum(map(text.count, "<>&")) > limits.CLIENT_SIDE_APPLY_BYTES


def _annotate(thing: Object, annotations: Object) -> Object:
    metadata = thing["metadata"]
    return {**thing, "metadata": {**metadata, "annotations": {**annotations, **metadata.get("annotations", {})}}}
