"""Results as browsers get them, from a bucket with a login and from a folder without."""

from __future__ import annotations

import contextlib
import os
import pathlib
import posixpath
import typing as t
import urllib.parse

import pytest
import requests
from hypothesis import given
from hypothesis import strategies as st

from htrflow_batch.folder_store import FolderStore
from htrflow_batch.keys import Keys
from htrflow_status.results import proxy
from htrflow_status.results.content_types import content_type
from htrflow_status.results.places import Places
from htrflow_status.results.s3_place import S3Place
from tests.statuspage.results_site import FOLDER, PREFIX, Site, allow, application_of, before, place, put, site
from tests.statuspage.served import raw, served
from tests.testbed.plugin.browser import Browser
from tests.testbed.plugin.misbehaving_http import Answer, MisbehavingHttp
from tests.testbed.plugin.s3 import Account, OwnStore, Store

_KEY = f"{FOLDER}/alto/0001.xml"
_CONTENT = bytes(range(256)) * 4
_COOKIE = "htrflow-session"


class _Results(t.NamedTuple):
    """A site with some results, and a browser that may read them."""

    url: str
    browser: requests.Session

    def get(self, key: str, method: str = "GET", **headers: str) -> requests.Response:
        return self.browser.request(method, f"{self.url}/results/{key}", headers=headers, timeout=60)

    def raw(self, path: bytes) -> tuple[int, bytes]:
        cookies = "; ".join(f"{cookie.name}={cookie.value}" for cookie in self.browser.cookies)
        head = b"GET %s HTTP/1.1\r\nHost: x\r\nConnection: close\r\nCookie: %s\r\n\r\n" % (path, cookies.encode())
        answer = raw(self.url, head)
        return answer.status, answer.body


@pytest.fixture(params=["bucket", "service", "folder"])
def results(request: pytest.FixtureRequest, tmp_path: pathlib.Path) -> t.Iterator[_Results]:
    """The same results in both kinds of places, and those of a bucket through the site before the proxy too."""
    objects = {
        _KEY: _CONTENT,
        f"{FOLDER}/progress.json": b"{}",
        f"{PREFIX}/status/logs/demo-v1/R0001203.txt": "rad 1: å\n".encode(),
        f"{FOLDER}/empty.txt": b"",
        f"{FOLDER}/page.html": b"<script>alert(1)</script>",
        "other/demo-v1/R1/secret.json": b'"secret"',
        "htr-batch2/demo-v1/R0001203/progress.json": b'"secret"',
        "top.json": b'"secret"',
    }
    if request.param != "folder":
        store: Store = request.getfixturevalue("s3")
        for key, content in objects.items():
            put(store, key, content, "text/html; charset=utf-7")
        made = site if request.param == "bucket" else before
        with made(place(store)) as where, where.browser(store.reader) as browser:
            yield _Results(where.url, browser)
        return
    folder = FolderStore(tmp_path / "results")
    for key, content in objects.items():
        folder.put(key, content, "text/html")
    folder.close()
    parts = proxy.of_folder(tmp_path / "results", Places([PREFIX]))
    with served(lambda url: application_of(parts)) as url, requests.Session() as browser:
        yield _Results(url, browser)


def test_a_result_comes_as_it_is(results: _Results) -> None:
    answer = results.get(_KEY)

    assert (answer.status_code, answer.content) == (200, _CONTENT)
    assert answer.headers["content-type"] == "application/xml"
    assert answer.headers["content-length"] == "1024"
    assert answer.headers["accept-ranges"] == "bytes"
    assert answer.headers["last-modified"].endswith(" GMT")


def test_a_head_says_the_same_and_sends_nothing(results: _Results) -> None:
    got, headed = results.get(_KEY), results.get(_KEY, "HEAD")

    assert headed.content == b""
    assert {**headed.headers, "date": ""} == {**got.headers, "date": ""}
    assert results.get(f"{FOLDER}/nothing.json", "HEAD").status_code == 404


def test_an_empty_result_is_one(results: _Results) -> None:
    for method in ("GET", "HEAD"):
        answer = results.get(f"{FOLDER}/empty.txt", method)
        assert (answer.status_code, answer.content, answer.headers["content-length"]) == (200, b"", "0")


