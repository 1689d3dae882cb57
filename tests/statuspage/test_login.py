"""Logging in with an account of a real store, and out again."""

from __future__ import annotations

import concurrent.futures
import datetime
import json
import logging
import pathlib
import time
import typing as t

import pytest
import requests
from cryptography.fernet import Fernet

from htrflow_status.results.accounts import derived
from htrflow_status.results.login import Limits
from htrflow_status.results.next_page import safe
from htrflow_status.results.throttle import Throttle
from tests.statuspage.results_site import FOLDER, PREFIX, Site, allow, place, put, site
from tests.statuspage.served import raw
from tests.testbed.plugin.misbehaving_http import Answer, MisbehavingHttp
from tests.testbed.plugin.s3 import Account, OwnStore, Store

_KEY = f"{FOLDER}/progress.json"
_COOKIE = "htrflow-session"


def _post(where: Site, path: str = "_login", **options: t.Any) -> requests.Response:
    headers = {"Origin": where.url, **options.pop("headers", {})}
    return requests.post(where.at(path), headers=headers, timeout=60, allow_redirects=False, **options)


def _form(where: Site, account: Account, **fields: str) -> requests.Response:
    return _post(where, data={"username": account.access, "password": account.secret, **fields})


def test_who_has_no_session_is_asked_to_log_in(s3: Store) -> None:
    put(s3, _KEY, b"{}")
    with site(place(s3)) as where:
        for method in ("GET", "HEAD"):
            assert requests.request(method, where.at(_KEY), timeout=60).status_code == 401
        answer = requests.get(where.at(_KEY), headers={"Accept": "application/json"}, timeout=60)

        assert answer.json()["code"] == "login_needed"
        assert "log in" in answer.json()["message"]


def test_a_login_gives_a_session_that_reads(s3: Store) -> None:
    put(s3, _KEY, b'{"state": "running"}')
    with site(place(s3)) as where:
        answer = where.login(s3.reader)

        assert answer.status_code == 200
        assert answer.json()["username"] == s3.reader.access
        assert datetime.datetime.fromisoformat(answer.json()["ends"]) > datetime.datetime.now(datetime.UTC)
        assert answer.headers["cache-control"] == "no-store"
        name, _, attributes = answer.headers["set-cookie"].partition("=")
        assert name == _COOKIE
        assert attributes.endswith("; HttpOnly; Max-Age=43200; Path=/; SameSite=Lax")
        assert requests.get(where.at(_KEY), cookies=answer.cookies.get_dict(), timeout=60).json() == {
            "state": "running"
        }


def test_a_site_at_https_sets_a_cookie_for_its_own_host_and_https_only(s3: Store) -> None:
    with site(place(s3), addresses=["https://htr.example.org/results"]) as where:
        answer = where.login(s3.reader, Origin="https://htr.example.org")

        assert answer.headers["set-cookie"].startswith("__Host-htrflow-session=")
        assert "Secure" in answer.headers["set-cookie"].split("; ")


def test_a_form_goes_on_to_its_page(s3: Store) -> None:
    with site(place(s3)) as where:
        answer = _form(where, s3.reader, next="/htr-batch/letters-1850?state=running#R1")

        assert answer.status_code == 303
        assert answer.headers["location"] == "/htr-batch/letters-1850?state=running#R1"
        assert _COOKIE in answer.cookies


def test_a_form_that_is_refused_says_why_as_a_page_and_no_cookie_comes(s3: Store) -> None:
    with site(place(s3)) as where:
        answer = _form(where, Account(s3.reader.access, "wrong"), next="/")

        assert answer.status_code == 401
        assert answer.headers["content-type"].startswith("text/plain")
        assert "set-cookie" not in answer.headers


def test_a_wrong_password_and_an_unknown_name_are_told_in_the_same_words(s3: Store) -> None:
    with site(place(s3)) as where:
        wrong = where.login(Account(s3.reader.access, "wrong"))
        unknown = where.login(Account("stranger", s3.reader.secret))
        strange = where.login(Account("a=b,c/d", s3.reader.secret))
        impossible = where.login(Account("a stranger", s3.reader.secret))

        assert wrong.status_code == unknown.status_code == strange.status_code == impossible.status_code == 401
        assert wrong.json() == unknown.json() == strange.json() == impossible.json()
        assert wrong.json()["code"] == "wrong_login"


