"""``plan --fetch``: the pages of new manifests, before a server that misbehaves in every way."""

from __future__ import annotations

import json
import pathlib
import re
import subprocess
import time
import typing as t

import pytest
from hypothesis import given
from hypothesis import strategies as st

from htrflow_campaigns.plan import pages, public_only
from htrflow_campaigns.plan.pages import Volume
from htrflow_campaigns.problems import Position
from tests.cmp_plugin.local import commands
from tests.cmp_plugin.plan.planned import commit, run, run_json
from tests.testbed.plugin.misbehaving_http import Answer

if t.TYPE_CHECKING:
    from tests.cmp_plugin.conftest import Repo
    from tests.testbed.plugin.misbehaving_http import MisbehavingHttp

FETCH = ("--base=HEAD", "--fetch", "--fetch-private")
HTML = "<!doctype html><html><title>Logga in</title></html>"


def manifest(address: str, count: int) -> str:
    """A manifest of so many pages."""
    canvases = [
        {
            "id": f"{address}/{number}",
            "type": "Canvas",
            "items": [
                {
                    "id": f"{address}/{number}/page",
                    "type": "AnnotationPage",
                    "items": [
                        {
                            "id": f"{address}/{number}/painting",
                            "type": "Annotation",
                            "motivation": "painting",
                            "body": {"id": f"{address}/{number}.jpg", "type": "Image"},
                            "target": f"{address}/{number}",
                        }
                    ],
                }
            ],
        }
        for number in range(1, count + 1)
    ]
    context = "http://iiif.io/api/presentation/3/context.json"
    return json.dumps(
        {"@context": context, "id": address, "type": "Manifest", "label": {"sv": ["Brev"]}, "items": canvases}
    )


def campaign(repo: Repo, name: str, addresses: t.Mapping[str, str]) -> None:
    """Writes a campaign with a volume for each address."""
    rows = "".join(f"  - id: {id_}\n    manifest: {address}\n" for id_, address in addresses.items())
    repo.write(f"campaigns/{name}.yaml", f"pipeline: demo-v1\nvolumes:\n{rows}")


@pytest.fixture
def base(repo: Repo) -> Repo:
    """A campaigns repo in git, whose pages nobody has counted."""
    commit(repo.path)
    return repo


def test_the_pages_of_new_manifests_are_counted_and_those_of_lists_of_images_are_known(
    base: Repo, misbehaving_http: MisbehavingHttp, capsys: pytest.CaptureFixture[str]
) -> None:
    first = misbehaving_http.put("/a/manifest", manifest("https://example.org/a", 12))
    second = misbehaving_http.put("/b/manifest", manifest("https://example.org/b", 30))
    campaign(base, "diaries", {"diary-1": first, "diary-2": second, "diary-1-again": first})
    images = "  - {id: loose, images: ['https://example.org/1.jpg', 'https://example.org/2.jpg']}\n"
    file = base.path / "campaigns/diaries.yaml"
    file.write_text(file.read_text() + images)
    code, data = run_json(base, capsys, *FETCH, "--seconds-per-page=10")
    (found,) = data["campaigns"]
    assert code == 0
    assert data["problems"] == []
    assert found["takes"]["pages"] == {"low": 56, "middle": 56, "high": 56}
    # 56 pages of 10 seconds, on four pods of a GPU each; none is done before the volume of 30 pages is.
    assert found["takes"]["gpu_hours"] == {"low": 0.11, "middle": 0.16, "high": 0.2}
    assert found["takes"]["clock_hours"]["middle"] == found["takes"]["largest_volume_hours"]["middle"] == 0.08
    assert misbehaving_http.count("/a/manifest") == misbehaving_http.count("/b/manifest") == 1
    agent = misbehaving_http.requests[0].headers["User-Agent"]
    assert agent.startswith("htrflow-batch/")


def test_only_campaigns_that_are_new_are_asked_for(
    base: Repo, misbehaving_http: MisbehavingHttp, capsys: pytest.CaptureFixture[str]
) -> None:
    address = misbehaving_http.put("/old/manifest", manifest("https://example.org/old", 3))
    campaign(base, "old", {"old-1": address})
    campaign(base, "gone", {"gone-1": f"{address}?gone"})
    commit(base.path)
    (base.path / "campaigns/gone.yaml").rename(base.path / "campaigns/renamed.yaml")
    file = base.path / "campaigns/old.yaml"
    file.write_text(file.read_text() + "suspend: true\n")
    _, data = run_json(base, capsys, *FETCH)
    assert {each["change"] for each in data["campaigns"]} == {"paused", "renamed"}
    assert misbehaving_http.requests == []


