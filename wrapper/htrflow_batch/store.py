"""What a place for results can do, and the rules that hold in every such place.

There are two: :class:`htrflow_batch.s3_store.S3Store` and :class:`htrflow_batch.folder_store.FolderStore`.
"""

from __future__ import annotations

import datetime
import re
import typing as t

from htrflow_batch.errors import PermanentError

#: S3's limits: of a key in UTF-8, and of an object's metadata, names and values together.
KEY_BYTES = 1024
METADATA_BYTES = 2048
#: What :meth:`Store.get` takes into memory. The largest thing that is read back is a run log.
GET_BYTES = 64 * 1024 * 1024

_METADATA_NAME = re.compile("[a-z0-9]+(?:-[a-z0-9]+)*")
# What an HTTP header brings back as it was.
_METADATA_VALUE = re.compile("[!-~]+(?: [!-~]+)*")


class Exists(Exception):  # noqa: N818
    """The key that was to be made is there already. The argument is the key."""


class Listed(t.NamedTuple):
    """One line of a listing. ``size`` is in bytes, ``modified`` in UTC."""

    key: str
    size: int
    modified: datetime.datetime


class Info(t.NamedTuple):
    """What is known of an object without its content.

    ``etag`` changes with the content and says nothing else; it is without quotes. ``size`` is in bytes, ``modified``
    in UTC.
    """

    size: int
    modified: datetime.datetime
    etag: str
    content_type: str
    metadata: t.Mapping[str, str]


class Found(t.NamedTuple):
    """An object as it was at one moment."""

    content: bytes
    info: Info


class Store(t.Protocol):
    """A place for results. Any number of threads may use one store at once.

    Every method raises :class:`TransientError` when the store is not there or cannot take it for a while, and
    :class:`PermanentError` when it refuses; the message says which store, and what to check. Nothing deletes.
    A key or metadata that no store could hold is a ``ValueError``.
    """

    def put(
        self,
        key: str,
        content: bytes,
        content_type: str,
        *,
        if_none_match: bool = False,
        metadata: t.Mapping[str, str] | None = None,
    ) -> None:
        """Writes an object whole: a reader sees what was there before or all of the new one.

        With ``if_none_match`` only where nothing is, else :class:`Exists`; of several who do so at once, one wins.
        Names of metadata are lower case words with hyphens, values printable ASCII without double spaces. A key is to
        be written with the same names each time: there are S3 stores that keep a name of the object before.
        """
        ...

    def get(self, key: str) -> Found | None:
        """An object with its content, at most :data:`GET_BYTES`, or None if there is none."""
        ...

    def head(self, key: str) -> Info | None:
        """An object without its content, or None if there is none."""
        ...

    def list(self, prefix: str) -> t.Iterator[Listed]:
        """All objects whose key begins with a text, in the order of the keys' UTF-8 bytes, read as they are asked for.

        The first error may come at any step. Objects written meanwhile may be in it or not.
        """
        ...


def checked_key(key: str) -> str:
    """The key itself, if it is one that every store can hold."""
    parts = key.split("/")
    if any(not part or part.startswith(".") for part in parts):
        raise ValueError(f"not a key, a part of it is empty or begins with a dot: {key!r}")
    return _checked_text(key)


def checked_prefix(prefix: str) -> str:
    """The beginning of keys itself, if there can be keys that begin so."""
    *folders, _ = prefix.split("/")
    if any(not part or part.startswith(".") for part in folders):
        raise ValueError(f"no key can begin so: {prefix!r}")
    return _checked_text(prefix)


def checked_metadata(metadata: t.Mapping[str, str] | None) -> dict[str, str]:
    """A copy of the metadata, if every store can hold it and give it back as it was."""
    copy = dict(metadata or {})
    for name, value in copy.items():
        if not _METADATA_NAME.fullmatch(name) or not _METADATA_VALUE.fullmatch(value):
            raise ValueError(f"not metadata of an object: {name!r}: {value!r}")
    if sum(len(name) + len(value) for name, value in copy.items()) > METADATA_BYTES:
        raise ValueError(f"metadata of an object is over {METADATA_BYTES} bytes: {', '.join(copy)}")
    return copy


def too_large(key: str, size: int, where: str) -> PermanentError:
    """What to raise for an object that nobody of us wrote: ours are far smaller."""
    return PermanentError(
        f"{key} in {where} is {size} bytes, more than the {GET_BYTES} that are read — see who wrote it, and remove it"
    )


def _checked_text(key: str) -> str:
    try:
        size = len(key.encode())
    except UnicodeEncodeError:
        raise ValueError(f"not a key, a character of it is none: {key!r}") from None
    if size > KEY_BYTES or "\\" in key or not key.isprintable():
        raise ValueError(f"not a key, it is too long or holds a backslash or a control character: {key!r}")
    return key
