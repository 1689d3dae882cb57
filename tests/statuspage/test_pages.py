"""The pages, in a real browser and by programs, on the state and the results of one machine."""

from __future__ import annotations

import io
import json
import pathlib
import re
import typing as t
import zipfile
from collections import abc

import pytest
import requests

from htrflow_status import words
from htrflow_status.sources import reasons
from tests.statuspage import live_site, local_data
from tests.statuspage.live_site import LETTERS, VIEWER, VOLUME
from tests.testbed.plugin.browser import Browser
from tests.testbed.plugin.misbehaving_http import MisbehavingHttp

#: Every kind of page.
PAGES = (
    "/",
    LETTERS,
    "/campaigns/demo/waiting",
    VOLUME,
    f"{VOLUME}/log",
    f"{VOLUME}/pages/2",
    "/login",
    "/accessibility",
    "/no",
)


@pytest.fixture
def site(tmp_path: pathlib.Path, misbehaving_http: MisbehavingHttp) -> abc.Iterator[str]:
    with live_site.serve(local_data.make(tmp_path, misbehaving_http), None) as url:
        yield url


@pytest.mark.slow
def test_no_page_has_a_barrier_or_is_wider_than_the_window(site: str, browser: Browser, tmp_path: pathlib.Path) -> None:
    found: list[str] = []
    for width in (320, 768, 1280):
        for scheme in ("light", "dark"):
            for locale in ("sv-SE", "en-GB"):
                page = browser.page(
                    viewport={"width": width, "height": 900},
                    color_scheme=scheme,
                    locale=locale,
                    reduced_motion="reduce",
                )
                # Without the program, the page of the viewer is only what stands around it.
                for path in (*PAGES, VIEWER):
                    page.goto(f"{site}{path}")
                    name = f"{path} at {width} in {scheme} and {locale}"
                    found += [
                        f"{name}: {one['id']} {[n['html'] for n in one['nodes']][:2]}" for one in browser.barriers(page)
                    ]
                    if page.evaluate("document.documentElement.scrollWidth > innerWidth"):
                        found.append(f"{name}: wider than the window")
                page.context.close()

    assert found == []


def test_every_page_shows_the_same_without_javascript(site: str, browser: Browser) -> None:
    plain, live = browser.page(java_script_enabled=False), browser.page()
    for path in PAGES:
        texts = []
        for page in (plain, live):
            page.goto(f"{site}{path}")
            texts.append(page.inner_text("main"))
        assert texts[0] == texts[1]
        assert texts[0].strip()


def test_a_card_says_how_a_campaign_stands_and_what_went_wrong(site: str, browser: Browser) -> None:
    page = browser.page(locale="en-GB")
    page.goto(site)

    cards = {card.get_attribute("id"): card.inner_text() for card in page.query_selector_all("article")}
    assert list(cards) == ["campaign-demo-letters", "campaign-demo-parish", "campaign-demo-waiting"]
    assert "Partially failed" in cards["campaign-demo-letters"]
    assert "1 of 2 · 1 failed" in cards["campaign-demo-letters"]
    assert "R0001204" in cards["campaign-demo-letters"]
    assert "Partially succeeded" in cards["campaign-demo-parish"]
    assert "6 of 7 · 1 failed" in cards["campaign-demo-parish"]
    assert "Riksarkivet/yolov9-regions-1" in cards["campaign-demo-parish"]
    assert "not pinned" in cards["campaign-demo-parish"]
    assert "Queued" in cards["campaign-demo-waiting"]
    assert "It can never start: it needs 2 places and there are 1" in cards["campaign-demo-waiting"]


def test_filters_are_in_the_address_and_find_volumes(site: str) -> None:
    found = requests.get(f"{site}/campaigns.json?q=r0002100", timeout=10).json()
    assert [(one["name"], [row["id"] for row in one["shown"]]) for one in found["campaigns"]] == [
        ("waiting", ["R0002100"])
    ]
    assert requests.get(f"{site}/campaigns.json?state=queued", timeout=10).json()["total"] == 1
    assert requests.get(f"{site}/campaigns.json?pipeline=other", timeout=10).json()["campaigns"] == []


