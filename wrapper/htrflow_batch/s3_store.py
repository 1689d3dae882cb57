"""Results in a bucket of any store that speaks S3."""

from __future__ import annotations

import contextlib
import datetime
import functools
import logging
import threading
import time
import typing as t

import botocore.exceptions
import botocore.parsers

from htrflow_batch import s3_client, s3_errors
from htrflow_batch.store import (
    GET_BYTES,
    Exists,
    Found,
    Info,
    Listed,
    checked_key,
    checked_metadata,
    checked_prefix,
    too_large,
)

if t.TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client
    from mypy_boto3_s3.type_defs import (
        GetObjectOutputTypeDef,
        HeadObjectOutputTypeDef,
        ListObjectsV2OutputTypeDef,
        ListObjectsV2RequestTypeDef,
        PutObjectOutputTypeDef,
        PutObjectRequestTypeDef,
    )

_T = t.TypeVar("_T")
_LOG = logging.getLogger(__name__)
_CUT_OFF = (botocore.exceptions.ResponseStreamingError, botocore.exceptions.IncompleteReadError)
_CHUNK_BYTES = 16 * 1024

#: Seconds before the first of the repeats of a conditional write that met another one; each waits twice as long.
_CONFLICT_WAIT = 0.1


class S3Store:
    """A :class:`~htrflow_batch.store.Store` in a bucket. It shares nothing with any other store of the process.

    Raises :class:`PermanentError` if there are no keys in the file. Does not ask the store anything yet.
    """

    def __init__(self, settings: s3_client.S3Settings) -> None:
        self._settings = settings
        self._lock = threading.Lock()
        self._keys = s3_client.read_keys(settings.credentials)
        self._client = s3_client.connect(settings, self._keys)
        self._conditional = True

    def close(self) -> None:
        """Ends the connections."""
        self._client.close()

    def put(
        self,
        key: str,
        content: bytes,
        content_type: str,
        *,
        if_none_match: bool = False,
        metadata: t.Mapping[str, str] | None = None,
    ) -> None:
        """As :meth:`Store.put`. A store without conditional writes is asked before the write instead, and two at once
        may then both win; the first time, this is logged.
        """
        request: PutObjectRequestTypeDef = {
            "Bucket": self._settings.bucket,
            "Key": checked_key(key),
            "Body": content,
            "ContentType": content_type,
            "Metadata": checked_metadata(metadata),
        }
        if not if_none_match:
            self._write(key, request)
        elif not (self._conditional and self._create(key, content, request)):
            if self.head(key) is not None:
                raise Exists(key)
            self._write(key, request)

    def get(self, key: str) -> Found | None:
        checked_key(key)

        def read(client: S3Client) -> Found | None:
            try:
                answer = client.get_object(Bucket=self._settings.bucket, Key=key)
            except botocore.exceptions.ClientError as error:
                if s3_errors.status(error) == 404 and s3_errors.code(error) != "NoSuchBucket":
                    return None
                raise
            with contextlib.closing(answer["Body"]):
                info = _info(answer)
                if info.size > GET_BYTES:
                    raise too_large(key, info.size, self._where)
                return Found(self._body(answer), info)

        # The client sends a request again, but does not read a body again that was cut off.
        for _ in range(self._settings.attempts - 1):
            with contextlib.suppress(*_CUT_OFF):
                return self._call(f"read {key}", read, body=True)
        return self._call(f"read {key}", read)

    def head(self, key: str) -> Info | None:
        checked_key(key)

        def ask(client: S3Client) -> Info | None:
            try:
                return _info(client.head_object(Bucket=self._settings.bucket, Key=key))
            except botocore.exceptions.ClientError as error:
                if s3_errors.status(error) == 404:
                    return None
                raise

        return self._call(f"read {key}", ask)

    def list(self, prefix: str) -> t.Iterator[Listed]:
        checked_prefix(prefix)
        return self._list(prefix)

    def _list(self, prefix: str) -> t.Iterator[Listed]:
        action, more, token = f"list {prefix}", True, ""
        while more:
            where: ListObjectsV2RequestTypeDef = {"Bucket": self._settings.bucket, "Prefix": prefix}
            if token:
                where["ContinuationToken"] = token
            answer = self._call(action, functools.partial(_listed, where))
            following = answer.get("NextContinuationToken", "")
            if answer["IsTruncated"] and following == token:
                raise s3_errors.not_s3(f"cannot {action} in {self._where}")
            more, token = answer["IsTruncated"], following
            for row in answer.get("Contents", ()):
                yield Listed(row["Key"], row["Size"], row["LastModified"].astimezone(datetime.UTC))

    def _write(self, key: str, request: PutObjectRequestTypeDef) -> None:
        self._call(f"write {key}", lambda client: _written(client.put_object(**request)))

    def _create(self, key: str, content: bytes, request: PutObjectRequestTypeDef) -> bool:
        """Writes where nothing is. False if the store cannot."""
        conditional: PutObjectRequestTypeDef = {**request, "IfNoneMatch": "*"}

        def create(client: S3Client) -> bool:
            for attempt in range(self._settings.attempts):
                try:
                    _written(client.put_object(**conditional))
                    return True
                except botocore.exceptions.ClientError as error:
                    if s3_errors.status(error) == 412:
                        # It may have been an earlier sending of this request that was there first.
                        repeated = error.response["ResponseMetadata"].get("RetryAttempts", 0) > 0 or attempt > 0
                        found = self.get(key) if repeated else None
                        if found and found.content == content and found.info.metadata == request.get("Metadata"):
                            return True
                        raise Exists(key) from None
                    if s3_errors.status(error) == 501:
                        return False
                    if s3_errors.status(error) != 409 or attempt + 1 == self._settings.attempts:
                        raise
                    time.sleep(_CONFLICT_WAIT * 2**attempt)
            raise AssertionError("the last attempt returns or raises")

        if self._call(f"write {key}", create):
            return True
        with self._lock:
            first, self._conditional = self._conditional, False
        if first:
            _LOG.warning("%s has no conditional writes, so it is asked before each write instead", self._where)
        return False

    def _body(self, answer: GetObjectOutputTypeDef) -> bytes:
        deadline = time.monotonic() + self._settings.attempts * self._settings.read_timeout
        content = bytearray()
        while chunk := answer["Body"].read(_CHUNK_BYTES):
            content += chunk
            if time.monotonic() > deadline:
                raise botocore.exceptions.ReadTimeoutError(endpoint_url=self._where)
        return bytes(content)

    def _call(self, action: str, request: t.Callable[[S3Client], _T], *, body: bool = False) -> _T:
        """Asks the store. ``body`` lets errors in the middle of a body through as they are."""
        said, client = f"cannot {action} in {self._where}", self._client
        try:
            return request(client)
        except botocore.exceptions.ClientError as error:
            if s3_errors.may_be_keys(error) and self._renewed(client):
                return self._call(action, request, body=body)
            raise s3_errors.refused(said, error) from None
        except _CUT_OFF as error:
            if body:
                raise
            raise s3_errors.unreachable(said, error) from None
        except botocore.exceptions.BotoCoreError as error:
            raise s3_errors.unreachable(said, error) from None
        except botocore.parsers.ResponseParserError:
            raise s3_errors.not_s3(said) from None

    @property
    def _where(self) -> str:
        return self._settings.where

    def _renewed(self, refused: S3Client) -> bool:
        """Whether there is another client than the one whose keys were refused."""
        with self._lock:
            if self._client is refused and (keys := s3_client.read_keys(self._settings.credentials)) != self._keys:
                self._keys, self._client = keys, s3_client.connect(self._settings, keys)
            return self._client is not refused


def _info(answer: GetObjectOutputTypeDef | HeadObjectOutputTypeDef) -> Info:
    _hold(answer, "ETag", "LastModified", "ContentLength")
    return Info(
        answer["ContentLength"],
        answer["LastModified"].astimezone(datetime.UTC),
        answer["ETag"].strip('"'),
        answer.get("ContentType", ""),
        answer.get("Metadata", {}),
    )


def _listed(where: ListObjectsV2RequestTypeDef, client: S3Client) -> ListObjectsV2OutputTypeDef:
    answer = client.list_objects_v2(**where)
    _hold(answer, "IsTruncated", *(["NextContinuationToken"] if answer.get("IsTruncated") else []))
    return answer


def _written(answer: PutObjectOutputTypeDef) -> None:
    _hold(answer, "ETag")


def _hold(answer: t.Mapping[str, t.Any], *names: str) -> None:
    """Refuses what a page of another server is read as, which is an answer that says nothing."""
    if not all(name in answer for name in names):
        raise botocore.parsers.ResponseParserError
