"""What a campaign asks of the cluster, and the models that its pipeline runs."""

from __future__ import annotations

import dataclasses
import typing as t

from htrflow_campaigns import htrflow_steps, quantities
from htrflow_campaigns.model import Campaign, Converter, Pipeline
from htrflow_campaigns.objects import campaign as campaign_objects
from htrflow_campaigns.objects import pod


class Model(t.NamedTuple):
    """A model and the commit that it is pinned to, None where it is not."""

    name: str
    revision: str | None


@dataclasses.dataclass(frozen=True, slots=True)
class Workload:
    """A campaign's pods.

    ``window`` is how many volumes run at once, after ``converter.yaml``'s window and the number of volumes bound it;
    ``asked`` is what the file says. ``gpu``, ``cpu`` and ``memory`` are what one pod requests, ``gpus`` what a whole
    window does. With several ``parts`` all three are of the largest, since each part queues by itself.
    """

    volumes: int
    parts: int
    asked: int | None
    limit: int
    window: int
    gpu: int
    gpus: int
    cpu: str
    memory: str
    size: str | None
    max_seconds: int


def of(campaign: Campaign, pipeline: Pipeline, converter: Converter) -> Workload:
    """What ``campaign`` asks for, from the Jobs that it becomes."""
    parts = campaign_objects.cut(campaign)
    jobs = [campaign_objects.job(campaign, part, pipeline, converter)["spec"] for part in parts[:1]]
    pod_spec = jobs[0]["template"]["spec"]
    requests = pod_spec["containers"][0]["resources"]["requests"]
    window = min(jobs[0]["parallelism"], max(len(part.lines) for part in parts))
    gpu = int(quantities.parse(requests.get("nvidia.com/gpu", "0")) or 0)
    size = pod.size_of(pipeline, converter)
    return Workload(
        volumes=len(campaign.volumes),
        parts=len(parts),
        asked=campaign.window,
        limit=converter.window,
        window=window,
        gpu=gpu,
        gpus=gpu * window,
        cpu=requests["cpu"],
        memory=requests["memory"],
        size=size.name if size else None,
        max_seconds=pod_spec["activeDeadlineSeconds"],
    )


def models(pipeline: Pipeline) -> list[Model]:
    """The models of a pipeline in the order of its steps, each once."""
    found: dict[Model, None] = {}
    for step in pipeline.steps:
        settings = step.get("settings") if isinstance(step, dict) else None
        if not isinstance(settings, dict) or str(step.get("step")).lower() not in htrflow_steps.MODEL_STEPS:
            continue
        values = settings.get("model_settings")
        if not isinstance(values, dict) or not isinstance(values.get("model"), str):
            continue
        kind = htrflow_steps.MODELS.get(str(settings.get("model")).lower())
        pins = [_at(values, pin) for pin in kind.pins] if kind else []
        revision = next((pin for pin in pins if isinstance(pin, str)), None)
        found[Model(values["model"], revision)] = None
    return [*found]


def _at(values: t.Any, path: t.Sequence[str]) -> t.Any:
    for key in path:
        values = values.get(key) if isinstance(values, dict) else None
    return values
