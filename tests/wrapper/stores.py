"""Buckets as the wrapper reaches them."""

from __future__ import annotations

import contextlib
import pathlib
import typing as t

from htrflow_batch.s3_client import S3Settings
from htrflow_batch.s3_store import S3Store
from tests.testbed.plugin.misbehaving_http import MisbehavingHttp
from tests.testbed.plugin.s3 import Account
from tests.testbed.plugin.s3 import Store as Server


def credentials(folder: pathlib.Path, account: Account) -> pathlib.Path:
    file = folder / "credentials"
    file.write_text(f"[default]\naws_access_key_id = {account.access}\naws_secret_access_key = {account.secret}\n")
    return file


@contextlib.contextmanager
def s3_store(
    server: Server, folder: pathlib.Path, account: Account | None = None, **settings: t.Any
) -> t.Iterator[S3Store]:
    file = credentials(folder, account or server.writer)
    store = S3Store(S3Settings(**{"bucket": server.bucket, "credentials": file, "endpoint": server.url, **settings}))
    yield store
    store.close()


@contextlib.contextmanager
def store_at(http: MisbehavingHttp, folder: pathlib.Path, **settings: t.Any) -> t.Iterator[S3Store]:
    """A store whose endpoint answers as the test says."""
    file = credentials(folder, Account("key", "a-very-secret-secret"))
    store = S3Store(S3Settings(**{"bucket": "b", "credentials": file, "endpoint": http.url, "attempts": 2, **settings}))
    yield store
    store.close()
