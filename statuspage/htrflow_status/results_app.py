"""The results proxy as a program of its own: what has the sessions' keys and a way to the store."""

from __future__ import annotations

import typing as t

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from htrflow_status import everywhere
from htrflow_status.everywhere import Everywhere
from htrflow_status.looks import Looks
from htrflow_status.metrics import Counted
from htrflow_status.results import proxy


class Results:
    """Makes the application of a proxy. Raises ``ValueError`` for settings that cannot be."""

    def __init__(self, settings: proxy.Settings) -> None:
        self._looks, self._counted = Looks(), Counted()
        self._proxy = proxy.of_bucket(settings, self._looks.refused, self._looks.login_refused)

    def application(self) -> Starlette:
        return Starlette(
            routes=[*self._proxy.routes, Route("/healthz", self._health), Route("/metrics", self._count)],
            middleware=[Middleware(Everywhere, counted=self._counted), *self._proxy.middleware],
            exception_handlers={HTTPException: self._wrong, Exception: self._broken},
        )

    def close(self) -> None:
        self._proxy.close()

    async def _health(self, request: Request) -> Response:
        """The process is well. The store is asked by readers only, since nobody else has keys."""
        return JSONResponse({"status": "ok"})

    async def _count(self, request: Request) -> Response:
        return self._counted.answer()

    async def _wrong(self, request: Request, error: Exception) -> Response:
        http = t.cast(HTTPException, error)
        answer = self._looks.error(request, http.status_code)
        answer.headers.update(http.headers or {})
        return answer

    async def _broken(self, request: Request, error: Exception) -> Response:
        # It is made outside of all middleware.
        answer = self._looks.error(request, 500)
        answer.headers.update(everywhere.headers())
        return answer
