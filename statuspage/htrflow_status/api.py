"""``/api/v1``: the same data as the pages, for programs, in the form that its description publishes."""

from __future__ import annotations

import hashlib
import importlib.metadata
import json
import typing as t

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute, Route

from htrflow_status import views
from htrflow_status.description import OPERATIONS, Operation, description
from htrflow_status.looks import Looks
from htrflow_status.model import Source
from htrflow_status.pages import Pages, ReaderOf
from htrflow_status.results.refusal import Refusal
from htrflow_status.results_of import Reader
from htrflow_status.shaping import shaped
from htrflow_status.words import Words

Handler: t.TypeAlias = t.Callable[[Request], t.Awaitable[Response]]
Data: t.TypeAlias = dict[str, t.Any]


class Api:
    """The routes. Each asks the page that shows the same, and answers with what :mod:`shapes` has of its data.

    ``login`` says whether the site has logins.
    """

    def __init__(self, source: Source, reader_of: ReaderOf, pages: Pages, looks: Looks, *, login: bool) -> None:
        self._source, self._reader_of, self._looks = source, reader_of, looks
        handlers = (pages.campaigns, pages.campaign, pages.volume, pages.log, pages.read)
        self._handlers = dict(zip(OPERATIONS, handlers, strict=True))
        self._description = description(login=login)

    def routes(self) -> list[BaseRoute]:
        made: list[BaseRoute] = [
            Route("/api/v1/openapi.json", self.description),
            Route("/api/v1/version", self.version),
        ]
        # The longest first: the path of a volume would take that of its log.
        for operation, handler in reversed(self._handlers.items()):
            path = operation.path.replace("{page}", "{page:int}")
            made.append(Route(f"/api/v1{path}", self._answering(operation, handler)))
        return made

    async def version(self, request: Request) -> Response:
        self._reader_of(request)
        site = importlib.metadata.version("htrflow-campaigns")
        return JSONResponse({"version": site, "state": self._source.snapshot().version}, headers=_PRIVATE)

    async def description(self, request: Request) -> Response:
        """OpenAPI 3.1. It needs no session: it says nothing of anybody's."""
        return JSONResponse(self._description)

    def _answering(self, operation: Operation, handler: Handler) -> Handler:
        async def answer(request: Request) -> Response:
            # Nothing is said of parameters before it is known who asks.
            self._reader_of(request)
            for query in operation.queries:
                for value in request.query_params.getlist(query.name):
                    if sentence := query.refused(value):
                        return JSONResponse({"error": sentence}, 400)
            return await self._answer(request, operation, handler)

        return answer

    async def _answer(self, request: Request, operation: Operation, handler: Handler) -> Response:
        asked = Request(_unconditional(request.scope), request.receive)
        page = await handler(asked)
        data: Data = json.loads(bytes(page.body))
        reader = asked.scope.get("reader")
        refusals = [*reader.refusals.values()] if isinstance(reader, Reader) else []
        if operation.needs_results and refusals:
            return self._looks.refused(request, refusals[0])
        if _beyond(data):
            raise HTTPException(404)
        w = self._looks.words(request)
        data["troubles"] = [views.reason(one.reason, w) for one in self._source.troubles()]
        data["troubles"] += [_trouble(one, w) for one in refusals]
        made = JSONResponse(shaped(operation.answer, data), headers=_kept(page))
        made.headers["ETag"] = tag = f'W/"{hashlib.sha256(made.body).hexdigest()[:24]}"'
        known = request.headers.get("if-none-match", "")
        if tag.removeprefix("W/") in known or known.strip() == "*":
            return Response(status_code=304, headers={**_kept(page), "ETag": tag})
        return made


_PRIVATE = {"Cache-Control": "private, no-cache", "Vary": "Accept-Language, Cookie"}


def _kept(page: Response) -> dict[str, str]:
    """The headers of a page that are those of its data too."""
    cookies = {"set-cookie": page.headers["set-cookie"]} if "set-cookie" in page.headers else {}
    return {**_PRIVATE, **cookies}


def _unconditional(scope: t.MutableMapping[str, t.Any]) -> t.MutableMapping[str, t.Any]:
    """The request without what the client knows: that is of another answer than the page's."""
    known = (b"if-none-match", b"if-modified-since")
    return {**scope, "headers": [one for one in scope["headers"] if one[0] not in known]}


def _beyond(data: Data) -> bool:
    """Whether it is a page that its volume does not have."""
    known = data["volume"]["pages"]["total"] if "lines" in data else None
    return known is not None and data["page"] > known


def _trouble(refusal: Refusal, w: Words) -> Data:
    """A refusal as a reason."""
    return {"code": refusal.code, "facts": {}, "owner": "platform", "text": w(f"refusal.{refusal.code}")}
