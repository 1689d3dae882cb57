"""Asks the results proxy whose session a request's cookie is: the site itself cannot open it."""

from __future__ import annotations

import collections
import dataclasses
import hashlib
import json
import time
import typing as t

from starlette.datastructures import MutableHeaders
from starlette.requests import HTTPConnection, cookie_parser
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from htrflow_status.results.cache import Cache
from htrflow_status.results.refusal import Refusal
from htrflow_status.results.service import Service
from htrflow_status.results.service_reader import ServiceReader
from htrflow_status.results.session import COOKIES

_KEY = "htrflow.service-session"
#: Seconds that an answer holds. A session that ends elsewhere is no session here so much later at the latest.
_AGE = 10.0
#: Sessions that are kept in mind.
_MOST = 100
#: What has no reader.
_WITHOUT = ("/static/", "/viewer/", "/results/", "/healthz", "/metrics")


@dataclasses.dataclass(frozen=True, slots=True)
class Known:
    """What is known of a cookie: its reader and whose it is, or why there is none."""

    found: tuple[ServiceReader, str] | Refusal
    at: float


class ServiceSessions:
    """The readers of cookies, those that were used last."""

    def __init__(self, service: Service, age: float = 2.0) -> None:
        self._service, self._age, self._cache = service, age, Cache()
        self._known: collections.OrderedDict[str, Known] = collections.OrderedDict()

    def of(self, connection: HTTPConnection) -> ServiceReader | Refusal:
        """The reader of a request that :class:`ServiceSessionMiddleware` has seen."""
        found = connection.scope.get(_KEY)
        return found.found[0] if isinstance(found, Known) and not isinstance(found.found, Refusal) else _why(found)

    def account(self, connection: HTTPConnection) -> str:
        """The user name of whoever asks, or nothing."""
        found = connection.scope.get(_KEY)
        return found.found[1] if isinstance(found, Known) and not isinstance(found.found, Refusal) else ""

    async def look(self, cookie: str) -> tuple[Known, list[str]]:
        """What a ``Cookie`` header with a session's cookie is worth, and cookies to set."""
        owner = hashlib.sha256(cookie.encode("latin-1")).hexdigest()
        known = self._known.get(owner)
        if known and time.monotonic() - known.at < _AGE and not isinstance(known.found, Refusal):
            self._known.move_to_end(owner)
            return known, []
        found, cookies = await self._ask(cookie)
        if isinstance(found, Refusal):
            self._forget(owner)
            return Known(found, time.monotonic()), cookies
        if known and not isinstance(known.found, Refusal):
            reader = known.found[0]
        else:
            reader = ServiceReader(self._service, cookie, owner, self._cache, self._age)
        known = self._known[owner] = Known((reader, found), time.monotonic())
        while len(self._known) > _MOST:
            self._forget(next(iter(self._known)))
        return known, cookies

    def drop(self, cookie: str) -> None:
        """Forgets a cookie, and what was read with it."""
        self._forget(hashlib.sha256(cookie.encode("latin-1")).hexdigest())

    async def _ask(self, cookie: str) -> tuple[str | Refusal, list[str]]:
        headers = [("Cookie", cookie), ("Accept", "application/json")]
        answer = await self._service.ask("GET", "/results/_session", headers)
        if isinstance(answer, Refusal):
            return answer, []
        body, cookies = await answer.body(), answer.all_of("set-cookie")
        answer.close()
        if isinstance(body, Refusal):
            return body, []
        if answer.status == 401:
            return Refusal("login_needed"), cookies
        try:
            username = json.loads(body)["username"]
        except (ValueError, KeyError, TypeError, RecursionError):
            username = None
        return (username, cookies) if isinstance(username, str) else (Refusal("results_away"), [])

    def _forget(self, owner: str) -> None:
        known = self._known.pop(owner, None)
        if known and not isinstance(known.found, Refusal):
            known.found[0].close()


class ServiceSessionMiddleware:
    """ASGI middleware: finds the session of each request that may need one, and passes on what its cookie becomes."""

    def __init__(self, app: ASGIApp, sessions: ServiceSessions) -> None:
        self._app, self._sessions = app, sessions

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        cookie = "" if scope["type"] != "http" or scope["path"].startswith(_WITHOUT) else session_cookie(scope)
        if not cookie:
            await self._app(scope, receive, send)
            return
        scope[_KEY], cookies = await self._sessions.look(cookie)

        async def renewing(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for one in cookies:
                    headers.append("set-cookie", one)
            await send(message)

        await self._app(scope, receive, renewing)


def session_cookie(scope: t.MutableMapping[str, t.Any]) -> str:
    """The cookies of a request that can be a session's, as a ``Cookie`` header, or nothing."""
    sent = cookie_parser(HTTPConnection(scope).headers.get("cookie", ""))
    return "; ".join(f"{name}={sent[name]}" for name in COOKIES if sent.get(name))


def _why(found: object) -> Refusal:
    return found.found if isinstance(found, Known) and isinstance(found.found, Refusal) else Refusal("login_needed")
