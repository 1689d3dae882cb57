"""What the results of volumes say, read in the reader's own name, several at a time."""

from __future__ import annotations

import asyncio
import typing as t

from htrflow_batch.errors import AttemptError
from htrflow_batch.keys import Keys
from htrflow_status import progress
from htrflow_status.model import Campaign, Volume
from htrflow_status.progress import Progress
from htrflow_status.results import reader as results
from htrflow_status.results.reader import Found
from htrflow_status.results.refusal import Code, Refusal

#: Files that one page of the site reads at most, and how many at once.
MOST, AT_ONCE = 200, 16


class Reader:
    """Results as one reader may read them. ``refusals`` are what stood in the way, but for what is not there."""

    def __init__(self, reader: results.Reader) -> None:
        #: It belongs to one session, or to everybody where nobody logs in, and lives as long as that does.
        self.own = reader
        self.refusals: dict[Code, Refusal] = {}

    async def content(self, key: str) -> bytes | None:
        """What has this key, or None where the reader gets nothing."""
        found = await self.own.read(key)
        if isinstance(found, Found):
            return found.content
        self.refuse(found)
        return None

    def refuse(self, refusal: Refusal) -> None:
        """Notes what stood in the way."""
        if refusal.code != "not_found":
            self.refusals[refusal.code] = refusal


def keys(campaign: Campaign, volume_id: str) -> Keys | None:
    """The keys of a volume's results, or None where no bucket could have them."""
    try:
        return Keys(campaign.namespace, campaign.pipeline.id, volume_id)
    except AttemptError:
        return None


async def progresses(
    reader: Reader, wanted: t.Sequence[tuple[Campaign, Volume]], *, cells: bool = False
) -> dict[tuple[str, int], Progress]:
    """What is known of volumes, by their campaign's key and their index. Those beyond :data:`MOST` are left out."""
    slots = asyncio.Semaphore(AT_ONCE)

    async def one(campaign: Campaign, volume: Volume) -> tuple[tuple[str, int], Progress | None]:
        found = keys(campaign, volume.id)
        if found is None:
            return (campaign.key, volume.index), None
        async with slots:
            content = await reader.content(found.progress)
        read = progress.read(content, cells=cells) if content is not None else None
        return (campaign.key, volume.index), read

    read = await asyncio.gather(*(one(campaign, volume) for campaign, volume in wanted[:MOST]))
    return {key: found for key, found in read if found is not None}
