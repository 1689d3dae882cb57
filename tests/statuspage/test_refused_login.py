"""A login that is refused, as its reader sees it."""

from __future__ import annotations

import pathlib
import typing as t

import pytest
from starlette.applications import Starlette

from htrflow_campaigns.local.data import Data
from htrflow_status.app import Site
from htrflow_status.results import proxy
from htrflow_status.sources.folder import FolderSource
from tests.statuspage import results_site
from tests.statuspage.served import served
from tests.testbed.plugin.browser import Browser
from tests.testbed.plugin.s3 import Store

#: They take long together.
pytestmark = pytest.mark.slow

SENTENCE = {
    "sv-SE": "Lagringen känner inte till användarnamnet med det lösenordet.",
    "en-GB": "The store does not know this user name with this password.",
}


@pytest.mark.parametrize("locale", SENTENCE)
def test_a_refused_login_says_why_and_has_no_barrier(
    s3: Store, browser: Browser, tmp_path: pathlib.Path, locale: str
) -> None:
    Data(tmp_path / "data").close()
    source = FolderSource(tmp_path / "data", 1)

    def made(url: str) -> Starlette:
        settings = proxy.Settings(results_site.place(s3), [url])
        return Site(source, lambda looks: proxy.of_bucket(settings, looks.refused, looks.login_refused)).application()

    with served(made) as url:
        for width, scheme in ((320, "dark"), (1280, "light")):
            sizes: dict[str, t.Any] = {"viewport": {"width": width, "height": 900}, "color_scheme": scheme}
            page = browser.page(locale=locale, **sizes)
            page.goto(f"{url}/?q=R0001203")
            assert page.url == f"{url}/login?next=%2F%3Fq%3DR0001203"
            page.fill("[name=username]", s3.writer.access)
            page.fill("[name=password]", "not the one")
            page.click("form.login button")

            assert page.inner_text("[role=alert]") == SENTENCE[locale]
            assert page.input_value("[name=next]") == "/?q=R0001203"
            assert browser.barriers(page) == []
            assert not page.evaluate("document.documentElement.scrollWidth > innerWidth")
            page.context.close()