def test_an_account_that_may_read_no_results_does_not_get_in(s3: Store) -> None:
    allow(s3, {s3.reader.access: [PREFIX]})
    with site(place(s3)) as where:
        answer = where.login(s3.writer)

        assert answer.status_code == 403
        assert answer.json()["code"] == "no_right_at_all"
        assert "set-cookie" not in answer.headers
        assert where.login(s3.reader).status_code == 200


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"Origin": "null"},
        {"Origin": ""},
        {"Origin": "https://evil.example"},
        {"Origin": "{url}.evil.example"},
        {"Origin": "{url}@evil.example"},
        {"Origin": "http://127.0.0.1"},
        {"Origin": "https{rest}"},
        {"Origin": "{url}, https://evil.example"},
        {"Origin": "https://evil.example", "Referer": "{url}/"},
        {"Referer": "https://evil.example/?{url}/"},
        {"Origin": "http://[::1"},
        {"Origin": "{url}:0x50"},
    ],
)
def test_a_login_or_logout_from_elsewhere_is_refused(s3: Store, headers: dict[str, str]) -> None:
    with site(place(s3)) as where, where.browser(s3.reader) as browser:
        rest = where.url.removeprefix("http")
        sent = {name: value.format(url=where.url, rest=rest) for name, value in headers.items()}
        fields = {"username": s3.reader.access, "password": s3.reader.secret}
        for path in ("_login", "_logout"):
            for answer in (
                browser.post(where.at(path), headers=sent, timeout=60, json=fields),
                browser.post(where.at(path), headers=sent, timeout=60, data=fields),
            ):
                assert answer.status_code == 403
                assert "set-cookie" not in answer.headers
        assert browser.get(where.at(_KEY), timeout=60).status_code == 404


def test_where_a_browser_sends_no_origin_the_referring_page_counts(s3: Store) -> None:
    with site(place(s3)) as where:
        fields = {"username": s3.reader.access, "password": s3.reader.secret}
        answer = requests.post(where.at("_login"), json=fields, headers={"Referer": f"{where.url}/login"}, timeout=60)

        assert answer.status_code == 200


def test_two_origins_in_one_request_are_none(s3: Store) -> None:
    with site(place(s3)) as where:
        body = json.dumps({"username": s3.reader.access, "password": s3.reader.secret})
        head = f"POST /results/_login HTTP/1.1\r\nHost: x\r\nOrigin: {where.url}\r\nOrigin: {where.url}\r\n"
        head += f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"

        assert raw(where.url, (head + body).encode()).status == 403


def test_a_session_that_was_there_before_the_login_is_not_the_one_after_it_and_is_over(s3: Store) -> None:
    put(s3, _KEY, b"{}")
    with site(place(s3)) as where, where.browser(s3.reader) as browser:
        planted = browser.cookies[_COOKIE]
        where.login(s3.reader, browser)

        assert browser.cookies[_COOKIE] != planted
        assert browser.get(where.at(_KEY), timeout=60).status_code == 200
        assert requests.get(where.at(_KEY), cookies={_COOKIE: planted}, timeout=60).status_code == 401


def test_a_cookie_that_somebody_made_up_is_no_session_and_a_login_replaces_it(s3: Store) -> None:
    with site(place(s3)) as where, requests.Session() as browser:
        browser.cookies.set(_COOKIE, Fernet(Fernet.generate_key()).encrypt(b"x").decode(), domain="127.0.0.1", path="/")
        assert browser.get(where.at(_KEY), timeout=60).status_code == 401

        made = where.login(s3.reader, browser).cookies[_COOKIE]

        assert requests.get(where.at(_KEY), cookies={_COOKIE: made}, timeout=60).status_code == 404


def test_after_a_logout_a_copy_of_the_cookie_is_worthless(s3: Store) -> None:
    put(s3, _KEY, b"{}")
    with site(place(s3)) as where, where.browser(s3.reader) as browser:
        copy = browser.cookies[_COOKIE]
        answer = browser.post(where.at("_logout"), headers={"Origin": where.url}, timeout=60)

        assert answer.status_code == 204
        assert answer.headers["set-cookie"].startswith(f"{_COOKIE}=; ")
        assert "Max-Age=0" in answer.headers["set-cookie"]
        assert _COOKIE not in browser.cookies
        assert requests.get(where.at(_KEY), cookies={_COOKIE: copy}, timeout=60).status_code == 401


