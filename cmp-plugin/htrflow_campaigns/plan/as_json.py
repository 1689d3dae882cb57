"""The plan for programs: one JSON object, which ``schemas/plan.schema.json`` describes."""

from __future__ import annotations

import json
import typing as t

from htrflow_campaigns import __version__
from htrflow_campaigns.plan import effects, workload
from htrflow_campaigns.plan.change import CampaignChange, PipelineChange
from htrflow_campaigns.plan.hours import Estimate, Range
from htrflow_campaigns.plan.kubernetes import Deed
from htrflow_campaigns.plan.plan import Plan
from htrflow_campaigns.reports import as_json
from htrflow_campaigns.rules import RULES

#: Goes up when a key is taken away or means something else, not when one is added.
VERSION: t.Final = 1

_Json = dict[str, t.Any]


def report(plan: Plan) -> str:
    """The whole plan, in ASCII."""
    data = {
        "version": VERSION,
        "tool": {"name": "htrflow-campaigns", "version": __version__},
        "base": plan.base,
        "delivery": plan.delivery,
        "counts": {
            "problems": plan.outcome.count("problem"),
            "warnings": plan.outcome.count("warning"),
            "files": plan.outcome.files,
            "unchanged_campaigns": len(plan.change.same),
            "left_out_campaigns": plan.left_out,
            "kept_objects": plan.outlook.kept,
        },
        "problems": [_problem(problem) for problem in plan.outcome.problems],
        "notes": plan.notes,
        "campaigns": [_campaign(plan, each) for each in plan.change.campaigns],
        "pipelines": [_pipeline(plan, each) for each in plan.change.pipelines],
        "warmed_up_again": plan.rewarmed,
        "settings": [
            {"key": key, "before": before, "after": after, "effect": effects.effect(key, plan.delivery)}
            for key, before, after in plan.change.settings
        ],
        "objects": [_object(deed) for deed in plan.outlook.deeds],
    }
    return json.dumps(data, indent=2, default=_plain) + "\n"


def _plain(value: object) -> t.Any:
    """A size in ``converter.yaml``."""
    return {name: getattr(value, name) for name in ("gpu", "cpu", "memory", "workdir", "flavor")}


def _problem(problem: t.Any) -> _Json:
    entry = as_json.entry(problem)
    return entry if problem.rule.id in RULES else {**entry, "docs": "docs/cli.md#plan"}


def _campaign(plan: Plan, each: CampaignChange) -> _Json:
    campaign, found = each.campaign, plan.workloads.get(each.campaign.name)
    return {
        "name": campaign.name,
        "path": campaign.path,
        "change": each.kind,
        "renamed_from": each.before.name if each.before and each.kind == "renamed" else None,
        "differences": [difference._asdict() for difference in each.differences],
        "refusals": [*each.refusals],
        "pipeline": campaign.pipeline,
        "priority": campaign.priority,
        "suspend": campaign.suspend,
        "finished": campaign.finished,
        "asks_for": {
            "volumes": found.volumes,
            "parts": found.parts,
            "window": found.window,
            "window_asked": found.asked,
            "window_limit": found.limit,
            "gpus": found.gpus,
            "pod": {
                "gpu": found.gpu,
                "cpu": found.cpu,
                "memory": found.memory,
                "size": found.size,
                "max_seconds": found.max_seconds,
            },
        }
        if found
        else None,
        "takes": _estimate(plan.estimates.get(campaign.name)),
    }


def _estimate(estimate: Estimate | None) -> _Json | None:
    if estimate is None:
        return None
    return {
        "counted_volumes": estimate.counted,
        "pages": _range(estimate.pages, 0),
        "gpu_hours": _range(estimate.gpu_hours, 2),
        "pod_hours": _range(estimate.pod_hours, 2),
        "clock_hours": _range(estimate.clock, 2),
        "largest_volume_hours": _range(estimate.largest, 2),
        "rate": estimate.rate or None,
        "unknown": estimate.unknown or None,
    }


def _range(value: Range | None, digits: int) -> _Json | None:
    return {key: round(number, digits) for key, number in value._asdict().items()} if value else None


def _pipeline(plan: Plan, each: PipelineChange) -> _Json:
    pipeline = each.pipeline
    return {
        "id": pipeline.id,
        "path": pipeline.path,
        "change": each.kind,
        "parts": [*each.parts],
        "refusals": [*each.refusals],
        "image": pipeline.image,
        "size": pipeline.size,
        "models": [model._asdict() for model in workload.models(pipeline)],
        "warm_up": plan.warm_up(each),
    }


def _object(deed: Deed) -> _Json:
    diff = deed.diff
    return {
        "action": deed.action,
        "kind": deed.kind,
        "namespace": deed.namespace,
        "name": deed.name,
        "path": deed.source,
        "reason": deed.reason or None,
        "diff": {"lines": diff.lines, "left_out": diff.left_out} if diff else None,
    }
