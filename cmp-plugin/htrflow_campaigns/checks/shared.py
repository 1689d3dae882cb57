"""Volumes that two campaigns run with one pipeline, which would write the same results."""

from __future__ import annotations

import typing as t

from htrflow_campaigns.document import Document
from htrflow_campaigns.model import Campaign
from htrflow_campaigns.problems import Problem, Words
from htrflow_campaigns.rules import campaign as rules


class SharedVolumes:
    """Remembers where each volume stood first: one entry a volume, whatever the number of campaigns."""

    def __init__(self) -> None:
        self._first: dict[str, dict[str, tuple[str, int]]] = {}

    def add(self, campaign: Campaign, document: Document) -> t.Iterator[Problem]:
        first = self._first.setdefault(campaign.pipeline, {})
        items = document.root["volumes"]
        path = document.path
        for index, volume in enumerate(campaign.volumes):
            line = document.position(items.offsets[index]).line
            known = first.setdefault(volume.id, (path, line))
            if known[0] != path:
                step = ("volumes", index, "id") if isinstance(items[index], dict) else ("volumes", index)
                other = Words(known[0])
                yield rules.VOLUME_SHARED.at(document.at(step), id=volume.id, other=other, line=known[1])
