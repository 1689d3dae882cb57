"""Results in a folder, under the paths that their keys have in a bucket."""

from __future__ import annotations

import contextlib
import datetime
import errno
import hashlib
import json
import logging
import mimetypes
import os
import pathlib
import secrets
import stat
import time
import typing as t

from htrflow_batch.errors import AttemptError, PermanentError, TransientError
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

_LOG = logging.getLogger(__name__)
#: What is no result: files that are being written, and what a file cannot say of itself. No key begins with a dot.
_OWN = ".store"
_UNFINISHED, _ABOUT = "unfinished", "about"
#: Seconds after which a file that is being written was left by a process that was killed.
_STALE = 24 * 3600.0
_TYPES = {".xml": "application/xml", ".json": "application/json", ".yaml": "application/yaml", ".txt": "text/plain"}

_NO_LINKS = {errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK}
_FULL = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}
_DENIED = {errno.EACCES, errno.EPERM, errno.EROFS}
_IN_THE_WAY = {errno.ELOOP, errno.ENOTDIR, errno.EISDIR, errno.ENAMETOOLONG, errno.ENOTEMPTY, errno.EEXIST}


class FolderStore:
    """A :class:`~htrflow_batch.store.Store` in a folder, which is made if it is not there.

    Files and folders get the modes that the process's umask gives. Nothing outside of the folder is read or written:
    a symbolic link on the way is refused, and passed over in a listing. The content type and metadata of an object
    are kept beside it with the digest of its content, so a file that anyone else replaces has none.
    Raises :class:`PermanentError` or :class:`TransientError` where the folder cannot be used.
    """

    def __init__(self, folder: pathlib.Path) -> None:
        self._folder = folder
        self._links = True
        with self._errors("use", ""):
            folder.mkdir(parents=True, exist_ok=True)
            self._root = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
            self._clean()

    def close(self) -> None:
        """Lets the folder go."""
        os.close(self._root)

    def put(
        self,
        key: str,
        content: bytes,
        content_type: str,
        *,
        if_none_match: bool = False,
        metadata: t.Mapping[str, str] | None = None,
    ) -> None:
        """As :meth:`Store.put`, and on the disk when it returns. On a file system without hard links, two who create
        at once may both win; the first time, this is logged.
        """
        about = {"key": key, "content_type": content_type, "metadata": checked_metadata(metadata)}
        *folders, name = checked_key(key).split("/")
        with self._errors("write", key), self._opened(folders, make=True) as folder:
            before = None if if_none_match else self._etag(folder, name, key)
            # First what is said of the new content, so that whoever finds one finds the other.
            if metadata or content_type != _guessed(key):
                with self._opened([_OWN, _ABOUT], make=True) as notes:
                    note = json.dumps(about, ensure_ascii=False, indent=1).encode()
                    self._place(note, notes, _note(key, _etag(content)), None)
            else:
                self._forget(key, _etag(content))
            self._place(content, folder, name, key if if_none_match else None)
            if before not in (None, _etag(content)):
                self._forget(key, before)

    def get(self, key: str) -> Found | None:
        *folders, name = checked_key(key).split("/")
        with self._errors("read", key), contextlib.suppress(FileNotFoundError), self._opened(folders) as folder:
            content, status = self._read(folder, name, key)
            about = self._about(key, _etag(content))
            return Found(content, Info(len(content), _modified(status), *about))
        return None

    def head(self, key: str) -> Info | None:
        found = self.get(key)
        return found.info if found else None

    def list(self, prefix: str) -> t.Iterator[Listed]:
        checked_prefix(prefix)
        return self._list(prefix)

    def _list(self, prefix: str) -> t.Iterator[Listed]:
        *folders, beginning = prefix.split("/")
        with self._errors("list", prefix):
            yield from self._below(folders, beginning)

    def _below(self, folders: t.Sequence[str], beginning: str = "") -> t.Iterator[Listed]:
        rows: list[tuple[bytes, str, os.stat_result]] = []
        # A symbolic link, or a file, where the prefix has a folder.
        with contextlib.suppress(FileNotFoundError, NotADirectoryError), self._opened(folders) as folder:
            for name in os.listdir(folder):  # noqa: PTH208
                key = "/".join([*folders, name])
                with contextlib.suppress(FileNotFoundError, ValueError):
                    status = os.stat(name, dir_fd=folder, follow_symlinks=False)
                    if checked_key(key) and name.startswith(beginning):
                        # As S3 sorts keys: "a.b" comes before what is below "a/".
                        end = b"/" if stat.S_ISDIR(status.st_mode) else b""
                        rows.append((name.encode() + end, name, status))
        for _, name, status in sorted(rows, key=lambda row: row[0]):
            if stat.S_ISDIR(status.st_mode):
                yield from self._below([*folders, name])
            elif stat.S_ISREG(status.st_mode):
                yield Listed("/".join([*folders, name]), status.st_size, _modified(status))

    def _place(self, content: bytes, folder: int, name: str, only_new: str | None) -> None:
        """Writes a file whole. ``only_new`` is its key where nothing may be there yet."""
        with self._opened([_OWN, _UNFINISHED], make=True) as unfinished:
            own = secrets.token_hex(16)
            file = os.open(own, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666, dir_fd=unfinished)
            try:
                with open(file, "wb") as stream:
                    stream.write(content)
                    stream.flush()
                    os.fsync(file)
                if only_new is None or not self._link(own, unfinished, name, folder, only_new):
                    os.rename(own, name, src_dir_fd=unfinished, dst_dir_fd=folder)
            finally:
                with contextlib.suppress(FileNotFoundError):
                    os.unlink(own, dir_fd=unfinished)
            _sync(folder)

    def _link(self, own: str, unfinished: int, name: str, folder: int, key: str) -> bool:
        """Gives a file its name, if nothing has that name. False if it has to be renamed."""
        if self._links:
            try:
                os.link(own, name, src_dir_fd=unfinished, dst_dir_fd=folder, follow_symlinks=False)
                return True
            except FileExistsError:
                raise Exists(key) from None
            except OSError as error:
                if error.errno not in _NO_LINKS:
                    raise
            first, self._links = self._links, False
            if first:
                _LOG.warning("%s has no hard links, so it is looked at before each write instead", self._folder)
        with contextlib.suppress(FileNotFoundError):
            os.stat(name, dir_fd=folder, follow_symlinks=False)
            raise Exists(key)
        return False

    def _read(self, folder: int, name: str, key: str) -> tuple[bytes, os.stat_result]:
        # A pipe in a file's place would keep an opener waiting.
        file = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=folder)
        with open(file, "rb") as stream:
            status = os.fstat(file)
            if not stat.S_ISREG(status.st_mode):
                raise OSError(errno.EISDIR, os.strerror(errno.EISDIR))
            if status.st_size > GET_BYTES:
                raise too_large(key, status.st_size, str(self._folder))
            return stream.read(), status

    def _etag(self, folder: int, name: str, key: str) -> str | None:
        try:
            return _etag(self._read(folder, name, key)[0])
        except FileNotFoundError:
            return None

    def _about(self, key: str, etag: str) -> tuple[str, str, dict[str, str]]:
        """The digest, content type and metadata of an object with this digest."""
        with contextlib.suppress(FileNotFoundError, ValueError, KeyError, TypeError):
            with self._opened([_OWN, _ABOUT]) as notes:
                about = json.loads(self._read(notes, _note(key, etag), key)[0])
            return etag, str(about["content_type"]), checked_metadata(about["metadata"])
        return etag, _guessed(key), {}

    def _forget(self, key: str, etag: str | None) -> None:
        if etag is not None:
            with contextlib.suppress(FileNotFoundError), self._opened([_OWN, _ABOUT]) as notes:
                os.unlink(_note(key, etag), dir_fd=notes)

    @contextlib.contextmanager
    def _opened(self, folders: t.Sequence[str], *, make: bool = False) -> t.Iterator[int]:
        """A folder below the root, reached through no symbolic link."""
        here = os.dup(self._root)
        try:
            for name in folders:
                if make:
                    with contextlib.suppress(FileExistsError):
                        os.mkdir(name, 0o777, dir_fd=here)
                        _sync(here)
                there = os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=here)
                os.close(here)
                here = there
            yield here
        finally:
            os.close(here)

    def _clean(self) -> None:
        with contextlib.suppress(FileNotFoundError), self._opened([_OWN, _UNFINISHED]) as unfinished:
            for name in os.listdir(unfinished):  # noqa: PTH208
                with contextlib.suppress(FileNotFoundError, PermissionError):
                    if os.stat(name, dir_fd=unfinished, follow_symlinks=False).st_mtime < time.time() - _STALE:
                        os.unlink(name, dir_fd=unfinished)

    @contextlib.contextmanager
    def _errors(self, what: str, key: str) -> t.Iterator[None]:
        try:
            yield
        except OSError as error:
            raise self._error(f"cannot {what} {key or 'it'} in the folder {self._folder}", error.errno or 0) from None

    def _error(self, said: str, number: int) -> AttemptError:
        if number in _FULL:
            return TransientError(f"{said}: there is no room left — free some, or use another folder")
        if number in _DENIED:
            return PermanentError(f"{said}: it is not allowed — let the user {os.geteuid()} read and write there")
        if number in _IN_THE_WAY:
            return PermanentError(
                f"{said}: a symbolic link, or something else than a file or folder, is in its place — remove it, or"
                " use another folder"
            )
        return TransientError(f"{said} for a while: {os.strerror(number)} — see how the disk is")


def _etag(content: bytes) -> str:
    return hashlib.md5(content, usedforsecurity=False).hexdigest()


def _note(key: str, etag: str) -> str:
    # A key's parts would need folders of their own, and its name may be as long as a file's name can be.
    return hashlib.sha256(f"{etag} {key}".encode()).hexdigest() + ".json"


def _sync(folder: int) -> None:
    try:
        os.fsync(folder)
    except OSError as error:
        # Some file systems of networks have none for folders.
        if error.errno != errno.EINVAL:
            raise


def _modified(status: os.stat_result) -> datetime.datetime:
    return datetime.datetime.fromtimestamp(status.st_mtime, datetime.UTC)


def _guessed(key: str) -> str:
    suffix = pathlib.PurePosixPath(key).suffix
    return _TYPES.get(suffix) or mimetypes.guess_type(key, strict=True)[0] or "application/octet-stream"
