"""``plan --results``: seconds a page from what the pipeline has read, through the results site before a real store."""

from __future__ import annotations

import json
import typing as t

import pytest

from htrflow_campaigns import load, recipe
from htrflow_campaigns.plan import results
from htrflow_campaigns.tree import from_folder
from tests.cmp_plugin.plan.planned import commit, run_json
from tests.statuspage import results_site
from tests.testbed.plugin.misbehaving_http import Answer

if t.TYPE_CHECKING:
    from htrflow_campaigns.model import Pipeline
    from tests.cmp_plugin.conftest import Repo
    from tests.testbed.plugin.misbehaving_http import MisbehavingHttp
    from tests.testbed.plugin.s3 import Store

TIMES = {"started": "2026-11-29T12:00:00Z", "finished": "2026-11-29T12:00:00Z"}
OPTIONS = ("--base=HEAD",)


def pipeline_of(repo: Repo) -> Pipeline:
    return load.load(from_folder(repo.path)).pipelines["demo-v1"]


def manifest(pipeline: Pipeline, seconds: t.Sequence[float], **more: t.Any) -> str:
    """What of ``manifest.json`` tells how long a volume took: a page for each number, and one that failed."""
    pages: list[dict[str, t.Any]] = [{"state": "text", "seconds": value} for value in seconds]
    recipe_sha256 = recipe.recipe_sha256(pipeline)
    found = {"pipeline": {"recipe_sha256": recipe_sha256}, **TIMES, "pages": [*pages, {"state": "failed"}]}
    return json.dumps({**found, **more})


@pytest.fixture
def ran(repo: Repo) -> Repo:
    """A repo with a campaign of thirty volumes in the base, and a new one of ten pages."""
    rows = "".join(f"  - V{number}\n" for number in range(30))
    repo.write("campaigns/letters.yaml", f"pipeline: demo-v1\nvolumes:\n{rows}")
    commit(repo.path)
    images = ", ".join(f"https://example.org/{number}.jpg" for number in range(10))
    repo.write("campaigns/diaries.yaml", f"pipeline: demo-v1\nvolumes:\n  - {{id: diary, images: [{images}]}}\n")
    return repo


def takes(repo: Repo, capsys: pytest.CaptureFixture[str], address: str) -> dict[str, t.Any]:
    code, data = run_json(repo, capsys, *OPTIONS, f"--results={address}")
    assert code == 0
    return t.cast("dict[str, t.Any]", data["campaigns"][0]["takes"])


@pytest.fixture
def measured(ran: Repo, misbehaving_http: MisbehavingHttp) -> tuple[Repo, str]:
    """The repo, and the address of results without a login: twenty volumes of ten pages, of one to twenty seconds."""
    pipeline = pipeline_of(ran)
    for number in range(20):
        content = manifest(pipeline, [number + 1.0] * 10)
        misbehaving_http.put(f"/results/htr-batch/demo-v1/V{number}/manifest.json", content)
    return ran, f"{misbehaving_http.url}/results"


def test_seconds_are_learned_from_at_most_twenty_volumes(
    measured: tuple[Repo, str], misbehaving_http: MisbehavingHttp, capsys: pytest.CaptureFixture[str]
) -> None:
    found = takes(measured[0], capsys, measured[1])
    assert found["rate"] == "10.5 seconds a page, as measured on 200 pages of 20 volumes"
    assert found["gpu_hours"] == {"low": 0.01, "middle": 0.03, "high": 0.05}
    assert found["unknown"] is None
    assert len(misbehaving_http.requests) == 20


def test_a_pod_counts_with_all_its_time_and_not_only_the_models(
    ran: Repo, misbehaving_http: MisbehavingHttp, capsys: pytest.CaptureFixture[str]
) -> None:
    content = manifest(pipeline_of(ran), [1.0] * 10, finished="2026-11-29T12:01:00Z")
    for number in range(3):
        misbehaving_http.put(f"/results/htr-batch/demo-v1/V{number}/manifest.json", content)
    found = takes(ran, capsys, f"{misbehaving_http.url}/results/")
    assert found["rate"] == "6.0 seconds a page, as measured on 30 pages of 3 volumes"


