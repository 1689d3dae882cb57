"""The two programs of the site, on a real API server with Kueue, before a real store, in a real browser."""

from __future__ import annotations

import contextlib
import pathlib
import re
import time
import typing as t

import pytest
import requests
from cryptography.fernet import Fernet

from htrflow_status import settings
from htrflow_status.__main__ import main
from htrflow_status.settings import SettingsError
from tests.statuspage import local_data, test_record_writer
from tests.statuspage.api_proxy import ApiProxy
from tests.statuspage.programs import Platform, platform
from tests.statuspage.results_site import allow, put
from tests.testbed.plugin.browser import Browser
from tests.testbed.plugin.cluster import Cluster
from tests.testbed.plugin.control_plane import write_kubeconfig
from tests.testbed.plugin.fake_nodes import FakeNodes
from tests.testbed.plugin.kubelet import Life, index_of
from tests.testbed.plugin.misbehaving_http import Answer, MisbehavingHttp
from tests.testbed.plugin.namespace import Namespace
from tests.testbed.plugin.s3 import Account, OwnStore, Store
from tests.wrapper import pods

if t.TYPE_CHECKING:
    from playwright.sync_api import Page

Generated = t.Callable[..., list[dict[str, t.Any]]]
#: The volume of the example that is really read, and the others.
READ, FAILED, OTHER = "R0001203", "letters-1", "loose-scans"


class Stage(t.NamedTuple):
    """A site with one campaign in its namespace, and what stands behind it."""

    site: Platform
    api: ApiProxy
    store: OwnStore
    namespace: Namespace

    @property
    def campaign(self) -> str:
        return f"/campaigns/{self.namespace.name}/example"

    def page(self, browser: Browser, path: str = "/") -> Page:
        """A browser in which the reader has logged in by the form."""
        page = browser.page(locale="en-GB")
        page.goto(f"{self.site.web.url}{path}")
        _log_in(page, self.store.reader)
        return page

    @contextlib.contextmanager
    def client(self) -> t.Iterator[requests.Session]:
        with self.site.site.browser(self.store.reader) as browser:
            browser.headers["Accept-Language"] = "en"
            yield browser


@pytest.fixture
def stage(
    cluster: Cluster,
    namespace: Namespace,
    own_s3: OwnStore,
    generated: Generated,
    tool: t.Callable[[str], pathlib.Path],
    tmp_path: pathlib.Path,
) -> t.Iterator[Stage]:
    namespace.quota(gpu=0)
    namespace.create_all(generated(namespace.name))
    api = ApiProxy(cluster.admin)
    config = tmp_path / "kubeconfig"
    write_kubeconfig(config, api.url)
    with platform(tmp_path, config, own_s3, [namespace.name], VIEWER=str(tool("universalviewer") / "dist")) as site:
        yield Stage(site, api, own_s3, namespace)
    api.close()


@pytest.fixture
def results(tmp_path: pathlib.Path, misbehaving_http: MisbehavingHttp, stage: Stage) -> pathlib.Path:
    """The results of a volume, of which page 5 is not to be had; they are in the bucket too."""
    manifest = pods.serve_volume(misbehaving_http, local_data.PAGES)
    misbehaving_http.put("/volume/5.jpg", b"<html>gone")
    # The viewer draws what its archive lets other sites draw.
    drawn = Answer(pods.picture(1), headers={"Access-Control-Allow-Origin": "*"})
    misbehaving_http.put("/volume/1.jpg", drawn)
    (tmp_path / "read").mkdir()
    folder = tmp_path / "read/results"
    local_data.read(tmp_path / "read", folder, manifest)
    for file in sorted((folder / local_data.NAMESPACE).rglob("*.*")):
        put(stage.store, f"{stage.namespace.name}/{file.relative_to(folder / local_data.NAMESPACE)}", file.read_bytes())
    return folder