def test_nothing_of_the_bucket_runs_at_the_site(results: _Results) -> None:
    page = results.get(f"{FOLDER}/page.html")

    assert page.headers["content-type"] == "text/plain; charset=utf-8"
    for answer in (page, results.get(_KEY), results.get(f"{FOLDER}/nothing.html"), results.get("x/../y")):
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert answer.headers["content-security-policy"].startswith("sandbox; default-src 'none'")
        assert answer.headers["cache-control"] in ("private, no-cache", "no-store")
        assert answer.headers["cross-origin-resource-policy"] == "same-origin"


@pytest.mark.parametrize(
    ("key", "kind"),
    [
        ("a/b.json", "application/json"),
        ("a/0001.xml", "application/xml"),
        ("a/pipeline.yaml", "text/plain; charset=utf-8"),
        ("a/log.txt", "text/plain; charset=utf-8"),
        ("a/b.HTML", "text/plain; charset=utf-8"),
        ("a/b.svg", "text/plain; charset=utf-8"),
        ("a/b.xhtml", "text/plain; charset=utf-8"),
        ("a/b.js", "text/plain; charset=utf-8"),
        ("a/b.json.html", "text/plain; charset=utf-8"),
        ("a/b.jpg", "image/jpeg"),
        ("a/b.pdf", "application/octet-stream"),
        ("a/b", "application/octet-stream"),
        ("a.json/b", "application/octet-stream"),
        ("a/html", "text/plain; charset=utf-8"),
    ],
)
def test_the_name_says_what_a_result_is_and_the_bucket_does_not(key: str, kind: str) -> None:
    assert content_type(key) == kind


def test_a_download_is_saved_under_its_own_name(results: _Results) -> None:
    assert "content-disposition" not in results.get(_KEY).headers
    answer = results.get(f"{_KEY}?download")

    assert answer.headers["content-disposition"] == 'attachment; filename="0001.xml"'


@pytest.mark.parametrize(
    ("asked", "first", "last"),
    [
        ("bytes=0-9", 0, 9),
        ("bytes=10-10", 10, 10),
        ("bytes=1000-", 1000, 1023),
        ("bytes=-24", 1000, 1023),
        ("bytes=0-", 0, 1023),
        ("bytes=-5000", 0, 1023),
        ("bytes=1000-999999", 1000, 1023),
        ("BYTES=0-9", 0, 9),
    ],
)
def test_a_range_is_a_part(results: _Results, asked: str, first: int, last: int) -> None:
    answer = results.get(_KEY, Range=asked)

    assert answer.status_code == 206
    assert answer.headers["content-range"] == f"bytes {first}-{last}/1024"
    assert answer.headers["content-length"] == str(last - first + 1)
    assert answer.content == _CONTENT[first : last + 1]


@pytest.mark.parametrize("asked", ["bytes=1024-", "bytes=1024-2000", "bytes=999999999999999-"])
def test_a_range_outside_of_a_result_is_none(results: _Results, asked: str) -> None:
    answer = results.get(_KEY, Range=asked)

    assert (answer.status_code, answer.headers["content-range"]) == (416, "bytes */1024")


@pytest.mark.parametrize(
    "asked",
    ["bytes=0-1,3-4", "bytes=9-1", "bytes=a-b", "lines=0-1", "bytes=", "bytes=--1", "bytes=-", "0-1", "bytes=-0"],
)
def test_a_range_that_is_not_understood_is_passed_over(results: _Results, asked: str) -> None:
    answer = results.get(_KEY, Range=asked)

    assert (answer.status_code, answer.content) == (200, _CONTENT)


def test_what_a_client_has_is_not_sent_again(results: _Results) -> None:
    etag = results.get(_KEY).headers["etag"]

    for known in (etag, f"W/{etag}", f'"other", {etag}', "*"):
        for method in ("GET", "HEAD"):
            answer = results.get(_KEY, method, **{"If-None-Match": known})
            assert (answer.status_code, answer.content, answer.headers["etag"]) == (304, b"", etag)
            assert answer.headers["cache-control"] == "private, no-cache"
    for other in ('"other"', "", etag.strip('"'), f'"other", "{"x" * 100}"'):
        assert results.get(_KEY, **{"If-None-Match": other}).status_code == 200
    assert results.get(f"{FOLDER}/nothing.xml", **{"If-None-Match": "*"}).status_code == 404


