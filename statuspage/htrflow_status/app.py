"""The site as an ASGI application: its routes, and what holds for every answer."""

from __future__ import annotations

import pathlib
import typing as t

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import JSONResponse, RedirectResponse, Response, StreamingResponse
from starlette.routing import BaseRoute, Mount, Route
from starlette.staticfiles import StaticFiles

from htrflow_status import downloads, everywhere, metrics, results_of, search, urls
from htrflow_status.api import Api
from htrflow_status.events import Events
from htrflow_status.everywhere import Everywhere
from htrflow_status.looks import FOLDER, Looks
from htrflow_status.metrics import Counted
from htrflow_status.model import Source
from htrflow_status.pages import Pages, volume_of
from htrflow_status.results.proxy import Proxy
from htrflow_status.results.refusal import Refusal
from htrflow_status.results_of import Reader
from htrflow_status.viewer import Viewer


class Refused(Exception):  # noqa: N818
    """Whoever asks cannot read results."""

    def __init__(self, refusal: Refusal) -> None:
        self.refusal = refusal


class Site:
    """Makes the application. ``viewer`` is the folder of Universal Viewer, None where it is not installed."""

    def __init__(
        self,
        source: Source,
        proxy: t.Callable[[Looks], Proxy],
        viewer: pathlib.Path | None = None,
        middleware: t.Sequence[Middleware] = (),
    ) -> None:
        self._looks = Looks(viewer=viewer is not None)
        self._proxy = proxy(self._looks)
        self._source, self._middleware = source, middleware
        self._pages = Pages(source, self._reader, self._looks)
        self._events = Events(source)
        self._viewer = Viewer(source, self._reader, self._looks, self._pages, viewer)
        self._api = Api(source, self._reader, self._pages, self._looks, login=bool(self._proxy.middleware))
        self._counted = Counted()

    def close(self) -> None:
        """Ends what the proxy holds."""
        self._proxy.close()

    def application(self) -> Starlette:
        pages, volume = self._pages, "/campaigns/{namespace}/{campaign}/{volume}"
        both: list[tuple[str, t.Callable[[Request], t.Awaitable[Response]]]] = [
            (f"{volume}/pages/{{page:int}}", pages.read),
            (f"{volume}/log", pages.log),
            (volume, pages.volume),
            ("/campaigns/{namespace}/{campaign}", pages.campaign),
        ]
        twins = [Route(f"{path}.json", handler) for path, handler in both]
        routes: list[BaseRoute] = [
            Route("/", pages.campaigns),
            Route("/campaigns.json", pages.campaigns),
            Route("/events", self._live),
            Route("/login", self._login),
            Route("/accessibility", self._accessibility),
            Route("/healthz", self._health),
            Route("/metrics", self._count),
            Route(f"{volume}/download/{{kind}}", self._download),
            Route(f"{volume}/search", self._search),
            Route(f"{volume}/search/1", self._search),
            *self._viewer.routes(),
            *self._api.routes(),
            *twins,
            *(Route(path, handler) for path, handler in both),
            *self._proxy.routes,
            Mount("/static", StaticFiles(directory=FOLDER / "static")),
        ]
        return Starlette(
            routes=routes,
            middleware=[
                Middleware(Everywhere, counted=self._counted),
                *self._middleware,
                *self._proxy.middleware,
            ],
            exception_handlers={HTTPException: self._wrong, Refused: self._refused, Exception: self._broken},
        )

    def _reader(self, request: Request) -> Reader:
        found = self._proxy.readers.of(request)
        if isinstance(found, Refusal):
            raise Refused(found)
        request.scope["account"] = self._proxy.account(request)
        made = request.scope["reader"] = Reader(found)
        return made

    async def _live(self, request: Request) -> Response:
        self._reader(request)
        return await self._events.stream(request)

    async def _login(self, request: Request) -> Response:
        data = {"then": request.query_params.get("next", "/"), "problem": None}
        return self._looks.page(request, "login.html", data)

    async def _accessibility(self, request: Request) -> Response:
        return self._looks.page(request, f"accessibility.{self._looks.words(request).language}.html", {})

    async def _health(self, request: Request) -> Response:
        """The process is well. What it cannot reach is on the pages, and no reason to start it anew."""
        return JSONResponse({"status": "ok", "troubles": len(self._source.troubles())})

    async def _count(self, request: Request) -> Response:
        return self._counted.answer(metrics.of_site(self._source, self._events))

    async def _download(self, request: Request) -> Response:
        reader = self._reader(request)
        campaign, volume = volume_of(request, self._source.snapshot())
        kind, keys = request.path_params["kind"], results_of.keys(campaign, volume.id)
        if keys is None or kind not in downloads.KINDS:
            raise HTTPException(404)
        known = await results_of.progresses(reader, [(campaign, volume)], cells=True)
        found = known.get((campaign.key, volume.index))
        if found is None:
            raise HTTPException(404)
        name = downloads.file_name(volume.id, kind)
        headers = {"Content-Disposition": f'attachment; filename="{name}"', "Cache-Control": "private, no-store"}
        content = downloads.content(reader, keys, kind, found)
        return StreamingResponse(content, media_type=downloads.MEDIA_TYPES[kind], headers=headers)

    async def _search(self, request: Request) -> Response:
        reader = self._reader(request)
        campaign, volume = volume_of(request, self._source.snapshot())
        keys, query = results_of.keys(campaign, volume.id), request.query_params.get("q", "")[: search.LONGEST]
        known = await results_of.progresses(reader, [(campaign, volume)], cells=True)
        found = known.get((campaign.key, volume.index))
        hits = await search.hits(reader, keys, query, found) if keys and found else []
        address = str(request.url)
        old = request.url.path.endswith("/search/1")
        private = {"Cache-Control": "private, no-cache", "Vary": "Cookie"}
        return JSONResponse((search.old_answer if old else search.answer)(hits, address), headers=private)

    async def _wrong(self, request: Request, error: Exception) -> Response:
        assert isinstance(error, HTTPException)
        answer = self._looks.error(request, error.status_code)
        answer.headers.update(error.headers or {})
        return answer

    async def _refused(self, request: Request, error: Exception) -> Response:
        assert isinstance(error, Refused)
        path, code = request.url.path, error.refusal.code
        program = (
            path.endswith(".json") or path.startswith(("/api/", "/events")) or request.method not in ("GET", "HEAD")
        )
        if code == "login_needed" and not program:
            query = f"?{request.url.query}" if request.url.query else ""
            return RedirectResponse(urls.login(f"{path}{query}"), 303)
        return self._looks.refused(request, error.refusal)

    async def _broken(self, request: Request, error: Exception) -> Response:
        # It is made outside of all middleware.
        answer = self._looks.error(request, 500)
        answer.headers.update(everywhere.headers())
        return answer
