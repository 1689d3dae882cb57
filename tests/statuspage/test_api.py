"""``/api/v1`` answers what its description says, on real data."""

from __future__ import annotations

import datetime
import json
import os
import pathlib
import re
import shutil
import subprocess
import typing as t
from collections import abc

import jsonschema_rs
import pytest
import requests
import schemathesis
import yaml

from htrflow_status import progress
from htrflow_status.description import OPERATIONS, description
from htrflow_status.model import CampaignState, Reason, Snapshot, Trouble, VolumeState
from htrflow_status.results.session import COOKIES
from htrflow_status.sources import reasons
from htrflow_status.sources.cache import Cache
from htrflow_status.sources.intake import Intake
from tests.statuspage import local_data, object_cases, whole_site
from tests.testbed.plugin.s3 import OwnStore, Store

LETTERS = "/api/v1/campaigns/demo/letters"
VOLUME = f"{LETTERS}/{local_data.VOLUME}"
ANSWERS = (
    ("/api/v1/campaigns", "Campaigns"),
    ("/api/v1/campaigns?q=r0002100&state=queued&pipeline=demo-v1&page=1", "Campaigns"),
    (LETTERS, "OneCampaign"),
    ("/api/v1/campaigns/demo/waiting?page=2", "OneCampaign"),
    (VOLUME, "OneVolume"),
    (f"{LETTERS}/R0001204", "OneVolume"),
    (f"{VOLUME}/log?q=page+5", "Log"),
    (f"{LETTERS}/R0001204/log", "Log"),
    (f"{VOLUME}/pages/2", "OnePage"),
    (f"{VOLUME}/pages/5", "OnePage"),
    ("/api/v1/version", "Version"),
    ("/healthz", "Health"),
)
_FACTS: t.Mapping[str, str | int] = {"namespace": "demo", "kind": "jobs", "message": "no", "status": 403}


class _Cases:
    """A source whose state is that of every case of Kubernetes objects, each in a namespace of its own."""

    def __init__(self) -> None:
        self._cache = Cache()
        for file in object_cases.CASES:
            intake = Intake(self._cache, file.stem)
            for thing in yaml.safe_load(file.read_text(encoding="utf-8"))["objects"]:
                found = object_cases.filled(thing)
                found["metadata"]["namespace"] = file.stem
                intake.put(object_cases.KINDS[thing["kind"]], found)

    def snapshot(self) -> Snapshot:
        return self._cache.snapshot()

    def troubles(self) -> t.Sequence[Trouble]:
        now = datetime.datetime.now(datetime.UTC)
        return [
            Trouble(code, Reason(code, {name: _FACTS.get(name, name) for name in facts}, "platform"), now)
            for code, facts in reasons.TROUBLES.items()
        ]

    async def changed(self, version: str, seconds: float) -> str:
        return await self._cache.changed(version, seconds)


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    return whole_site.data(tmp_path_factory.mktemp("local"))


@pytest.fixture(scope="module")
def site(data: pathlib.Path) -> abc.Iterator[str]:
    with whole_site.of_folder(data) as url:
        yield url


def test_the_description_is_openapi() -> None:
    for login in (True, False):
        schemathesis.openapi.from_dict(description(login=login)).validate()


def test_the_meta_schema_refuses_a_description_without_a_title() -> None:
    wrong = description(login=True)
    del wrong["info"]["title"]
    with pytest.raises(jsonschema_rs.ValidationError):
        schemathesis.openapi.from_dict(wrong).validate()


def test_every_field_and_parameter_is_described_and_no_answer_may_have_another_field() -> None:
    described = description(login=True)

    for name, schema in described["components"]["schemas"].items():
        assert schema["additionalProperties"] is False, name
        assert schema["required"] == list(schema["properties"]), name
        if name not in ("Model", "Pages", "FailedPage"):
            assert schema["description"], name
            missing = [field for field, inner in schema["properties"].items() if not inner.get("description", "")]
            assert missing == (["status"] if name == "Health" else []), name
    operations = [one for methods in described["paths"].values() for one in methods.values()]
    assert len({one["operationId"] for one in operations}) == len(operations)
    for one in operations:
        assert all(parameter["description"].endswith(".") for parameter in one["parameters"])
        assert all(answer["description"] for answer in one["responses"].values())


def test_states_are_those_of_the_code() -> None:
    schemas = description(login=True)["components"]["schemas"]

    assert schemas["Campaign"]["properties"]["state"]["enum"] == [*t.get_args(CampaignState)]
    assert schemas["Volume"]["properties"]["state"]["enum"] == [*t.get_args(VolumeState)]
    assert {*schemas["Cell"]["properties"]["state"]["enum"]} == {*progress.STATES.values(), "active"}


