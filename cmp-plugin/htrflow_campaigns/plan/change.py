"""What differs between two states of a campaigns repo: campaigns, pipelines and settings."""

from __future__ import annotations

import dataclasses
import typing as t

from htrflow_campaigns import validate
from htrflow_campaigns.checks import campaign as campaign_checks
from htrflow_campaigns.document import Document
from htrflow_campaigns.load import Loaded, load, read
from htrflow_campaigns.model import Campaign, Converter, Pipeline
from htrflow_campaigns.problems import Problem
from htrflow_campaigns.rules import base as rules
from htrflow_campaigns.tree import Entry, Tree

CampaignKind = t.Literal["added", "removed", "renamed", "paused", "resumed", "finished", "changed", "refused"]
PipelineKind = t.Literal["added", "removed", "changed", "refused"]

_REFUSED_CAMPAIGN = {rules.VOLUMES_CHANGED, rules.PIPELINE_CHANGED}
_KEYS = ("pipeline", "window", "priority", "suspend", "finished")
_PARTS = ("image", "steps", "size", "max_seconds", "ttl_seconds_after_finished")
#: Volumes of one pipeline that are remembered, and of one campaign.
_KNOWN, _KNOWN_EACH = 2000, 20


class Difference(t.NamedTuple):
    """A key of a file, and its values before and after; None where it is not written."""

    key: str
    before: t.Any
    after: t.Any


@dataclasses.dataclass(frozen=True)
class CampaignChange:
    """A campaign that is not as it was. ``before`` is None for a new one, ``after`` for one that is gone.

    ``refusals`` are the validator's sentences on why the change may not be made.
    """

    kind: CampaignKind
    before: Campaign | None
    after: Campaign | None
    document: Document | None = None
    differences: tuple[Difference, ...] = ()
    refusals: tuple[str, ...] = ()

    @property
    def campaign(self) -> Campaign:
        found = self.after or self.before
        assert found is not None
        return found


@dataclasses.dataclass(frozen=True)
class PipelineChange:
    """A pipeline that is not as it was. ``parts`` are the keys that differ."""

    kind: PipelineKind
    before: Pipeline | None
    after: Pipeline | None
    parts: tuple[str, ...] = ()
    refusals: tuple[str, ...] = ()

    @property
    def pipeline(self) -> Pipeline:
        found = self.after or self.before
        assert found is not None
        return found


@dataclasses.dataclass
class Change:
    """What differs. ``same`` are campaigns whose file says the same, though what is rendered of them may differ.

    ``known`` are volumes that ran before, by pipeline: some of each campaign that stays.
    """

    head: Loaded
    base: Loaded | None
    campaigns: list[CampaignChange] = dataclasses.field(default_factory=list)
    pipelines: list[PipelineChange] = dataclasses.field(default_factory=list)
    settings: list[Difference] = dataclasses.field(default_factory=list)
    same: list[tuple[Campaign, Campaign]] = dataclasses.field(default_factory=list)
    known: dict[str, list[str]] = dataclasses.field(default_factory=dict)

    @property
    def converters(self) -> tuple[Converter | None, Converter | None]:
        """The settings before and after."""
        return self.base.converter if self.base else None, self.head.converter


def compare(tree: Tree, base: Tree | None, progress: t.Callable[[int, int], None] | None = None) -> Change:
    """What differs between ``base`` and ``tree``; without a base, everything is new.

    What is wrong with the head is among ``head.problems`` and is left out of the rest, which is everything when it has
    no usable settings. A base without usable settings was never delivered and counts as empty.
    """
    change = Change(load(tree), None)
    if base is not None:
        loaded = load(base)
        change.base = loaded if loaded.converter is not None else None
    entries = {entry.name: entry for entry in base.campaigns} if base is not None and change.base else {}
    pairs: list[tuple[Campaign, Campaign, Document]] = []
    new: dict[str, tuple[Campaign, Document]] = {}
    for campaign, document in validate.checked(change.head, base, progress):
        entry = entries.get(campaign.name)
        before = _before(change, campaign, document, entry) if entry else None
        if before is None:
            new[campaign.name] = campaign, document
        elif _differences(before, campaign) or before.lines != campaign.lines:
            pairs.append((before, campaign, document))
        else:
            change.same.append((before, campaign))
            _remember(change.known, before)
    if change.head.converter is None:
        return Change(change.head, change.base)
    gone = _gone(change, {entry.name for entry in tree.campaigns})
    problems: dict[str, list[Problem]] = {}
    for problem in change.head.problems:
        problems.setdefault(problem.position.path, []).append(problem)
    renamed = _renamed(new, gone)
    for name, (campaign, document) in new.items():
        old = renamed.get(name)
        kind: CampaignKind = "renamed" if old else "added"
        differences = _differences(old, campaign) if old else ()
        change.campaigns.append(CampaignChange(kind, old, campaign, document, differences))
    for before, campaign, document in pairs:
        refusals = [each.message for each in problems.get(campaign.path, ()) if each.rule in _REFUSED_CAMPAIGN]
        if not refusals and before.lines != campaign.lines:
            refusals = [each.message for each in change.head.problems if each.rule is rules.SOURCES_CHANGED]
        differences = _differences(before, campaign)
        kind = _kind(before, campaign, bool(refusals))
        change.campaigns.append(CampaignChange(kind, before, campaign, document, differences, tuple(refusals)))
        _remember(change.known, before)
    taken = {old.name for old in renamed.values()}
    change.campaigns += [CampaignChange("removed", old, None) for name, old in gone.items() if name not in taken]
    change.campaigns.sort(key=lambda each: each.campaign.name)
    change.pipelines = [*_pipelines(change, problems)]
    change.settings = [*_settings(*change.converters)]
    return change


