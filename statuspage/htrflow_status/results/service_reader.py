"""Reads results through the results proxy, with the cookie that a reader's request came with."""

from __future__ import annotations

import datetime
import email.utils
import json
import re
import typing as t

import urllib3.exceptions

from htrflow_status.results.cache import Cache
from htrflow_status.results.places import could_be_key
from htrflow_status.results.reader import READ_BYTES, CutOffError, Found, Info, Opened, Span, Unchanged, collected
from htrflow_status.results.reads import Reads
from htrflow_status.results.refusal import CODES, Code, Refusal
from htrflow_status.results.service import Answer, Service

_PLACE = re.compile("bytes ([0-9]+)-([0-9]+)/([0-9]+)")
_OUTSIDE = re.compile(r"bytes \*/([0-9]+)")


class ServiceReader:
    """A :class:`~htrflow_status.results.reader.Reader` that has no keys. ``owner`` is whose the cache's entries are."""

    def __init__(self, service: Service, cookie: str, owner: str, cache: Cache, age: float = 2.0) -> None:
        self._service, self._cookie = service, cookie
        self._reads = Reads(owner, cache, age, self._read)

    def close(self) -> None:
        """Forgets what was read."""
        self._reads.forget()

    async def read(self, key: str, most: int = READ_BYTES) -> Found | Refusal:
        return await self._reads.read(key, most)

    async def get_range(self, key: str, span: Span, most: int = READ_BYTES) -> Found | Refusal:
        found = await collected(await self.open(key, span), most)
        return Refusal("results_away") if isinstance(found, Unchanged) else found

    async def head(self, key: str) -> Info | Refusal:
        answer = await self._ask("HEAD", key)
        if isinstance(answer, Refusal):
            return answer
        answer.close()
        if answer.status != 200:
            # What is refused without a body is asked for again, for the sake of the reason.
            opened = await self.open(key, Span(0, 0))
            if isinstance(opened, Opened):
                opened.close()
                return opened.info
            return opened if isinstance(opened, Refusal) else Refusal("results_away")
        return _info(answer) or Refusal("results_away")

    async def open(self, key: str, span: Span | None = None, known: str | None = None) -> Opened | Unchanged | Refusal:
        more = [("Range", str(span))] if span else []
        if known:
            more.append(("If-None-Match", f'"{known}"'))
        answer = await self._ask("GET", key, more)
        if isinstance(answer, Refusal):
            return answer
        if known and answer.status == 304:
            answer.close()
            return Unchanged(known)
        if answer.status not in (200, 206):
            body = await answer.body()
            answer.close()
            return body if isinstance(body, Refusal) else _refusal(answer, body)
        info = _info(answer)
        places = _places(answer, info) if info else None
        if info is None or places is None:
            answer.close()
            return Refusal("results_away")
        return Opened(info, places, _blocks(answer, len(places)), answer.close, part=answer.status == 206)

    async def _read(self, key: str, most: int, known: str | None) -> Found | Unchanged | Refusal:
        return await collected(await self.open(key, known=known), most)

    async def _ask(self, method: str, key: str, more: t.Sequence[tuple[str, str]] = ()) -> Answer | Refusal:
        if not could_be_key(key):
            return Refusal("not_found")
        headers = [("Cookie", self._cookie), ("Accept", "application/json"), *more]
        return await self._service.ask(method, f"/results/{key}", headers)


def _info(answer: Answer) -> Info | None:
    """What the headers say of the whole result."""
    try:
        modified = email.utils.parsedate_to_datetime(answer.headers.get("Last-Modified", "")).astimezone(datetime.UTC)
        part = _PLACE.fullmatch(answer.headers.get("Content-Range", ""))
        size = int(part[3] if part else answer.headers.get("Content-Length", ""))
    except (ValueError, TypeError, OverflowError):
        return None
    return Info(size, modified, answer.headers.get("ETag", "").strip('"'))


def _places(answer: Answer, info: Info) -> range | None:
    if answer.status == 200:
        return range(info.size)
    part = _PLACE.fullmatch(answer.headers.get("Content-Range", ""))
    return range(int(part[1]), int(part[2]) + 1) if part else None


async def _blocks(answer: Answer, size: int) -> t.AsyncIterator[bytes]:
    came = 0
    try:
        async for block in answer.blocks():
            came += len(block)
            yield block
    except (urllib3.exceptions.HTTPError, OSError):
        raise CutOffError(Refusal("results_away")) from None
    if came != size:
        raise CutOffError(Refusal("results_away"))


def _refusal(answer: Answer, body: bytes) -> Refusal:
    """The refusal that the service says, with what belongs to it; one that is none of ours is the service's fault."""
    try:
        code = json.loads(body)["code"]
    except (ValueError, KeyError, TypeError, RecursionError):
        code = None
    if not isinstance(code, str) or code not in CODES:
        return Refusal("results_away")
    outside = _OUTSIDE.fullmatch(answer.headers.get("Content-Range", ""))
    after = answer.headers.get("Retry-After", "")
    return Refusal(t.cast(Code, code), int(after) if after.isdecimal() else None, int(outside[1]) if outside else None)