@pytest.mark.parametrize(
    "answers",
    [
        [],
        ["good", "good"],
        ["good", "good", "{}", "[]", "nothing", '{"pipeline": 3}', "{" + '"a":{' * 5000],
        ["good", "good", "another recipe", "without seconds", "endless", "no time"],
        ["good", "good", Answer(status=500)],
    ],
    ids=["none", "two", "no-manifests", "odd", "broken"],
)
def test_too_few_volumes_say_that_it_is_not_known(
    ran: Repo,
    misbehaving_http: MisbehavingHttp,
    capsys: pytest.CaptureFixture[str],
    answers: list[str | Answer],
) -> None:
    pipeline = pipeline_of(ran)
    good = manifest(pipeline, [1.0] * 20)
    made = {
        "good": good,
        "another recipe": good.replace(recipe.recipe_sha256(pipeline), "0" * 64),
        "without seconds": manifest(pipeline, []),
        "endless": good.replace("1.0", "Infinity"),
        "no time": good.replace("2026-11-29T12:00:00Z", "igår"),
    }
    for number, answer in enumerate(answers):
        content = made.get(answer, answer) if isinstance(answer, str) else answer
        misbehaving_http.put(f"/results/htr-batch/demo-v1/V{number}/manifest.json", content)
    found = takes(ran, capsys, f"{misbehaving_http.url}/results")
    assert (found["rate"], found["gpu_hours"]) == (None, None)
    assert found["pages"]["middle"] == 10
    few = f"only {answers.count('good')} volumes that the pipeline demo-v1 has read say how long it took"
    assert found["unknown"] in (few, "the results site could not be reached")
    assert (found["unknown"] == few) == (not answers or isinstance(answers[-1], str))


def test_a_pipeline_that_never_ran_says_so(measured: tuple[Repo, str], capsys: pytest.CaptureFixture[str]) -> None:
    repo, address = measured
    text = (repo.path / "pipelines/demo-v1.yaml").read_text()
    repo.write("pipelines/new-v1.yaml", text)
    file = repo.path / "campaigns/diaries.yaml"
    file.write_text(file.read_text().replace("demo-v1", "new-v1"))
    assert takes(repo, capsys, address)["unknown"] == "no volume ran with the pipeline new-v1 before"


def test_a_site_that_is_not_there_says_so(ran: Repo, capsys: pytest.CaptureFixture[str]) -> None:
    assert takes(ran, capsys, "http://127.0.0.1:1/results")["unknown"] == "the results site could not be reached"


def test_a_redirect_of_the_login_does_not_get_the_password(ran: Repo, misbehaving_http: MisbehavingHttp) -> None:
    misbehaving_http.redirect("/results/_login", f"{misbehaving_http.url}/elsewhere", 307)
    done = ran.run(
        "plan",
        *OPTIONS,
        f"--results={misbehaving_http.url}/results",
        environment={results.USER: "anna", results.PASSWORD: "hemligt"},
    )
    assert done.returncode == 2
    assert "the results site answered 307 to the login" in done.stderr
    assert "hemligt" not in done.stderr
    assert [request.path for request in misbehaving_http.requests] == ["/results/_login"]


def test_a_password_is_not_sent_over_http(ran: Repo) -> None:
    login = {results.USER: "anna", results.PASSWORD: "hemligt"}
    done = ran.run("plan", *OPTIONS, "--results=http://htr.example.org/results", environment=login)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == (
        "htrflow-campaigns plan: a password is not sent over http, where others read it — give the https address of"
        " --results\n"
    )


def test_half_a_login_is_wrong_usage(ran: Repo) -> None:
    address = "--results=https://htr.example.org/results"
    done = ran.run("plan", *OPTIONS, address, environment={results.USER: "anna"})
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == (
        "htrflow-campaigns plan: only one of HTRFLOW_RESULTS_USER and HTRFLOW_RESULTS_PASSWORD is set — set both, or"
        " none\n"
    )


def test_with_a_login_the_real_site_is_asked(
    ran: Repo, s3: Store, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    pipeline = pipeline_of(ran)
    account, writer = s3.reader, s3.client(s3.writer)
    for number in range(5):
        key = f"htr-batch/demo-v1/V{number}/manifest.json"
        writer.put_object(Bucket=s3.bucket, Key=key, Body=manifest(pipeline, [4.0] * 10).encode())
    writer.close()
    with results_site.site(results_site.place(s3)) as site:
        address = f"{site.url}/results"
        unknown = "the results site wants a login for htr-batch — set HTRFLOW_RESULTS_USER and HTRFLOW_RESULTS_PASSWORD"
        assert takes(ran, capsys, address)["unknown"] == unknown
        monkeypatch.setenv(results.USER, account.access)
        monkeypatch.setenv(results.PASSWORD, account.secret)
        assert takes(ran, capsys, address)["rate"] == "4.0 seconds a page, as measured on 50 pages of 5 volumes"
        monkeypatch.setenv(results.PASSWORD, "fel")
        done = ran.run("plan", *OPTIONS, f"--results={address}")
        assert done.returncode == 2
        assert "the results site answered 401 to the login — check --results" in done.stderr
