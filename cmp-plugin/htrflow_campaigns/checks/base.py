"""What a change does to campaigns that may already run: the repo against a base revision of itself."""

from __future__ import annotations

import typing as t

from htrflow_campaigns import structure
from htrflow_campaigns.checks import campaign as campaign_checks
from htrflow_campaigns.document import Document, Mapping
from htrflow_campaigns.load import Loaded, load, read
from htrflow_campaigns.model import Campaign, Converter, Pipeline
from htrflow_campaigns.problems import Position, Problem, Words
from htrflow_campaigns.rules import base as rules
from htrflow_campaigns.tree import Entry, Tree


class BaseComparison:
    """Holds a repo against ``base_tree``: first its settings and pipelines, then each campaign as it is read.

    A campaign whose file is the same byte for byte is not looked at again, so a small change costs little in a large
    repo. A base that is broken itself is held against nothing: what it says was never delivered.
    """

    def __init__(self, head: Loaded, base_tree: Tree) -> None:
        self._head = head
        self._base = load(base_tree)
        self._entries = {entry.name: entry for entry in base_tree.campaigns}
        self._moved: list[str] = []
        self._resized: list[str] = []

    def start(self) -> t.Iterator[Problem]:
        """The problems of the settings and of the pipelines."""
        if (pair := self._converters) is None:
            return
        head, base = pair
        if head.namespace != base.namespace:
            position = self._converter_position("namespace")
            yield rules.NAMESPACE_CHANGED.at(position, before=base.namespace, after=head.namespace)
        changed = {
            id_: parts
            for id_, pipeline in self._head.pipelines.items()
            if id_ in self._base.pipelines and (parts := _changed_parts(self._base.pipelines[id_], pipeline))
        }
        users = self._users() if changed else {}
        for id_, parts in changed.items():
            document = self._head.documents[self._head.pipelines[id_].path]
            position = document.at((parts[0],), key=True)
            if id_ in users:
                part = Words(" and ".join(filter(None, [", ".join(parts[:-1]), parts[-1]])))
                yield rules.RECIPE_CHANGED.at(position, part=part, pipeline=id_, campaigns=_list(users[id_]))
            elif "steps" in parts:
                yield rules.STEPS_REPLACED.at(document.at(("steps",), key=True), pipeline=id_)

    def add(self, campaign: Campaign, document: Document) -> t.Iterator[Problem]:
        """The problems of one campaign of the head."""
        entry = self._entries.get(campaign.name)
        if entry is None or (pair := self._converters) is None or self._is_unchanged(document, entry, *pair):
            return
        before, base_document = self._campaign(entry, pair[1])
        if before is None or base_document is None:
            return
        if campaign.pipeline != before.pipeline:
            position, plain = document.at(("pipeline",)), Words(before.pipeline)
            yield rules.PIPELINE_CHANGED.at(
                position, campaign=campaign.name, before=before.pipeline, after=campaign.pipeline, before_plain=plain
            )
        if campaign.volumes != before.volumes and document.root["volumes"] == base_document.root["volumes"]:
            self._moved.append(campaign.name)
        elif campaign.volumes != before.volumes:
            yield _volumes_problem(document, campaign, before)
        yield from self._window(document, campaign, before, *pair)
        yield from _priority(document, campaign, before)

    def end(self) -> t.Iterator[Problem]:
        """The problems of settings that reach campaigns, once all campaigns are seen."""
        if self._moved:
            position = self._converter_position("source_template")
            yield rules.SOURCES_CHANGED.at(position, campaigns=_list(self._moved))
        if self._resized and (pair := self._converters) is not None:
            position, campaigns = self._converter_position("window"), _list(self._resized)
            yield rules.WINDOW_CHANGED.at(position, campaigns=campaigns, before=pair[1].window, after=pair[0].window)

    @property
    def _converters(self) -> tuple[Converter, Converter] | None:
        if self._head.converter is None or self._base.converter is None:
            return None
        return self._head.converter, self._base.converter

    def _converter_position(self, key: str) -> Position:
        entry = self._head.tree.converter
        assert entry is not None
        return self._head.documents[entry.path].at((key,))

    def _is_unchanged(self, document: Document, entry: Entry, head: Converter, base: Converter) -> bool:
        settings = (head.source_template, head.window) == (base.source_template, base.window)
        return settings and self._head.tree.read(document.path) == self._base.tree.read(entry.path)

    def _campaign(self, entry: Entry, converter: Converter) -> tuple[Campaign | None, Document | None]:
        document, _ = read(self._base.tree, entry)
        if document is None:
            return None, None
        pipelines = {pipeline.name for pipeline in self._base.tree.pipelines}
        campaign, _ = campaign_checks.check(document, entry.name, campaign_checks.Context(converter, pipelines))
        return campaign, document

    def _users(self) -> dict[str, list[str]]:
        """The campaigns of the base by the pipeline that they name."""
        users: dict[str, list[str]] = {}
        for entry in self._base.tree.campaigns:
            document, _ = read(self._base.tree, entry)
            if document is not None and isinstance(document.root, Mapping):
                users.setdefault(str(document.root.get("pipeline")), []).append(entry.name)
        return users

    def _window(
        self, document: Document, after: Campaign, before: Campaign, head: Converter, base: Converter
    ) -> t.Iterator[Problem]:
        if after.suspend or before.suspend or len(after.volumes) != len(before.volumes):
            return
        was, is_ = _pods(before, base), _pods(after, head)
        if was == is_:
            return
        if after.window == before.window:
            self._resized.append(after.name)
        else:
            position = document.at(("window",), key=after.window is None)
            campaigns = Words(f"the campaign {structure.label([after.name])}")
            yield rules.WINDOW_CHANGED.at(position, campaigns=campaigns, before=was, after=is_)


