"""The objects of a campaigns repo, and the user's files that each of them comes from."""

from __future__ import annotations

import typing as t

from htrflow_action.report import Identity
from htrflow_campaigns.delivery import Apply
from htrflow_campaigns.load import Loaded
from htrflow_campaigns.model import Campaign
from htrflow_campaigns.objects.pod import Object
from htrflow_campaigns.tree import Entry


class Sources(t.NamedTuple):
    """The files behind an object. ``campaign`` is None for what belongs to a pipeline alone."""

    campaign: Entry | None
    pipeline: Entry
    converter: Entry


class Made(t.NamedTuple):
    """One object, and where it comes from."""

    object: Object
    sources: Sources

    @property
    def identity(self) -> Identity:
        return identity(self.object)


def identity(item: Object) -> Identity:
    metadata = item["metadata"]
    return Identity(str(item["kind"]), str(metadata.get("namespace") or "default"), str(metadata["name"]))


class Maker:
    """Makes the objects of the good files of ``loaded``, as ``htrflow-campaigns render`` writes them.

    ``loaded.converter`` has to be there: without it nothing is known of any object.
    """

    def __init__(self, loaded: Loaded) -> None:
        assert loaded.converter is not None
        assert loaded.tree.converter is not None
        self._loaded = loaded
        self._converter = loaded.converter
        self._settings = loaded.tree.converter
        self._delivery = Apply()
        self._entries = {entry.name: entry for entry in loaded.tree.pipelines}

    def pipelines(self) -> t.Iterator[Made]:
        """The objects of every good pipeline."""
        for id_, pipeline in self._loaded.pipelines.items():
            sources = Sources(None, self._entries[id_], self._settings)
            for item in self._delivery.pipeline(pipeline, self._converter):
                yield Made(item, sources)

    def campaign(self, campaign: Campaign) -> t.Iterator[Made]:
        """The objects of one campaign; none when its pipeline is not good."""
        pipeline = self._loaded.pipelines.get(campaign.pipeline)
        if pipeline is not None:
            entry = Entry(campaign.path, campaign.name)
            sources = Sources(entry, self._entries[campaign.pipeline], self._settings)
            for item in self._delivery.campaign(campaign, pipeline, self._converter):
                yield Made(item, sources)
