"""How a refusal is said to a program or a browser."""

from __future__ import annotations

import typing as t

from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response

from htrflow_status.results.content_types import HEADERS
from htrflow_status.results.refusal import Refusal

#: Says a refusal of a result. The site's pages bring one of their own.
Said = t.Callable[[Request, Refusal], Response]
#: Says a refusal of a login by form; the text is the page that the reader wanted, already known as safe.
FormSaid = t.Callable[[Request, Refusal, str], Response]


def headers_of(refusal: Refusal) -> dict[str, str]:
    """The headers that belong to a refusal whatever says it."""
    headers = {**HEADERS, "Cache-Control": "no-store"}
    if refusal.code in ("body_size", "body_slow"):
        # The rest of the body would else be waited for.
        headers["Connection"] = "close"
    if refusal.retry_after is not None:
        headers["Retry-After"] = str(refusal.retry_after)
    if refusal.size is not None:
        headers["Content-Range"] = f"bytes */{refusal.size}"
    return headers


def as_json(refusal: Refusal) -> Response:
    """The code and the sentence as JSON."""
    return JSONResponse({"code": refusal.code, "message": refusal.sentence}, refusal.status, headers_of(refusal))


def said(request: Request, refusal: Refusal) -> Response:
    """The sentence as text, or with its code as JSON for who asks for that."""
    if "application/json" in request.headers.get("accept", ""):
        return as_json(refusal)
    return PlainTextResponse(f"{refusal.sentence}\n", refusal.status, headers_of(refusal))


def form_said(request: Request, refusal: Refusal, page: str) -> Response:
    """As :func:`said`."""
    return said(request, refusal)