def test_a_form_that_logs_out_goes_on_to_its_page(s3: Store) -> None:
    with site(place(s3)) as where, where.browser(s3.reader) as browser:
        answer = browser.post(
            where.at("_logout"), data={"next": "/a"}, headers={"Origin": where.url}, timeout=60, allow_redirects=False
        )

        assert (answer.status_code, answer.headers["location"]) == (303, "/a")
        assert _COOKIE not in browser.cookies


def test_a_stolen_cookie_is_dead_after_its_key_is_removed(s3: Store, tmp_path: pathlib.Path) -> None:
    put(s3, _KEY, b"{}")
    old, new = Fernet.generate_key().decode(), Fernet.generate_key().decode()
    file = tmp_path / "keys"
    file.write_text(old)
    with site(place(s3), session_keys=file) as where, where.browser(s3.reader) as browser:
        stolen = {_COOKIE: browser.cookies[_COOKIE]}
        file.write_text(f"{new}\n{old}\n")
        renewed = browser.get(where.at(_KEY), timeout=60)

        assert renewed.status_code == 200
        assert browser.cookies[_COOKIE] != stolen[_COOKIE]
        assert requests.get(where.at(_KEY), cookies=stolen, timeout=60).status_code == 200
        file.write_text(new)
        assert requests.get(where.at(_KEY), cookies=stolen, timeout=60).status_code == 401
        assert browser.get(where.at(_KEY), timeout=60).status_code == 200


def test_a_cookie_that_is_to_be_made_anew_is_not_where_its_session_ends(s3: Store, tmp_path: pathlib.Path) -> None:
    file = tmp_path / "keys"
    for path in ("_login", "_logout"):
        old, new = Fernet.generate_key().decode(), Fernet.generate_key().decode()
        file.write_text(old)
        with site(place(s3), session_keys=file) as where, where.browser(s3.reader) as browser:
            file.write_text(f"{new}\n{old}\n")
            fields = {"username": s3.reader.access, "password": s3.reader.secret}
            answer = browser.post(where.at(path), json=fields, headers={"Origin": where.url}, timeout=60)

            assert answer.ok
            assert len(answer.raw.headers.getlist("set-cookie")) == 1


def test_without_a_key_nobody_gets_in_and_it_is_said(s3: Store, tmp_path: pathlib.Path) -> None:
    with site(place(s3), session_keys=tmp_path / "missing") as where:
        answer = where.login(s3.reader)

        assert answer.status_code == 503
        assert answer.json()["code"] == "no_session_key"


def test_two_users_of_one_browser_each_read_with_their_own_account(s3: Store) -> None:
    allow(s3, {s3.reader.access: [PREFIX], s3.writer.access: []})
    put(s3, _KEY, b'{"of": "reader"}')
    with site(place(s3), cache_age=60.0) as where, where.browser(s3.reader) as browser:
        first = browser.get(where.at(_KEY), timeout=60)
        assert first.status_code == 200
        assert first.headers["cache-control"] == "private, no-cache"
        assert first.headers["vary"] == "Cookie"
        where.login(s3.writer, browser)
        # The browser has kept the result of the one before, and asks whether it still holds.
        second = browser.get(where.at(_KEY), headers={"If-None-Match": first.headers["etag"]}, timeout=60)

        assert second.status_code == 403
        assert b"reader" not in second.content