def test_a_long_campaign_comes_in_pages(site: str) -> None:
    first = requests.get(f"{site}/campaigns/demo/waiting.json", timeout=10).json()
    second = requests.get(f"{site}{first['following'].replace('?', '.json?')}", timeout=10).json()

    ids = [row["id"] for data in (first, second) for row in data["volumes"]]
    assert ids == [f"R{number:07}" for number in range(2000, 2150)]
    assert second["following"] is None


def test_a_volume_accounts_for_each_page_and_can_be_had_whole(site: str) -> None:
    data = requests.get(f"{site}{VOLUME}.json", timeout=10).json()

    assert [cell["state"] for cell in data["cells"]][4] == "failed"
    assert [cell["page"] for cell in data["cells"]] == list(range(1, local_data.PAGES + 1))
    assert "is an HTML page" in data["failed_pages"][0]["reason"]
    for kind in ("alto", "page"):
        answer = requests.get(f"{site}{VOLUME}/download/{kind}", timeout=10)
        with zipfile.ZipFile(io.BytesIO(answer.content)) as archive:
            assert archive.namelist() == [f"{kind}/{page:04}.xml" for page in (1, 2, 3, 4, 6, 7)]
            assert all(archive.read(name).rstrip().endswith(b">") for name in archive.namelist())
    text = requests.get(f"{site}{VOLUME}/download/text", timeout=10)
    assert "socken" in text.text
    assert text.headers["Content-Disposition"] == f'attachment; filename="{local_data.VOLUME}.txt"'


def test_a_line_and_its_outline_follow_each_other(site: str, browser: Browser) -> None:
    page = browser.page(locale="en-GB")
    page.goto(f"{site}{VOLUME}/pages/2")
    lines = page.query_selector_all(".lines li")
    outlines = page.query_selector_all("polygon")
    assert len(lines) == len(outlines) > 2
    assert page.evaluate("document.querySelector('svg image').getAttribute('href')").endswith("/volume/2.jpg")

    lines[0].focus()
    page.keyboard.press("ArrowDown")
    assert page.evaluate("document.activeElement.id") == "line-2"
    assert "marked" in (outlines[1].get_attribute("class") or "")
    outlines[2].click(force=True)
    assert page.evaluate("document.activeElement.id") == "line-3"
    assert "marked" not in (outlines[1].get_attribute("class") or "")


def test_the_run_log_has_its_stages_and_finds_words(site: str, browser: Browser) -> None:
    page = browser.page(locale="en-GB")
    page.goto(f"{site}{VOLUME}/log?q=page+5")

    titles = [one.inner_text() for one in page.query_selector_all("summary")]
    assert any(title.startswith("stream") for title in titles)
    assert page.inner_text("[role=status]") == "1 hit"
    number = page.get_attribute("li.hit", "id")
    page.goto(f"{site}{VOLUME}/log#{number}")
    assert "page 5 failed" in page.inner_text(f"#{number}")


