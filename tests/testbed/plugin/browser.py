"""Chromium without a window, and axe to look for barriers."""

from __future__ import annotations

import typing as t
import urllib.parse

from tests import tools

if t.TYPE_CHECKING:
    from playwright.sync_api import Page

FLAGS = (
    # Its sandbox needs rights that a container does not have, and it only sees pages of this machine.
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
)


class Browser:
    """A browser that can reach nothing but this machine."""

    def __init__(self, chromium: t.Any) -> None:
        self._chromium = chromium

    def page(self, **options: t.Any) -> Page:
        """A page of a fresh profile. ``options`` are those of Playwright's ``new_context``."""
        context = self._chromium.new_context(**options)
        context.route("**/*", _only_here)
        return t.cast("Page", context.new_page())

    def barriers(self, page: Page, *tags: str) -> list[dict[str, t.Any]]:
        """What axe finds wrong with a page: its violations, by default those of WCAG 2.2 level A and AA."""
        page.evaluate((tools.find("axe-core") / "axe.min.js").read_text(encoding="utf-8"))
        wanted = list(tags or ("wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"))
        options = {"runOnly": {"type": "tag", "values": wanted}, "resultTypes": ["violations"]}
        found = page.evaluate("options => axe.run(document, options)", options)
        return t.cast("list[dict[str, t.Any]]", found["violations"])


def _only_here(route: t.Any) -> None:
    if urllib.parse.urlsplit(route.request.url).hostname in ("127.0.0.1", "localhost"):
        route.continue_()
    else:
        route.abort()
