"""What an attacker sends to the site, and what must not come of it."""

from __future__ import annotations

import re
import typing as t

import lxml.html
import requests

from htrflow_status.results.session import COOKIES
from tests.statuspage import local_data
from tests.statuspage.results_site import Site
from tests.statuspage.served import Raw, raw
from tests.testbed.plugin.browser import Browser
from tests.testbed.plugin.s3 import Account

if t.TYPE_CHECKING:
    from playwright.sync_api import Page

VOLUME = f"/campaigns/demo/letters/{local_data.VOLUME}"
FOLDER = f"demo/demo-v1/{local_data.VOLUME}"
COOKIE = COOKIES[1]
#: Addresses that name something, with a place for each part that a reader may change.
ROUTES = (
    "/campaigns/{}/letters",
    "/campaigns/demo/{}.json",
    "/campaigns/demo/letters/{}",
    "/campaigns/demo/letters/{}/log",
    f"{VOLUME}/pages/{{}}",
    f"{VOLUME}/download/{{}}",
    f"{VOLUME}/{{}}",
    "/campaigns/demo/letters/{}/iiif.json",
    "/campaigns/demo/letters/{}/search?q=a",
    "/campaigns/demo/letters/{}/download/text",
    "/api/v1/campaigns/{}/letters",
    "/api/v1/campaigns/demo/letters/{}",
    f"/api/v1{VOLUME}/pages/{{}}",
    "/results/{}/demo-v1/R1/secret.json",
    "/results/demo/{}",
    "/static/{}",
    "/{}",
)
ODD = (
    "..",
    "%2e%2e",
    "..%2f..%2fother%2fdemo-v1%2fR1%2fsecret.json",
    "../../other/demo-v1/R1/secret.json",
    "..%5c..%5cother",
    "%252e%252e%252fother",
    "..%2f..%2f..%2f..%2f..%2f..%2f..%2fetc%2fpasswd",
    "..%2fapp.py",
    "%c0%ae%c0%ae%c0%afother",
    "%ef%bc%8e%ef%bc%8e",
    "%00",
    f"{local_data.VOLUME}%00.html",
    f"{local_data.VOLUME}%0a",
    "%0d%0aX-Injected:%201",
    "%e2%80%aeR0001203",
    "%ff%fe",
    "%",
    "%zz",
    ";a=b",
    "<script>alert(1)</script>",
    "-1",
    "99999999999999999999999999",
    "a" * 8000,
)


ELSEWHERE = (
    "//evil.example/",
    "/\\evil.example/",
    "\\\\evil.example",
    "https:evil.example",
    "https://evil.example/",
    "/%0a/evil.example",
    "/%09/evil.example",
    "/\n/evil.example",
    "/..//evil.example",
    "/%2e%2e//evil.example",
    "/%5cevil.example",
    "javascript:alert(1)",
    "data:text/html,a",
)
#: Requests that two servers could read in two ways, or that nobody should read.
SMUGGLED = {
    "two hosts": b"GET /api/v1/version HTTP/1.1\r\nHost: 127.0.0.1\r\nHost: evil.example\r\n\r\n",
    "two lengths": b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 0\r\nContent-Length: 5\r\n\r\nGET /",
    "two encodings": b"POST / HTTP/1.1\r\nHost: 127.0.0.1\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n",
    "a space in a name": b"GET /api/v1/version HTTP/1.1\r\nHost : 127.0.0.1\r\n\r\n",
    "no host": b"GET /api/v1/version HTTP/1.1\r\n\r\n",
    "nul": b"GET /api/v1/version\x00 HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n",
}


def token(site: Site, account: Account) -> str:
    return site.login(account).cookies[COOKIE]


def sent(site: Site, target: str, token: str) -> Raw:
    """The answer to a request for exactly this."""
    head = f"GET {target} HTTP/1.1\r\nHost: {site.url.removeprefix('http://')}\r\nCookie: {COOKIE}={token}\r\n"
    return raw(site.url, f"{head}Accept-Language: en\r\nConnection: close\r\n\r\n".encode())


def parsed(text: str) -> t.Any:
    return lxml.html.fromstring(text)


def active(text: str) -> list[str]:
    """What of a page would run, or lead to what runs, and is not ours."""
    page = parsed(text)
    found = [f"{one.tag} {one.get('src')}" for one in page.iter("script") if not (one.get("src") or "").startswith("/")]
    for one in page.iter(lxml.etree.Element):
        for name, value in one.items():
            address = name in ("href", "src", "action", "formaction", "data", "{http://www.w3.org/1999/xlink}href")
            if name.startswith("on") or (address and re.match(r"\s*(?:javascript|vbscript|data:text)", value, re.I)):
                found.append(f"{one.tag} {name}={value}")
    return [*found, *(lxml.html.tostring(one).decode() for one in page.iter("img") if one.get("src") == "x")]


def protected(answer: requests.Response) -> None:
    headers = answer.headers
    assert headers["X-Content-Type-Options"] == "nosniff"
    assert re.search(r"frame-ancestors '(none|self)'", headers["Content-Security-Policy"])
    assert "unsafe" not in headers["Content-Security-Policy"]
    assert headers["Referrer-Policy"] == "same-origin"
    assert not [name for name in headers if name.lower().startswith("access-control-")]


def logged_in(browser: Browser, site: Site, account: Account) -> Page:
    """A page of a browser that keeps what it may keep, in which somebody has logged in by the form."""
    whole = browser.page().context.browser
    assert whole is not None
    page = whole.new_context(locale="en-GB").new_page()
    page.goto(f"{site.url}/login")
    fill_in(page, account)
    return page


def fill_in(page: Page, account: Account) -> None:
    page.get_by_label("User name").fill(account.access)
    page.get_by_label("Password").fill(account.secret)
    page.get_by_role("button", name="Log in").click()
    page.wait_for_load_state()
