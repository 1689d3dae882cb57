"""The OpenAPI 3.1 description of what programs may ask the site for."""

from __future__ import annotations

import dataclasses
import importlib.metadata
import typing as t

from htrflow_status import downloads, shapes
from htrflow_status.model import CampaignState
from htrflow_status.other_operations import JSON, UNREADABLE, VOLUME, error, logins, others, refusals, sentences
from htrflow_status.results.refusal import Code
from htrflow_status.results.session import COOKIES
from htrflow_status.shaping import Schema, schema

#: Of a search in the list of campaigns, of one in a log, and the last part of a list.
LONGEST_TEXT, LONGEST_QUERY, LAST = 100, 200, 9_999_999
_STATES = t.get_args(CampaignState)
_OPEN: t.Final[tuple[str, ...]] = ("login", "logout", "description", "health")

_NAME: Schema = {"type": "string", "pattern": "^[A-Za-z0-9]([A-Za-z0-9._-]{0,251}[A-Za-z0-9])?$", "minLength": 1}
_PATH: t.Final[t.Mapping[str, tuple[str, Schema]]] = {
    "namespace": ("The namespace of the campaign.", {**_NAME, "examples": ["demo"]}),
    "campaign": ("The campaign's name.", {**_NAME, "examples": ["letters"]}),
    "volume": ("The volume's id.", {**_NAME, "examples": ["R0001203"]}),
    "page": ("The page's number, from 1.", {"type": "integer", "minimum": 1, "maximum": 999_999, "examples": [2]}),
    "kind": ("What to have.", {"type": "string", "enum": list(downloads.KINDS)}),
    "key": (
        "The key of a result, such as `demo/demo-v1/R0001203/manifest.json`. Its slashes are written as they are.",
        {"type": "string", "pattern": "^[A-Za-z0-9._/-]+$", "maxLength": 1024},
    ),
}


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class Query:
    """A parameter behind the question mark, as it is checked and described."""

    name: str
    text: str
    schema: t.Mapping[str, t.Any]

    def refused(self, value: str) -> str | None:
        """What is wrong with a value, in a sentence, or None."""
        if "maximum" in self.schema:
            most = int(self.schema["maximum"])
            good = value.isascii() and value.isdecimal() and len(value) <= len(str(most)) and 0 < int(value) <= most
            return None if good else f"{self.name} is no such number — write a whole number from 1 to {most}"
        if "enum" in self.schema and value not in self.schema["enum"]:
            return f"there is no such {self.name} — write one of {', '.join(self.schema['enum'])}"
        if len(value) > self.schema.get("maxLength", len(value)):
            return f"{self.name} is too long — write at most {self.schema['maxLength']} characters"
        return None


PAGE = Query("page", "Which part of the list, from 1.", {"type": "integer", "minimum": 1, "maximum": LAST})
STATE = Query("state", "Only campaigns of this state.", {"type": "string", "enum": list(_STATES)})
PIPELINE = Query("pipeline", "Only campaigns of this pipeline.", {"type": "string", "maxLength": 60})
TEXT = Query(
    "q", "Only campaigns whose name, or volumes whose id, hold this.", {"type": "string", "maxLength": LONGEST_TEXT}
)
LOG_TEXT = Query("q", "Marks the lines that hold this.", {"type": "string", "maxLength": LONGEST_QUERY})


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class Operation:
    """A ``GET`` of ``/api/v1``. Where ``needs_results`` is set, there is no answer without the store's."""

    path: str
    id: str
    summary: str
    answer: type
    queries: tuple[Query, ...] = ()
    needs_results: bool = False


OPERATIONS: t.Final = (
    Operation(
        "/campaigns", "campaigns", "All campaigns, with filters", shapes.Campaigns, (TEXT, STATE, PIPELINE, PAGE)
    ),
    Operation("/campaigns/{namespace}/{campaign}", "campaign", "One campaign", shapes.OneCampaign, (PAGE,)),
    Operation(VOLUME, "volume", "One volume", shapes.OneVolume),
    Operation(f"{VOLUME}/log", "log", "A volume's run log", shapes.Log, (LOG_TEXT,), needs_results=True),
    Operation(f"{VOLUME}/pages/{{page}}", "page", "The text of one page", shapes.OnePage, needs_results=True),
)


def description(*, login: bool) -> dict[str, t.Any]:
    """The description; ``login`` says whether the site has logins."""
    named: dict[str, Schema] = {}
    paths: dict[str, t.Any] = {}
    for operation in OPERATIONS:
        paths[f"/api/v1{operation.path}"] = {"get": _described(operation, named)}
    paths |= others(named)
    if login:
        paths |= logins(named)
    for path, methods in paths.items():
        for found in methods.values():
            found["parameters"] = [*_parameters(path), *found.get("parameters", ())]
            if not login or found["operationId"] in _OPEN:
                found["security"] = []
    schema(shapes.Error, named)
    described: dict[str, t.Any] = {
        "openapi": "3.1.0",
        "info": {
            "title": "htrflow-campaigns status site",
            "version": importlib.metadata.version("htrflow-campaigns"),
            "description": _ABOUT,
            "license": {"name": "EUPL-1.2", "identifier": "EUPL-1.2"},
        },
        "servers": [{"url": "/"}],
        "paths": paths,
        "components": {"schemas": named},
    }
    if login:
        described["components"]["securitySchemes"] = {
            name: {"type": "apiKey", "in": "cookie", "name": cookie, "description": f"The session, on a site at {at}."}
            for name, cookie, at in (("session", COOKIES[0], "https"), ("session_at_http", COOKIES[1], "http"))
        }
        described["security"] = [{"session": []}, {"session_at_http": []}]
    return described


_ABOUT = """\
Campaigns, volumes and their text. A read needs the session of a login, `POST /results/_login`.

Every page of the site has a twin that holds its data: `/campaigns.json` for the first one, and the address of a page
with `.json` behind it for all others, with the same parameters. Twins follow the pages, whatever those need; these
answers stay as they are described."""


def _described(operation: Operation, named: dict[str, Schema]) -> dict[str, t.Any]:
    codes: tuple[Code, ...] = ("login_needed", "keys_refused", *(UNREADABLE if operation.needs_results else ()))
    answers = {
        "200": {
            "description": (operation.answer.__doc__ or operation.summary).strip(),
            "headers": {"ETag": {"description": "Changes with the answer.", "schema": {"type": "string"}}},
            "content": {JSON: {"schema": schema(operation.answer, named)}},
        },
        "304": {"description": "It is what the `If-None-Match` of the request names."},
        **({"400": error("A parameter is not one of those that are described.", named)} if operation.queries else {}),
        "404": error("There is no such campaign, volume or page.", named),
        "405": error("It can only be read.", named),
        "502": error(sentences(502), named),
        "504": error(sentences(504), named),
        **refusals(codes, named, shapes.Error),
    }
    queries = [
        {"name": query.name, "in": "query", "description": query.text, "schema": dict(query.schema)}
        for query in operation.queries
    ]
    return {
        "operationId": operation.id,
        "summary": operation.summary,
        "parameters": [*queries, _LANGUAGE],
        "responses": dict(sorted(answers.items())),
    }


_LANGUAGE: t.Final[Schema] = {
    "name": "Accept-Language",
    "in": "header",
    "description": "The language of sentences, `sv` or `en`; Swedish where neither is asked for.",
    "schema": {"type": "string", "examples": ["en"]},
}


def _parameters(path: str) -> list[Schema]:
    return [
        {"name": name, "in": "path", "required": True, "description": text, "schema": found}
        for name, (text, found) in _PATH.items()
        if f"{{{name}}}" in path
    ]
