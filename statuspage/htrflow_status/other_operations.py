"""What is not below ``/api/v1`` and is for programs too, and the parts that all descriptions are made of."""

from __future__ import annotations

import typing as t

from htrflow_status import search, shapes
from htrflow_status.results.refusal import Code, Refusal
from htrflow_status.shaping import Schema, schema

JSON, HTML = "application/json", "text/html"
VOLUME = "/campaigns/{namespace}/{campaign}/{volume}"
#: Why results are not to be had by whoever has a session.
UNREADABLE: t.Final[tuple[Code, ...]] = ("no_right", "store_away", "store_slow")


def error(text: str, named: dict[str, Schema], of: type = shapes.Error) -> dict[str, t.Any]:
    return {"description": text, "content": {JSON: {"schema": schema(of, named)}}}


def refusals(codes: t.Iterable[Code], named: dict[str, Schema], of: type, *more: str) -> dict[str, t.Any]:
    """The answers of refusals by their status; ``more`` are further content types of theirs."""
    found: dict[str, t.Any] = {}
    for code in codes:
        refusal = Refusal(code)
        answer = found.setdefault(str(refusal.status), error("", named, of))
        answer["description"] += f"{' ' * bool(answer['description'])}{refusal.sentence}."
        answer["content"] |= {kind: {"schema": {"type": "string"}} for kind in more}
    return found


def sentences(status: int) -> str:
    refusals = (Refusal(code) for code in t.get_args(Code))
    return " ".join(f"{refusal.sentence}." for refusal in refusals if refusal.status == status)


def _file(text: str, *kinds: str) -> dict[str, t.Any]:
    return {"description": text, "content": {kind: {} for kind in kinds}}


def _page(text: str, *kinds: str) -> dict[str, t.Any]:
    return {"description": text, "content": {kind: {"schema": {"type": "string"}} for kind in kinds or (HTML,)}}


