"""Reads whole results, and uses an answer again for a few seconds."""

from __future__ import annotations

import asyncio
import time
import typing as t
import weakref

from htrflow_status.results.cache import Cache, Kept
from htrflow_status.results.reader import Found, Unchanged
from htrflow_status.results.refusal import Refusal

#: Asks for a key, of at most so many bytes, unless it is what has this tag.
Ask = t.Callable[[str, int, str | None], t.Awaitable[Found | Unchanged | Refusal]]


class Reads:
    """The reads of one ``owner``, whose entries of the cache nobody else gets. ``age`` is how long they are used."""

    def __init__(self, owner: str, cache: Cache, age: float, ask: Ask) -> None:
        self._owner, self._cache, self._age, self._ask = owner, cache, age, ask
        self._locks: weakref.WeakValueDictionary[str, asyncio.Lock] = weakref.WeakValueDictionary()

    async def read(self, key: str, most: int) -> Found | Refusal:
        """A result that is at most ``age`` seconds old."""
        # Who asks for what another one of the same reader is asking for waits for that answer.
        async with self._locks.setdefault(key, asyncio.Lock()):
            kept = self._cache.get(self._owner, key)
            if kept and time.monotonic() - kept.at < self._age:
                return kept.answer
            old = kept.answer if kept and isinstance(kept.answer, Found) else None
            found = await self._ask(key, most, old.info.etag if old else None)
            answer = old if isinstance(found, Unchanged) and old else found
            if isinstance(answer, Unchanged):
                raise AssertionError("nothing was known of it")
            if isinstance(answer, Found) or answer.code == "not_found":
                self._cache.put(self._owner, key, Kept(answer, time.monotonic()))
            else:
                self._cache.drop(self._owner, key)
            return answer

    def forget(self) -> None:
        """Drops all that was read."""
        self._cache.forget(self._owner)