@pytest.mark.slow
def test_a_reader_sees_a_campaign_wait_run_and_end_and_reads_its_text(
    stage: Stage, browser: Browser, fake_nodes: FakeNodes, results: pathlib.Path
) -> None:
    said = '{"stage": "load", "permanent": true, "error": "the manifest is an HTML page"}'
    ends = {"1": Life(exit_code=13, container="wrapper", message=said), "0": Life(running=8), "2": Life(running=None)}
    fake_nodes.play(lambda pod: ends.get(index_of(pod), Life()))
    page = stage.page(browser)

    card = page.locator("article")
    card.get_by_text("Queued", exact=False).first.wait_for(timeout=15_000)
    card.get_by_text("It can never start", exact=False).first.wait_for(timeout=15_000)
    stage.namespace.quota(gpu=10)
    page.locator("article .state-running").first.wait_for(timeout=30_000)
    card.get_by_text("the manifest is an HTML page", exact=False).first.wait_for(timeout=30_000)
    card.get_by_text("1 of 3 · 1 failed", exact=False).first.wait_for(timeout=30_000)

    page.goto(f"{stage.site.web.url}{stage.campaign}/{READ}")
    assert "6 of 7" in page.inner_text("main")
    assert "is an HTML page" in page.inner_text("main")
    page.goto(f"{stage.site.web.url}{stage.campaign}/{READ}/pages/2")
    assert page.locator(".lines li").count() > 2
    page.goto(f"{stage.site.web.url}{stage.campaign}/{READ}/log")
    assert "page 5 failed" in page.inner_text("main")

    page.goto(f"{stage.site.web.url}{stage.campaign}/{READ}/viewer")
    frame = page.frames[1]
    frame.wait_for_selector(".openseadragon-canvas canvas", timeout=30_000)
    frame.fill("#searchWithinInput", "socken")
    frame.press("#searchWithinInput", "Enter")
    frame.wait_for_selector("button.nextResult:visible", timeout=10_000)


def test_who_logs_out_or_never_logged_in_sees_nothing(stage: Stage, browser: Browser) -> None:
    page = stage.page(browser, stage.campaign)
    assert page.url == f"{stage.site.web.url}{stage.campaign}"
    assert "example" in page.inner_text("h1")
    assert stage.store.reader.access in page.inner_text("header")
    cookies = page.context.cookies()

    page.get_by_role("button", name="Log out").click()
    page.wait_for_url(re.compile(".*"))
    page.goto(f"{stage.site.web.url}{stage.campaign}")

    assert "/login?next=" in page.url
    assert "example" not in page.inner_text("body")
    # A copy of the cookie is worth nothing either.
    kept = {cookie["name"]: cookie["value"] for cookie in cookies}
    copied = requests.get(f"{stage.site.web.url}{stage.campaign}.json", cookies=kept, timeout=10)
    assert copied.status_code == 401
    for path in ("/campaigns.json", "/api/v1/campaigns", "/events", "/api/v1/version"):
        answer = requests.get(f"{stage.site.web.url}{path}", timeout=10)
        assert (answer.status_code, stage.namespace.name in answer.text) == (401, False)


def test_what_one_account_may_not_read_it_does_not_get_and_the_other_does(stage: Stage, results: pathlib.Path) -> None:
    store, key = stage.store, f"{stage.namespace.name}/demo-v1/{READ}/manifest.json"
    allow(store, {store.reader.access: [f"{stage.namespace.name}/"], store.writer.access: ["elsewhere/"]})
    with stage.site.site.browser(store.reader) as may, stage.site.site.browser(store.writer) as may_not:
        answers = [browser.get(stage.site.site.at(key), timeout=10) for browser in (may, may_not)]
        assert [answer.status_code for answer in answers] == [200, 403]
        assert answers[0].content == (results / f"demo/demo-v1/{READ}/manifest.json").read_bytes()

        may_not.headers["Accept-Language"] = "en"
        page = may_not.get(f"{stage.site.web.url}{stage.campaign}/{READ}", timeout=10)
        assert page.status_code == 200
        assert "may not read" in page.text
        assert "is an HTML page" not in page.text