def others(named: dict[str, Schema]) -> dict[str, t.Any]:
    """What is not below ``/api/v1`` but is for programs too."""
    results: tuple[Code, ...] = ("login_needed", "keys_refused", *UNREADABLE, "not_found", "range")
    login_page = {"description": "Nobody is logged in: the login page is at `Location`."}
    missing = _page("There is no such campaign or volume, or nothing is known of it yet.")
    wrong = {"404": missing, "405": _page("It can only be read."), "401": _page("The session does not hold.")}
    query = {
        "name": "q",
        "in": "query",
        "description": f"Words that follow each other, in any case; only the first {search.LONGEST} characters count.",
        "schema": {"type": "string"},
    }
    hits = {
        "200": {"description": "The hits.", "content": {JSON: {"schema": {"type": "object"}}}},
        "303": login_page,
        **wrong,
    }
    found: dict[str, t.Any] = {
        "/api/v1/version": {
            "get": {
                "operationId": "version",
                "summary": "The versions of the site and of its state",
                "responses": {
                    "200": {"description": "Both.", "content": {JSON: {"schema": schema(shapes.Version, named)}}},
                    **refusals(("login_needed", "keys_refused", "store_away", "store_slow"), named, shapes.Error),
                    "405": error("It can only be read.", named),
                },
            }
        },
        "/api/v1/openapi.json": {
            "get": {
                "operationId": "description",
                "summary": "This description",
                "responses": {
                    "200": {"description": "OpenAPI 3.1.", "content": {JSON: {"schema": {"type": "object"}}}},
                    "405": error("It can only be read.", named),
                },
            }
        },
        f"{VOLUME}/iiif.json": {
            "get": {
                "operationId": "manifest",
                "summary": "A volume's IIIF Presentation 3 manifest, with its text and a search",
                "responses": {
                    "200": {"description": "The manifest.", "content": {JSON: {"schema": {"type": "object"}}}},
                    **refusals(("login_needed", "keys_refused", *UNREADABLE, "not_found"), named, shapes.Error),
                    "405": error("It can only be read.", named),
                },
            }
        },
        f"{VOLUME}/search": {
            "get": {
                "operationId": "search",
                "summary": "Words in a volume's text, as IIIF Content Search 2 has it",
                "parameters": [query],
                "responses": hits,
            }
        },
        f"{VOLUME}/search/1": {
            "get": {
                "operationId": "search_1",
                "summary": "The same as IIIF Content Search 1 has it",
                "parameters": [query],
                "responses": hits,
            }
        },
        f"{VOLUME}/download/{{kind}}": {
            "get": {
                "operationId": "download",
                "summary": "A volume in one file",
                "responses": {
                    "200": _file("The file: the pages that are done.", "application/zip", "text/plain"),
                    "303": login_page,
                    **wrong,
                },
            }
        },
        "/results/{key}": {
            "get": {
                "operationId": "result",
                "summary": "A result as it is in the store. `Range` and `If-None-Match` are kept",
                "responses": {
                    "200": _file("The result.", "*/*"),
                    "206": _file("The part that `Range` asked for.", "*/*"),
                    "304": {"description": "It has not changed."},
                    **refusals(results, named, shapes.Refused, HTML),
                    "405": _page("A result can only be read.", HTML, JSON),
                },
            }
        },
        "/events": {
            "get": {
                "operationId": "events",
                "summary": "Server-sent events: `change` says that something did; ask again for what you show",
                "responses": {
                    "200": _page("The stream; it goes on for an hour.", "text/event-stream"),
                    "401": _page("Nobody is logged in."),
                    "405": _page("It can only be read."),
                    "503": _page(
                        "There are too many readers — ask again after the seconds of Retry-After.", "text/plain"
                    ),
                },
            }
        },
        "/healthz": {
            "get": {
                "operationId": "health",
                "summary": "Whether the process is well",
                "responses": {
                    "200": {"description": "It is.", "content": {JSON: {"schema": schema(shapes.Health, named)}}},
                    "405": _page("It can only be read."),
                },
            }
        },
    }
    return found


def logins(named: dict[str, Schema]) -> dict[str, t.Any]:
    body: tuple[Code, ...] = ("body_size", "body_form", "body_slow", "foreign_origin")
    logs_in: tuple[Code, ...] = (
        *body,
        *t.cast("tuple[Code, ...]", ("body_kind", "wrong_login", "no_right_at_all", "too_often", "no_session_key")),
        *t.cast("tuple[Code, ...]", ("store_away", "store_slow")),
    )
    origin = {
        "name": "Origin",
        "in": "header",
        "required": True,
        "description": "The site's own address; a login that says another one, or none, is refused.",
        "schema": {"type": "string"},
    }
    form = "application/x-www-form-urlencoded"
    cookie = {"Set-Cookie": {"description": "The session's cookie.", "schema": {"type": "string"}}}
    goes_on = {"description": "A form was sent, and the browser goes on to its `next`.", "headers": cookie}
    login = schema(shapes.Login, named)
    return {
        "/results/_login": {
            "post": {
                "operationId": "login",
                "summary": "Begins a session with an account of the store",
                "parameters": [origin],
                "requestBody": {"required": True, "content": {JSON: {"schema": login}, form: {"schema": login}}},
                "responses": {
                    "200": {
                        "description": "The session has begun.",
                        "headers": cookie,
                        "content": {JSON: {"schema": schema(shapes.Welcome, named)}},
                    },
                    "303": goes_on,
                    **refusals(logs_in, named, shapes.Refused, HTML),
                },
            }
        },
        "/results/_logout": {
            "post": {
                "operationId": "logout",
                "summary": "Ends the session",
                "parameters": [origin],
                "responses": {
                    "204": {"description": "It has ended.", "headers": cookie},
                    "303": goes_on,
                    **refusals(body, named, shapes.Refused, HTML),
                },
            }
        },
    }
