"""Attacks on the whole site: its pages and its results proxy as two servers, before a real store, in a real browser."""

from __future__ import annotations

import contextlib
import pathlib
import re
import shutil
import typing as t
import urllib.parse
from collections import abc

import pytest
import requests

from htrflow_status.model import Snapshot, Trouble
from htrflow_status.results.session import COOKIES
from tests.statuspage import attacks, hostile, whole_site
from tests.statuspage.results_site import Site, allow, put
from tests.statuspage.served import raw
from tests.testbed.plugin.browser import Browser
from tests.testbed.plugin.s3 import Store

if t.TYPE_CHECKING:
    pass

VOLUME, FOLDER, COOKIE = attacks.VOLUME, attacks.FOLDER, attacks.COOKIE


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    return whole_site.data(tmp_path_factory.mktemp("security"))


@pytest.fixture
def site(data: pathlib.Path, s3: Store) -> abc.Iterator[Site]:
    with whole_site.of_store(data, s3) as where:
        yield where


def test_no_way_of_writing_an_address_leads_out_of_what_it_names(site: Site, s3: Store) -> None:
    put(s3, "other/demo-v1/R1/secret.json", b'"secret of others"')
    token = attacks.token(site, s3.reader)

    for route in attacks.ROUTES:
        for odd in attacks.ODD:
            answer = attacks.sent(site, route.format(odd), token)
            assert answer.status in (200, 303, 400, 404, 414), (route, odd, answer.status)
            assert not re.search(rb"secret of others|root:x:|import annotations", answer.body), (route, odd)
            assert "x-injected" not in answer.headers
            if answer.headers.get("content-type", "").startswith("text/html"):
                assert not attacks.active(answer.body.decode()), (route, odd)


def test_no_parameter_becomes_a_header_or_a_part_of_the_page(site: Site, s3: Store) -> None:
    token = attacks.token(site, s3.reader)
    bad = ("%0d%0aX-Injected:%201", urllib.parse.quote(hostile.TEXT), "%00", "%ff", "sv%0d%0aSet-Cookie:%20a=b")
    for path in (
        "/",
        "/login",
        "/campaigns/demo/waiting",
        f"{VOLUME}/log",
        f"{VOLUME}/download/text",
        "/accessibility",
    ):
        for name in ("q", "lang", "next", "page", "state", "pipeline", "download", "version"):
            for value in bad:
                answer = attacks.sent(site, f"{path}?{name}={value}", token)
                assert answer.status in (200, 303, 404), (path, name, value)
                assert "x-injected" not in answer.headers
                assert not answer.headers.get("set-cookie", "").startswith("a=")
                if answer.headers["content-type"].startswith("text/html"):
                    assert not attacks.active(answer.body.decode()), (path, name, value)


def test_no_address_of_a_page_leads_to_another_site(site: Site, s3: Store) -> None:
    fields = {"username": s3.reader.access, "password": s3.reader.secret}
    for evil in attacks.ELSEWHERE:
        with requests.Session() as browser:
            page = browser.get(f"{site.url}/login", params={"next": evil}, timeout=60)
            wanted = attacks.parsed(page.text).forms[0].fields["next"]
            for path, sent in (("_login", fields), ("_logout", {})):
                body, headers = {**sent, "next": wanted}, {"Origin": site.url}
                answer = browser.post(site.at(path), data=body, headers=headers, timeout=60, allow_redirects=False)
                assert (answer.status_code, answer.headers["Location"]) == (303, "/"), (path, evil)
    body = {**fields, "password": "wrong", "next": attacks.ELSEWHERE[0]}
    answer = requests.post(site.at("_login"), data=body, headers={"Origin": site.url}, timeout=60)
    assert (answer.status_code, attacks.parsed(answer.text).forms[0].fields["next"]) == (401, "/")


def test_no_link_and_no_redirect_of_an_odd_address_leads_to_another_site(site: Site, s3: Store) -> None:
    token = attacks.token(site, s3.reader)
    for path in ("//evil.example/", "//evil.example/campaigns/demo/letters", "///evil.example", "/\\evil.example/"):
        for cookie in (token, ""):
            answer = attacks.sent(site, path, cookie)
            assert answer.status in (303, 400, 404)
            assert "evil" not in answer.headers.get("location", "")
            if answer.status == 404:
                page = attacks.parsed(answer.body.decode())
                page.make_links_absolute(f"{site.url}/x")
                hosts = {urllib.parse.urlsplit(link).netloc for *_, link, _ in page.iterlinks()}
                assert hosts == {urllib.parse.urlsplit(site.url).netloc}


