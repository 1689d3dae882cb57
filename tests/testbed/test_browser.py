"""The browser."""

from __future__ import annotations

import struct

import pytest

from tests.testbed.plugin.browser import Browser
from tests.testbed.plugin.misbehaving_http import Answer, MisbehavingHttp

_PAGE = """\
<!DOCTYPE html>
<html lang="en"><head><title>A page</title></head>
<body style="background: #fff"><main><h1>Letters</h1>%s</main></body></html>
"""


@pytest.fixture
def site(misbehaving_http: MisbehavingHttp) -> MisbehavingHttp:
    html = {"Content-Type": "text/html; charset=utf-8"}
    misbehaving_http.put("/", Answer(_PAGE % "", headers=html))
    misbehaving_http.put("/bad", Answer(_PAGE % '<img src="/scan.jpg"><p style="color: #ddd">pale</p>', headers=html))
    outside = '<img alt="a scan" src="https://example.org/scan.jpg">'
    misbehaving_http.put("/outside", Answer(_PAGE % outside, headers=html))
    return misbehaving_http


def test_the_browser_takes_a_screenshot_of_a_local_page(browser: Browser, site: MisbehavingHttp) -> None:
    page = browser.page(viewport={"width": 640, "height": 480})
    page.goto(site.url)

    picture = page.screenshot()

    assert page.inner_text("h1") == "Letters"
    assert picture.startswith(b"\x89PNG")
    assert struct.unpack(">II", picture[16:24]) == (640, 480)
    assert len(set(picture)) > 50, "the picture is not of one colour"


def test_axe_finds_a_picture_without_text_and_pale_letters_and_nothing_on_a_good_page(
    browser: Browser, site: MisbehavingHttp
) -> None:
    page = browser.page()
    page.goto(f"{site.url}/bad")
    assert {row["id"] for row in browser.barriers(page)} == {"image-alt", "color-contrast"}

    page.goto(site.url)
    assert browser.barriers(page) == []


def test_a_page_reaches_nothing_outside_of_this_machine(browser: Browser, site: MisbehavingHttp) -> None:
    page = browser.page()
    refused: list[str] = []
    page.on("requestfailed", lambda request: refused.append(request.url))

    page.goto(f"{site.url}/outside")

    assert refused == ["https://example.org/scan.jpg"]


def test_pages_of_two_tests_share_no_cookies(browser: Browser, site: MisbehavingHttp) -> None:
    first, second = browser.page(), browser.page()
    for page in (first, second):
        page.goto(site.url)

    first.evaluate("document.cookie = 'session=1'")

    assert first.evaluate("document.cookie") == "session=1"
    assert second.evaluate("document.cookie") == ""