def test_a_part_is_only_sent_of_what_the_client_has_a_part_of(results: _Results) -> None:
    etag = results.get(_KEY).headers["etag"]

    assert results.get(_KEY, **{"Range": "bytes=0-9", "If-Range": etag}).status_code == 206
    for other in ('"other"', f"W/{etag}", "Wed, 21 Oct 2026 07:28:00 GMT"):
        answer = results.get(_KEY, **{"Range": "bytes=0-9", "If-Range": other})
        assert (answer.status_code, len(answer.content)) == (200, 1024)
    answer = results.get(_KEY, **{"Range": "bytes=5000-", "If-Range": '"other"'})
    assert (answer.status_code, len(answer.content)) == (200, 1024)


@pytest.mark.parametrize(
    "path",
    [
        b"/results/",
        b"/results/htr-batch",
        b"/results/htr-batch/",
        b"/results/htr-batch/demo-v1/R0001203/",
        b"/results/top.json",
        b"/results/other/demo-v1/R1/secret.json",
        b"/results/htr-batch/../other/demo-v1/R1/secret.json",
        b"/results/htr-batch/demo-v1/../../other/demo-v1/R1/secret.json",
        b"/results/../results/other/demo-v1/R1/secret.json",
        b"/results/htr-batch/%2e%2e/other/demo-v1/R1/secret.json",
        b"/results/htr-batch/..%2fother/demo-v1/R1/secret.json",
        b"/results/htr-batch%2f..%2fother%2fdemo-v1%2fR1%2fsecret.json",
        b"/results/htr-batch/%252e%252e/other/demo-v1/R1/secret.json",
        b"/results/htr-batch/..\\other\\demo-v1\\R1\\secret.json",
        b"/results/htr-batch/..%5cother/demo-v1/R1/secret.json",
        b"/results/htr-batch/..;/other/demo-v1/R1/secret.json",
        b"/results/htr-batch/.%00./other/demo-v1/R1/secret.json",
        b"/results/htr-batch/%c0%ae%c0%ae/other/demo-v1/R1/secret.json",
        b"/results/htr-batch/%uff0e%uff0e/other/demo-v1/R1/secret.json",
        b"/results/htr-batch/%ef%bc%8e%ef%bc%8e/other/demo-v1/R1/secret.json",
        b"/results//top.json",
        b"/results//htr-batch/demo-v1/R0001203/progress.json",
        b"/results/htr-batch//demo-v1/R0001203/progress.json",
        b"/results/./htr-batch/demo-v1/R0001203/progress.json",
        b"/results/htr-batch/demo-v1/R0001203/progress.json/",
        b"/results/htr-batch/demo-v1/R0001203/progress.json%00.txt",
        b"/results/htr-batch/demo-v1/R0001203/progress.json%20",
        b"/results/htr-batch/demo-v1/R0001203/progress%2ejson",
        b"/results/htr-batch/demo%2Dv1/R0001203/progress.json",
        b"/results/htr-batch%2fdemo-v1/R0001203/progress.json",
        b"/results/htr%2dbatch/demo-v1/R0001203/progress.json",
        b"/%72esults/htr-batch/demo-v1/R0001203/progress.json/x",
        b"/results/htr-batch/demo-v1/R0001203/progress.json%0d%0aX-Injected:%201",
        b"/results/htr-batch/demo-v1/R0001203/%0aprogress.json",
        b"/results/htr-batch/.store/about/x.json",
        b"/results/.store/unfinished/x",
        b"/results/HTR-BATCH/demo-v1/R0001203/progress.json",
        b"/results/htr-batch2/demo-v1/R0001203/progress.json",
        b"/results/?prefix=htr-batch/&list-type=2",
        b"/results/htr-batch/?list-type=2",
        b"/results/_login",
        b"/results/htr-batch/" + b"a" * 1100,
        b"/results/https://evil.example/",
    ],
)
def test_no_other_way_of_writing_leads_to_a_result_or_out_of_them(results: _Results, path: bytes) -> None:
    status, body = results.raw(path)

    assert status == 404
    assert b"secret" not in body
    assert results.get(f"{FOLDER}/progress.json").status_code == 200


def test_a_question_behind_the_address_changes_nothing(results: _Results) -> None:
    status, body = results.raw(
        f"/results/{FOLDER}/progress.json?versionId=1&list-type=2&response-content-type=a".encode()
    )

    assert (status, body) == (200, b"{}")