@pytest.mark.parametrize(
    ("path", "kept"),
    [
        ("/", True),
        ("/htr-batch/letters", True),
        ("/a/b/?state=failed&q=R%201#L120", True),
        ("/a?next=https://evil.example", True),
        ("/a%20b", True),
        ("", False),
        ("a", False),
        ("//evil.example", False),
        ("///evil.example", False),
        ("/\\evil.example", False),
        ("\\\\evil.example", False),
        ("/\t/evil.example", False),
        ("/\n/evil.example", False),
        (" //evil.example", False),
        ("https://evil.example", False),
        ("https:evil.example", False),
        ("javascript:alert(1)", False),
        ("/a//evil.example", False),
        ("/.//evil.example", False),
        ("/..//evil.example", False),
        ("/./evil.example", False),
        ("/a/../b", False),
        ("/%2e%2e/b", False),
        ("/%2fevil.example", False),
        ("/%5cevil.example", False),
        ("/a\r\nSet-Cookie: x=1", False),
        ("/a%0d%0aSet-Cookie:x", False),
        ("/å", False),
        ("/a\x00", False),
        ("?a", False),
        ("/" + "a" * 3000, False),
    ],
)
def test_a_login_leads_to_a_page_of_this_site_or_to_the_first_one(path: str, kept: bool) -> None:
    assert safe(path) == (path if kept else "/")


@pytest.mark.parametrize("path", ["//evil.example", "https://evil.example", "/a\r\nX-Injected: 1", "/\\evil.example"])
def test_no_login_leads_a_browser_away(s3: Store, path: str) -> None:
    with site(place(s3)) as where:
        answer = _form(where, s3.reader, next=path)

        assert (answer.status_code, answer.headers["location"]) == (303, "/")
        assert "x-injected" not in answer.headers


_JSON = {"Content-Type": "application/json"}
_FORM = {"Content-Type": "application/x-www-form-urlencoded"}


@pytest.mark.parametrize(
    ("headers", "body", "status"),
    [
        (_JSON, b"", 400),
        (_JSON, b"{", 400),
        (_JSON, b"null", 400),
        (_JSON, b"[]", 400),
        (_JSON, b"{}", 400),
        (_JSON, b"\xff\xfe", 400),
        (_JSON, b"[" * 8000, 400),
        (_JSON, b'{"username": "a"}', 400),
        (_JSON, b'{"username": 1, "password": "b"}', 400),
        (_JSON, b'{"username": ["a"], "password": "b"}', 400),
        (_JSON, b'{"username": "", "password": "b"}', 400),
        (_JSON, b'{"username": "\\ud800", "password": "b"}', 401),
        (_JSON, b'{"username": "a\\r\\nX-Injected: 1", "password": "b"}', 401),
        (_JSON, b" " * 8193, 413),
        (_FORM, b"", 400),
        (_FORM, b"username=a", 400),
        (_FORM, b"&" * 100, 400),
        (_FORM, b"username=%ff&password=b", 400),
        (_FORM, b"username=a&password=" + b"b" * 9000, 413),
        ({"Content-Type": "text/plain"}, b'{"username": "a", "password": "b"}', 415),
        ({"Content-Type": "multipart/form-data; boundary=x"}, b"--x--", 415),
        ({}, b'{"username": "a", "password": "b"}', 415),
    ],
)
def test_what_is_no_login_is_refused(s3: Store, headers: dict[str, str], body: bytes, status: int) -> None:
    with site(place(s3)) as where:
        answer = _post(where, data=body, headers=headers)

        assert answer.status_code == status
        assert "set-cookie" not in answer.headers


def test_a_body_that_does_not_say_how_long_it_is_is_read_no_further_than_it_may_be(s3: Store) -> None:
    sent = 0

    def endless() -> t.Iterator[bytes]:
        nonlocal sent
        while sent < 200 * 1024 * 1024:
            sent += 64 * 1024
            yield b" " * 64 * 1024

    with site(place(s3)) as where:
        try:
            status = _post(where, data=endless(), headers=_JSON).status_code
        except requests.ConnectionError:
            status = 413  # the server had ended the connection by then

        assert status == 413
        assert sent < 100 * 1024 * 1024


def test_too_many_failed_logins_with_one_name_are_stopped_for_this_name_only(s3: Store) -> None:
    with site(place(s3), limits=Limits(per_account=3, per_client=100, seconds=600)) as where:
        wrong = Account(s3.reader.access, "wrong")
        assert [where.login(wrong).status_code for _ in range(4)] == [401, 401, 401, 429]
        stopped = where.login(s3.reader)

        assert stopped.status_code == 429
        assert 190 <= int(stopped.headers["retry-after"]) <= 200
        assert where.login(s3.writer).status_code == 200