def test_the_session_is_the_cookie_of_logins_and_a_site_without_logins_has_none() -> None:
    schemes = description(login=True)["components"]["securitySchemes"]
    assert tuple(scheme["name"] for scheme in schemes.values()) == COOKIES

    without = description(login=False)
    assert "securitySchemes" not in without["components"]
    assert "/results/_login" not in without["paths"]


def test_every_answer_is_what_its_schema_says(site: str) -> None:
    described = requests.get(f"{site}/api/v1/openapi.json", timeout=60).json()

    for path, name in ANSWERS:
        _hold(described, name, requests.get(f"{site}{path}", timeout=60))
    assert {name for _, name in ANSWERS} >= {operation.answer.__name__ for operation in OPERATIONS}
    with pytest.raises(jsonschema_rs.ValidationError):
        _validator(described, "Error").validate({"error": "a", "more": 1})


@pytest.mark.slow
def test_every_state_of_a_campaign_and_every_trouble_is_what_the_schemas_say(data: pathlib.Path) -> None:
    described = description(login=False)
    seen: set[str] = set()
    with whole_site.of_folder(data, _Cases()) as url, requests.Session() as browser:
        following = "/api/v1/campaigns"
        while following:
            found = _hold(described, "Campaigns", browser.get(f"{url}{following}", timeout=60))
            assert {one["code"] for one in found["troubles"]} == set(reasons.TROUBLES)
            for campaign in found["campaigns"]:
                seen.add(campaign["state"])
                one = _hold(described, "OneCampaign", browser.get(f"{url}{campaign['url']}", timeout=60))
                assert one["campaign"]["name"] == campaign["name"]
                for volume in one["volumes"][:2]:
                    _hold(described, "OneVolume", browser.get(f"{url}{volume['url']}", timeout=60))
            following = found["following"]

    assert seen == {*t.get_args(CampaignState)} - {"partial pages"}


def test_the_addresses_in_an_answer_lead_to_answers_and_pages(site: str) -> None:
    found = requests.get(f"{site}{VOLUME}", timeout=60).json()
    apis = [found["campaign"]["url"], found["volume"]["url"], found["volume"]["log"]]
    apis += [one["url"] for one in found["page_list"]]
    for path in apis:
        answer = requests.get(f"{site}{path}", timeout=60)
        assert (answer.status_code, answer.headers["Content-Type"]) == (200, "application/json")
    for path in (found["campaign"]["html_url"], found["volume"]["html_url"]):
        assert requests.get(f"{site}{path}", timeout=60).headers["Content-Type"].startswith("text/html")
    for one in found["downloads"]:
        assert requests.get(f"{site}{one['url']}", timeout=60).ok


def test_a_long_list_is_followed_to_its_end_and_back(site: str) -> None:
    first = requests.get(f"{site}/api/v1/campaigns/demo/waiting", timeout=60).json()
    second = requests.get(f"{site}{first['following']}", timeout=60).json()

    ids = [volume["id"] for part in (first, second) for volume in part["volumes"]]
    assert ids == [f"R{number:07}" for number in range(2000, 2150)]
    assert (second["page"], second["pages"], second["following"]) == (2, 2, None)
    assert requests.get(f"{site}{second['previous']}", timeout=60).json()["volumes"] == first["volumes"]


def test_a_page_gives_its_lines_with_their_corners_as_numbers(site: str) -> None:
    found = requests.get(f"{site}{VOLUME}/pages/2", timeout=60).json()
    failed = requests.get(f"{site}{VOLUME}/pages/5", timeout=60).json()

    assert found["state"] == "text"
    assert found["total"] == local_data.PAGES
    assert all(
        0 <= x <= found["width"] and 0 <= y <= found["height"] for line in found["lines"] for x, y in line["points"]
    )
    assert "socken" in "\n".join(line["text"] for line in found["lines"])
    assert (failed["state"], failed["lines"]) == ("failed", [])
    assert "is an HTML page" in failed["problem"]


def test_sentences_come_in_the_language_that_is_asked_for_and_codes_stay(site: str) -> None:
    answers = [
        requests.get(f"{site}/api/v1/campaigns/demo/waiting", headers={"Accept-Language": language}, timeout=60).json()
        for language in ("sv", "en")
    ]
    first, second = (answer["campaign"]["waiting"][0] for answer in answers)
    assert first["text"] != second["text"]
    assert {**first, "text": ""} == {**second, "text": ""}


@pytest.mark.parametrize(
    ("path", "said"),
    [
        ("/api/v1/campaigns?page=0", "page is no such number — write a whole number from 1 to 9999999"),
        ("/api/v1/campaigns?page=x", "page is no such number — write a whole number from 1 to 9999999"),
        ("/api/v1/campaigns?page=", "page is no such number — write a whole number from 1 to 9999999"),
        (f"{LETTERS}?page=99999999999", "page is no such number — write a whole number from 1 to 9999999"),
        ("/api/v1/campaigns?state=Running", "there is no such state — write one of running, queued, paused, "),
        (f"/api/v1/campaigns?q={'a' * 101}", "q is too long — write at most 100 characters"),
        (f"{VOLUME}/log?q={'a' * 201}", "q is too long — write at most 200 characters"),
    ],
)
def test_a_parameter_that_is_none_is_refused_in_a_sentence(site: str, path: str, said: str) -> None:
    answer = requests.get(f"{site}{path}", timeout=60)

    assert answer.status_code == 400
    assert answer.json()["error"].startswith(said)