def test_no_line_of_a_request_becomes_a_header_of_the_answer(results: _Results) -> None:
    for name in ("If-None-Match", "Range", "If-Range", "Accept", "Cookie"):
        answer = results.get(_KEY, **{name: '"x" X-Injected: 1\u00e5'})
        assert answer.status_code in (200, 401)
        assert not [value for value in answer.headers.values() if "Injected" in value]


def test_results_cannot_be_written(results: _Results) -> None:
    for method in ("PUT", "POST", "DELETE", "PATCH", "OPTIONS"):
        assert results.get(_KEY, method).status_code == 405


def test_an_account_reads_what_the_store_lets_it_read_and_nothing_else(s3: Store) -> None:
    allow(s3, {s3.reader.access: [PREFIX], s3.writer.access: [f"{PREFIX}/open/"]})
    put(s3, _KEY, _CONTENT)
    shared = put(s3, f"{PREFIX}/open/R1/progress.json", b"{}")
    with site(place(s3)) as where, where.browser(s3.reader) as reader, where.browser(s3.writer) as other:
        assert [browser.get(where.at(shared), timeout=60).status_code for browser in (reader, other)] == [200, 200]
        for method in ("GET", "HEAD"):
            answers = [browser.request(method, where.at(_KEY), timeout=60) for browser in (reader, other)]
            assert [answer.status_code for answer in answers] == [200, 403]
        ranged = other.get(where.at(_KEY), headers={"Range": "bytes=0-1", "Accept": "application/json"}, timeout=60)
        assert (ranged.status_code, ranged.json()["code"]) == (403, "no_right")


def test_results_of_several_namespaces_are_read(s3: Store) -> None:
    allow(s3, {s3.reader.access: ["second"]})
    key = put(s3, "second/demo-v1/R1/progress.json", b"{}")
    with site(place(s3, places=Places(["first/", "second"]))) as where, where.browser(s3.reader) as browser:
        assert browser.get(where.at(key), timeout=60).status_code == 200
        assert browser.get(where.at("third/demo-v1/R1/progress.json"), timeout=60).status_code == 404


def test_every_key_that_the_wrapper_writes_is_one_of_a_result() -> None:
    places = Places(["team/htr-batch"])
    for pipeline, volume in (("demo-v1", "R0001203"), ("a.b-c", "SE_RA_1.2-x"), ("a" * 52, "V" * 63)):
        keys = Keys("team/htr-batch/", pipeline, volume)
        written = [keys.progress, keys.iiif, keys.pipeline_yaml, keys.manifest, keys.run_log, keys.source_manifest]
        pages = [key for number in (1, 9999, 10000) for key in (keys.page(number), keys.alto(number))]

        assert all(places.hold(key) for key in [*written, *pages, keys.annotations(1)])


@given(st.text() | st.text("htr-bac/.%\\").map(lambda rest: f"{PREFIX}/{rest}"))
def test_no_key_of_a_result_leads_out_of_its_prefix_or_needs_an_encoding(key: str) -> None:
    if Places([PREFIX]).hold(key):
        assert posixpath.normpath(key) == key
        assert key.startswith(f"{PREFIX}/")
        assert urllib.parse.quote(key) == key


def test_an_endpoint_that_is_none_is_refused_at_the_start() -> None:
    where = S3Place("b", Places([PREFIX]), "no address")
    with pytest.raises(ValueError, match="endpoint"):
        proxy.of_bucket(proxy.Settings(where, ["https://htr.example.org"]))


@pytest.mark.parametrize("addresses", [[], [""], ["htr.example.org"], ["ftp://a"], ["https://"], ["https://a:x"]])
def test_an_address_of_the_site_that_is_none_is_refused_at_the_start(addresses: list[str]) -> None:
    with pytest.raises(ValueError, match="no address of the site"):
        proxy.of_bucket(proxy.Settings(S3Place("b", Places([PREFIX])), addresses))


@pytest.mark.parametrize("prefixes", [[], [""], ["/"], ["a/../b"], ["../a"], ["a//b"], ["å"], [".a"], ["a%2fb"]])
def test_a_place_that_is_none_is_refused_at_the_start(prefixes: list[str]) -> None:
    with pytest.raises(ValueError, match="no place of results"):
        Places(prefixes)


