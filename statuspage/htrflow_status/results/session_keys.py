"""The keys that session cookies are encrypted with."""

from __future__ import annotations

import logging
import pathlib
import threading
import typing as t

from cryptography.fernet import Fernet

_LOG = logging.getLogger(__name__)


class SessionKeys:
    """The keys in a file, one a line, the newest first: it encrypts, and all of them decrypt.

    A key is 32 bytes in Base64, as ``Fernet.generate_key`` makes it. The file is read again whenever it changes, so
    that removing a key ends the sessions under it. While it cannot be read there are no keys, and no session holds.
    Without a file there is one key, which ends with the process.
    """

    def __init__(self, file: pathlib.Path | None = None) -> None:
        self._file = file
        self._lock = threading.Lock()
        self._seen: tuple[int, int, int] | None = None
        self._keys: tuple[Fernet, ...] = () if file else (Fernet(Fernet.generate_key()),)

    def all(self) -> t.Sequence[Fernet]:
        """The keys as they are, the newest first."""
        if self._file is None:
            return self._keys
        with self._lock:
            try:
                status = self._file.stat()
                seen = (status.st_mtime_ns, status.st_ino, status.st_size)
                if seen != self._seen:
                    self._keys, self._seen = _read(self._file), seen
            except (OSError, ValueError) as error:
                if self._keys or self._seen is None:
                    _LOG.error("no session holds: the keys in %s cannot be read (%s)", self._file, type(error).__name__)
                self._keys, self._seen = (), (0, 0, 0)
            return self._keys


def _read(file: pathlib.Path) -> tuple[Fernet, ...]:
    keys = tuple(Fernet(line) for line in file.read_text(encoding="ascii").split())
    if not keys:
        raise ValueError("no key")
    return keys