def test_a_page_that_is_open_shows_what_changes_and_keeps_its_order(
    site: str, browser: Browser, tmp_path: pathlib.Path
) -> None:
    page = browser.page(locale="en-GB")
    page.goto(site)
    before = [card.get_attribute("id") for card in page.query_selector_all("article")]
    path = tmp_path / "data/jobs/waiting.json"
    job = json.loads(path.read_text())
    job["job"]["spec"]["suspend"] = False
    job["job"]["status"] = {"active": 2, "startTime": "2026-11-29T20:00:00Z", "completedIndexes": "0-4"}
    (tmp_path / "new").write_text(json.dumps(job))
    (tmp_path / "new").replace(path)

    page.wait_for_selector("#campaign-demo-waiting .state-running", timeout=15_000)

    assert [card.get_attribute("id") for card in page.query_selector_all("article")] == before
    assert "5 of 150" in page.inner_text("#campaign-demo-waiting")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_on_paper_a_page_is_black_on_white_and_has_all_its_text(site: str, browser: Browser, scheme: t.Any) -> None:
    page = browser.page(locale="en-GB", color_scheme=scheme)
    page.goto(f"{site}{VOLUME}/log")
    closed = page.locator("details:not([open]) li").first
    height = "one => one.getBoundingClientRect().height"
    assert closed.evaluate(height) == 0

    page.emulate_media(media="print", color_scheme=scheme)

    for what in ("body", "h1", "details:not([open]) li"):
        assert page.locator(what).first.evaluate("one => getComputedStyle(one).color") == "rgb(0, 0, 0)"
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    for hidden in (".top", ".bottom", ".filters", ".path"):
        assert page.locator(hidden).first.is_hidden()
    assert closed.evaluate(height) > 0


def test_a_campaign_on_paper_has_its_numbers_and_problems(site: str, browser: Browser) -> None:
    page = browser.page(locale="en-GB", color_scheme="dark")
    page.goto(f"{site}{LETTERS}")
    assert page.pdf(format="A4").startswith(b"%PDF-")

    page.emulate_media(media="print")
    text = page.inner_text("body")

    for wanted in ("letters", "Partially failed", "1 of 2", "R0001204", "R0001203", "trocr-base-handwritten"):
        assert wanted in text
    for left_out in ("Switch light and dark", "Run log", "Accessibility"):
        assert left_out not in text


def test_search_answers_as_iiif_content_search_does(site: str) -> None:
    found = requests.get(f"{site}{VOLUME}/search", params={"q": "SOCKEN"}, timeout=10).json()

    assert found["@context"] == "http://iiif.io/api/search/2/context.json"
    assert found["type"] == "AnnotationPage"
    assert found["items"]
    for item in found["items"]:
        assert "socken" in item["body"]["value"]
        assert re.search(r"/canvas/\d+#xywh=\d+,\d+,\d+,\d+$", item["target"])
    exact = found["annotations"][0]["items"][0]["target"]["selector"][0]
    assert exact["exact"] == "socken"
    assert requests.get(f"{site}{VOLUME}/search", params={"q": ""}, timeout=10).json()["items"] == []


def test_what_is_not_there_is_said_in_a_sentence(site: str) -> None:
    swedish = requests.get(f"{site}/campaigns/demo/nothing", headers={"Accept-Language": "sv"}, timeout=10)
    english = requests.get(f"{site}/campaigns/demo/nothing.json", headers={"Accept-Language": "en"}, timeout=10)

    assert (swedish.status_code, english.status_code) == (404, 404)
    assert "Sidan finns inte" in swedish.text
    assert english.json() == {"error": "There is no such page. The campaign or volume may have been removed."}
    for answer in (swedish, english, requests.get(f"{site}/", timeout=10)):
        assert answer.headers["X-Content-Type-Options"] == "nosniff"
        assert "default-src 'none'" in answer.headers["Content-Security-Policy"]


def test_the_catalogue_has_every_text_in_both_languages_with_the_same_facts() -> None:
    for key, texts in words.catalogue().items():
        assert set(texts) == set(words.LANGUAGES), key
        facts = [_facts(texts[language]) for language in words.LANGUAGES]
        assert facts[0] == facts[1], key


def test_every_reason_has_a_text_that_names_no_fact_that_may_be_missing() -> None:
    known = {**reasons.WAITING, **reasons.WARMUP, **reasons.PROBLEMS, **reasons.TROUBLES}
    for code, facts in known.items():
        texts = words.catalogue()[f"reason.{code}"]
        assert _facts(texts["sv"]) <= set(facts), code


def _facts(text: t.Any) -> set[str]:
    shapes = text.values() if isinstance(text, dict) else [text]
    return {fact for shape in shapes for fact in re.findall(r"{(\w+)}", shape)}