@pytest.mark.slow
def test_hostile_objects_of_the_bucket_run_nothing_and_read_nothing(site: Site, s3: Store, browser: Browser) -> None:
    run = "document.documentElement.setAttribute('data-ran','yes');fetch('/api/v1/campaigns');fetch('/ran')"
    xhtml = f'<html xmlns="http://www.w3.org/1999/xhtml"><body><script>{run}</script>text</body></html>'
    name_space = "http://www.w3.org/1999/XSL/Transform"
    template = f'<x:template match="/">{xhtml}</x:template>'
    sheet = f'<x:stylesheet version="1.0" xmlns:x="{name_space}">{template}</x:stylesheet>'
    transformed = f'<?xml-stylesheet type="text/xsl" href="/results/{FOLDER}/sheet.xsl"?><a/>'
    objects = {
        "page.html": xhtml,
        "picture.svg": f'<svg xmlns="http://www.w3.org/2000/svg" onload="{run}"><script>{run}</script></svg>',
        "alto/0900.xml": xhtml,
        "alto/0901.xml": f'<?xml version="1.0"?>{transformed}',
        "alto/0902.xml": '<?xml version="1.0"?><!DOCTYPE a [<!ENTITY e SYSTEM "/api/v1/campaigns">]><a>&e;</a>',
        "sheet.xsl": sheet,
        "x.json": xhtml,
        "x.js": run,
        "x.txt": xhtml,
    }
    for name, content in objects.items():
        put(s3, f"{FOLDER}/{name}", content.encode(), "text/html")
    page = attacks.logged_in(browser, site, s3.reader)
    asked: list[str] = []
    page.on("request", lambda one: asked.append(urllib.parse.urlsplit(one.url).path))

    for name in objects:
        answer = page.goto(site.at(f"{FOLDER}/{name}"))
        assert answer is not None
        assert answer.status == 200, name
        assert answer.headers["content-security-policy"].startswith("sandbox; default-src 'none'")
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert page.locator("[data-ran]").count() == 0
    # The same reader's own pages do read it.
    page.goto(f"{site.url}/")
    assert page.evaluate("fetch('/api/v1/campaigns').then(answer => answer.status)") == 200
    asked.remove("/api/v1/campaigns")
    assert {"/api/v1/campaigns", "/ran"}.isdisjoint(asked)


def test_hostile_text_is_text_on_every_page(data: pathlib.Path, tmp_path: pathlib.Path, browser: Browser) -> None:
    spoilt = tmp_path / "data"
    shutil.copytree(data, spoilt)
    hostile.spoil(spoilt / "results")
    other, seen = "/campaigns/demo/letters/R0001204", 0
    paths = ["/", "/campaigns/demo/letters", VOLUME, f"{VOLUME}/log", f"{VOLUME}/pages/2", f"{VOLUME}/pages/5", other]
    paths += ["/?q=x%22%3E%3Cimg+src%3Dx%3E", f"{VOLUME}/log?q=%3Cscript%3E", f"{other}/log"]
    with whole_site.of_folder(spoilt, hostile.HostileSource()) as url:
        page = browser.page(locale="en-GB")
        for path in paths:
            answer = page.goto(f"{url}{path}")
            assert answer is not None
            assert answer.status == 200, path
            assert not attacks.active(answer.text()), path
            assert page.locator("[data-ran], img[src=x], script:not([src])").count() == 0
            assert (
                page.locator("[href^='javascript:' i], [src^='javascript:' i], [action^='javascript:' i]").count() == 0
            )
            assert page.evaluate("document.querySelectorAll('image[href^=\"javascript:\" i]').length") == 0
            text = page.content()
            assert "{{7*7}}" in text or hostile.TEXT not in text
            seen += "gnp.exe" in page.inner_text("body")
        for path in (
            "/campaigns.json",
            "/api/v1/campaigns",
            f"/api/v1{VOLUME}",
            f"{VOLUME}/iiif.json",
            f"{VOLUME}/search?q=src",
        ):
            found = requests.get(f"{url}{path}", timeout=60)
            assert (found.status_code, found.headers["Content-Type"]) == (200, "application/json"), path
            assert found.headers["X-Content-Type-Options"] == "nosniff"
    # The attack is on the pages: each of those of the volume shows it, as what it is.
    assert seen >= 6


