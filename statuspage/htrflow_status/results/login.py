"""Opens and ends sessions, and says whose one is: ``/results/_login``, ``_logout`` and ``_session``."""

from __future__ import annotations

import dataclasses
import math
import typing as t

from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from htrflow_status.results import answers, login_body
from htrflow_status.results.accounts import Account, Derivation, derived
from htrflow_status.results.client_address import client_of
from htrflow_status.results.origins import Origins
from htrflow_status.results.refusal import Refusal
from htrflow_status.results.s3_readers import S3Readers
from htrflow_status.results.session import Session, Sessions
from htrflow_status.results.session_middleware import session_of
from htrflow_status.results.throttle import Throttle

_NO_STORE = {"Cache-Control": "no-store"}


@dataclasses.dataclass(frozen=True)
class Limits:
    """How many logins may fail in ``seconds``: with one user name, and from one client."""

    per_account: int = 10
    per_client: int = 30
    seconds: float = 300.0


class Login:
    """The three addresses. ``form_said`` shows a refusal to whoever sent a form; who sent JSON gets JSON.

    A login that the store could not decide does not count as one that failed.
    """

    def __init__(
        self,
        sessions: Sessions,
        readers: S3Readers,
        origins: Origins,
        *,
        derivation: Derivation = "none",
        trusted_hops: int = 0,
        limits: Limits | None = None,
        form_said: answers.FormSaid = answers.form_said,
    ) -> None:
        limits = limits or Limits()
        self._sessions, self._readers, self._origins = sessions, readers, origins
        self._derivation, self._hops, self._form_said = derivation, trusted_hops, form_said
        self._accounts = Throttle(limits.per_account, limits.seconds)
        self._clients = Throttle(limits.per_client, limits.seconds)

    async def log_in(self, request: Request) -> Response:
        """Answers with a session's cookie, or says why not."""
        if not self._origins.sent(request.headers):
            return self._refused(request, Refusal("foreign_origin"))
        sent = await login_body.read(request)
        if isinstance(sent, Refusal):
            return self._refused(request, sent)
        account = await self._account(request, sent)
        if isinstance(account, Refusal):
            return self._refused(request, account, sent.page)
        session = self._sessions.begin(account)
        cookie = self._sessions.cookie(session)
        if cookie is None:
            return self._refused(request, Refusal("no_session_key"), sent.page)
        self._end(request)
        answer = _gone(sent.page) if login_body.is_form(request) else self._welcome(session)
        answer.headers.append("Set-Cookie", cookie)
        return answer

    async def log_out(self, request: Request) -> Response:
        """Ends the session and takes its cookie away; a form goes on to its page."""
        if not self._origins.sent(request.headers):
            return self._refused(request, Refusal("foreign_origin"))
        page = await login_body.page_of(request)
        if isinstance(page, Refusal):
            return self._refused(request, page)
        self._end(request)
        answer = _gone(page) if login_body.is_form(request) else Response(status_code=204, headers=_NO_STORE)
        answer.headers.append("Set-Cookie", self._sessions.removal())
        return answer

    async def session(self, request: Request) -> Response:
        """Whose the session of a request is."""
        session = session_of(request)
        return self._welcome(session) if session else answers.as_json(Refusal("login_needed"))

    async def _account(self, request: Request, sent: login_body.Sent) -> Account | Refusal:
        account = derived(self._derivation, sent.username, sent.password)
        client = client_of(request, self._hops)
        tries = [
            *([(self._clients, client)] if client else []),
            *([(self._accounts, account.username)] if account else []),
        ]
        taken: list[tuple[Throttle, str]] = []
        for throttle, who in tries:
            if wait := throttle.take(who):
                _give_back(taken)
                return Refusal("too_often", retry_after=math.ceil(wait))
            taken.append((throttle, who))
        if account is None:
            return Refusal("wrong_login")
        refusal = await self._readers.admits(account)
        if refusal is None or refusal.status >= 500:
            _give_back(taken)
        return refusal or account

    def _end(self, request: Request) -> None:
        if session := session_of(request):
            self._sessions.end(session)
            self._readers.drop(session)

    def _welcome(self, session: Session) -> Response:
        ends = self._sessions.expires(session).isoformat(timespec="seconds")
        return JSONResponse({"username": session.account.username, "ends": ends}, headers=_NO_STORE)

    def _refused(self, request: Request, refusal: Refusal, page: str = "/") -> Response:
        if not login_body.is_form(request):
            return answers.as_json(refusal)
        answer = self._form_said(request, refusal, page)
        answer.headers.update(_kept(refusal))
        return answer


def _give_back(taken: t.Iterable[tuple[Throttle, str]]) -> None:
    for throttle, who in taken:
        throttle.give_back(who)


def _kept(refusal: Refusal) -> dict[str, str]:
    wanted = ("Cache-Control", "Connection", "Retry-After")
    return {name: value for name, value in answers.headers_of(refusal).items() if name in wanted}


def _gone(page: str) -> Response:
    return Response(status_code=303, headers={**_NO_STORE, "Location": page})