def test_keys_that_the_store_no_longer_takes_end_the_session(own_s3: OwnStore, tmp_path: pathlib.Path) -> None:
    put(own_s3, _KEY, _CONTENT)
    with site(place(own_s3)) as where, where.browser(own_s3.reader) as browser:
        own_s3.stop()
        file = tmp_path / "s3/accounts/users.json"
        file.write_text(file.read_text(encoding="utf-8").replace(own_s3.reader.secret, "another"), encoding="utf-8")
        own_s3.start()
        for method in ("GET", "HEAD"):
            answer = browser.request(method, where.at(_KEY), headers={"Accept": "application/json"}, timeout=60)
            assert answer.status_code == 401
        assert browser.get(where.at(_KEY), headers={"Accept": "application/json"}, timeout=60).json()["code"] == (
            "keys_refused"
        )


def test_a_store_that_is_away_or_slow_is_named_as_such(own_s3: OwnStore) -> None:
    put(own_s3, _KEY, _CONTENT)
    with site(place(own_s3, read_timeout=1.0, attempts=1)) as where, where.browser(own_s3.reader) as browser:

        def codes() -> set[tuple[int, str]]:
            answers = [browser.get(where.at(_KEY), headers={"Accept": "application/json"}, timeout=60) for _ in "ab"]
            assert browser.head(where.at(_KEY), timeout=60).status_code == answers[0].status_code
            return {(answer.status_code, answer.json()["code"]) for answer in answers}

        own_s3.slow(delay=3.0)
        assert codes() == {(504, "store_slow")}
        own_s3.slow()
        own_s3.stop()
        assert codes() == {(502, "store_away")}
        own_s3.start()
        assert browser.get(where.at(_KEY), timeout=60).content == _CONTENT


@contextlib.contextmanager
def _before(http: MisbehavingHttp, **settings: t.Any) -> t.Iterator[tuple[Site, requests.Session]]:
    """A site before a store that says what a test wants, and a browser that it let in."""
    http.put("/b", "<ListBucketResult><IsTruncated>false</IsTruncated></ListBucketResult>")
    places = {"bucket": "b", "endpoint": http.url, "places": Places([PREFIX]), "attempts": 1, **settings}
    with site(S3Place(**places)) as where, where.browser(Account("key", "secret")) as browser:
        yield where, browser


_WHOLE = {"ETag": '"abc"', "Last-Modified": "Wed, 21 Oct 2026 07:28:00 GMT"}


@pytest.mark.parametrize(
    ("answer", "status"),
    [
        (Answer("<html>Log in to the network</html>"), 502),
        (Answer("x", headers={"ETag": '"abc"'}), 502),
        (Answer("<html>Bad gateway</html>", 502), 502),
        (Answer("", 503), 502),
        (Answer("", 504), 504),
        (Answer("", 500), 502),
        (Answer("", 301), 502),
        (Answer(reset=True), 502),
        (Answer("<Error><Code>NoSuchBucket</Code></Error>", 404), 502),
        (Answer("<Error><Code>NoSuchKey</Code></Error>", 404), 404),
        (Answer("<Error><Code>AccessDenied</Code></Error>", 403), 403),
        (Answer("<Error><Code>ExpiredToken</Code></Error>", 403), 401),
        (Answer("<Error><Code>ExpiredToken</Code></Error>", 400), 401),
        (Answer("<Error><Code>RequestTimeTooSkewed</Code></Error>", 403), 502),
        (Answer("<Error><Code>SlowDown</Code></Error>", 503), 502),
        (Answer("<Error><Code>RequestTimeout</Code></Error>", 400), 504),
        (Answer("x", 206, headers={**_WHOLE, "Content-Range": "bytes 0-0/*"}), 502),
        (Answer("x", 206, headers={**_WHOLE, "Content-Range": "bytes 5-9/20"}), 502),
    ],
)
def test_what_a_store_answers_has_one_meaning(misbehaving_http: MisbehavingHttp, answer: Answer, status: int) -> None:
    with _before(misbehaving_http) as (where, browser):
        misbehaving_http.put(f"/b/{_KEY}", answer)
        got = browser.get(where.at(_KEY), timeout=60)

        assert got.status_code == status
        assert "Error" not in got.text