def test_ranges_downloads_and_tags_pass_through_both_programs(stage: Stage, results: pathlib.Path) -> None:
    key = f"{stage.namespace.name}/demo-v1/{READ}/alto/0002.xml"
    whole = (results / f"demo/demo-v1/{READ}/alto/0002.xml").read_bytes()
    with stage.client() as browser:
        at = stage.site.site.at(key)
        part = browser.get(at, headers={"Range": "bytes=10-19"}, timeout=10)
        assert (part.status_code, part.content) == (206, whole[10:20])
        assert part.headers["Content-Range"] == f"bytes 10-19/{len(whole)}"
        tag = browser.head(at, timeout=10).headers["ETag"]
        assert browser.get(at, headers={"If-None-Match": tag}, timeout=10).status_code == 304
        assert browser.get(at, headers={"Range": f"bytes={len(whole)}-"}, timeout=10).status_code == 416
        assert browser.get(at, timeout=10).content == whole
        assert browser.put(at, data=b"x", timeout=10).status_code == 405
        for path in ("/results/../metrics", "/results/%2e%2e/metrics", "/results//healthz", f"/results/{key}%2f.."):
            sent = requests.Request("GET", stage.site.web.url).prepare()
            sent.url = f"{stage.site.web.url}{path}"
            assert browser.send(sent, timeout=10).status_code == 404, path
        text = browser.get(f"{stage.site.web.url}{stage.campaign}/{READ}/download/text", timeout=10)
        assert "socken" in text.text


def test_whatever_is_away_the_site_shows_a_page_with_a_sentence(
    stage: Stage, results: pathlib.Path, fake_nodes: FakeNodes
) -> None:
    def text(path: str = "/", status: int = 200) -> str:
        answer = browser.get(f"{stage.site.web.url}{path}", timeout=60)
        assert answer.status_code == status, answer.text
        assert "<h1" in answer.text
        return answer.text

    volume = f"{stage.campaign}/{READ}"
    with stage.client() as browser:
        _until(lambda: "example" in text())

        stage.api.down()
        _until(lambda: "cannot be reached" in text())
        assert "example" in text(stage.campaign)
        stage.api.delay = 0.5
        stage.api.up()
        _until(lambda: "cannot be reached" not in text())
        stage.api.delay = 0.0

        stage.store.stop()
        assert "The store cannot be reached" in text(volume)
        assert "The store cannot be reached" in text(f"{volume}/log")
        stage.store.start()
        _until(lambda: "6 of 7" in text(volume))

        stage.site.results.stop()
        assert "The results proxy cannot be reached" in _eventually(browser, f"{stage.site.web.url}{volume}")
        refused = browser.get(stage.site.site.at(f"{stage.namespace.name}/demo-v1/{READ}/iiif.json"), timeout=30)
        assert refused.status_code == 502
        stage.site.results.start()
        # The session's key is in a file, so nobody has to log in again.
        _until(lambda: "6 of 7" in text(volume))

        stage.site.web.stop()
        stage.site.web.start()
        assert "6 of 7" in text(volume)


