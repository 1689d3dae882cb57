"""An application served as it is in a pod: uvicorn, over real HTTP, on this machine."""

from __future__ import annotations

import contextlib
import http.client
import socket
import threading
import time
import typing as t

import uvicorn
from starlette.types import ASGIApp

_SECONDS = 30.0


@contextlib.contextmanager
def served(made: t.Callable[[str], ASGIApp]) -> t.Iterator[str]:
    """Serves what ``made`` makes of the server's address, such as ``http://127.0.0.1:4711``, and gives the address.

    ``X-Forwarded-For`` reaches the application as it was sent.
    """
    listener = socket.create_server(("127.0.0.1", 0))
    url = f"http://127.0.0.1:{listener.getsockname()[1]}"
    settings = uvicorn.Config(
        made(url),
        proxy_headers=False,
        server_header=False,
        lifespan="off",
        ws="none",
        log_config=None,
        timeout_keep_alive=2,
    )
    server = uvicorn.Server(settings)
    thread = threading.Thread(target=server.run, args=([listener],), daemon=True)
    thread.start()
    try:
        until = time.monotonic() + _SECONDS
        while not server.started:
            assert thread.is_alive()
            assert time.monotonic() < until
            time.sleep(0.01)
        yield url
    finally:
        server.should_exit = True
        thread.join(_SECONDS)
        listener.close()
    assert not thread.is_alive()


class Raw(t.NamedTuple):
    """An answer to a request that was sent as it is."""

    status: int
    headers: t.Mapping[str, str]
    body: bytes


def raw(url: str, request: bytes) -> Raw:
    """Sends some bytes and reads one answer: no client tidies them before."""
    host, _, port = url.removeprefix("http://").partition(":")
    with socket.create_connection((host, int(port)), timeout=_SECONDS) as connection:
        connection.sendall(request)
        answer = http.client.HTTPResponse(connection)
        answer.begin()
        body = answer.read()
        return Raw(answer.status, {name.lower(): value for name, value in answer.getheaders()}, body)
