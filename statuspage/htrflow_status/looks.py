"""Turns plain data into pages: templates, headers, languages, and the answer to what cannot be answered."""

from __future__ import annotations

import datetime
import hashlib
import importlib.metadata
import pathlib
import typing as t
import urllib.parse

import jinja2
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, Response

from htrflow_status import words
from htrflow_status.once import Once
from htrflow_status.results import answers
from htrflow_status.results.refusal import Refusal
from htrflow_status.views import Data, moment
from htrflow_status.words import Words

FOLDER = pathlib.Path(__file__).parent
#: Nothing comes from elsewhere but images: those of a page are its archive's.
CSP = {
    "default-src": "'none'",
    "script-src": "'self'",
    "style-src": "'self'",
    "img-src": "'self' https: http: data:",
    "connect-src": "'self'",
    "frame-src": "'self'",
    "form-action": "'self'",
    "base-uri": "'none'",
    "frame-ancestors": "'none'",
}
HEADERS = {
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
}


class Looks:
    """Renders pages, or gives their data as JSON. Without ``viewer`` no page links to one."""

    def __init__(self, *, viewer: bool = False) -> None:
        self._viewer = viewer
        self._templates = jinja2.Environment(
            loader=jinja2.FileSystemLoader(FOLDER / "templates"), autoescape=True, trim_blocks=True, lstrip_blocks=True
        )
        self._templates.globals["once"] = Once()
        self._statics = {path.name: _digest(path) for path in (FOLDER / "static").iterdir() if path.is_file()}
        self._version = importlib.metadata.version("htrflow-campaigns")

    def words(self, request: Request) -> Words:
        """The reader's language."""
        cookie, accept = request.cookies.get(words.COOKIE), request.headers.get("accept-language")
        return Words(words.choose(request.query_params.get("lang"), cookie, accept))

    def page(
        self, request: Request, template: str, data: Data, *, json: bool = False, live: bool = False, status: int = 200
    ) -> Response:
        """The page, or its twin; with the tag that says whether it is another one."""
        w = self.words(request)
        if json:
            response: Response = JSONResponse(data, status)
        else:
            text = self._templates.get_template(template).render(
                {
                    "w": w,
                    "static": self._static,
                    "version": self._version,
                    "has_viewer": self._viewer,
                    "language_url": _language_url(request, w),
                    "json_url": _twin(request) if status == 200 and template != "login.html" else "",
                    "live": "/events" if live else "",
                    "updated": w.moment(moment(datetime.datetime.now(datetime.UTC))) if live else "",
                    "account": request.scope.get("account", ""),
                    "troubles": request.scope.get("troubles", ()),
                    **data,
                }
            )
            response = HTMLResponse(text, status)
        if status == 200:
            # Whatever compresses the page on its way leaves a weak tag as it is.
            tag = f'W/"{hashlib.blake2b(response.body, digest_size=16).hexdigest()}"'
            if tag in request.headers.get("if-none-match", ""):
                response = Response(status_code=304)
            response.headers["ETag"] = tag
        if request.query_params.get("lang") in words.LANGUAGES:
            response.set_cookie(words.COOKIE, w.language, max_age=365 * 86_400, httponly=True, samesite="lax")
        response.headers["Vary"] = "Accept-Language, Cookie"
        response.headers["Cache-Control"] = "private, no-cache"
        return response

    def error(self, request: Request, status: int, sentence: str = "") -> Response:
        """An answer that says what is wrong, in a page or as JSON."""
        w = self.words(request)
        key = f"error.{status}" if w.has(f"error.{status}") else "error.500" if status >= 500 else "error.404"
        said = sentence or w(key)
        if request.url.path.startswith("/api/") or request.url.path.endswith(".json"):
            return JSONResponse({"error": said}, status)
        return self.page(request, "error.html", {"sentence": said}, status=status)

    def refused(self, request: Request, refusal: Refusal) -> Response:
        """A refusal of the results: in a page, or as JSON for programs."""
        if request.url.path.startswith("/results/") and "application/json" in request.headers.get("accept", ""):
            return answers.as_json(refusal)
        answer = self.error(request, refusal.status, self.words(request)(f"refusal.{refusal.code}"))
        answer.headers.update(answers.headers_of(refusal))
        del answer.headers["Content-Security-Policy"]
        return answer

    def login_refused(self, request: Request, refusal: Refusal, then: str) -> Response:
        """The login page again, with what was wrong."""
        data = {"then": then, "problem": self.words(request)(f"refusal.{refusal.code}")}
        return self.page(request, "login.html", data, status=refusal.status)

    def _static(self, name: str) -> str:
        return f"/static/{name}?v={self._statics[name]}"


def policy(more: t.Mapping[str, str] | None = None) -> str:
    """A content security policy: that of our pages, with what differs."""
    return "; ".join(f"{name} {value}" for name, value in {**CSP, **(more or {})}.items())


def _digest(path: pathlib.Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()[:12]


def _language_url(request: Request, w: Words) -> str:
    other = "en" if w.language == "sv" else "sv"
    kept = [(name, value) for name, value in request.query_params.multi_items() if name != "lang"]
    # Without its path: one that begins with two slashes would be the address of another site.
    return f"?{urllib.parse.urlencode([*kept, ('lang', other)])}"


def _twin(request: Request) -> str:
    path = urllib.parse.quote(request.url.path)
    query = f"?{request.url.query}" if request.url.query else ""
    return f"{'/campaigns' if path == '/' else path}.json{query}"