def test_a_hundred_logins_at_once_get_no_more_tries_than_one_after_another(s3: Store) -> None:
    limits = Limits(per_account=5, per_client=100, seconds=600)
    with site(place(s3), limits=limits) as where, concurrent.futures.ThreadPoolExecutor(16) as pool:
        answers = list(pool.map(lambda n: where.login(Account(s3.reader.access, f"wrong{n}")).status_code, range(60)))

        assert sorted(answers) == [401] * 5 + [429] * 55


def test_one_client_cannot_try_many_names(s3: Store) -> None:
    with site(place(s3), limits=Limits(per_account=100, per_client=4, seconds=600)) as where:
        names = [where.login(Account(f"stranger{number}", "guess")).status_code for number in range(6)]

        assert names == [401] * 4 + [429] * 2


def test_logins_that_go_well_are_not_counted(s3: Store) -> None:
    with site(place(s3), limits=Limits(per_account=2, per_client=2, seconds=600)) as where:
        assert {where.login(s3.reader).status_code for _ in range(6)} == {200}


def test_behind_a_proxy_each_client_has_tries_of_its_own(s3: Store) -> None:
    limits = Limits(per_account=100, per_client=2, seconds=600)
    wrong = Account("stranger", "guess")
    with site(place(s3), limits=limits, trusted_hops=2) as where:

        def tries(*entries: str) -> list[int]:
            return [where.login(wrong, None, **{"X-Forwarded-For": entry}).status_code for entry in entries]

        assert tries("198.51.100.7, 10.0.0.1", "198.51.100.7, 10.0.0.1") == [401, 401]
        # What stands further left is what the client says of itself.
        assert tries("203.0.113.1, 198.51.100.7, 10.0.0.1", "203.0.113.2, 198.51.100.7:4711, 10.0.0.2") == [429, 429]
        assert tries("198.51.100.8, 10.0.0.1") == [401]
        # One household has a network of version 6 for itself.
        assert tries(*(f"2001:db8::{number}, 10.0.0.1" for number in range(3))) == [401, 401, 429]
        assert tries("2001:db8:0:1::1, 10.0.0.1") == [401]


def test_where_no_proxy_says_whose_request_it_is_the_proxy_is_not_taken_for_everybody(s3: Store) -> None:
    limits = Limits(per_account=3, per_client=1, seconds=600)
    with site(place(s3), limits=limits, trusted_hops=1) as where:
        strangers = [where.login(Account(f"stranger{number}", "guess")).status_code for number in range(4)]

        assert strangers == [401] * 4
        assert [where.login(Account("stranger0", "guess")).status_code for _ in range(3)] == [401, 401, 429]


def test_without_proxies_what_a_client_says_of_itself_does_not_count(s3: Store) -> None:
    with site(place(s3), limits=Limits(per_account=100, per_client=1, seconds=600)) as where:
        wrong = Account("stranger", "guess")
        answers = [where.login(wrong, None, **{"X-Forwarded-For": f"203.0.113.{n}"}).status_code for n in range(3)]

        assert answers == [401, 429, 429]


def test_a_throttle_gives_a_try_back_with_time_and_forgets_the_oldest() -> None:
    throttle = Throttle(3, 30.0, most=2)

    assert [throttle.take("a", 100.0) for _ in range(4)] == [0.0, 0.0, 0.0, 10.0]
    assert throttle.take("a", 110.0) == 0.0
    assert throttle.take("a", 110.0) == 10.0
    throttle.give_back("a")
    assert throttle.take("a", 110.0) == 0.0
    assert [throttle.take("b", 110.0) for _ in range(4)] == [0.0, 0.0, 0.0, 10.0]
    assert throttle.take("a", 115.0) > 0.0
    assert throttle.take("a", 120.0) == 0.0
    assert throttle.take("c", 120.0) == 0.0
    # Of two, the one that tried last is remembered.
    assert throttle.take("a", 120.0) > 0.0
    assert [throttle.take("b", 120.0) for _ in range(3)] == [0.0, 0.0, 0.0]