def test_every_answer_has_the_headers_that_protect_a_reader(site: Site, s3: Store) -> None:
    key = f"/results/{FOLDER}/alto/0002.xml"
    with site.browser(s3.reader) as browser:
        tag = browser.get(f"{site.url}{key}", timeout=60).headers["ETag"]
        expected = {
            ("GET", "/"): 200,
            ("GET", "/static/live.js"): 200,
            ("GET", "/no"): 404,
            ("POST", "/"): 405,
            ("PUT", VOLUME): 405,
            ("DELETE", f"/api/v1{VOLUME}"): 405,
            ("OPTIONS", "/results/_login"): 405,
            ("GET", "/api/v1/campaigns?page=x"): 400,
            ("GET", f"{VOLUME}/download/text"): 200,
            ("GET", key): 200,
            ("PUT", key): 405,
            ("GET", "/results/no"): 404,
            ("GET", "/healthz"): 200,
            ("GET", "/metrics"): 200,
        }
        answers: list[tuple[str, str, int, dict[str, str]]] = [
            (method, path, status, {}) for (method, path), status in expected.items()
        ]
        answers += [("GET", key, 304, {"If-None-Match": tag}), ("GET", key, 416, {"Range": "bytes=99999999-"})]
        for method, path, status, headers in answers:
            answer = browser.request(
                method, f"{site.url}{path}", headers={"Origin": "https://evil.example", **headers}, timeout=60
            )
            assert answer.status_code == status, (method, path)
            attacks.protected(answer)
    for path, status in (("/", 303), ("/campaigns.json", 401), (VOLUME, 303), ("/api/v1/version", 401), (key, 401)):
        answer = requests.get(f"{site.url}{path}", timeout=60, allow_redirects=False)
        assert answer.status_code == status, path
        attacks.protected(answer)
        assert "no-store" in answer.headers.get("Cache-Control", "") or status == 303


class _BrokenSource:
    """A source with a fault of ours in it."""

    def snapshot(self) -> Snapshot:
        raise RuntimeError("a fault, with a secret in it")

    def troubles(self) -> t.Sequence[Trouble]:
        return ()

    async def changed(self, version: str, seconds: float) -> str:
        return version


def test_a_fault_of_ours_is_answered_with_the_same_headers_and_tells_nothing(data: pathlib.Path) -> None:
    with whole_site.of_folder(data, _BrokenSource()) as url:
        for path in ("/", "/campaigns.json", "/api/v1/campaigns"):
            answer = requests.get(f"{url}{path}", timeout=60)
            assert answer.status_code == 500
            assert "secret" not in answer.text
            attacks.protected(answer)


def test_what_is_private_is_kept_by_no_cache_that_others_share(site: Site, s3: Store) -> None:
    with site.browser(s3.reader) as browser:
        for path in ("/", VOLUME, f"{VOLUME}.json", f"/api/v1{VOLUME}", f"/results/{FOLDER}/manifest.json"):
            answer = whole_site.get(browser, f"{site.url}{path}")
            assert answer.status_code == 200
            assert re.search(r"\bprivate\b", answer.headers["Cache-Control"]), path
            assert "Cookie" in answer.headers["Vary"], path
        download = whole_site.get(browser, f"{site.url}{VOLUME}/download/text")
        assert download.headers["Cache-Control"] == "private, no-store"
        for path in (f"{VOLUME}/search?q=a", f"{VOLUME}/iiif.json", "/api/v1/version"):
            answer = whole_site.get(browser, f"{site.url}{path}")
            assert "private" in answer.headers["Cache-Control"], path


def test_no_other_site_may_read_an_answer_with_the_readers_cookie(site: Site, s3: Store) -> None:
    with site.browser(s3.reader) as browser:
        for path in ("/", f"/api/v1{VOLUME}", f"{VOLUME}/iiif.json", f"/results/{FOLDER}/iiif.json", "/events.json"):
            for origin in ("https://evil.example", "null", site.url):
                for method in ("GET", "OPTIONS"):
                    headers = {"Origin": origin, "Access-Control-Request-Method": "GET"}
                    answer = browser.request(method, f"{site.url}{path}", headers=headers, timeout=60)
                    assert not [name for name in answer.headers if name.lower().startswith("access-control-")]


