"""Opens the store that the configuration names."""

from __future__ import annotations

import logging
import pathlib
import time
import typing as t

from htrflow_batch.config import Bucket
from htrflow_batch.errors import TransientError
from htrflow_batch.folder_store import FolderStore
from htrflow_batch.s3_client import S3Settings
from htrflow_batch.s3_store import S3Store

_T = t.TypeVar("_T")
_LOG = logging.getLogger(__name__)
#: How often a store is asked for what the attempt cannot end without, and the seconds before the second time.
_TRIES, _PAUSE = 5, 2.0


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
            read_timeout=8.0,
            attempts=2,
        )
    )


def patiently(what: str, action: t.Callable[[], _T]) -> _T:
    """Does it, again and again where the store is not there for a while. ``what`` is it, for the log.

    Raises what the last try raises, and :class:`PermanentError` at once.
    """
    pause = _PAUSE
    for _ in range(_TRIES - 1):
        try:
            return action()
        except TransientError as error:
            _LOG.warning("%s: this is tried again: %s", what, error)
            time.sleep(pause)
            pause *= 2
    return action()
