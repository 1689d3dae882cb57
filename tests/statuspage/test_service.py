"""The site before a results proxy that misbehaves."""

from __future__ import annotations

import contextlib
import typing as t

import pytest
import requests
from starlette.types import ASGIApp

from htrflow_status.results import proxy
from htrflow_status.results.cache import Cache
from htrflow_status.results.reader import Found, Info, Opened, Span
from htrflow_status.results.refusal import Refusal
from htrflow_status.results.service import Service
from htrflow_status.results.service_reader import ServiceReader
from tests.statuspage.results_site import FOLDER, application_of, awaited
from tests.statuspage.served import served
from tests.testbed.plugin.misbehaving_http import Answer, MisbehavingHttp

_KEY = f"{FOLDER}/progress.json"
_AT = f"/results/{_KEY}"
_TOLD = {"Last-Modified": "Wed, 21 Oct 2026 07:28:00 GMT", "ETag": '"abc"'}
_COOKIES = {"Cookie": "htrflow-session=abc"}


@contextlib.contextmanager
def _reader(http: MisbehavingHttp) -> t.Iterator[ServiceReader]:
    service = Service(http.url)
    yield ServiceReader(service, "htrflow-session=abc", "somebody", Cache(), age=0.0)
    service.close()


def _word(answer: Found | Refusal | Info) -> bytes | str:
    return answer.content if isinstance(answer, Found) else answer.code if isinstance(answer, Refusal) else "info"


@pytest.mark.parametrize(
    ("answer", "read"),
    [
        (Answer("{}", headers=_TOLD), b"{}"),
        (Answer("<html>", headers={}), "results_away"),
        (Answer("<html>Bad gateway", 502), "results_away"),
        (Answer("", 302, headers={"Location": "http://elsewhere.example/"}), "results_away"),
        (Answer('{"code": "no_right", "message": ""}', 403), "no_right"),
        (Answer('{"code": "store_slow", "message": ""}', 504), "store_slow"),
        (Answer('{"code": "rm -rf", "message": ""}', 403), "results_away"),
        (Answer('{"code": ["no_right"]}', 403), "results_away"),
        (Answer("[" * 100_000, 500), "results_away"),
        (Answer("", 304), "results_away"),
        (Answer("{}", 206, headers={**_TOLD, "Content-Range": "bytes 0-x/2"}), "results_away"),
    ],
)
def test_an_answer_that_is_none_of_ours_is_a_fault_of_the_proxy(
    misbehaving_http: MisbehavingHttp, answer: Answer, read: bytes | str
) -> None:
    misbehaving_http.put(_AT, answer)

    with _reader(misbehaving_http) as reader:
        assert _word(awaited(reader.read(_KEY))) == read

    assert {request.headers["Cookie"] for request in misbehaving_http.requests} == {"htrflow-session=abc"}


def test_the_reason_for_a_refused_head_is_asked_for(misbehaving_http: MisbehavingHttp) -> None:
    misbehaving_http.put(_AT, Answer('{"code": "no_right", "message": ""}', 403))

    with _reader(misbehaving_http) as reader:
        assert _word(awaited(reader.head(_KEY))) == "no_right"


def test_what_is_no_key_is_not_asked_for(misbehaving_http: MisbehavingHttp) -> None:
    with _reader(misbehaving_http) as reader:
        for key in ("../metrics", "_session", "a/../b", "a//b", "å/b", "a/b?c", "a/b#c", "/a/b", "a/b\r\nX: y"):
            assert _word(awaited(reader.read(key))) == "not_found"

    assert misbehaving_http.requests == []


def test_a_range_comes_with_its_places(misbehaving_http: MisbehavingHttp) -> None:
    misbehaving_http.put(_AT, Answer("cd", 206, headers={**_TOLD, "Content-Range": "bytes 2-3/10"}))

    async def opened(reader: ServiceReader) -> tuple[range, int, bytes]:
        found = await reader.open(_KEY, Span(2, 3))
        assert isinstance(found, Opened)
        with contextlib.closing(found):
            return found.places, found.info.size, b"".join([block async for block in found.blocks])

    with _reader(misbehaving_http) as reader:
        assert awaited(opened(reader)) == (range(2, 4), 10, b"cd")


def test_whose_a_session_is_that_the_proxy_does_not_say_clearly_is_nobodys(misbehaving_http: MisbehavingHttp) -> None:
    odd = [Answer("<html>"), Answer("null"), Answer('{"username": 7}'), Answer("{}", 500), Answer("[" * 100_000)]
    misbehaving_http.put("/results/_session", *odd)
    misbehaving_http.put(_AT, Answer("{}", headers=_TOLD))

    async def application(scope: t.Any, receive: t.Any, send: t.Any) -> None:
        found = parts.readers.of(t.cast("t.Any", _Connection(scope)))
        body = (found.code if isinstance(found, Refusal) else "a reader").encode()
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": body})

    parts = proxy.of_service(misbehaving_http.url)
    (middleware,) = parts.middleware
    wrapped: ASGIApp = middleware.cls(application, *middleware.args, **middleware.kwargs)
    with served(lambda url: wrapped) as url:
        said = [requests.get(url, headers=_COOKIES, timeout=30).text for _ in odd]
        without = requests.get(url, headers={"Cookie": "other=abc"}, timeout=30).text
    parts.close()

    assert said == ["results_away"] * len(odd)
    assert without == "login_needed"


def test_nothing_of_a_request_is_handed_on_but_what_the_proxy_reads(misbehaving_http: MisbehavingHttp) -> None:
    misbehaving_http.put(_AT, Answer("{}", headers={**_TOLD, "Set-Cookie": "a=b", "Connection": "close", "X-A": "1"}))
    parts = proxy.of_service(misbehaving_http.url)
    sent = {**_COOKIES, "X-Forwarded-For": "192.0.2.1", "Authorization": "Basic abc", "X-Forwarded-Host": "evil"}
    with served(lambda url: application_of(parts)) as url:
        answer = requests.get(f"{url}{_AT}", headers=sent, timeout=30)
    parts.close()

    (request,) = misbehaving_http.requests
    heard = {name.lower(): request.headers.get_all(name) for name in request.headers}
    assert heard["x-forwarded-for"] == ["192.0.2.1, 127.0.0.1"] or heard["x-forwarded-for"] == [
        "192.0.2.1",
        "127.0.0.1",
    ]
    assert not {"authorization", "x-forwarded-host"} & set(heard)
    assert (answer.text, answer.headers["X-A"], answer.headers["Set-Cookie"]) == ("{}", "1", "a=b")


class _Connection:
    def __init__(self, scope: t.Any) -> None:
        self.scope = scope
