"""Which campaigns a reader sees, and in which order: what runs, what is wrong, what is finished, what has not begun."""

from __future__ import annotations

import dataclasses
import typing as t

from htrflow_status.model import Campaign, CampaignState, Snapshot

#: Cards on one page, and volumes on a card that were searched for.
PAGE, HITS = 30, 6
#: Filters whose campaigns are kept in order.
_KEPT = 16

_RANKS: t.Final[t.Mapping[CampaignState, int]] = {
    "running": 0,
    "failed": 1,
    "partial volumes": 1,
    "unknown": 1,
    "partial pages": 2,
    "succeeded": 2,
    "paused": 3,
    "queued": 3,
}


@dataclasses.dataclass(frozen=True, slots=True)
class Filters:
    """What a reader asked for in the address. Empty is everything; ``page`` counts from 1."""

    state: str = ""
    pipeline: str = ""
    text: str = ""
    page: int = 1

    def query(self, **other: object) -> dict[str, str]:
        """The parameters of an address with these filters, or with others in their place."""
        values = {"state": self.state, "pipeline": self.pipeline, "q": self.text, "page": self.page, **other}
        return {name: str(value) for name, value in values.items() if value and (name, value) != ("page", 1)}


@dataclasses.dataclass(frozen=True, slots=True)
class Found:
    """A page of campaigns. ``hits`` are ids of volumes that were searched for, by campaign."""

    campaigns: tuple[Campaign, ...]
    total: int
    page: int
    pages: int
    states: t.Mapping[str, int]
    pipelines: tuple[str, ...]
    hits: t.Mapping[str, t.Sequence[str]]


class Order:
    """Finds campaigns, and keeps what it found until something changes."""

    def __init__(self) -> None:
        self._version = ""
        self._found: dict[Filters, _Fitting] = {}

    def found(self, snapshot: Snapshot, filters: Filters) -> Found:
        """The campaigns that fit, in order. The counts of states are of those that fit all other filters."""
        if snapshot.version != self._version or len(self._found) > _KEPT:
            self._version, self._found = snapshot.version, {}
        key = dataclasses.replace(filters, page=1)
        if (fitting := self._found.get(key)) is None:
            fitting = self._found[key] = _fitting(snapshot, filters)
        pages = max(1, -(-len(fitting.campaigns) // PAGE))
        page = min(max(filters.page, 1), pages)
        shown = fitting.campaigns[(page - 1) * PAGE : page * PAGE]
        total = len(fitting.campaigns)
        return Found(shown, total, page, pages, fitting.states, fitting.pipelines, fitting.hits)


@dataclasses.dataclass(frozen=True, slots=True)
class _Fitting:
    campaigns: tuple[Campaign, ...]
    states: t.Mapping[str, int]
    pipelines: tuple[str, ...]
    hits: t.Mapping[str, t.Sequence[str]]


def _fitting(snapshot: Snapshot, filters: Filters) -> _Fitting:
    everything = snapshot.campaigns()
    pipelines = tuple(sorted({campaign.pipeline.id for campaign in everything if campaign.pipeline.id}))
    fitting, hits = everything, t.cast("t.Mapping[str, t.Sequence[str]]", {})
    if filters.pipeline:
        fitting = [campaign for campaign in fitting if campaign.pipeline.id == filters.pipeline]
    if filters.text:
        wanted = filters.text.casefold()
        hits = snapshot.find(filters.text, HITS)
        fitting = [one for one in fitting if one.key in hits or wanted in one.name.casefold()]
    states: dict[str, int] = {}
    for campaign in fitting:
        states[campaign.state] = states.get(campaign.state, 0) + 1
    if filters.state:
        fitting = [campaign for campaign in fitting if campaign.state == filters.state]
    return _Fitting(tuple(sorted(fitting, key=_place)), states, pipelines, hits)


def _place(campaign: Campaign) -> tuple[int, float, str]:
    newest = campaign.finished or campaign.started or campaign.created
    return _RANKS[campaign.state], -newest.timestamp() if newest else 0.0, campaign.key
