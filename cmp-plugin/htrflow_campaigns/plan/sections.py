"""The paragraphs of a plan: one campaign, one pipeline, in words."""

from __future__ import annotations

import typing as t

from htrflow_campaigns.plan import workload
from htrflow_campaigns.plan.change import CampaignChange, Difference, PipelineChange
from htrflow_campaigns.plan.hours import Estimate, Range
from htrflow_campaigns.plan.plan import Plan
from htrflow_campaigns.plan.text import code
from htrflow_campaigns.plan.workload import Model, Workload
from htrflow_campaigns.reports import plural

KINDS = {
    "added": "new",
    "removed": "removed",
    "renamed": "renamed",
    "paused": "paused",
    "resumed": "resumed",
    "finished": "finished",
    "changed": "changed",
    "refused": "refused",
}
ACTIONS = {
    "refuse": "refused",
    "replace": "replaced",
    "pause": "paused",
    "resume": "resumed",
    "update": "updated",
    "create": "created",
    "prune": "pruned",
    "leave": "not created",
    "keep": "kept",
}
#: Hexadecimal digits of a revision that are shown.
_REVISION = 12
#: Fewer hours are not told apart.
_LEAST_HOURS = 0.05
#: Characters of a refusal.
_SENTENCE = 800


def campaign(plan: Plan, each: CampaignChange) -> str:
    """What happens to one campaign, and what it asks for."""
    found = each.campaign
    lines = [f"#### {code(found.name)}: {KINDS[each.kind]}", ""]
    if each.kind == "renamed" and each.before is not None:
        lines.append(
            f"- The same pipeline and volumes were called {code(each.before.name)}. A new name is a new campaign: it"
            " runs from its first volume, and skips every page already in the bucket."
        )
    lines += [f"- Refused: {code(refusal, _SENTENCE)}" for refusal in each.refusals]
    lines += [f"- {_difference(difference)}" for difference in each.differences]
    if each.after is None:
        lines.append("- Its pods end. Its results stay in the bucket.")
    elif found.suspend and each.kind in ("added", "renamed"):
        lines.append("- Paused: nothing of it runs until `suspend` is gone.")
    if each.after is not None:
        side = plan.change.head.pipelines.get(found.pipeline)
        lines.append(f"- Pipeline {code(found.pipeline)}{_models(workload.models(side) if side else [])}")
    elif each.before is not None:
        lines.append(f"- Pipeline {code(found.pipeline)}, {plural(len(found.volumes), 'volume')}")
    if each.after is not None and (asks := plan.workloads.get(found.name)):
        lines += _asks_for(asks)
        lines.append(f"- Priority {code(found.priority)}" if found.priority else "- No priority of its own")
    if estimate := plan.estimates.get(found.name):
        lines.append(f"- {_takes(estimate)}")
        longest, most = estimate.largest, plan.workloads[found.name].max_seconds / 3600
        if longest is not None and longest.middle > most:
            lines.append(
                f"- Its largest volume takes {_clock(longest)}, and a pod ends after {most:.3g} hours: it goes on in"
                " another attempt, of which there are few. A longer `max_seconds` in its pipeline leaves it the time."
            )
    return "\n".join(lines) + "\n"


def campaign_line(plan: Plan, each: CampaignChange) -> str:
    """The same in one line, for a plan of many campaigns."""
    found, asks = each.campaign, plan.workloads.get(each.campaign.name)
    gpus = f", {plural(asks.gpus, 'GPU')} at a time" if asks and each.after is not None else ""
    volumes = plural(len(found.volumes), "volume")
    return f"- {code(found.name)}: {KINDS[each.kind]}, pipeline {code(found.pipeline)}, {volumes}{gpus}"