@pytest.mark.parametrize(
    ("answer", "rule", "said"),
    [
        (Answer(status=404), "HTR801", "answered 404 Not Found: there is no such file — check the address"),
        (Answer(status=410), "HTR801", "answered 410 Gone"),
        (Answer(status=401), "HTR802", "answered 401 Unauthorized"),
        (Answer(status=403), "HTR802", "answered 403 Forbidden"),
        (Answer(status=503), "HTR803", "answered 503 Service Unavailable"),
        (Answer(status=429, headers={"Retry-After": "3600"}), "HTR803", "answered 429 Too Many Requests and wants"),
        (Answer(reset=True), "HTR803", "broke off"),
        (Answer("{}" * 1000, cut_after=5), "HTR803", "broke off before it was whole"),
        (Answer(HTML), "HTR801", "is an HTML page"),
        (Answer(""), "HTR801", "is nothing at all and not a JSON document"),
        (Answer("{}"), "HTR801", "is an empty JSON object, not a IIIF manifest"),
        (Answer('{"type": "Manifest", "items": []}'), "HTR801", "is empty: it has no canvas"),
        (Answer('{"type": "Canvas"}'), "HTR801", "is a single Canvas"),
        (Answer('{"protocol": "http://iiif.io/api/image"}'), "HTR801", "is the info.json of one image"),
        (Answer('{"a": '), "HTR801", "ends too early"),
        (Answer("{" + '"a": {' * 5000), "HTR801", "is"),
        (Answer(" " * (17 << 20)), "HTR801", "is larger than the limit of 16777216 bytes"),
        (
            Answer(
                '{"type": "Collection", "items": [{"type": "Manifest", "id": "https://iiif.example.org/1"},'
                ' {"type": "Manifest", "id": "https://iiif.example.org/2"}]}'
            ),
            "HTR801",
            "is a Collection, not a IIIF manifest — give its manifests, each as a volume of its own:"
            " https://iiif.example.org/1, https://iiif.example.org/2",
        ),
    ],
    ids=lambda value: value if isinstance(value, str) and value.startswith("HTR") else None,
)
def test_what_is_no_manifest_is_named_on_its_line(
    base: Repo,
    misbehaving_http: MisbehavingHttp,
    capsys: pytest.CaptureFixture[str],
    answer: Answer,
    rule: str,
    said: str,
) -> None:
    good = misbehaving_http.put("/good", manifest("https://example.org/good", 3))
    bad = misbehaving_http.put("/bad", answer)
    campaign(base, "diaries", {"good": good, "bad": f"{bad}?token=secret"})
    code, data = run_json(base, capsys, *FETCH)
    (problem,) = data["problems"]
    assert (problem["rule"], problem["path"], problem["line"], problem["column"]) == (
        rule,
        "campaigns/diaries.yaml",
        6,
        15,
    )
    assert said in problem["message"]
    assert "secret" not in problem["message"]
    assert "\n" not in problem["message"]
    assert code == (1 if rule == "HTR801" else 0)
    assert problem["docs"] == "docs/cli.md#plan"
    assert data["campaigns"][0]["takes"]["counted_volumes"] == 1


def test_a_bare_code_is_named_where_it_stands(
    base: Repo, misbehaving_http: MisbehavingHttp, capsys: pytest.CaptureFixture[str]
) -> None:
    base.write("converter.yaml", f"source_template: {misbehaving_http.url}/{{ref}}/manifest\n")
    base.write("campaigns/letters.yaml", "pipeline: demo-v1\nvolumes: [R1]\n")
    commit(base.path)
    base.write("campaigns/diaries.yaml", "pipeline: demo-v1\nvolumes:\n  - R0002001\n")
    code, said = run(base, capsys, *FETCH)
    assert code == 1
    assert re.search(
        r"^campaigns/diaries\.yaml:3:5: the volume \"R0002001\" has no manifest that can be read: "
        r"http://127\.0\.0\.1:\d+/R0002001/manifest answered 404 Not Found: there is no such file"
        r" — check the address \[HTR801\]$",
        said,
        re.MULTILINE,
    )


# Servers that are slow, or down


def test_asking_ends_when_its_time_is_over(
    base: Repo, misbehaving_http: MisbehavingHttp, capsys: pytest.CaptureFixture[str]
) -> None:
    slow = Answer(manifest("https://example.org/a", 3), delay=20)
    campaign(base, "diaries", {f"v{number}": misbehaving_http.put(f"/{number}", slow) for number in range(6)})
    start = time.monotonic()
    code, data = run_json(base, capsys, *FETCH, "--fetch-seconds=0.5")
    assert time.monotonic() - start < 10
    assert code == 0
    assert data["notes"] == ["the 0.5 seconds for asking servers were over before 6 manifests came"]
    assert data["campaigns"][0]["takes"]["pages"] is None
    assert len(misbehaving_http.requests) == 2


def test_a_server_that_keeps_failing_is_left_alone_and_another_one_is_still_asked(
    base: Repo, misbehaving_http: MisbehavingHttp, capsys: pytest.CaptureFixture[str]
) -> None:
    bad = {f"bad-{number}": misbehaving_http.put(f"/bad/{number}", Answer(status=500)) for number in range(50)}
    good = misbehaving_http.put("/good", manifest("https://example.org/a", 3)).replace("127.0.0.1", "localhost")
    campaign(base, "diaries", {**bad, "good": good})
    _, data = run_json(base, capsys, *FETCH)
    assert 3 <= sum(request.path.startswith("/bad") for request in misbehaving_http.requests) <= 4
    assert 3 <= len(data["problems"]) <= 4
    assert data["campaigns"][0]["takes"]["counted_volumes"] == 1
    host = misbehaving_http.url.removeprefix("http://")
    assert data["notes"] == [f"failed 3 times in a row and left alone: {host}"]


