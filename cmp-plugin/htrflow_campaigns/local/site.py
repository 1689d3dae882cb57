"""Serves the status site on this machine, with the state of the runner and its results."""

from __future__ import annotations

import contextlib
import pathlib
import socket
import threading
import time
import typing as t

import starlette.middleware
import uvicorn
from starlette.middleware.cors import CORSMiddleware
from starlette.middleware.trustedhost import TrustedHostMiddleware

from htrflow_batch.s3_client import S3Settings
from htrflow_campaigns.local.data import DataError
from htrflow_status.app import Site as Application
from htrflow_status.looks import Looks
from htrflow_status.results import proxy
from htrflow_status.results.places import Places
from htrflow_status.results.s3_place import S3Place
from htrflow_status.sources.folder import FolderSource

_SECONDS_TO_END = 5.0


class Site:
    """A server on 127.0.0.1, in a thread of its own. Port 0 takes a free one.

    Results of a folder are read without a login; those of a bucket with an account of the store. ``viewer`` is the
    folder of Universal Viewer, None where it is not installed. Raises :class:`DataError` when the port is not to be
    had.
    """

    def __init__(
        self,
        port: int,
        data: pathlib.Path,
        results: pathlib.Path | S3Settings,
        namespace: str,
        slots: int,
        viewer: pathlib.Path | None = None,
    ) -> None:
        self._socket = socket.socket()
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            self._socket.bind(("127.0.0.1", port))
        except OSError:
            self._socket.close()
            raise DataError(f"port {port} is in use or not allowed — name another one with --port") from None
        self.url = f"http://127.0.0.1:{self._socket.getsockname()[1]}"
        self._source = FolderSource(data, slots)
        middleware = [
            # A page of another site that has a name for this machine is not to read what is here.
            starlette.middleware.Middleware(TrustedHostMiddleware, allowed_hosts=["127.0.0.1", "localhost"]),
            # Viewers of other sites read manifests and their text.
            starlette.middleware.Middleware(CORSMiddleware, allow_origins=["*"]),
        ]
        made = Application(self._source, _proxy(results, namespace, self.url), viewer, middleware)
        settings = uvicorn.Config(made.application(), log_level="critical", lifespan="off", proxy_headers=False)
        self._server = uvicorn.Server(settings)
        self._thread = threading.Thread(target=self._server.run, args=([self._socket],), name="site", daemon=True)

    def __enter__(self) -> Site:
        self._source.start()
        self._thread.start()
        until = time.monotonic() + _SECONDS_TO_END
        while not self._server.started and time.monotonic() < until:
            time.sleep(0.01)
        return self

    def __exit__(self, *error: object) -> None:
        self._server.should_exit = True
        # Readers who wait for events would keep it.
        self._server.force_exit = True
        self._thread.join(_SECONDS_TO_END)
        self._source.close()
        with contextlib.suppress(OSError):
            self._socket.close()


def _proxy(results: pathlib.Path | S3Settings, namespace: str, url: str) -> t.Callable[[Looks], proxy.Proxy]:
    places = Places([namespace])
    if isinstance(results, pathlib.Path):
        folder = results
        return lambda looks: proxy.of_folder(folder, places, looks.refused)
    place = S3Place(results.bucket, places, endpoint=results.endpoint, region=results.region)
    settings = proxy.Settings(place, [url])
    return lambda looks: proxy.of_bucket(settings, looks.refused, looks.login_refused)