def _before(change: Change, campaign: Campaign, document: Document, entry: Entry) -> Campaign | None:
    """The campaign as it was; the same value when nothing of it can differ."""
    before, after = change.converters
    assert change.base is not None
    same_template = before and after and before.source_template == after.source_template
    if same_template and change.head.tree.read(document.path) == change.base.tree.read(entry.path):
        return campaign
    return _read(change.base, entry)


def _read(base: Loaded, entry: Entry) -> Campaign | None:
    document, _ = read(base.tree, entry)
    if document is None:
        return None
    context = campaign_checks.Context(base.converter, {pipeline.name for pipeline in base.tree.pipelines})
    return campaign_checks.check(document, entry.name, context)[0]


def _gone(change: Change, names: set[str]) -> dict[str, Campaign]:
    """The campaigns whose file is no longer there, by name."""
    if change.base is None:
        return {}
    entries = [entry for entry in change.base.tree.campaigns if entry.name not in names]
    found = {entry.name: _read(change.base, entry) for entry in entries}
    return {name: campaign for name, campaign in found.items() if campaign is not None}


def _renamed(new: t.Mapping[str, tuple[Campaign, Document]], gone: t.Mapping[str, Campaign]) -> dict[str, Campaign]:
    """Of each new name, the campaign that had the same pipeline and volumes under another one."""
    by_content: dict[tuple[str, tuple[str, ...]], list[Campaign]] = {}
    for old in gone.values():
        by_content.setdefault((old.pipeline, old.lines), []).append(old)
    found = {}
    for name, (campaign, _) in new.items():
        if candidates := by_content.get((campaign.pipeline, campaign.lines)):
            found[name] = candidates.pop(0)
    return found


def _differences(before: Campaign, after: Campaign) -> tuple[Difference, ...]:
    if before is after:
        return ()
    pairs = ((key, getattr(before, key), getattr(after, key)) for key in _KEYS)
    found = [Difference(key, was, is_) for key, was, is_ in pairs if was != is_]
    if before.lines != after.lines:
        found.append(Difference("volumes", len(before.volumes), len(after.volumes)))
    return tuple(found)


def _kind(before: Campaign, after: Campaign, refused: bool) -> CampaignKind:
    if refused:
        return "refused"
    if before.suspend != after.suspend:
        return "paused" if after.suspend else "resumed"
    return "finished" if after.finished and not before.finished else "changed"


def _remember(known: dict[str, list[str]], campaign: Campaign) -> None:
    ids = known.setdefault(campaign.pipeline, [])
    step = max(1, len(campaign.volumes) // _KNOWN_EACH)
    if len(ids) < _KNOWN:
        ids += [volume.id for volume in campaign.volumes[::step][:_KNOWN_EACH]]


def _pipelines(change: Change, problems: t.Mapping[str, list[Problem]]) -> t.Iterator[PipelineChange]:
    before = change.base.pipelines if change.base else {}
    after = change.head.pipelines
    there = {entry.name for entry in change.head.tree.pipelines}
    for id_ in sorted({*before, *after}):
        old, new = before.get(id_), after.get(id_)
        if old is None:
            yield PipelineChange("added", None, new)
        elif new is None and id_ not in there:
            yield PipelineChange("removed", old, None)
        elif new is not None and (parts := [key for key in _PARTS if getattr(old, key) != getattr(new, key)]):
            found = problems.get(new.path, ())
            refusals = tuple(each.message for each in found if each.rule is rules.RECIPE_CHANGED)
            yield PipelineChange("refused" if refusals else "changed", old, new, tuple(parts), refusals)


def _settings(before: Converter | None, after: Converter | None) -> t.Iterator[Difference]:
    if before is None or after is None:
        return
    for field in dataclasses.fields(Converter):
        was, is_ = getattr(before, field.name), getattr(after, field.name)
        if was != is_:
            yield Difference(field.name, was, is_)
