"""Reads the bucket with one account's keys."""

from __future__ import annotations

import contextlib
import datetime
import functools
import re
import typing as t

import anyio
import anyio.to_thread
import botocore.exceptions
import botocore.parsers

from htrflow_batch import s3_errors
from htrflow_status.results.accounts import Account
from htrflow_status.results.cache import Cache
from htrflow_status.results.reader import (
    READ_BYTES,
    CutOffError,
    Found,
    Info,
    Opened,
    Span,
    Unchanged,
    collected,
)
from htrflow_status.results.reads import Reads
from htrflow_status.results.refusal import Refusal
from htrflow_status.results.s3_place import S3Place
from htrflow_status.results.s3_refusals import CUT_OFF, ERRORS, refusal_of

if t.TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client
    from mypy_boto3_s3.type_defs import GetObjectOutputTypeDef, GetObjectRequestTypeDef, HeadObjectOutputTypeDef

_T = t.TypeVar("_T")
_BLOCK_BYTES = 128 * 1024
#: How many requests of one reader are at the store at once.
_AT_ONCE = 8
#: What an ETag holds without its quotes (RFC 9110, 8.8.3), as far as stores use it.
_ETAG = re.compile("[!#-~]{1,256}")
_PLACE = re.compile("bytes ([0-9]+)-([0-9]+)/([0-9]+)")


class S3Reader:
    """A :class:`~htrflow_status.results.reader.Reader` with the keys of one account.

    ``threads`` bounds all readers together, so that a store that does not answer leaves the pages alone. ``owner`` is
    whose the entries of the cache are, and ``age`` how long they are used, in seconds.
    """

    def __init__(
        self,
        place: S3Place,
        account: Account,
        owner: str,
        cache: Cache,
        threads: anyio.CapacityLimiter,
        age: float = 2.0,
    ) -> None:
        self.account, self.owner = account, owner
        self._place, self._reads = place, Reads(owner, cache, age, self._read)
        self._threads, self._own = threads, anyio.CapacityLimiter(_AT_ONCE)
        self._client = place.connected(account)

    def close(self) -> None:
        """Ends the connections that nobody reads from."""
        self._client.close()
        self._reads.forget()

    async def read(self, key: str, most: int = READ_BYTES) -> Found | Refusal:
        return await self._reads.read(key, most)

    async def get_range(self, key: str, span: Span, most: int = READ_BYTES) -> Found | Refusal:
        found = await collected(await self.open(key, span), most)
        return Refusal("store_away") if isinstance(found, Unchanged) else found

    async def head(self, key: str) -> Info | Refusal:
        if not self._place.places.hold(key):
            return Refusal("not_found")
        ask = functools.partial(self._client.head_object, Bucket=self._place.bucket, Key=key)
        info = await self._asked(f"read {key}", lambda: _info(ask()))
        if isinstance(info, Refusal) and info.code == "no_right":
            # This answer has no body that says whether it is the rights or the keys.
            opened = await self.open(key, Span(0, 0))
            if isinstance(opened, Opened):
                opened.close()
                return opened.info
            return opened if isinstance(opened, Refusal) and opened.code != "range" else info
        return info

    async def open(self, key: str, span: Span | None = None, known: str | None = None) -> Opened | Unchanged | Refusal:
        if not self._place.places.hold(key):
            return Refusal("not_found")
        request: GetObjectRequestTypeDef = {"Bucket": self._place.bucket, "Key": key}
        if span:
            request["Range"] = str(span)
        if known and _ETAG.fullmatch(known):
            request["IfNoneMatch"] = f'"{known}"'
        opened = await self._asked(f"read {key}", functools.partial(self._open, request, known))
        if isinstance(opened, Refusal) and opened.code == "range":
            info = await self.head(key)
            return info if isinstance(info, Refusal) else Refusal("range", size=info.size)
        return opened

    async def _read(self, key: str, most: int, known: str | None) -> Found | Unchanged | Refusal:
        with anyio.move_on_after(self._place.patience):
            opened = await self.open(key, known=known)
            found = await collected(opened, most)
            # The client sends a request again, but does not read a body again that was cut off.
            if isinstance(opened, Opened) and isinstance(found, Refusal) and found.code == "store_away":
                found = await collected(await self.open(key), most)
            return found
        return Refusal("store_slow")

    def _open(self, request: GetObjectRequestTypeDef, known: str | None) -> Opened | Unchanged:
        try:
            answer = self._client.get_object(**request)
        except botocore.exceptions.ClientError as error:
            if known and error.response.get("ResponseMetadata", {}).get("HTTPStatusCode") == 304:
                return Unchanged(known)
            raise
        body = answer["Body"]
        with contextlib.ExitStack() as failing:
            failing.callback(body.close)
            info, places = _placed(answer)
            if info.etag == known:
                return Unchanged(info.etag)
            failing.pop_all()
        part = "ContentRange" in answer
        return Opened(info, places, self._blocks(answer, len(places), request["Key"]), body.close, part=part)

    async def _blocks(self, answer: GetObjectOutputTypeDef, size: int, key: str) -> t.AsyncIterator[bytes]:
        doing, left = f"read {key} to its end", size
        while left:
            try:
                block = await self._in_thread(functools.partial(answer["Body"].read, min(left, _BLOCK_BYTES)))
                if not block:
                    raise botocore.exceptions.IncompleteReadError(actual_bytes=size - left, expected_bytes=size)
            except CUT_OFF as error:
                raise CutOffError(refusal_of(error, doing)) from None
            left -= len(block)
            yield block

    async def _asked(self, doing: str, request: t.Callable[[], _T]) -> _T | Refusal:
        try:
            return await self._in_thread(request)
        except ERRORS as error:
            return refusal_of(error, doing)

    async def _in_thread(self, work: t.Callable[[], _T]) -> _T:
        async with self._own:
            return await anyio.to_thread.run_sync(work, limiter=self._threads)


