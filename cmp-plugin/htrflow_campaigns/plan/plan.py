"""The plan of a change, put together from its parts."""

from __future__ import annotations

import dataclasses
import typing as t

from htrflow_campaigns import names
from htrflow_campaigns.plan import hours, kubernetes, workload
from htrflow_campaigns.plan.change import CampaignChange, Change, PipelineChange
from htrflow_campaigns.plan.hours import Estimate, Rate
from htrflow_campaigns.plan.kubernetes import Outlook
from htrflow_campaigns.plan.workload import Workload
from htrflow_campaigns.problems import Problem, ordered
from htrflow_campaigns.reports import Outcome, plural

WarmUp = t.Literal["runs", "runs again", "is removed", "is kept"]

_NO_RATE = "it was not said how long a page takes, which --results and --seconds-per-page do"
_WARM_UPS: dict[str, WarmUp] = {"create": "runs", "replace": "runs again", "prune": "is removed"}


@dataclasses.dataclass(frozen=True)
class Plan:
    """What a change would run. ``workloads`` and ``estimates`` are by the names of campaigns.

    ``base`` is the revision as it was given. ``rewarmed`` are pipelines that are as they were and whose warm-up runs
    again all the same. ``left_out`` counts campaigns that are not in the plan because something is wrong with them or
    with their pipeline.
    """

    change: Change
    outcome: Outcome
    outlook: Outlook
    delivery: str
    base: str | None
    workloads: dict[str, Workload]
    estimates: dict[str, Estimate]
    rewarmed: list[str]
    left_out: int
    notes: list[str]

    def warm_up(self, change: PipelineChange) -> WarmUp:
        """What the pipeline's warm-up does."""
        return self._warm_ups().get(change.pipeline.id, "is kept")

    def _warm_ups(self) -> dict[str, WarmUp]:
        return _warm_ups(self.outlook)


@dataclasses.dataclass(frozen=True)
class Looked:
    """What servers said: pages by the address of a manifest, rates by pipeline with the reasons for those missing.

    ``fetched`` says whether manifests were asked for.
    """

    fetched: bool = False

    pages: t.Mapping[str, int] = dataclasses.field(default_factory=dict)
    rates: t.Mapping[str, tuple[Rate | None, str]] = dataclasses.field(default_factory=dict)
    problems: t.Sequence[Problem] = ()
    notes: t.Sequence[str] = ()


def assemble(change: Change, delivery: str, base: str | None, looked: Looked) -> Plan:
    """The plan of ``change`` with what was looked up of it."""
    outlook = kubernetes.outlook(change, delivery)
    workloads, estimates = {}, {}
    left_out = len(change.head.tree.campaigns) - len(change.same)
    for each in change.campaigns:
        left_out -= each.after is not None
        if (found := _workload(change, each)) is None:
            left_out += each.after is not None
            continue
        workloads[each.campaign.name] = found
        if each.kind == "added" and each.after is not None:
            rate, why = looked.rates.get(each.after.pipeline, (None, _NO_RATE))
            pages = hours.pages_of(each.after, looked.pages)
            missing = f"the pages of {pages.count(None)} of its {plural(len(pages), 'volume')} are not known"
            hint = "" if looked.fetched else ", which --fetch counts"
            found_out = hours.estimate(found, pages, rate, no_pages=f"{missing}{hint}", no_rate=why)
            estimates[each.after.name] = found_out
    changed = {each.pipeline.id for each in change.pipelines}
    again = [id_ for id_, what in _warm_ups(outlook).items() if what != "is removed" and id_ not in changed]
    problems = ordered([*change.head.problems, *looked.problems])
    notes = [*_base_notes(change, base), *looked.notes]
    outcome = Outcome(problems, change.head.files)
    return Plan(change, outcome, outlook, delivery, base, workloads, estimates, sorted(again), left_out, notes)


def _workload(change: Change, each: CampaignChange) -> Workload | None:
    side, converter = (change.head, change.head.converter) if each.after else (change.base, change.converters[0])
    pipeline = side.pipelines.get(each.campaign.pipeline) if side else None
    return workload.of(each.campaign, pipeline, converter) if pipeline and converter else None


def _warm_ups(outlook: Outlook) -> dict[str, WarmUp]:
    prefix = names.warmup_job("")
    return {
        deed.name.removeprefix(prefix): _WARM_UPS[deed.action]
        for deed in outlook.deeds
        if deed.kind == "Job" and deed.name.startswith(prefix) and deed.action in _WARM_UPS
    }


def _base_notes(change: Change, base: str | None) -> t.Iterator[str]:
    if change.head.converter is None:
        yield "without a converter.yaml that can be used, nothing can be planned"
    elif base is None:
        yield "no base was given, so everything is taken to be new"
    elif change.base is None:
        yield "the base has no converter.yaml that can be used, so nothing of it was delivered and everything is new"
    elif not change.base.is_good():
        yield "the base has problems itself, so the cluster may hold something else than it says"