def test_a_header_of_the_store_never_reaches_the_browser(misbehaving_http: MisbehavingHttp) -> None:
    planted = {
        "ETag": '"a b\x01"',
        "Content-Type": "text/html",
        "Set-Cookie": "htrflow-session=x",
        "Content-Disposition": "inline",
        "Location": "https://evil.example",
        "x-amz-meta-note": "planted",
    }
    with _before(misbehaving_http) as (where, browser):
        misbehaving_http.put(f"/b/{_KEY}", Answer("x", headers={**_WHOLE, **planted}))
        answer = browser.get(where.at(_KEY), timeout=60)

        assert (answer.status_code, answer.headers["content-type"]) == (200, "application/xml")
        assert {"etag", "set-cookie", "location", "content-disposition"}.isdisjoint(answer.headers)
        assert "planted" not in str(answer.headers)


def test_a_store_without_ranges_and_conditions_gives_the_whole(misbehaving_http: MisbehavingHttp) -> None:
    with _before(misbehaving_http) as (where, browser):
        misbehaving_http.put(f"/b/{_KEY}", Answer("0123456789", headers=_WHOLE))
        whole = browser.get(where.at(_KEY), headers={"Range": "bytes=2-3"}, timeout=60)

        assert (whole.status_code, whole.text) == (200, "0123456789")
        assert browser.get(where.at(_KEY), headers={"If-None-Match": '"abc"'}, timeout=60).status_code == 304


def test_a_result_that_is_cut_off_is_never_taken_for_a_whole_one(
    misbehaving_http: MisbehavingHttp, caplog: pytest.LogCaptureFixture
) -> None:
    with _before(misbehaving_http) as (where, browser):
        misbehaving_http.put(f"/b/{_KEY}", Answer(b"x" * 500_000, headers=_WHOLE, cut_after=300_000))
        with pytest.raises(requests.exceptions.ChunkedEncodingError):
            browser.get(where.at(_KEY), timeout=60)

        assert any("cut off" in record.getMessage() for record in caplog.records)
        misbehaving_http.put(f"/b/{_KEY}", Answer(b"x", headers=_WHOLE))
        assert browser.get(where.at(_KEY), timeout=60).text == "x"


def test_a_link_or_a_pipe_in_the_folder_is_no_result(tmp_path: pathlib.Path) -> None:
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside/secret.json").write_text('"secret"', encoding="utf-8")
    volume = tmp_path / "results" / FOLDER
    volume.mkdir(parents=True)
    (volume / "link.json").symlink_to(tmp_path / "outside/secret.json")
    (volume / "folder").symlink_to(tmp_path / "outside")
    (volume / "alto").mkdir()
    os.mkfifo(volume / "pipe.json")
    parts = proxy.of_folder(tmp_path / "results", Places([PREFIX]))
    with served(lambda url: application_of(parts)) as url:
        for name in ("link.json", "folder/secret.json", "pipe.json", "alto", "folder"):
            answer = requests.get(f"{url}/results/{FOLDER}/{name}", timeout=60)
            assert (answer.status_code, "secret" in answer.text) == (404, False)
        (tmp_path / "results").rename(tmp_path / "elsewhere")
        assert requests.get(f"{url}/results/{FOLDER}/a.json", timeout=60).status_code == 404


def test_a_browser_runs_nothing_of_a_page_that_is_called_xml(s3: Store, browser: Browser) -> None:
    script = "document.documentElement.setAttribute('data-ran', 'yes'); fetch('/ran')"
    page = f'<html xmlns="http://www.w3.org/1999/xhtml"><body>text<script>{script}</script></body></html>'
    for name in ("0001.xml", "page.html", "page.svg", "data.json"):
        put(s3, f"{FOLDER}/{name}", page.encode(), "text/html")
    with site(place(s3)) as where:
        sheet = browser.page()
        token = where.login(s3.reader).cookies[_COOKIE]
        sheet.context.add_cookies([{"name": _COOKIE, "value": token, "url": where.url}])
        asked: list[str] = []
        sheet.on("request", lambda one: asked.append(one.url))
        for name in ("0001.xml", "page.html", "page.svg", "data.json"):
            answer = sheet.goto(where.at(f"{FOLDER}/{name}"))
            assert answer is not None
            assert answer.status == 200
            assert sheet.locator("[data-ran]").count() == 0
        assert not [url for url in asked if url.endswith("/ran")]
