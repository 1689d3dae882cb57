"""``/api/v1``: the same data as the pages, for programs, with its description."""

from __future__ import annotations

import importlib.metadata
import typing as t

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute, Route

from htrflow_status.model import Source
from htrflow_status.pages import Pages, ReaderOf

_NAME = {"type": "string", "pattern": "^[A-Za-z0-9._-]{1,253}$"}
_OPERATIONS: t.Final = (
    ("/campaigns", "campaigns", "All campaigns, with filters.", ("q", "state", "pipeline", "page")),
    ("/campaigns/{namespace}/{campaign}", "campaign", "One campaign with its volumes.", ("page",)),
    ("/campaigns/{namespace}/{campaign}/{volume}", "volume", "One volume: pages, attempts, downloads.", ()),
    ("/campaigns/{namespace}/{campaign}/{volume}/log", "log", "A volume's run log.", ("q",)),
    ("/campaigns/{namespace}/{campaign}/{volume}/pages/{page}", "page", "The text of one page, with outlines.", ()),
)


class Api:
    """The routes. Each answers as the ``.json`` twin of its page does."""

    def __init__(self, source: Source, reader_of: ReaderOf, pages: Pages) -> None:
        self._source, self._reader_of = source, reader_of
        handlers = (pages.campaigns, pages.campaign, pages.volume, pages.log, pages.read)
        self._handlers = dict(zip((path for path, *_ in _OPERATIONS), handlers, strict=True))

    def routes(self) -> list[BaseRoute]:
        made: list[BaseRoute] = [
            Route("/api/v1/openapi.json", self.description),
            Route("/api/v1/version", self.version),
        ]
        for path, handler in reversed(self._handlers.items()):
            made.append(Route(f"/api/v1{path.replace('{page}', '{page:int}')}", handler))
        return made

    async def version(self, request: Request) -> Response:
        self._reader_of(request)
        return JSONResponse(
            {"version": importlib.metadata.version("htrflow-campaigns"), "state": self._source.snapshot().version}
        )

    async def description(self, request: Request) -> Response:
        """OpenAPI 3.1. It needs no session: it says nothing of anybody's."""
        return JSONResponse(description())


def description() -> dict[str, t.Any]:
    """The description of all operations."""
    error = {
        "description": "Why it cannot be answered, in one sentence.",
        "content": {
            "application/json": {
                "schema": {"type": "object", "required": ["error"], "properties": {"error": {"type": "string"}}}
            }
        },
    }
    paths = {}
    for path, name, summary, queries in _OPERATIONS:
        parameters: list[dict[str, t.Any]] = [
            {
                "name": part,
                "in": "path",
                "required": True,
                "schema": {"type": "integer", "minimum": 1} if part == "page" else _NAME,
            }
            for part in ("namespace", "campaign", "volume", "page")
            if f"{{{part}}}" in path
        ]
        parameters += [
            {"name": query, "in": "query", "schema": {"type": "integer"} if query == "page" else {"type": "string"}}
            for query in queries
        ]
        answers = {
            "200": {"description": summary, "content": {"application/json": {"schema": {"type": "object"}}}},
            **dict.fromkeys(("401", "403", "404", "502", "504"), error),
        }
        paths[f"/api/v1{path}"] = {
            "get": {"operationId": name, "summary": summary, "parameters": parameters, "responses": answers}
        }
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "htrflow-campaigns status site",
            "version": importlib.metadata.version("htrflow-campaigns"),
            "description": "Campaigns, volumes and their text. Reads need the session of a login.",
        },
        "paths": paths,
        "components": {"securitySchemes": {"session": {"type": "apiKey", "in": "cookie", "name": "session"}}},
        "security": [{"session": []}],
    }
