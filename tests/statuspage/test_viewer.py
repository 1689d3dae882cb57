"""Universal Viewer in a real browser: a volume's pages, the search in its text, and what it may not do."""

from __future__ import annotations

import json
import pathlib
import re
import typing as t
import urllib.parse
from collections import abc

import pytest
import requests

from tests.statuspage import live_site, local_data
from tests.statuspage.live_site import LETTERS, VIEWER, VOLUME
from tests.testbed.plugin.browser import Browser
from tests.testbed.plugin.misbehaving_http import MisbehavingHttp

if t.TYPE_CHECKING:
    from playwright.sync_api import Frame, Page, Request

Tool: t.TypeAlias = t.Callable[[str], pathlib.Path]

#: Before any script of a page: notes what the policy refuses.
_LISTEN = """
window.refused = [];
document.addEventListener("securitypolicyviolation", (event) =>
  window.refused.push(`${event.effectiveDirective} ${event.blockedURI}`));
"""
#: What the viewer asks our own site for in vain: the folder of its buttons' images, which are data all the same.
_IN_VAIN = re.compile(r"/images/data:image/gif;")


@pytest.fixture
def data(tmp_path: pathlib.Path, misbehaving_http: MisbehavingHttp) -> pathlib.Path:
    return live_site.make(tmp_path, misbehaving_http)


@pytest.fixture
def site(data: pathlib.Path, tool: Tool) -> abc.Iterator[str]:
    with live_site.serve(data, tool("universalviewer") / "dist") as url:
        yield url


class _Opened:
    """The viewer in a page, with all that the browser asked for."""

    def __init__(self, browser: Browser, address: str, **options: t.Any) -> None:
        self.page: Page = browser.page(**{"locale": "sv-SE", "viewport": {"width": 1280, "height": 900}, **options})
        self.asked: list[str] = []
        self._sent: list[Request] = []
        self.failed: list[str] = []
        self.page.add_init_script(_LISTEN)
        self.page.on("request", lambda request: self.asked.append(request.url))
        self.page.on("response", lambda answer: self._sent.append(answer.request))
        self.page.on("response", lambda answer: self.failed.append(answer.url) if answer.status >= 400 else None)
        self.page.goto(address)

    @property
    def frame(self) -> Frame:
        return self.page.frames[1] if len(self.page.frames) > 1 else self.page.frames[0]

    def wait(self) -> None:
        """Until the first page is drawn."""
        self.frame.wait_for_selector(".openseadragon-canvas canvas", timeout=30_000)
        self.until(lambda: any(url.endswith(".jpg") for url in self.asked))

    def until(self, is_so: t.Callable[[], bool]) -> None:
        for _ in range(100):
            if is_so():
                return
            self.page.wait_for_timeout(50)
        raise AssertionError(f"it did not come to be: {self.asked[-20:]}")

    def asked_for(self, ending: str) -> bool:
        return any(url.endswith(ending) for url in self.asked)

    def cookie(self, ending: str) -> str:
        """What the browser sent as cookies with the request that ends so."""
        sent = next(request for request in self._sent if request.url.endswith(ending))
        return sent.all_headers().get("cookie", "")

    def hosts(self) -> set[str]:
        parts = [urllib.parse.urlsplit(url) for url in self.asked]
        return {part.netloc for part in parts if part.scheme in ("http", "https")}

    def refused(self) -> list[str]:
        return [one for frame in self.page.frames for one in frame.evaluate("window.refused || []")]


def test_it_shows_the_pages_and_finds_words_and_asks_nobody_else(
    site: str, browser: Browser, misbehaving_http: MisbehavingHttp
) -> None:
    opened = _Opened(browser, f"{site}{VIEWER}?lang=sv")
    opened.wait()
    frame = opened.frame

    assert opened.asked_for(f"{VOLUME}/iiif.json")
    assert opened.asked_for("/volume/1.jpg")
    assert "Dombok" in frame.inner_text(".centerPanel .title")
    frame.click(".headerPanel button.next")
    opened.until(lambda: opened.asked_for("/volume/2.jpg"))
    frame.fill("#searchWithinInput", "socken")
    frame.press("#searchWithinInput", "Enter")
    frame.wait_for_selector("button.nextResult:visible", timeout=10_000)

    searches = [url for url in opened.asked if f"{VOLUME}/search/1?q=socken" in url]
    found = requests.get(searches[0], timeout=10).json()
    assert found["within"]["total"] > 0
    assert re.search(rf"\b{found['within']['total']}\b", frame.inner_text(".footerPanel"))
    # Where there is a login, its cookie is with them too.
    assert opened.cookie("/iiif.json") == opened.cookie("/search/1?q=socken") == "language=sv"
    assert opened.hosts() == {site.removeprefix("http://"), misbehaving_http.url.removeprefix("http://")}
    assert opened.refused() == []
    assert [url for url in opened.failed if not _IN_VAIN.search(url)] == []


