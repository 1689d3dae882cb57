"""What is known of a pipeline: its steps from its ConfigMap, and whether its models are ready from its warm-up Job."""

from __future__ import annotations

import dataclasses
import typing as t

import yaml

from htrflow_campaigns import names
from htrflow_status.model import Model, Pipeline, Reason
from htrflow_status.sources import fields
from htrflow_status.sources.fields import Object
from htrflow_status.sources.pods import Pod

_PREFIX = names.pipeline_config_map("")
_FILE = "pipeline.yaml"
_LARGEST = 256 * 1024


@dataclasses.dataclass(frozen=True, slots=True)
class Warmup:
    """A warm-up Job. ``ended`` is the condition that ended it."""

    ended: t.Literal["", "Complete", "Failed"]
    message: str


@dataclasses.dataclass(frozen=True, slots=True)
class Steps:
    """The steps of a pipeline. ``models`` is None where they cannot be read."""

    yaml: str
    models: tuple[Model, ...] | None


@dataclasses.dataclass(frozen=True, slots=True)
class Known:
    """All that is known of a pipeline; None is what is not there. ``pods`` are its warm-up's, the newest last."""

    steps: Steps | None = None
    warmup: Warmup | None = None
    pods: tuple[Pod, ...] = ()


NOTHING = Known()


def id_of_config_map(name: str) -> str | None:
    return name.removeprefix(_PREFIX) if name.startswith(_PREFIX) else None


def read_config_map(config_map: Object) -> Steps:
    text = fields.text(config_map, "data", _FILE)
    return Steps(text, _models(text))


def read_warmup(job: Object) -> Warmup:
    for kind in ("Complete", "Failed"):
        condition = fields.condition(job, kind)
        if fields.is_true(condition):
            ended: t.Literal["Complete", "Failed"] = "Complete" if kind == "Complete" else "Failed"
            return Warmup(ended, fields.text(condition, "message"))
    return Warmup("", "")


def pipeline(id_: str, image: str, known: Known) -> Pipeline:
    """The pipeline of a campaign, whose pods have this image."""
    steps = known.steps or Steps("", ())
    return Pipeline(id_, steps.yaml, image, steps.models or (), _warmup(id_, known))


def problems(id_: str, known: Known) -> list[Reason]:
    """What of the pipeline cannot be read."""
    config_map = names.pipeline_config_map(id_)
    if known.steps is None:
        return [Reason("pipeline-missing", {"config_map": config_map}, "platform")]
    return (
        []
        if known.steps.models is not None
        else [Reason("pipeline-unreadable", {"config_map": config_map}, "platform")]
    )


def _warmup(id_: str, known: Known) -> Reason | None:
    job = names.warmup_job(id_)
    if known.warmup is None:
        return Reason("warmup-missing", {"job": job}, "platform")
    if known.warmup.ended == "Complete":
        return None
    last = known.pods[-1] if known.pods else None
    if known.warmup.ended == "Failed":
        attempt = next((pod.attempt for pod in reversed(known.pods) if pod.attempt.state == "failed"), None)
        message = (attempt.message or attempt.reason) if attempt else known.warmup.message
        return Reason("warmup-failed", {"job": job, "message": message}, "platform")
    if last is not None and last.waiting is not None:
        return Reason(
            "warmup-waiting", {"job": job, "why": last.waiting.code, **last.waiting.facts}, last.waiting.owner
        )
    if last is not None and last.attempt.state == "failed":
        return Reason("warmup-again", {"job": job, "message": last.attempt.message or last.attempt.reason}, "platform")
    return Reason("warmup-running", {"job": job})


def _models(text: str) -> tuple[Model, ...] | None:
    """The models of a pipeline's steps, each once."""
    try:
        # Written by the converter, but a ConfigMap is input: the safe loader, and no text that takes long.
        found = yaml.load(text, getattr(yaml, "CSafeLoader", yaml.SafeLoader)) if len(text) <= _LARGEST else None  # noqa: S506
    except (yaml.YAMLError, RecursionError, ValueError):
        return None
    if not isinstance(found, dict):
        return None
    models = []
    for step in fields.rows(found, "steps"):
        settings = fields.at(step, "settings", "model_settings")
        name = next((fields.text(settings, key) for key in ("model", "path") if fields.text(settings, key)), "")
        name = name or fields.text(step, "settings", "model")
        revision = fields.text(settings, "revision") or fields.text(settings, "model_kwargs", "revision")
        if name:
            models.append(Model(name, revision))
    return tuple(dict.fromkeys(models))
