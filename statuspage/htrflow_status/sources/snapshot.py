"""Everything at one moment, as a persistent map: a snapshot shares what has not changed with the one before."""

from __future__ import annotations

import dataclasses
import itertools
import typing as t

import rpds

from htrflow_status.model import Attempt, Campaign, Volume, VolumeState
from htrflow_status.sources import objects
from htrflow_status.sources.objects import Facts

#: Namespace and name of a Job.
Key = tuple[str, str]


@dataclasses.dataclass(slots=True, eq=False)
class Entry:
    """The facts of one Job, and when they changed. Never altered but for what is made of them when it is asked for."""

    facts: Facts
    version: str
    known: bool = dataclasses.field(init=False)
    _campaign: Campaign | None = None
    _running: tuple[int, ...] | None = None

    def __post_init__(self) -> None:
        self.known = self.facts.known

    @property
    def campaign(self) -> Campaign:
        if self._campaign is None:
            self._campaign = objects.campaign(self.facts, self.version)
        return self._campaign

    @property
    def running(self) -> tuple[int, ...]:
        """The volumes that run, in order."""
        if self._running is None:
            self._running = tuple(objects.indexes_in(self.facts, "running"))
        return self._running


class CacheSnapshot:
    """A :class:`htrflow_status.model.Snapshot` of a cache."""

    def __init__(self, entries: rpds.HashTrieMap[Key, Entry], version: str) -> None:
        self.version = version
        self._entries = entries
        self._campaigns: tuple[Campaign, ...] | None = None

    def campaigns(self) -> t.Sequence[Campaign]:
        if self._campaigns is None:
            self._campaigns = tuple(entry.campaign for entry in self._entries.values() if entry.known)
        return self._campaigns

    def campaign(self, namespace: str, name: str) -> Campaign | None:
        entry = self._entries.get((namespace, name))
        return entry.campaign if entry and entry.facts.known else None

    def volumes(self, campaign: Campaign, first: int = 0, most: int | None = None) -> t.Sequence[Volume]:
        facts = self._facts(campaign)
        if facts is None or facts.volumes is None:
            return ()
        end = len(facts.volumes) if most is None else min(len(facts.volumes), first + most)
        return tuple(objects.volume(facts, index) for index in range(max(0, first), end))

    def volume(self, campaign: Campaign, volume_id: str) -> Volume | None:
        facts = self._facts(campaign)
        index = facts.volumes.index(volume_id) if facts and facts.volumes is not None else None
        return None if facts is None or index is None else objects.volume(facts, index)

    def volumes_in(self, campaign: Campaign, state: VolumeState, most: int) -> t.Sequence[Volume]:
        entry = self._entries.get((campaign.namespace, campaign.name))
        facts = entry.facts if entry else None
        if entry is None or facts is None or facts.volumes is None:
            return ()
        listed = len(facts.volumes)
        indexes = entry.running if state == "running" else objects.indexes_in(facts, state)
        found = (index for index in indexes if index < listed)
        return tuple(objects.volume(facts, index) for index in itertools.islice(found, most))

    def attempts(self, campaign: Campaign, index: int) -> t.Sequence[Attempt]:
        facts = self._facts(campaign)
        return objects.attempts(facts, index) if facts else ()

    def find(self, text: str, most: int = 50) -> t.Mapping[str, t.Sequence[str]]:
        folded = text.strip().casefold()
        found: dict[str, t.Sequence[str]] = {}
        if not folded or "\n" in folded:
            return found
        for (namespace, name), entry in self._entries.items():
            volumes = entry.facts.volumes if entry.facts.known else None
            if volumes is not None and (ids := volumes.find(folded, most)):
                found[f"{namespace}/{name}"] = ids
        return found

    def _facts(self, campaign: Campaign) -> Facts | None:
        entry = self._entries.get((campaign.namespace, campaign.name))
        return entry.facts if entry else None