def test_its_policy_runs_no_text_as_program_and_asks_no_host_that_the_manifest_does_not_name(
    site: str, data: pathlib.Path
) -> None:
    path = live_site.iiif(data)
    address = "https://images.example.org:8443/iiif/3/1; script-src *"
    found = json.loads(path.read_text(encoding="utf-8"))
    found["items"][0]["items"][0]["items"][0]["body"]["service"] = [{"id": address, "type": "ImageService3"}]
    path.write_text(json.dumps(found), encoding="utf-8")

    said = requests.get(f"{site}{VIEWER}/frame", timeout=10).headers["Content-Security-Policy"]
    rules = dict(rule.split(" ", 1) for rule in said.split("; "))

    assert rules["default-src"] == "'none'"
    assert rules["script-src"] == "'self'"
    assert rules["connect-src"] == "'self' https://images.example.org:8443"
    assert rules["frame-ancestors"] == "'self'"
    assert "frame-ancestors 'none'" in requests.get(f"{site}{VIEWER}", timeout=10).headers["Content-Security-Policy"]


@pytest.mark.slow
@pytest.mark.parametrize("place", ["page", "frame"])
def test_no_address_makes_it_open_another_manifest(
    site: str, browser: Browser, misbehaving_http: MisbehavingHttp, place: str
) -> None:
    other = misbehaving_http.put("/evil/manifest.json", '{"type": "Manifest", "items": []}')
    path = VIEWER if place == "page" else f"{VIEWER}/frame"
    named = f"manifest={other}&iiifManifestId={other}&iiif-content={other}&config={other}"

    opened = _Opened(browser, f"{site}{path}?{named}#?{named}")
    opened.wait()

    assert opened.asked_for(f"{VOLUME}/iiif.json")
    assert not [url for url in opened.asked if urllib.parse.urlsplit(url).path == "/evil/manifest.json"]
    assert misbehaving_http.count("/evil/manifest.json") == 0


@pytest.mark.slow
def test_a_manifest_that_is_dropped_on_it_is_not_opened(
    site: str, browser: Browser, misbehaving_http: MisbehavingHttp
) -> None:
    other = misbehaving_http.put("/evil/manifest.json", "{}")
    opened = _Opened(browser, f"{site}{VIEWER}")
    opened.wait()
    before = opened.frame.url

    opened.frame.evaluate(
        """address => {
          const dropped = new DataTransfer();
          dropped.setData("URL", address);
          const event = new DragEvent("drop", { dataTransfer: dropped, bubbles: true, cancelable: true });
          document.querySelector(".uv-iiif-extension-host").dispatchEvent(event);
        }""",
        f"https://example.org/?manifest={other}",
    )
    opened.page.wait_for_timeout(500)

    assert misbehaving_http.count("/evil/manifest.json") == 0
    assert opened.frame.url == before


def test_the_programs_own_pages_are_not_served(site: str) -> None:
    for name in ("uv.html", "index.html", "", "uv-iiif-config.json", "umd", "..%2fpackage.json"):
        assert requests.get(f"{site}/viewer/{name}", timeout=10).status_code == 404, name
    script = requests.get(f"{site}/viewer/umd/UV.js", timeout=10)
    assert (script.status_code, script.headers["Cache-Control"]) == (200, "no-cache")


@pytest.mark.slow
def test_the_page_around_it_has_no_barrier_and_leads_to_the_text(site: str, browser: Browser) -> None:
    for width in (320, 1280):
        opened = _Opened(browser, f"{site}{VIEWER}", viewport={"width": width, "height": 900})
        opened.wait()

        assert opened.page.get_attribute("iframe", "title") == f"Bildvisare för {local_data.VOLUME}"
        outside = browser.barriers(opened.page)
        assert [node["target"] for one in outside for node in one["nodes"] if len(node["target"]) == 1] == []
        assert not opened.page.evaluate("document.documentElement.scrollWidth > innerWidth")
    opened.page.click("text=Samma text utan bildvisaren")
    assert opened.page.url == f"{site}{VOLUME}/pages/1"


@pytest.mark.slow
def test_it_shows_what_there_is_while_a_volume_still_runs(site: str, data: pathlib.Path, browser: Browser) -> None:
    live_site.cut(data, 2)
    opened = _Opened(browser, f"{site}{VIEWER}")
    opened.wait()
    opened.frame.wait_for_selector(".thumb img", timeout=10_000)
    assert len(opened.frame.query_selector_all(".thumb")) == 2
    opened.page.context.close()

    live_site.iiif(data).unlink()
    opened = _Opened(browser, f"{site}{VIEWER}")
    assert "Ingen sida är läst än" in opened.page.inner_text("main")
    assert opened.page.query_selector("iframe") is None


def test_where_it_is_not_installed_no_page_leads_to_it(data: pathlib.Path) -> None:
    with live_site.serve(data, None) as url:
        for path in ("/", LETTERS, VOLUME):
            assert "/viewer" not in requests.get(f"{url}{path}", timeout=10).text
        answer = requests.get(f"{url}{VIEWER}", headers={"Accept-Language": "en"}, timeout=10)

    assert answer.status_code == 404
    assert "The viewer is not installed here." in answer.text
    assert f'href="{VOLUME}/pages/1"' in answer.text


def test_its_search_is_asked_for_at_the_address_that_the_browser_has(site: str) -> None:
    headers = {"Host": site.removeprefix("http://"), "X-Forwarded-Proto": "https"}
    found = requests.get(f"{site}{VOLUME}/iiif.json", headers=headers, timeout=10).json()

    assert found["service"][0] == {"id": f"{site.replace('http', 'https')}{VOLUME}/search", "type": "SearchService2"}
    assert found["service"][1]["@id"] == f"{found['service'][0]['id']}/1"
