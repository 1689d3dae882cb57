"""The results proxy as a service of its own, asked over HTTP by the site that has no keys."""

from __future__ import annotations

import functools
import logging
import typing as t
import urllib.parse

import anyio
import anyio.to_thread
import urllib3
import urllib3.util

from htrflow_status.results.refusal import Refusal

_LOG = logging.getLogger(__name__)
#: The service itself waits for the store, sends a request to it twice, and then says that it is away.
_CONNECT_SECONDS, _READ_SECONDS = 3.0, 30.0
#: How many requests are on their way at once.
_THREADS = 32
_BLOCK_BYTES = 128 * 1024


class Answer:
    """What the service answers. Close it."""

    def __init__(self, response: urllib3.HTTPResponse, run: t.Callable[[t.Callable[[], t.Any]], t.Any]) -> None:
        self.status = response.status
        self.headers: t.Mapping[str, str] = response.headers
        self._response, self._run = response, run

    def all_of(self, name: str) -> list[str]:
        """The values of a header that may come several times."""
        return list(self._response.headers.getlist(name))

    async def blocks(self) -> t.AsyncIterator[bytes]:
        """The body, block by block. Ends with a ``urllib3`` error or ``OSError`` where the rest of it does not come."""
        while block := await self._run(functools.partial(self._response.read, _BLOCK_BYTES)):
            yield block

    async def body(self) -> bytes | Refusal:
        """The body in one piece."""
        try:
            return b"".join([block async for block in self.blocks()])
        except (urllib3.exceptions.HTTPError, OSError) as error:
            return _refused(error)

    def close(self) -> None:
        """Lets the connection go; one that was read to its end is used again."""
        if self._response.isclosed():
            self._response.release_conn()
        else:
            self._response.close()


class Service:
    """The service at an address, such as ``http://htrflow-results:8080``. Raises ``ValueError`` if it is none."""

    def __init__(self, address: str) -> None:
        parts = urllib.parse.urlsplit(address)
        if parts.scheme not in ("http", "https") or not parts.hostname or parts.path.strip("/") or parts.query:
            raise ValueError(f"no address of the results proxy, such as http://htrflow-results:8080: {address!r}")
        self._address = f"{parts.scheme}://{parts.netloc}"
        self._threads = anyio.CapacityLimiter(_THREADS)
        timeout = urllib3.Timeout(connect=_CONNECT_SECONDS, read=_READ_SECONDS)
        self._pool = urllib3.PoolManager(num_pools=1, maxsize=_THREADS, retries=False, timeout=timeout)

    async def ask(
        self, method: str, path: str, headers: t.Iterable[tuple[str, str]], body: bytes | None = None
    ) -> Answer | Refusal:
        """Sends a request for a path that needs no encoding, and gives what comes before the body."""
        request = functools.partial(
            self._pool.request,
            method,
            f"{self._address}{path}",
            headers=urllib3.HTTPHeaderDict(headers),
            body=body,
            preload_content=False,
            decode_content=False,
            redirect=False,
        )
        try:
            return Answer(t.cast(urllib3.HTTPResponse, await self._run(request)), self._run)
        except (urllib3.exceptions.HTTPError, OSError) as error:
            return _refused(error)

    def close(self) -> None:
        """Ends the connections that nobody reads from."""
        self._pool.clear()

    async def _run(self, work: t.Callable[[], t.Any]) -> t.Any:
        return await anyio.to_thread.run_sync(work, limiter=self._threads)


def _refused(error: Exception) -> Refusal:
    _LOG.warning("the results proxy gives no whole answer (%s)", type(error).__name__)
    # Of urllib3, a connection that was refused is a timeout as well.
    refused = isinstance(error, urllib3.exceptions.NewConnectionError)
    slow = isinstance(error, urllib3.exceptions.TimeoutError | TimeoutError) and not refused
    return Refusal("results_slow" if slow else "results_away")
