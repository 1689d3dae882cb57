"""The addresses below ``/results/``."""

from __future__ import annotations

import contextlib
import email.utils
import logging
import re
import typing as t

from starlette.datastructures import MutableHeaders
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from htrflow_status.results import answers
from htrflow_status.results.conditions import Conditions, conditions_of
from htrflow_status.results.content_types import HEADERS, content_type
from htrflow_status.results.login import Login
from htrflow_status.results.reader import CutOffError, Info, Opened, Reader, Readers, Unchanged
from htrflow_status.results.refusal import Refusal

_A = t.TypeVar("_A", bound=Response)
_LOG = logging.getLogger(__name__)
_KEY = re.compile("[A-Za-z0-9._/-]+")
#: Addresses that are no result's: no key begins with an underscore.
LOGIN, LOGOUT, SESSION = "/results/_login", "/results/_logout", "/results/_session"


def routes(readers: Readers, login: Login | None = None, said: answers.Said = answers.said) -> list[Route]:
    """``GET`` and ``HEAD`` of each result, and with a login the three addresses of it. ``said`` shows refusals."""

    async def result(request: Request) -> Response:
        answer = await _result(request, readers)
        return answer if isinstance(answer, Response) else said(request, answer)

    found = [Route("/results/{key:path}", result, methods=["GET", "HEAD"], name="result")]
    if login:
        found = [
            Route(LOGIN, login.log_in, methods=["POST"], name="login"),
            Route(LOGOUT, login.log_out, methods=["POST"], name="logout"),
            Route(SESSION, login.session, methods=["GET"], name="session"),
            *found,
        ]
    return found


async def _result(request: Request, readers: Readers) -> Response | Refusal:
    reader = readers.of(request)
    if isinstance(reader, Refusal):
        return reader
    key = request.path_params["key"]
    # A key is written in one way. In another one it was encoded, and what a proxy made of it nobody knows.
    raw: bytes = request.scope.get("raw_path") or b""
    if not _KEY.fullmatch(key) or not raw.endswith(b"/results/" + key.encode()):
        return Refusal("not_found")
    asked = conditions_of(request.headers)
    if request.method == "HEAD":
        info = await reader.head(key)
        if isinstance(info, Refusal):
            return info
        if asked.met(info.etag):
            return _answer(request, key, info, 304)
        answer = _answer(request, key, info, 200)
        answer.headers["Content-Length"] = str(info.size)
        return answer
    opened = await _opened(reader, key, asked)
    if isinstance(opened, Refusal):
        return opened
    if isinstance(opened, Unchanged):
        return _named(request, key, Response(status_code=304), opened.etag)
    return _stream(request, key, opened)


async def _opened(reader: Reader, key: str, asked: Conditions) -> Opened | Unchanged | Refusal:
    known = asked.known[0] if len(asked.known) == 1 and "*" not in asked.known else None
    opened = await reader.open(key, asked.span, known)
    outside = isinstance(opened, Refusal) and opened.code == "range"
    if asked.only is not None and (outside or (isinstance(opened, Opened) and opened.info.etag != asked.only)):
        # It is another one than the client has a part of.
        if isinstance(opened, Opened):
            opened.close()
        opened = await reader.open(key, None, known)
    if isinstance(opened, Opened) and asked.met(opened.info.etag):
        opened.close()
        return Unchanged(opened.info.etag)
    return opened


def _stream(request: Request, key: str, opened: Opened) -> Response:
    answer = _described(request, key, _Streamed(opened, 206 if opened.part else 200), opened.info)
    answer.headers["Content-Length"] = str(len(opened.places))
    if opened.part:
        answer.headers["Content-Range"] = f"bytes {opened.places.start}-{opened.places[-1]}/{opened.info.size}"
    return answer


def _answer(request: Request, key: str, info: Info, status: int) -> Response:
    return _described(request, key, Response(status_code=status), info)


def _described(request: Request, key: str, answer: _A, info: Info) -> _A:
    answer.headers["Last-Modified"] = email.utils.format_datetime(info.modified, usegmt=True)
    return _named(request, key, answer, info.etag)


def _named(request: Request, key: str, answer: _A, etag: str) -> _A:
    headers: MutableHeaders = answer.headers
    headers.update({**HEADERS, "Accept-Ranges": "bytes", "Content-Type": content_type(key)})
    if etag:
        headers["ETag"] = f'"{etag}"'
    if "download" in request.query_params or headers["Content-Type"] == "application/octet-stream":
        name = key.rpartition("/")[2]
        headers["Content-Disposition"] = f'attachment; filename="{name}"'
    return answer


class _Streamed(StreamingResponse):
    """Hands an opened result on block by block, and closes it whatever happens."""

    def __init__(self, opened: Opened, status: int) -> None:
        super().__init__(opened.blocks, status)
        self._opened = opened

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        with contextlib.closing(self._opened):
            await super().__call__(scope, receive, send)

    async def stream_response(self, send: Send) -> None:
        try:
            await super().stream_response(send)
        except CutOffError as error:
            # The server ends the connection, for the answer is not whole.
            _LOG.warning("a result was cut off on its way to the reader (%s)", error.refusal.code)