def pipeline(plan: Plan, each: PipelineChange) -> str:
    """What happens to one pipeline and its warm-up."""
    parts = f": {', '.join(map(code, each.parts))}" if each.parts else ""
    lines = [f"- {code(each.pipeline.id)}: {KINDS[each.kind]}{parts}; its warm-up {plan.warm_up(each)}"]
    lines += [f"  - Refused: {code(refusal, _SENTENCE)}" for refusal in each.refusals]
    if each.after is not None:
        lines += [f"  - Model {_model(model)}" for model in workload.models(each.after)]
    return "\n".join(lines)


def total(plan: Plan) -> str:
    """What all new campaigns take together, as far as it is known; empty when nothing is."""
    known = [estimate for estimate in plan.estimates.values() if estimate.gpu_hours and estimate.pages]
    if not known:
        return ""
    hours = Range(*(sum(values) for values in zip(*(each.gpu_hours for each in known if each.gpu_hours), strict=True)))
    pages = Range(*(sum(values) for values in zip(*(each.pages for each in known if each.pages), strict=True)))
    unknown = len(plan.estimates) - len(known)
    rest = f", and what {plural(unknown, 'campaign')} takes is not known" if unknown else ""
    return f"{_hours(hours)} GPU-hours for {_number(pages)} pages{rest}"


def _models(models: t.Sequence[Model]) -> str:
    return f" with {', '.join(map(_model, models))}" if models else ""


def _model(model: Model) -> str:
    if model.revision is None:
        return f"{code(model.name)}, not pinned"
    return f"{code(model.name)} at {code(model.revision[:_REVISION])}"


def _asks_for(asks: Workload) -> list[str]:
    parts = f", in {asks.parts} parts that queue each by itself" if asks.parts > 1 else ""
    clamped = f" ({asks.asked} asked for, at most {asks.limit})" if (asks.asked or 0) > asks.limit else ""
    each = " for each part" if asks.parts > 1 else ""
    size = f"size {code(asks.size)}" if asks.size else "no size"
    return [
        f"- {plural(asks.volumes, 'volume')}{parts}; {asks.window} at a time{clamped}",
        f"- {plural(asks.gpus, 'GPU')} at a time{each}; a pod has {plural(asks.gpu, 'GPU')}, {asks.cpu} CPU and"
        f" {asks.memory} of memory ({size})",
    ]


def _difference(difference: Difference) -> str:
    key, before, after = difference
    if key == "volumes":
        if before == after:
            return f"The list of its {plural(before, 'volume')} is another one"
        return f"{plural(before, 'volume')} become {after}"
    was, is_ = (code(_value(value)) if value is not None else "nothing" for value in (before, after))
    return f"{code(key)}: {was} becomes {is_}"


def _value(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _takes(estimate: Estimate) -> str:
    pages = f"{_number(estimate.pages)} pages" if estimate.pages else "Pages not known"
    if estimate.gpu_hours is None or estimate.clock is None or estimate.pod_hours is None:
        return f"{pages}; how long it takes is not known: {estimate.unknown}"
    work = f"{_hours(estimate.gpu_hours)} GPU-hours" if estimate.gpu_hours.middle else "no GPU-hours"
    if not estimate.gpu_hours.middle:
        work += f", {_hours(estimate.pod_hours)} pod-hours"
    return f"{pages}: {work}, {_clock(estimate.clock)} once it runs ({estimate.rate})"


def _number(value: Range) -> str:
    if round(value.low) == round(value.high):
        return f"{value.middle:.0f}"
    return f"about {value.middle:.0f} ({value.low:.0f} to {value.high:.0f})"


def _hours(value: Range) -> str:
    if value.high < _LEAST_HOURS:
        return f"less than {_LEAST_HOURS:g}"
    digits = 0 if value.middle >= 100 else 1 if value.middle >= 1 else 2
    return f"about {value.middle:.{digits}f} ({value.low:.{digits}f} to {value.high:.{digits}f})"


def _clock(value: Range) -> str:
    if value.middle >= 1:
        return f"{_hours(value)} hours"
    minutes = value.by(60)
    if minutes.high < 1:
        return "less than a minute"
    return f"about {minutes.middle:.0f} ({minutes.low:.0f} to {minutes.high:.0f}) minutes"
