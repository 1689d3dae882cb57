"""What is sent to log in."""

from __future__ import annotations

import json
import typing as t
import urllib.parse

import anyio
from starlette.requests import ClientDisconnect, Request

from htrflow_status.results.next_page import safe
from htrflow_status.results.refusal import Refusal

#: In bytes.
_MOST = 8192
#: In seconds.
_PATIENCE = 10.0
_FORM = "application/x-www-form-urlencoded"


class Sent(t.NamedTuple):
    """What somebody logs in with. ``page`` is where the browser goes then."""

    username: str
    password: str
    page: str

    def __repr__(self) -> str:
        return "Sent()"


def is_form(request: Request) -> bool:
    """Whether a browser sends a form, and shows the answer as a page."""
    return _kind(request) == _FORM


async def read(request: Request) -> Sent | Refusal:
    """The user name and password in a request, as JSON or as a form."""
    body = await body_of(request)
    if isinstance(body, Refusal):
        return body
    if is_form(request):
        return _of(_fields(body))
    if _kind(request) != "application/json":
        return Refusal("body_kind")
    try:
        return _of(json.loads(body))
    except (ValueError, RecursionError):
        return Refusal("body_form")


async def page_of(request: Request) -> str | Refusal:
    """Where a form without a login in it goes."""
    body = await body_of(request)
    return body if isinstance(body, Refusal) else _page(_fields(body))


def _fields(body: bytes) -> dict[str, str]:
    try:
        return dict(urllib.parse.parse_qsl(body.decode(), keep_blank_values=True, max_num_fields=20, errors="strict"))
    except ValueError:
        return {}


def _of(fields: object) -> Sent | Refusal:
    if not isinstance(fields, dict):
        return Refusal("body_form")
    username, password = fields.get("username"), fields.get("password")
    if not isinstance(username, str) or not isinstance(password, str) or not username or not password:
        return Refusal("body_form")
    return Sent(username, password, _page(fields))


def _page(fields: t.Mapping[str, object]) -> str:
    page = fields.get("next")
    return safe(page) if isinstance(page, str) else "/"


async def body_of(request: Request) -> bytes | Refusal:
    """What a request brings, of which no more is read than a login needs."""
    announced = request.headers.get("content-length", "0")
    if not announced.isdecimal() or int(announced[:20]) > _MOST:
        return Refusal("body_size")
    body = bytearray()
    try:
        with anyio.fail_after(_PATIENCE):
            async for block in request.stream():
                body += block
                if len(body) > _MOST:
                    return Refusal("body_size")
    except TimeoutError:
        return Refusal("body_slow")
    except ClientDisconnect:
        return Refusal("body_form")
    return bytes(body)


def _kind(request: Request) -> str:
    return request.headers.get("content-type", "").partition(";")[0].strip().lower()
