"""The objects of a change, and what becomes of each, if the change was merged and what the base says is delivered."""

from __future__ import annotations

import dataclasses
import typing as t

from htrflow_campaigns import parts, yaml_writer
from htrflow_campaigns.delivery import Apply, ArgoCD, Delivery
from htrflow_campaigns.model import Campaign
from htrflow_campaigns.objects.pod import Object
from htrflow_campaigns.plan import differences, verdicts
from htrflow_campaigns.plan.change import Change
from htrflow_campaigns.plan.verdicts import Action

DELIVERIES: dict[str, type[Delivery]] = {"argocd": ArgoCD, "apply": Apply}

#: How many objects are shown with their difference. Each takes some milliseconds to write out.
_SHOWN = 40


@dataclasses.dataclass(frozen=True)
class Deed:
    """What becomes of one object, and why. ``diff`` is of the rendered objects, None where it is not shown."""

    action: Action
    kind: str
    namespace: str
    name: str
    source: str
    reason: str
    before: Object | None = dataclasses.field(default=None, repr=False)
    after: Object | None = dataclasses.field(default=None, repr=False)
    diff: differences.Diff | None = None


class Outlook(t.NamedTuple):
    """What becomes of all objects. ``kept`` counts those that stay as they are and are not listed."""

    deeds: list[Deed]
    kept: int


class _Pair(t.NamedTuple):
    """The objects of one of the user's files before and after."""

    source: str
    before: t.Iterable[Object]
    after: t.Iterable[Object]
    was: Campaign | None = None
    is_: Campaign | None = None


def outlook(change: Change, delivery: str) -> Outlook:
    """What the delivery called ``delivery`` and the cluster would do, changes first and then what is new or gone."""
    maker = DELIVERIES[delivery]()
    deeds: list[Deed] = []
    kept = _unchanged(change)
    converter = change.head.converter
    namespace = converter.namespace if converter else ""
    moves = any(setting.key == "namespace" for setting in change.settings)
    for pair in _pairs(change, maker):
        before, after = _by_name(pair.before), _by_name(pair.after)
        for key in {**before, **after}:
            old, new = before.get(key), after.get(key)
            action, reason = verdicts.judge(old, new, pair.was, pair.is_, delivery)
            if key[1] != namespace:
                action, reason = verdicts.LEFT_BEHIND[delivery]
            elif moves and pair.was and new and new["kind"] == "Job":
                reason = "it runs from its first volume: what it read before lies below the other namespace"
            deed = Deed(action, *key, pair.source, reason, old, new)
            if deed.action == "keep" and deed.before == deed.after:
                kept += 1
            else:
                deeds.append(deed)
    order = ("refuse", "replace", "pause", "resume", "update", "create", "prune", "leave", "keep")
    deeds.sort(key=lambda deed: order.index(deed.action))
    return Outlook([_with_diff(deed, number) for number, deed in enumerate(deeds)], kept)


def _with_diff(deed: Deed, number: int) -> Deed:
    if number >= _SHOWN or deed.after is None:
        return deed
    before = yaml_writer.dump(deed.before) if deed.before else ""
    return dataclasses.replace(deed, diff=differences.diff(before, yaml_writer.dump(deed.after)))


def _is_steady(change: Change) -> bool:
    """Whether neither settings nor pipelines differ, so that what is rendered of a campaign can differ only with it."""
    return change.base is not None and not change.settings and not change.pipelines


def _unchanged(change: Change) -> int:
    if not _is_steady(change):
        return 0
    return sum(2 * len(parts.split(after.lines)) for _, after in change.same)


def _pairs(change: Change, delivery: Delivery) -> t.Iterator[_Pair]:
    was, is_ = change.converters
    if is_ is None:
        return
    before = change.base.pipelines if change.base else {}
    after = change.head.pipelines
    broken = {entry.name for entry in change.head.tree.pipelines} - {*after}
    for id_ in sorted({*before, *after} - broken):
        old, new = before.get(id_), after.get(id_)
        source = new or old
        assert source is not None
        yield _Pair(
            source.path,
            delivery.pipeline(old, was) if old and was else (),
            delivery.pipeline(new, is_) if new else (),
        )
    campaigns = [(each.before, each.after) for each in change.campaigns]
    if not _is_steady(change):
        campaigns += change.same
    for first, second in campaigns:
        if second is not None and second.pipeline not in after:
            continue
        old = before.get(first.pipeline) if first else None
        new = after.get(second.pipeline) if second else None
        source_campaign = second or first
        assert source_campaign is not None
        yield _Pair(
            source_campaign.path,
            delivery.campaign(first, old, was) if first and old and was else (),
            delivery.campaign(second, new, is_) if second and new else (),
            first,
            second,
        )


def _by_name(objects: t.Iterable[Object]) -> dict[tuple[str, str, str], Object]:
    return {(each["kind"], each["metadata"]["namespace"], each["metadata"]["name"]): each for each in objects}