async def admitted(place: S3Place, account: Account, threads: anyio.CapacityLimiter) -> Refusal | None:
    """Whether the store knows the account and lets it list results below one of the prefixes; None if so.

    A store may answer that an account has no right without looking at its signature, so that is no login.
    """

    def ask() -> Refusal | None:
        with contextlib.closing(place.connected(account)) as client:
            for prefix in place.places.prefixes:
                try:
                    _list(client, place.bucket, prefix)
                    return None
                except ERRORS as error:
                    if (refused := _refused_login(error, account)).code != "no_right":
                        return refused
        return Refusal("no_right_at_all")

    return await anyio.to_thread.run_sync(ask, limiter=threads)


def _refused_login(error: Exception, account: Account) -> Refusal:
    # A name that has the header's own marks in it is one that such a store has not.
    malformed = isinstance(error, botocore.exceptions.ClientError) and (
        s3_errors.code(error) == "AuthorizationHeaderMalformed"
    )
    if malformed and not account.access.isalnum():
        return Refusal("wrong_login")
    found = refusal_of(error, "check a login")
    if found.code == "keys_refused":
        return Refusal("wrong_login")
    return found if found.code == "no_right" or found.status >= 500 else Refusal("store_away")


def _list(client: S3Client, bucket: str, prefix: str) -> None:
    if "IsTruncated" not in client.list_objects_v2(Bucket=bucket, Prefix=prefix, MaxKeys=1):
        raise botocore.parsers.ResponseParserError


def _info(answer: GetObjectOutputTypeDef | HeadObjectOutputTypeDef) -> Info:
    # A page of another server is read as an answer that says nothing.
    if not all(name in answer for name in ("ETag", "LastModified", "ContentLength")):
        raise botocore.parsers.ResponseParserError
    etag = answer["ETag"].strip('"')
    return Info(
        answer["ContentLength"], answer["LastModified"].astimezone(datetime.UTC), etag if _ETAG.fullmatch(etag) else ""
    )


def _placed(answer: GetObjectOutputTypeDef) -> tuple[Info, range]:
    """What an answer is of, and which bytes of it it has."""
    info = _info(answer)
    if not (said := answer.get("ContentRange")):
        return info, range(info.size)
    match = _PLACE.fullmatch(said)
    places = range(int(match[1]), int(match[2]) + 1) if match else range(0)
    if not match or not places or len(places) != info.size or places.stop > int(match[3]):
        raise botocore.parsers.ResponseParserError
    return Info(int(match[3]), info.modified, info.etag), places