def _priority(document: Document, after: Campaign, before: Campaign) -> t.Iterator[Problem]:
    if before.priority and not after.priority:
        position, plain = document.at(("pipeline",), key=True), Words(before.priority)
        yield rules.PRIORITY_REMOVED.at(position, campaign=after.name, before=before.priority, before_plain=plain)
    elif after.priority and not before.priority:
        yield rules.PRIORITY_ADDED.at(document.at(("priority",)), campaign=after.name, after=after.priority)


def _pods(campaign: Campaign, converter: Converter) -> int:
    """How many pods of a campaign run at once, which is what Kueue counts."""
    return min(campaign.window or converter.window, converter.window, len(campaign.volumes))


def _changed_parts(before: Pipeline, after: Pipeline) -> list[str]:
    return [part for part in ("image", "steps", "size") if getattr(before, part) != getattr(after, part)]


def _list(campaigns: t.Sequence[str]) -> Words:
    shown = ", ".join(campaigns[:3])
    more = f" and {len(campaigns) - 3} more" if len(campaigns) > 3 else ""
    return Words(f"the campaign{'s' if len(campaigns) > 1 else ''} {shown}{more}")


def _volumes_problem(document: Document, after: Campaign, before: Campaign) -> Problem:
    was, is_ = [volume.id for volume in before.volumes], [volume.id for volume in after.volumes]
    added, removed = [id_ for id_ in is_ if id_ not in {*was}], [id_ for id_ in was if id_ not in {*is_}]
    changes = [f"{word} {_ids(ids)}" for word, ids in (("added", added), ("removed", removed)) if ids]
    if not changes:
        changes = ["another order"] if was != is_ else ["another source"]
    first = next(
        (i for i, pair in enumerate(zip(before.volumes, after.volumes, strict=False)) if pair[0] != pair[1]), len(was)
    )
    path = ("volumes", first) if first < len(is_) else ("volumes",)
    position = document.at(path, key=path == ("volumes",))
    return rules.VOLUMES_CHANGED.at(position, campaign=after.name, change=Words(", ".join(changes)))


def _ids(ids: t.Sequence[str]) -> str:
    return ids[0] if len(ids) == 1 else f"{len(ids)} volumes"