def test_while_the_store_is_away_a_login_says_so_and_does_not_count(own_s3: OwnStore) -> None:
    limits = Limits(per_account=1, per_client=1, seconds=600)
    with site(place(own_s3, read_timeout=0.5, attempts=1), limits=limits) as where:
        own_s3.slow(delay=2.0)
        slow = where.login(own_s3.reader)
        own_s3.slow()
        own_s3.stop()
        away = [where.login(own_s3.reader) for _ in range(3)]

        assert (slow.status_code, slow.json()["code"]) == (504, "store_slow")
        assert [(answer.status_code, answer.json()["code"]) for answer in away] == [(502, "store_away")] * 3
        own_s3.start()
        assert where.login(own_s3.reader).status_code == 200


@pytest.mark.parametrize(
    "answer",
    [
        Answer("<html>Log in to the network</html>"),
        Answer("{}", headers={"Content-Type": "application/json"}),
        Answer("", 200),
        Answer("oops", 500),
        Answer("<html>Bad gateway</html>", 502),
        Answer(reset=True),
        Answer("<Error><Code>NoSuchBucket</Code></Error>", 404),
        Answer("<Error><Code>RequestTimeTooSkewed</Code></Error>", 403),
        Answer("<ListBucketResult><IsTruncated>false</IsTruncated>", 200),
    ],
)
def test_what_no_store_would_say_is_no_login(misbehaving_http: MisbehavingHttp, s3: Store, answer: Answer) -> None:
    misbehaving_http.put("/bucket", answer)
    broken = place(s3, bucket="bucket", endpoint=misbehaving_http.url, attempts=1)
    with site(broken) as where:
        login = where.login(s3.reader)

        assert (login.status_code, login.json()["code"]) == (502, "store_away")
        assert misbehaving_http.count("/bucket") == 1


def test_an_account_of_hcp_logs_in_with_its_name_and_password(own_s3: OwnStore, tmp_path: pathlib.Path) -> None:
    account = derived("hcp", "läsare@arkivet", "hemligt lösenord")
    assert account is not None
    own_s3.stop()
    file = tmp_path / "s3/accounts/users.json"
    accounts = json.loads(file.read_text(encoding="utf-8"))
    known = {"access": account.access, "secret": account.secret, "role": "user"}
    accounts["accessAccounts"][account.access] = known
    file.write_text(json.dumps(accounts), encoding="utf-8")
    own_s3.start()
    allow(own_s3, {account.access: [PREFIX]})
    put(own_s3, _KEY, b"{}")
    with site(place(own_s3), derivation="hcp") as where:
        assert where.login(Account("läsare@arkivet", "annat lösenord")).status_code == 401
        with where.browser(Account("läsare@arkivet", "hemligt lösenord")) as browser:
            assert browser.get(where.at(_KEY), timeout=60).json() == {}


def test_nothing_secret_is_logged(own_s3: OwnStore, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    put(own_s3, _KEY, b"{}")
    wrong = Account(own_s3.reader.access, "a-wrong-but-telling-password")
    with site(place(own_s3, attempts=1)) as where, where.browser(own_s3.reader) as browser:
        cookie = browser.cookies[_COOKIE]
        where.login(wrong)
        _form(where, wrong)
        _post(where, data=b'{"username": "a", "password": "a-half-password', headers=_JSON)
        browser.get(where.at(_KEY), timeout=60)
        browser.get(where.at(f"{FOLDER}/nothing.json"), timeout=60)
        own_s3.stop()
        assert browser.get(where.at(_KEY), timeout=60).status_code == 502
        where.login(own_s3.reader)

    # What the test's own client says of itself is not the site's.
    lines = [record.getMessage() + (record.exc_text or "") for record in caplog.records if record.name != "urllib3"]
    assert any("cannot read" in line for line in lines)
    for secret in (own_s3.reader.secret, wrong.secret, "a-half-password", cookie):
        assert not [line for line in lines if secret in line]


@pytest.mark.slow
def test_a_slow_login_is_given_up(s3: Store) -> None:
    with site(place(s3)) as where:
        started = time.monotonic()
        head = f"POST /results/_login HTTP/1.1\r\nHost: x\r\nOrigin: {where.url}\r\nContent-Type: application/json\r\n"
        answer = raw(where.url, f"{head}Content-Length: 100\r\n\r\n{{".encode())

        assert answer.status == 408
        assert 9 < time.monotonic() - started < 20
