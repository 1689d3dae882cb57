"""Hands requests below ``/results/`` on to the results proxy, and its answers back."""

from __future__ import annotations

import contextlib
import logging

import urllib3.exceptions
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from htrflow_status.results import answers, login_body
from htrflow_status.results.places import could_be_key
from htrflow_status.results.refusal import Refusal
from htrflow_status.results.routes import LOGIN, LOGOUT, SESSION
from htrflow_status.results.service import Answer, Service
from htrflow_status.results.service_session import ServiceSessions, session_cookie

_LOG = logging.getLogger(__name__)
_OURS = (LOGIN, LOGOUT, SESSION)
#: What the proxy reads of a request. Of the cookies it gets those that are its own and the reader's language.
_SENT = (
    "accept",
    "accept-language",
    "content-type",
    "if-none-match",
    "if-range",
    "origin",
    "range",
    "referer",
    "x-forwarded-for",
)
#: What belongs to one connection, or is said by the server of this one.
_OWN = frozenset({"connection", "date", "keep-alive", "server", "te", "trailer", "transfer-encoding", "upgrade"})


class Forwarding:
    """The routes. ``said`` shows refusals, where the proxy itself cannot."""

    def __init__(self, service: Service, sessions: ServiceSessions, said: answers.Said) -> None:
        self._service, self._sessions, self._said = service, sessions, said

    def routes(self) -> list[Route]:
        posts = [Route(path, self.forward, methods=["POST"]) for path in (LOGIN, LOGOUT)]
        return [*posts, Route("/results/{key:path}", self.forward, methods=["GET", "HEAD"], name="result")]

    async def forward(self, request: Request) -> Response:
        """Answers as the proxy does."""
        path: str = request.scope["path"]
        raw: bytes = request.scope.get("raw_path") or b""
        # A path is written in one way. In another one it was encoded, and what somebody makes of it nobody knows.
        known = path in _OURS or could_be_key(path.removeprefix("/results/"))
        if not known or raw != path.encode("ascii"):
            return self._said(request, Refusal("not_found"))
        body = await login_body.body_of(request) if request.method == "POST" else None
        if isinstance(body, Refusal):
            return self._said(request, body)
        if path == LOGOUT and (cookie := session_cookie(request.scope)):
            self._sessions.drop(cookie)
        query = f"?{request.url.query}" if request.url.query else ""
        answer = await self._service.ask(request.method, f"{path}{query}", _headers(request), body)
        return self._said(request, answer) if isinstance(answer, Refusal) else _Forwarded(answer)


def _headers(request: Request) -> list[tuple[str, str]]:
    found = [(name, value) for name, value in request.headers.items() if name in _SENT]
    if request.client:
        found.append(("x-forwarded-for", request.client.host))
    if cookies := request.headers.getlist("cookie"):
        found.append(("cookie", "; ".join(cookies)))
    return found


class _Forwarded(StreamingResponse):
    """An answer as it comes, closed whatever happens."""

    def __init__(self, answer: Answer) -> None:
        super().__init__(answer.blocks(), answer.status)
        self.raw_headers = [
            (name.lower().encode("latin-1"), value.encode("latin-1"))
            for name, value in answer.headers.items()
            if name.lower() not in _OWN
        ]
        self._answer = answer

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        with contextlib.closing(self._answer):
            await super().__call__(scope, receive, send)

    async def stream_response(self, send: Send) -> None:
        try:
            await super().stream_response(send)
        except (urllib3.exceptions.HTTPError, OSError) as error:
            # The server ends the connection, for the answer is not whole.
            _LOG.warning("a result was cut off on its way to the reader (%s)", type(error).__name__)