def test_no_server_gets_more_than_two_requests_at_a_time(
    base: Repo, misbehaving_http: MisbehavingHttp, capsys: pytest.CaptureFixture[str]
) -> None:
    answer = Answer(manifest("https://example.org/a", 3), delay=0.2)
    campaign(base, "diaries", {f"v{number}": misbehaving_http.put(f"/{number}", answer) for number in range(6)})
    start = time.monotonic()
    _, data = run_json(base, capsys, *FETCH)
    assert time.monotonic() - start >= 0.6
    assert data["campaigns"][0]["takes"]["counted_volumes"] == 6


# Private networks


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "[::ffff:127.0.0.1]", "0.0.0.0", "LOCALHOST."])  # noqa: S104
def test_a_private_address_is_not_even_connected_to(
    base: Repo, misbehaving_http: MisbehavingHttp, capsys: pytest.CaptureFixture[str], host: str
) -> None:
    address = misbehaving_http.put("/manifest", manifest("https://example.org/a", 3))
    campaign(base, "diaries", {"diary-1": address.replace("127.0.0.1", host)})
    code, data = run_json(base, capsys, "--base=HEAD", "--fetch")
    (problem,) = data["problems"]
    assert (problem["rule"], problem["line"], code) == ("HTR804", 4, 0)
    assert "is in a private network — run plan inside that network with --fetch-private" in problem["message"]
    assert misbehaving_http.requests == []


@pytest.mark.parametrize(
    "address",
    [
        *("10.1.2.3", "172.16.0.1", "192.168.1.1", "100.64.0.1", "127.0.0.1", "0.0.0.0", "169.254.169.254"),  # noqa: S104
        *("224.0.0.1", "255.255.255.255", "198.18.0.1", "192.0.2.1", "240.0.0.1"),
        *("::", "::1", "fe80::1", "fe80::1%eth0", "fd00:ec2::254", "ff02::1", "2001:db8::1"),
        *("::ffff:10.0.0.1", "::ffff:169.254.169.254", "64:ff9b::a9fe:a9fe", "64:ff9b::7f00:1", "2002:7f00:1::"),
    ],
)
def test_addresses_of_private_networks_are_known(address: str) -> None:
    assert not public_only.is_public(address)


@pytest.mark.parametrize("address", ["8.8.8.8", "193.10.0.1", "2a00:801::1", "::ffff:8.8.8.8", "64:ff9b::808:808"])
def test_addresses_of_the_internet_are_public(address: str) -> None:
    assert public_only.is_public(address)


@given(st.ip_addresses(v=4))
def test_wrapping_an_address_into_another_one_makes_no_private_one_public(address: t.Any) -> None:
    wrapped = [f"::ffff:{address}", f"64:ff9b::{address}"]
    assert {public_only.is_public(each) for each in wrapped} <= {public_only.is_public(str(address)), False}


# Many volumes


@given(st.lists(st.integers(0, 60), max_size=8), st.integers(1, 50))
def test_of_many_volumes_some_of_each_campaign_are_read(sizes: list[int], most: int) -> None:
    campaigns = [
        [Volume(f"{number}-{index}", f"https://example.org/{number}/{index}", Position("a")) for index in range(size)]
        for number, size in enumerate(sizes)
    ]
    found, others = pages.chosen(campaigns, most)
    assert len(found) == min(most, sum(sizes)) == sum(sizes) - others
    assert len({*found}) == len(found)
    shares = [sum(volume.id.startswith(f"{number}-") for volume in found) for number in range(len(sizes))]
    # Nobody gets more than one more than another one that has not got all.
    assert all(share >= min(size, max(shares) - 1) for share, size in zip(shares, sizes, strict=True))


def test_without_requests_a_sentence_says_how_to_get_it(repo: Repo, tmp_path: pathlib.Path) -> None:
    commit(repo.path)
    repo.write("campaigns/diaries.yaml", "pipeline: demo-v1\nvolumes: [R0002001]\n")
    python = commands.environment(tmp_path / "environment", without=["requests"])
    command = [str(python), "-m", "htrflow_campaigns", "plan", str(repo.path), "--base", "HEAD"]
    fine = subprocess.run(command, capture_output=True, text=True, encoding="utf-8", check=True)
    assert fine.stdout.startswith("## Plan of the change since `HEAD`")
    for option in (["--fetch"], ["--results", "https://htr.example.org/results"]):
        done = subprocess.run([*command, *option], capture_output=True, text=True, encoding="utf-8", check=False)
        assert (done.returncode, done.stdout) == (2, "")
        assert done.stderr == (
            f"htrflow-campaigns plan: requests is not installed, which {option[0]} needs — install htrflow-campaigns"
            " with its extra plan: pip install 'htrflow-campaigns[plan]'\n"
        )
