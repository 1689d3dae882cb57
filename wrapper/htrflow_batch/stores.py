"""Opens the store that the configuration names."""

from __future__ import annotations

import pathlib

from htrflow_batch.config import Bucket
from htrflow_batch.folder_store import FolderStore
from htrflow_batch.s3_client import S3Settings
from htrflow_batch.s3_store import S3Store


def opened(store: Bucket | pathlib.Path, *, hurried: bool = False) -> S3Store | FolderStore:
    """The store. A hurried one gives up soon, for the last words of a pod that has to end.

    Raises :class:`PermanentError` or :class:`TransientError` where it cannot be used.
    """
    if isinstance(store, pathlib.Path):
        return FolderStore(store)
    settings = S3Settings(store.name, store.credentials, store.endpoint, verify=store.verify)
    if not hurried:
        return S3Store(settings)
    return S3Store(
        S3Settings(
            store.name,
            store.credentials,
            store.endpoint,
            verify=store.verify,
            connect_timeout=3.0,
            read_timeout=15.0,
            attempts=2,
        )
    )
