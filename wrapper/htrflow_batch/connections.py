"""HTTP connections whose every read ends in time, however slowly the bytes come."""

from __future__ import annotations

import contextlib
import http.client
import io
import socket
import threading
import time
import typing as t

import requests
import requests.adapters
import urllib3
import urllib3.connection
import urllib3.connectionpool

from htrflow_batch import errors

# How soon a read that waits notices that the program ends.
_SLICE = 0.25


class Limits(t.NamedTuple):
    """What ends the reads of a thread."""

    #: The end of everything, on the monotonic clock.
    until: float
    #: How many seconds may pass without a byte.
    silence: float
    #: Called several times a second; what it raises ends the read.
    check: t.Callable[[], None]


class _Active(threading.local):
    limits: Limits | None = None


_active = _Active()


@contextlib.contextmanager
def limited(limits: Limits) -> t.Iterator[None]:
    """Holds what this thread reads from :class:`Adapter`'s connections to the limits.

    A read that goes over a limit raises ``TimeoutError``, which urllib3 and requests wrap in theirs. Their own read
    time-out starts anew with each byte, and so does not end a body or a header that comes a byte at a time.
    """
    before, _active.limits = _active.limits, limits
    try:
        yield
    finally:
        _active.limits = before


class _Reader(io.RawIOBase):
    def __init__(self, connection: socket.socket, inner: io.BufferedIOBase) -> None:
        super().__init__()
        self._connection = connection
        # The socket stays open as long as a file that it made.
        self._inner = inner

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: t.Any) -> int:
        limits = _active.limits
        if limits is None:
            return self._connection.recv_into(buffer)
        until = min(limits.until, time.monotonic() + limits.silence)
        while (left := until - time.monotonic()) > 0:
            limits.check()
            self._connection.settimeout(min(left, _SLICE))
            with contextlib.suppress(TimeoutError):
                return self._connection.recv_into(buffer)
        raise TimeoutError("timed out")

    def close(self) -> None:
        if not self.closed:
            self._inner.close()
        super().close()


class _Response(http.client.HTTPResponse):
    def __init__(self, sock: socket.socket, *values: t.Any, **named: t.Any) -> None:
        super().__init__(sock, *values, **named)
        self.fp = io.BufferedReader(_Reader(sock, self.fp))


class HttpConnection(urllib3.connection.HTTPConnection):
    """A connection whose reads hold to the limits of :func:`limited`."""

    response_class = _Response


class HttpsConnection(urllib3.connection.HTTPSConnection):
    """The same, encrypted."""

    response_class = _Response


class _HttpPool(urllib3.HTTPConnectionPool):
    ConnectionCls = HttpConnection


class _HttpsPool(urllib3.HTTPSConnectionPool):
    ConnectionCls = HttpsConnection


class Adapter(requests.adapters.HTTPAdapter):
    """Sends one request and follows nothing. Knows no cookies, no netrc, no proxies and no other environment."""

    def init_poolmanager(self, *values: t.Any, **named: t.Any) -> None:
        super().init_poolmanager(*values, **named)
        self.poolmanager.pool_classes_by_scheme = {"http": _HttpPool, "https": _HttpsPool}


def check_header(name: str, value: str, what: str) -> None:
    """Raises ``PermanentError`` when HTTP cannot carry the header. Its message leaves out the value, maybe a secret."""
    try:
        requests.Request("GET", "http://localhost/", headers={name: value}).prepare()
        value.encode("latin-1")
    except (ValueError, requests.RequestException):
        shown = name if name.isprintable() else "header"
        raise errors.PermanentError(
            f"{what} cannot be sent as {shown} — write it in one line of Latin letters."
        ) from None