def test_what_is_not_there_or_cannot_be_done_is_said_as_the_description_has_it(site: str) -> None:
    described = description(login=False)
    for path in (f"{LETTERS}/no", "/api/v1/campaigns/no/letters", f"{VOLUME}/pages/8", f"{VOLUME}/pages/0", "/api/v1/"):
        _hold(described, "Error", requests.get(f"{site}{path}", timeout=60), 404)
    for method in ("POST", "PUT", "DELETE", "PATCH", "OPTIONS"):
        answer = requests.request(method, f"{site}{VOLUME}", timeout=60)
        _hold(described, "Error", answer, 405)
        assert "GET" in answer.headers["Allow"]


def test_an_answer_that_has_not_changed_is_not_sent_again(site: str) -> None:
    for path in (LETTERS, VOLUME):
        first = requests.get(f"{site}{path}", timeout=60)
        again = requests.get(f"{site}{path}", headers={"If-None-Match": first.headers["ETag"]}, timeout=60)
        assert (again.status_code, again.content) == (304, b"")
        assert again.headers["ETag"] == first.headers["ETag"]
        other = requests.get(f"{site}{path}", headers={"If-None-Match": 'W/"other"'}, timeout=60)
        assert other.json() == first.json()


def test_while_the_store_is_away_lists_say_so_and_texts_are_refused(data: pathlib.Path, own_s3: OwnStore) -> None:
    described, waiting = description(login=True), "/api/v1/campaigns/demo/waiting"
    with whole_site.of_store(data, own_s3, cache_age=0.0) as where, where.browser(own_s3.reader) as browser:
        assert _hold(described, "Campaigns", whole_site.get(browser, f"{where.url}/api/v1/campaigns"))["troubles"] == []
        own_s3.stop()
        found = _hold(described, "OneVolume", whole_site.get(browser, f"{where.url}{waiting}/R0002000"))
        assert [one["code"] for one in found["troubles"]] == ["store_away"]
        for path in (f"{waiting}/R0002001/log", f"{waiting}/R0002001/pages/1"):
            refused = _hold(described, "Error", whole_site.get(browser, f"{where.url}{path}"), 502)
            assert refused == {"error": "The store cannot be reached. Try again in a while."}
        for path, name in ANSWERS:
            if name != "Health":
                _hold(described, "Error", requests.get(f"{where.url}{path}", timeout=60), 401)


def _hold(described: dict[str, t.Any], name: str, answer: requests.Response, status: int = 200) -> t.Any:
    """The answer's data, if it is of the schema."""
    assert (answer.status_code, answer.headers["Content-Type"]) == (status, "application/json"), answer.text
    found = answer.json()
    _validator(described, name).validate(found)
    return found


def _validator(described: dict[str, t.Any], name: str) -> jsonschema_rs.Draft202012Validator:
    schema = {"$ref": f"#/components/schemas/{name}", "components": described["components"]}
    return jsonschema_rs.Draft202012Validator(schema, validate_formats=True)


def test_the_commands_of_the_documentation_give_what_it_shows(
    data: pathlib.Path, s3: Store, tmp_path: pathlib.Path
) -> None:
    missing = [name for name in ("curl", "jq") if shutil.which(name) is None]
    assert missing == [], "the commands of docs/api.md need it"
    (tmp_path / "login.json").write_text(json.dumps({"username": s3.reader.access, "password": s3.reader.secret}))
    page = (pathlib.Path(__file__).parents[2] / "docs/api.md").read_text(encoding="utf-8")
    shown = [
        part.partition("\n")
        for block in re.findall(r"^```console\n\$ (.*?)^```$", page, re.DOTALL | re.MULTILINE)
        for part in block.split("\n$ ")
    ]
    assert len(shown) == page.count("\n$ ")
    with whole_site.of_store(data, s3) as where:
        for command, _, expected in shown:
            done = subprocess.run(
                ["/bin/sh", "-c", command],
                cwd=tmp_path,
                env={"PATH": os.environ["PATH"], "SITE": where.url, "LANG": "C.UTF-8"},
                capture_output=True,
                text=True,
                encoding="utf-8",
                check=True,
            )
            pattern = ".+".join(map(re.escape, expected.rstrip("\n").split("…")))
            assert re.fullmatch(pattern, done.stdout.rstrip("\n"), re.DOTALL), f"{command}\n{done.stdout}"
