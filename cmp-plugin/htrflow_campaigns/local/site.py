"""Serves the results on this machine, for browsers and viewers."""

from __future__ import annotations

import contextlib
import socket
import threading
import time

import starlette.applications
import starlette.concurrency
import starlette.middleware
import starlette.middleware.cors
import starlette.requests
import starlette.responses
import starlette.routing
import uvicorn

from htrflow_batch.errors import AttemptError
from htrflow_batch.store import Store
from htrflow_campaigns.local.data import Data, DataError

_SECONDS_TO_END = 5.0


class Site:
    """A server on 127.0.0.1, in a thread of its own. Port 0 takes a free one.

    Raises :class:`DataError` when the port is not to be had.
    """

    def __init__(self, port: int, store: Store, data: Data) -> None:
        self._socket = socket.socket()
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            self._socket.bind(("127.0.0.1", port))
        except OSError:
            self._socket.close()
            raise DataError(f"port {port} is in use or not allowed — name another one with --port") from None
        self.url = f"http://127.0.0.1:{self._socket.getsockname()[1]}"
        settings = uvicorn.Config(_application(store), log_level="critical", lifespan="off")
        self._server = uvicorn.Server(settings)
        self._thread = threading.Thread(target=self._server.run, args=([self._socket],), name="site", daemon=True)

    def __enter__(self) -> Site:
        self._thread.start()
        until = time.monotonic() + _SECONDS_TO_END
        while not self._server.started and time.monotonic() < until:
            time.sleep(0.01)
        return self

    def __exit__(self, *error: object) -> None:
        self._server.should_exit = True
        self._thread.join(_SECONDS_TO_END)
        with contextlib.suppress(OSError):
            self._socket.close()


def _application(store: Store) -> starlette.applications.Starlette:
    async def result(request: starlette.requests.Request) -> starlette.responses.Response:
        try:
            found = await starlette.concurrency.run_in_threadpool(store.get, request.path_params["key"])
        except (AttemptError, ValueError):
            found = None
        if found is None:
            return starlette.responses.PlainTextResponse("there is no such result\n", 404)
        # Nothing that is stored runs as a page of this site.
        headers = {
            "X-Content-Type-Options": "nosniff",
            "Content-Security-Policy": "sandbox",
            "Cache-Control": "no-cache",
        }
        return starlette.responses.Response(found.content, media_type=found.info.content_type, headers=headers)

    # Viewers of other sites read a manifest and its annotations.
    anyone = starlette.middleware.Middleware(starlette.middleware.cors.CORSMiddleware, allow_origins=["*"])
    return starlette.applications.Starlette(
        routes=[starlette.routing.Route("/results/{key:path}", result, methods=["GET", "HEAD"])], middleware=[anyone]
    )
