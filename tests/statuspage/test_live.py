"""A page that stays open: what it shows when something changes, when events are refused, and when the site is away."""

from __future__ import annotations

import json
import pathlib
import typing as t
import urllib.parse
from collections import abc

import pytest

from tests.statuspage import live_site
from tests.testbed.plugin.browser import Browser
from tests.testbed.plugin.misbehaving_http import MisbehavingHttp

if t.TYPE_CHECKING:
    from playwright.sync_api import Page

#: They take long together.
pytestmark = pytest.mark.slow

WAITING = "#campaign-demo-waiting"


@pytest.fixture
def data(tmp_path: pathlib.Path, misbehaving_http: MisbehavingHttp) -> pathlib.Path:
    return live_site.make(tmp_path, misbehaving_http)


@pytest.fixture
def site(data: pathlib.Path) -> abc.Iterator[str]:
    with live_site.serve(data, None) as url:
        yield url


def _begin(data: pathlib.Path, done: int) -> None:
    """The campaign that waited runs, and so many of its volumes are done."""
    path = data / "jobs/waiting.json"
    job = json.loads(path.read_text(encoding="utf-8"))
    job["job"]["spec"]["suspend"] = False
    done_indexes = f"0-{done - 1}"
    job["job"]["status"] = {"active": 2, "startTime": "2026-11-29T20:00:00Z", "completedIndexes": done_indexes}
    (data.parent / "new").write_text(json.dumps(job), encoding="utf-8")
    (data.parent / "new").replace(path)


def _cards(page: Page) -> list[str | None]:
    return [card.get_attribute("id") for card in page.query_selector_all("article")]


def test_where_events_are_refused_the_page_asks_by_itself(site: str, data: pathlib.Path, browser: Browser) -> None:
    page = browser.page(locale="en-GB")
    page.route("**/events", lambda route: route.fulfill(status=503, body="too many readers; ask again later\n"))
    page.goto(site)
    before = _cards(page)

    _begin(data, 5)
    page.wait_for_selector(f"{WAITING} .state-running", timeout=15_000)

    assert "5 of 150" in page.inner_text(WAITING)
    assert _cards(page) == before
    assert page.is_hidden("[role=alert]")


def test_the_last_that_was_known_stays_when_the_site_is_away_and_it_says_so(
    data: pathlib.Path, browser: Browser
) -> None:
    page = browser.page(locale="sv-SE")
    with live_site.serve(data, None) as url:
        page.goto(url)
        page.wait_for_timeout(500)
        shown = page.inner_text(".cards")
        assert page.is_hidden("[role=alert]")
        assert page.inner_text("[role=alert]") == ""
        port = urllib.parse.urlsplit(url).port

    page.wait_for_selector("[role=alert]:visible", timeout=15_000)
    assert page.inner_text("[role=alert]") == "Förbindelsen är bruten. Det som visas är det senast kända."
    assert page.inner_text(".cards") == shown

    with live_site.serve(data, None, port or 0):
        page.wait_for_selector("[role=alert]", state="hidden", timeout=20_000)
        assert page.inner_text(".cards") == shown
        page.context.close()


@pytest.mark.slow
def test_a_reader_can_pause_updates_and_go_on(site: str, data: pathlib.Path, browser: Browser) -> None:
    page = browser.page(locale="en-GB")
    page.goto(site)
    page.click("text=Pause updates")
    page.wait_for_timeout(1000)
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))

    _begin(data, 5)
    page.wait_for_timeout(6000)
    assert asked == []
    assert "0 of 150" in page.inner_text(WAITING)

    page.click("text=Go on updating")
    page.wait_for_selector(f"{WAITING} .state-running", timeout=5000)


@pytest.mark.slow
def test_a_page_that_nobody_sees_asks_nothing(site: str, data: pathlib.Path, browser: Browser) -> None:
    page = browser.page(locale="en-GB")
    page.goto(site)
    # A browser without a window hides no tab; this is what a page is told of one.
    page.evaluate(_TELL, True)
    page.wait_for_timeout(1000)
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))

    _begin(data, 5)
    page.wait_for_timeout(6000)
    assert asked == []

    page.evaluate(_TELL, False)
    page.wait_for_selector(f"{WAITING} .state-running", timeout=5000)


_TELL = """hidden => {
  Object.defineProperty(document, "hidden", { value: hidden, configurable: true });
  document.dispatchEvent(new Event("visibilitychange"));
}"""


@pytest.mark.slow
def test_nothing_is_taken_from_under_the_keyboard(site: str, data: pathlib.Path, browser: Browser) -> None:
    page = browser.page(locale="en-GB")
    page.goto(site)
    page.focus(f"{WAITING} h2 a")

    _begin(data, 5)
    page.wait_for_timeout(5000)
    assert page.evaluate("document.activeElement.textContent") == "waiting"
    assert "0 of 150" in page.inner_text(WAITING)

    page.evaluate("document.activeElement.blur()")
    page.wait_for_selector(f"{WAITING} .state-running", timeout=10_000)


@pytest.mark.slow
def test_when_the_page_was_updated_is_told_by_the_clock_of_the_server(site: str, browser: Browser) -> None:
    page = browser.page(locale="en-GB", timezone_id="Pacific/Kiritimati")
    page.add_init_script("Date.now = () => 0;")
    page.goto(site)
    first = page.inner_text("[data-part=updated]")
    page.evaluate("document.querySelector('[data-part=updated]').textContent = 'old'")

    page.wait_for_selector("[data-part=updated]:has-text('Updated')", timeout=15_000)

    # The same day and hour in Sweden, but for a test that runs past the hour.
    assert page.inner_text("[data-part=updated]")[:18] == first[:18]
