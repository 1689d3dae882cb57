"""Finds the session of each request, and keeps its cookie fresh."""

from __future__ import annotations

from starlette.datastructures import MutableHeaders
from starlette.requests import HTTPConnection, cookie_parser
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from htrflow_status.results.session import Session, Sessions

_KEY = "htrflow.session"


class SessionMiddleware:
    """ASGI middleware. :func:`session_of` gives what it found."""

    def __init__(self, app: ASGIApp, sessions: Sessions) -> None:
        self._app, self._sessions = app, sessions

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        value = cookie_parser(HTTPConnection(scope).headers.get("cookie", "")).get(self._sessions.name, "")
        session = scope[_KEY] = self._sessions.opened(value) if value else None

        async def renewing(message: Message) -> None:
            if message["type"] == "http.response.start" and session and self._sessions.due(session):
                self._renew(session, MutableHeaders(scope=message))
            await send(message)

        await self._app(scope, receive, renewing)

    def _renew(self, session: Session, headers: MutableHeaders) -> None:
        # A login and a logout end the session that they came with, and have said what becomes of the cookie.
        if not self._sessions.ended(session) and (cookie := self._sessions.cookie(session)):
            headers.append("set-cookie", cookie)


def session_of(connection: HTTPConnection) -> Session | None:
    """The session that a request came with, or None."""
    found = connection.scope.get(_KEY)
    return found if isinstance(found, Session) else None
