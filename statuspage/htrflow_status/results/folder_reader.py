"""Reads the results of one machine, in the folder where they are; nobody logs in."""

from __future__ import annotations

import contextlib
import datetime
import errno
import functools
import os
import pathlib
import stat
import typing as t

import anyio.to_thread
from starlette.requests import HTTPConnection

from htrflow_status.results.places import Places
from htrflow_status.results.reader import READ_BYTES, CutOffError, Found, Info, Opened, Span, Unchanged, collected
from htrflow_status.results.refusal import Refusal

_BLOCK_BYTES = 256 * 1024
_ABSENT = {errno.ENOENT, errno.ENOTDIR, errno.ELOOP, errno.EISDIR, errno.ENAMETOOLONG, errno.ENXIO}


class FolderReader:
    """A :class:`~htrflow_status.results.reader.Reader` of a folder as :class:`htrflow_batch.folder_store.FolderStore`
    writes it. It makes nothing and follows no symbolic link below the folder.
    """

    def __init__(self, folder: pathlib.Path, places: Places) -> None:
        self._folder, self._places = folder, places

    async def read(self, key: str, most: int = READ_BYTES) -> Found | Refusal:
        found = await collected(await self.open(key), most)
        return Refusal("store_away") if isinstance(found, Unchanged) else found

    async def get_range(self, key: str, span: Span, most: int = READ_BYTES) -> Found | Refusal:
        found = await collected(await self.open(key, span), most)
        return Refusal("store_away") if isinstance(found, Unchanged) else found

    async def head(self, key: str) -> Info | Refusal:
        opened = await self.open(key)
        if isinstance(opened, Opened):
            opened.close()
            return opened.info
        return opened if isinstance(opened, Refusal) else Refusal("store_away")

    async def open(self, key: str, span: Span | None = None, known: str | None = None) -> Opened | Unchanged | Refusal:
        if not self._places.hold(key):
            return Refusal("not_found")
        try:
            file = await anyio.to_thread.run_sync(self._file, key)
        except OSError as error:
            if error.errno in _ABSENT:
                return Refusal("not_found")
            return Refusal("no_right" if error.errno in (errno.EACCES, errno.EPERM) else "store_away")
        status = os.fstat(file.fileno())
        # A file is replaced by another one and never written into.
        etag = f"{status.st_mtime_ns:x}-{status.st_ino:x}-{status.st_size:x}"
        info = Info(status.st_size, datetime.datetime.fromtimestamp(status.st_mtime, datetime.UTC), etag)
        places = span.within(info.size) if span else range(info.size)
        if places is None or etag == known or not stat.S_ISREG(status.st_mode):
            file.close()
            if not stat.S_ISREG(status.st_mode):
                return Refusal("not_found")
            return Unchanged(etag) if etag == known else Refusal("range", size=info.size)
        return Opened(info, places, _blocks(file, places), file.close, part=span is not None)

    def _file(self, key: str) -> t.BinaryIO:
        *folders, name = key.split("/")
        with contextlib.ExitStack() as opened:
            here = os.open(self._folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
            opened.callback(os.close, here)
            for part in folders:
                here = os.open(part, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=here)
                opened.callback(os.close, here)
            # A pipe in a file's place would keep an opener waiting.
            file = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=here)
        if stat.S_ISDIR(os.fstat(file).st_mode):
            os.close(file)
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
        return open(file, "rb")


class FolderReaders:
    """The one reader that everybody has."""

    def __init__(self, reader: FolderReader) -> None:
        self._reader = reader

    def of(self, connection: HTTPConnection) -> FolderReader | Refusal:
        return self._reader


async def _blocks(file: t.BinaryIO, places: range) -> t.AsyncIterator[bytes]:
    at = places.start
    while at < places.stop:
        read = functools.partial(os.pread, file.fileno(), min(_BLOCK_BYTES, places.stop - at), at)
        try:
            block = await anyio.to_thread.run_sync(read)
        except OSError:
            block = b""
        if not block:
            raise CutOffError(Refusal("store_away"))
        at += len(block)
        yield block
