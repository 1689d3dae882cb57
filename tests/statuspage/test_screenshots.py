"""Pictures of every kind of page. The folder that SCREENSHOTS names keeps them, for people to look at."""

from __future__ import annotations

import io
import os
import pathlib
import typing as t
from collections import abc

import PIL.Image
import pytest

from tests.statuspage import live_site
from tests.statuspage.live_site import LETTERS, VIEWER, VOLUME
from tests.testbed.plugin.browser import Browser
from tests.testbed.plugin.misbehaving_http import MisbehavingHttp

PAGES = {
    "campaigns": "/",
    "no-campaign": "/?q=nothing",
    "campaign": LETTERS,
    "waiting": "/campaigns/demo/waiting",
    "volume": VOLUME,
    "volume-failed": f"{LETTERS}/R0001204",
    "run-log": f"{VOLUME}/log",
    "reading": f"{VOLUME}/pages/2",
    "failed-page": f"{VOLUME}/pages/5",
    "viewer": VIEWER,
    "login": "/login",
    "accessibility": "/accessibility",
    "no-page": "/no",
}
#: Colours of a picture that shows something; a blank page has one or two.
_COLOURS = 20


@pytest.fixture
def folder(tmp_path: pathlib.Path) -> pathlib.Path:
    made = pathlib.Path(os.environ.get("SCREENSHOTS") or tmp_path / "screenshots")
    made.mkdir(parents=True, exist_ok=True)
    return made


@pytest.fixture
def site(
    tmp_path: pathlib.Path, misbehaving_http: MisbehavingHttp, tool: t.Callable[[str], pathlib.Path]
) -> abc.Iterator[str]:
    with live_site.serve(live_site.make(tmp_path, misbehaving_http), tool("universalviewer") / "dist") as url:
        yield url


@pytest.mark.slow
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [320, 1280])
def test_every_kind_of_page_can_be_looked_at(
    site: str, browser: Browser, folder: pathlib.Path, width: int, scheme: t.Any
) -> None:
    page = browser.page(
        viewport={"width": width, "height": 900}, color_scheme=scheme, locale="sv-SE", reduced_motion="reduce"
    )
    for name, path in PAGES.items():
        page.goto(f"{site}{path}")
        if name == "viewer":
            page.frames[1].wait_for_selector(".openseadragon-canvas canvas", timeout=30_000)
            page.wait_for_timeout(1500)
        taken = page.screenshot(path=folder / f"{name}-{width}-{scheme}.png", full_page=True)

        with PIL.Image.open(io.BytesIO(taken)) as picture:
            assert picture.width == width, name
            assert picture.height >= 900, name
            colours = picture.convert("RGB").getcolors(1 << 24) or []
            assert len(colours) > _COLOURS, name
            most = max(colours, key=lambda one: t.cast("int", one[0]))[1]
            is_dark = sum(t.cast("tuple[int, int, int]", most)) < 3 * 128
            assert is_dark is (scheme == "dark") or name == "viewer", name
        heading = page.locator("h1")
        assert heading.count() == 1, name
        box = heading.bounding_box()
        assert box is not None
        assert box["x"] >= 0, name
        assert box["x"] + box["width"] <= width, name
        assert box["y"] + box["height"] < 900, name