def test_the_cookies_are_out_of_reach_of_scripts_and_other_sites(data: pathlib.Path, s3: Store) -> None:
    with whole_site.of_store(data, s3) as where:
        cookie = where.login(s3.reader).headers["Set-Cookie"]
        assert {"HttpOnly", "SameSite=Lax", "Path=/"} <= set(cookie.split("; "))
        chosen = requests.get(f"{where.url}/login?lang=en", timeout=60).headers["Set-Cookie"].lower()
        assert "httponly" in chosen
        assert "samesite=lax" in chosen
    with whole_site.of_store(data, s3, addresses=["https://htr.example.org"]) as where:
        answer = where.login(s3.reader, Origin="https://htr.example.org")
        assert answer.headers["Set-Cookie"].startswith(f"{COOKIES[0]}=")
        assert {"Secure", "HttpOnly", "Path=/"} <= set(answer.headers["Set-Cookie"].split("; "))


def test_a_login_from_another_site_or_into_a_prepared_session_gives_an_attacker_nothing(site: Site, s3: Store) -> None:
    refused = site.login(s3.reader, Origin="https://evil.example")
    assert (refused.status_code, "Set-Cookie" in refused.headers) == (403, False)

    prepared = attacks.token(site, s3.reader)
    with requests.Session() as victim:
        victim.cookies.set(COOKIE, prepared, domain="127.0.0.1")
        assert site.login(s3.reader, victim).status_code == 200
    old = requests.get(f"{site.url}/campaigns.json", cookies={COOKIE: prepared}, timeout=60)
    assert (old.status_code, "letters" in old.text) == (401, False)


def test_a_second_reader_of_a_browser_sees_nothing_of_the_first(site: Site, s3: Store, browser: Browser) -> None:
    allow(s3, {s3.reader.access: ["demo/"], s3.writer.access: []})
    page = attacks.logged_in(browser, site, s3.reader)
    page.goto(f"{site.url}{VOLUME}/pages/2")
    assert "socken" in page.inner_text("main")

    page.goto(f"{site.url}/")
    page.get_by_role("button", name="Log out").click()
    page.wait_for_load_state()
    went = []
    for _ in range(3):
        page.go_back()
        went.append(urllib.parse.unquote(page.url))
        assert "socken" not in page.inner_text("body")
    assert f"{site.url}/login?next={VOLUME}/pages/2" in went
    page.goto(f"{site.url}/login")
    attacks.fill_in(page, s3.writer)
    page.goto(f"{site.url}{VOLUME}/pages/2")
    assert "socken" not in page.inner_text("body")
    assert s3.reader.access not in page.inner_text("header")


def test_a_request_that_two_servers_could_read_in_two_ways_is_refused(site: Site) -> None:
    for name, request in attacks.SMUGGLED.items():
        assert raw(site.url, request).status in (400, 501), name


def test_what_is_too_large_is_refused_or_passed_over_and_never_kept(site: Site, s3: Store) -> None:
    with site.browser(s3.reader) as browser:
        assert browser.get(f"{site.url}/?q={'a' * 30_000}", timeout=60).status_code == 200
        assert browser.get(f"{site.url}/api/v1/campaigns?q={'a' * 30_000}", timeout=60).status_code == 400
        many = "&".join(f"a{number}=b" for number in range(5000))
        assert browser.get(f"{site.url}/?{many}", timeout=60).status_code == 200
    # The server ends the connection while this comes, and the client may hear of it before it reads why.
    with contextlib.suppress(ConnectionError):
        assert raw(site.url, b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nX: " + b"a" * 1_000_000).status == 400
    origin = f"Host: 127.0.0.1\r\nOrigin: {site.url}\r\nContent-Type: application/json\r\n".encode()
    for head in (b"Content-Length: 99999999999\r\n\r\n", b"Content-Length: 8193\r\n\r\n" + b"a" * 8193):
        assert raw(site.url, b"POST /results/_login HTTP/1.1\r\n" + origin + head).status == 413
    assert raw(site.url, b"POST / HTTP/1.1\r\n" + origin + b"Content-Length: 99999999999\r\n\r\n").status == 405
