"""What a campaigns repo asks for."""

from __future__ import annotations

import dataclasses
import typing as t

from htrflow_campaigns import delivery
from htrflow_campaigns.load import Loaded
from htrflow_campaigns.objects.pod import Object


@dataclasses.dataclass(frozen=True, slots=True)
class Pipeline:
    """A pipeline's objects. ``path`` is of the user's file."""

    id: str
    path: str
    config_map: Object
    warmup: Object


@dataclasses.dataclass(frozen=True, slots=True)
class Part:
    """One Job of a campaign, with its ConfigMap. Most campaigns have one part."""

    campaign: str
    pipeline: str
    suspend: bool
    config_map: Object
    job: Object

    @property
    def name(self) -> str:
        return t.cast(str, self.job["metadata"]["name"])


@dataclasses.dataclass(frozen=True, slots=True)
class Campaign:
    """A campaign and its parts. ``path`` is of the user's file."""

    name: str
    path: str
    pipeline: str
    suspend: bool
    parts: tuple[Part, ...]


@dataclasses.dataclass(frozen=True, slots=True)
class Wanted:
    """The rendered objects of a good repo, in the order in which they are sent."""

    namespace: str
    pipelines: tuple[Pipeline, ...]
    campaigns: tuple[Campaign, ...]

    @property
    def parts(self) -> t.Iterator[Part]:
        for campaign in self.campaigns:
            yield from campaign.parts

    @property
    def names(self) -> set[tuple[str, str]]:
        """Kind and name of every object."""
        pairs = [(one.config_map, one.warmup) for one in self.pipelines]
        pairs += [(one.config_map, one.job) for one in self.parts]
        return {(item["kind"], item["metadata"]["name"]) for pair in pairs for item in pair}


def read(loaded: Loaded) -> Wanted | None:
    """What a repo asks for, or None when there are problems, which are all among ``loaded.problems`` then."""
    converter, apply = loaded.converter, delivery.Apply()
    pipelines: list[Pipeline] = []
    campaigns: list[Campaign] = []
    if converter and loaded.is_good():
        for id_, pipeline in loaded.pipelines.items():
            pipelines.append(Pipeline(id_, pipeline.path, *apply.pipeline(pipeline, converter)))
    for campaign, _ in loaded.campaigns():
        if converter and loaded.is_good():
            own = loaded.pipelines[campaign.pipeline]
            objects = [*apply.campaign(campaign, own, converter)]
            pairs = zip(objects[::2], objects[1::2], strict=True)
            parts = tuple(Part(campaign.name, campaign.pipeline, campaign.suspend, *pair) for pair in pairs)
            campaigns.append(Campaign(campaign.name, campaign.path, campaign.pipeline, campaign.suspend, parts))
    if converter is None or not loaded.is_good():
        return None
    return Wanted(converter.namespace, tuple(pipelines), tuple(campaigns))