@pytest.mark.slow
def test_results_that_are_cut_off_or_nonsense_are_shown_as_far_as_they_can_be(
    stage: Stage, results: pathlib.Path
) -> None:
    folder = f"{stage.namespace.name}/demo-v1/{READ}"
    kept = {
        file.relative_to(results / "demo/demo-v1" / READ): file.read_bytes()
        for file in (results / "demo/demo-v1" / READ).rglob("*.*")
    }
    paths = [f"{stage.campaign}/{READ}{rest}" for rest in ("", "/log", "/pages/2", "/search?q=a", "/iiif.json")]
    odd = [b"", b"{", b"null", b"[1, 2", b"\xff\xfe\x00", b'{"pages": 3}', b"[" * 100_000, b"<alto>"]
    with stage.client() as browser:
        for name in (pathlib.Path("progress.json"), pathlib.Path("iiif.json"), pathlib.Path("alto/0002.xml")):
            for content in (*odd, kept[name][: len(kept[name]) // 2]):
                put(stage.store, f"{folder}/{name}", content)
                time.sleep(2.1 if content == odd[0] else 0)
                for path in ("/", stage.campaign, *paths):
                    answer = browser.get(f"{stage.site.web.url}{path}", timeout=30)
                    assert answer.status_code in (200, 404), (path, name, content[:20])
                    assert "Internal Server Error" not in answer.text
            put(stage.store, f"{folder}/{name}", kept[name])


@pytest.mark.slow
def test_a_cookie_is_worth_nothing_once_its_key_is_gone(stage: Stage) -> None:
    with stage.client() as browser:
        assert browser.get(f"{stage.site.web.url}/campaigns.json", timeout=10).status_code == 200
        old = stage.site.keys.read_bytes()
        stage.site.keys.write_bytes(Fernet.generate_key() + b"\n" + old)
        assert browser.get(f"{stage.site.web.url}/campaigns.json", timeout=10).status_code == 200

        stolen = dict(browser.cookies)
        stage.site.keys.write_bytes(Fernet.generate_key() + b"\n")
        _until(
            lambda: requests.get(f"{stage.site.web.url}/campaigns.json", cookies=stolen, timeout=10).status_code == 401
        )


@pytest.mark.slow
def test_the_site_writes_records_where_it_is_told_to(
    cluster: Cluster,
    namespace: Namespace,
    fake_nodes: FakeNodes,
    generated: Generated,
    s3: Store,
    tmp_path: pathlib.Path,
) -> None:
    fake_nodes.play(Life(exit_code=13, container="wrapper", message='{"stage": "load", "error": "no such page"}'))
    namespace.create_all(generated(namespace.name))
    test_record_writer.record(namespace)
    with platform(tmp_path, cluster.admin, s3, [namespace.name], WRITE_RECORDS="true"):
        namespace.wait_for(lambda: test_record_writer.content(namespace).count("no such page") == 3, "it wrote", 60)


@pytest.mark.parametrize(
    ("program", "variables", "said"),
    [
        ("web", {}, "the variable NAMESPACES is missing — the chart sets it"),
        ("web", {"NAMESPACES": "a", "RESULTS_SERVICE": "results"}, "RESULTS_SERVICE is 'results' — write an address"),
        ("web", {"NAMESPACES": "a", "RESULTS_SERVICE": "http://r"}, "there is no KUBERNETES_SERVICE_HOST"),
        ("web", {"VIEWER": "/nowhere"}, "VIEWER is '/nowhere', and there is no Universal Viewer"),
        ("web", {"WRITE_RECORDS": "yes"}, "the variable WRITE_RECORDS is 'yes' — write true or false"),
        ("web", {"PORT": "80800"}, "the variable PORT is '80800' — write a whole number from 1 to 65535"),
        ("results", {}, "the variable S3_BUCKET is missing — the chart sets it"),
        ("results", {"NAMESPACES": "a b"}, "NAMESPACES has no place of results, such as htr-batch/: 'a b/'"),
        ("results", {"SITE_ADDRESSES": "htr.example.org"}, "SITE_ADDRESSES has no address of the site"),
        ("results", {"S3_KEY_DERIVATION": "md5"}, "S3_KEY_DERIVATION is 'md5' — write none or hcp"),
        ("results", {"S3_CA_BUNDLE": "/nowhere"}, "S3_CA_BUNDLE is '/nowhere', and there is no such file"),
    ],
)
def test_a_setting_that_cannot_be_is_said_before_anything_starts(
    program: str, variables: dict[str, str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([program], variables) == 2
    assert said in capsys.readouterr().err


def test_the_documentation_names_every_variable_and_no_other() -> None:
    text = (pathlib.Path(__file__).parents[2] / "docs/statuspage.md").read_text(encoding="utf-8")
    tables = text.partition("<!-- settings -->")[2].partition("<!-- /settings -->")[0].split("`results`:")
    for table, read in zip(tables, (settings.web, settings.results), strict=True):
        environ = _Asked()
        with pytest.raises(SettingsError):
            read(environ)
        asked = {name for name in environ.asked if not name.startswith("KUBERNETES_")}
        assert set(re.findall(r"^\| `([A-Z0-9_]+)`", table, re.MULTILINE)) == asked


class _Asked(dict[str, str]):
    """An environment without variables, that remembers which were looked for."""

    def __init__(self) -> None:
        super().__init__()
        self.asked: set[str] = set()

    def get(self, name: str, default: t.Any = None) -> t.Any:
        self.asked.add(name)
        return default


def _log_in(page: Page, account: Account) -> None:
    page.get_by_label("User name").fill(account.access)
    page.get_by_label("Password").fill(account.secret)
    page.get_by_role("button", name="Log in").click()


def _until(condition: t.Callable[[], bool], seconds: float = 40.0) -> None:
    until = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < until
        time.sleep(0.2)


def _eventually(browser: requests.Session, url: str) -> str:
    """The page once it is refused: what is known of a session holds for some seconds."""
    until = time.monotonic() + 40
    while (answer := browser.get(url, timeout=60)).status_code == 200:
        if "The results proxy cannot be reached" in answer.text:
            break
        assert time.monotonic() < until
        time.sleep(0.2)
    return answer.text
