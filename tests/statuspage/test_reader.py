"""What the pages of the site read in their reader's name."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import datetime
import gc
import pathlib
import time
import tracemalloc
import typing as t

import anyio
import psutil
import pytest

from htrflow_status.results.accounts import Account
from htrflow_status.results.cache import Cache, Kept
from htrflow_status.results.folder_reader import FolderReader
from htrflow_status.results.places import Places
from htrflow_status.results.reader import Found, Info, Opened, Reader, Span, Unchanged
from htrflow_status.results.refusal import Refusal
from htrflow_status.results.s3_place import S3Place
from htrflow_status.results.s3_reader import S3Reader
from htrflow_status.results.s3_readers import S3Readers
from htrflow_status.results.session import Session, Sessions
from htrflow_status.results.session_keys import SessionKeys
from tests.statuspage.results_site import FOLDER, PREFIX, allow, awaited, place, put, site
from tests.testbed.plugin import s3 as testbed
from tests.testbed.plugin.misbehaving_http import Answer, MisbehavingHttp

_KEY = f"{FOLDER}/progress.json"
_WHOLE = {"ETag": '"abc"', "Last-Modified": "Wed, 21 Oct 2026 07:28:00 GMT"}


def _session(account: testbed.Account) -> Session:
    return Sessions(SessionKeys(), secure=False).begin(Account(account.access, account.access, account.secret))


@contextlib.contextmanager
def _readers(where: S3Place, **settings: t.Any) -> t.Iterator[S3Readers]:
    readers = S3Readers(where, **settings)
    yield readers
    readers.close()


@contextlib.contextmanager
def _reader_at(http: MisbehavingHttp, **settings: t.Any) -> t.Iterator[S3Reader]:
    age = settings.pop("age", 60.0)
    where = S3Place(**{"bucket": "b", "places": Places([PREFIX]), "endpoint": http.url, "attempts": 1, **settings})
    with _readers(where, age=age) as readers:
        yield readers.of_session(_session(testbed.Account("key", "secret")))


def _text(answer: Found | Refusal) -> bytes | str:
    return answer.content if isinstance(answer, Found) else answer.code


def test_what_was_read_a_moment_ago_is_not_asked_for_again_and_an_older_one_only_if_it_changed(
    misbehaving_http: MisbehavingHttp,
) -> None:
    path = f"/b/{_KEY}"
    misbehaving_http.put(
        path, Answer("old", headers=_WHOLE), Answer("", 304), Answer("new", headers=_WHOLE | {"ETag": '"x"'})
    )

    async def read(reader: Reader, times: int) -> list[bytes | str]:
        return [_text(await reader.read(_KEY)) for _ in range(times)]

    with _reader_at(misbehaving_http) as reader:
        assert awaited(read(reader, 5)) == [b"old"] * 5
        assert misbehaving_http.count(path) == 1
    misbehaving_http.put(
        path, Answer("old", headers=_WHOLE), Answer("", 304), Answer("new", headers=_WHOLE | {"ETag": '"x"'})
    )
    with _reader_at(misbehaving_http, age=0.0) as reader:
        assert awaited(read(reader, 3)) == [b"old", b"old", b"new"]
    asked = [request.headers["If-None-Match"] for request in misbehaving_http.requests if request.path == path]
    assert asked == [None, None, '"abc"', '"abc"']


def test_many_pages_that_want_the_same_at_once_ask_once(misbehaving_http: MisbehavingHttp) -> None:
    misbehaving_http.put(f"/b/{_KEY}", Answer("{}", headers=_WHOLE, delay=0.3))

    async def read(reader: Reader) -> list[Found | Refusal]:
        return await asyncio.gather(*(reader.read(_KEY) for _ in range(20)))

    with _reader_at(misbehaving_http) as reader:
        answers = awaited(read(reader))

    assert {_text(answer) for answer in answers} == {b"{}"}
    assert misbehaving_http.count(f"/b/{_KEY}") == 1


def test_that_a_result_is_not_there_is_kept_and_that_the_store_is_away_is_not(
    misbehaving_http: MisbehavingHttp,
) -> None:
    other = f"{FOLDER}/manifest.json"
    missing = Answer("<Error><Code>NoSuchKey</Code></Error>", 404)
    misbehaving_http.put(f"/b/{_KEY}", missing, Answer("{}", headers=_WHOLE))
    misbehaving_http.put(f"/b/{other}", Answer("", 500), Answer("{}", headers=_WHOLE))

    async def read(reader: Reader, key: str) -> list[bytes | str]:
        return [_text(await reader.read(key)) for _ in range(2)]

    with _reader_at(misbehaving_http) as reader:
        assert awaited(read(reader, _KEY)) == ["not_found"] * 2
        assert awaited(read(reader, other)) == ["store_away", b"{}"]


def test_a_result_that_was_cut_off_is_read_once_more(misbehaving_http: MisbehavingHttp) -> None:
    content = b"x" * 300_000
    cut = Answer(content, headers=_WHOLE, cut_after=200_000)
    misbehaving_http.put(f"/b/{_KEY}", cut, Answer(content, headers=_WHOLE))
    misbehaving_http.put(f"/b/{FOLDER}/iiif.json", cut)
    with _reader_at(misbehaving_http) as reader:
        assert _text(awaited(reader.read(_KEY))) == content
        assert _text(awaited(reader.read(f"{FOLDER}/iiif.json"))) == "store_away"


def test_a_store_that_drips_is_not_waited_for(misbehaving_http: MisbehavingHttp) -> None:
    misbehaving_http.put(f"/b/{_KEY}", Answer(b"x" * 4_000_000, headers=_WHOLE, pace=100_000))
    with _reader_at(misbehaving_http, patience=1.0) as reader:
        assert _text(awaited(reader.read(_KEY))) == "store_slow"


def test_more_than_a_page_can_take_is_refused(misbehaving_http: MisbehavingHttp) -> None:
    misbehaving_http.put(f"/b/{_KEY}", Answer(b"x" * 1000, headers=_WHOLE))
    with _reader_at(misbehaving_http) as reader:
        assert _text(awaited(reader.read(_KEY, most=999))) == "too_large"
        assert _text(awaited(reader.read(_KEY, most=1000))) == b"x" * 1000


def test_a_key_that_is_no_results_is_refused_without_asking(misbehaving_http: MisbehavingHttp) -> None:
    with _reader_at(misbehaving_http) as reader:
        for key in (
            "",
            "/",
            "other/a.json",
            f"{PREFIX}/../other/a.json",
            f"{PREFIX}/a b",
            f"{PREFIX}/a\n",
            f"{PREFIX}/å",
        ):
            assert awaited(reader.read(key)) == Refusal("not_found")
            assert awaited(reader.head(key)) == Refusal("not_found")
            assert awaited(reader.open(key)) == Refusal("not_found")
            assert awaited(reader.get_range(key, Span(0, 1))) == Refusal("not_found")

    assert misbehaving_http.requests == []


def test_the_same_is_said_of_a_bucket_and_of_a_folder(s3: testbed.Store, tmp_path: pathlib.Path) -> None:
    content = bytes(range(200))
    put(s3, _KEY, content)
    (tmp_path / FOLDER).mkdir(parents=True)
    (tmp_path / _KEY).write_bytes(content)

    async def ask(reader: Reader) -> None:
        found = await reader.read(_KEY)
        assert isinstance(found, Found)
        assert (found.content, found.info.size) == (content, 200)
        assert await reader.head(_KEY) == found.info
        part = await reader.get_range(_KEY, Span(-50))
        assert isinstance(part, Found)
        assert (part.content, part.info) == (content[150:], found.info)
        assert await reader.get_range(_KEY, Span(200)) == Refusal("range", size=200)
        assert await reader.get_range(_KEY, Span(0, 99), most=99) == Refusal("too_large")
        assert await reader.open(_KEY, known=found.info.etag) == Unchanged(found.info.etag)
        opened = await reader.open(_KEY, Span(10, 19), known="other")
        assert isinstance(opened, Opened)
        assert b"".join([block async for block in opened.blocks]) == content[10:20]
        opened.close()
        missing = f"{FOLDER}/missing.json"
        assert await reader.head(missing) == await reader.read(missing) == Refusal("not_found")
        assert await reader.get_range(missing, Span(0, 1)) == Refusal("not_found")

    with _readers(place(s3)) as readers:
        awaited(ask(readers.of_session(_session(s3.reader))))
    awaited(ask(FolderReader(tmp_path, Places([PREFIX]))))


def test_each_session_has_a_client_of_its_own_and_only_the_last_ones_are_kept(s3: testbed.Store) -> None:
    with _readers(place(s3), most=2) as readers:
        sessions = [_session(s3.reader) for _ in range(3)]
        first, second = (readers.of_session(session) for session in sessions[:2])

        assert first is not second
        assert readers.of_session(sessions[0]) is first
        assert readers.of_session(dataclasses.replace(sessions[0], account=sessions[2].account)) is first
        stranger = Account("stranger", "stranger", "secret")
        assert readers.of_session(dataclasses.replace(sessions[0], account=stranger)).account == stranger
        first = readers.of_session(sessions[0])
        assert first.account == sessions[0].account
        readers.of_session(sessions[2])
        assert readers.of_session(sessions[0]) is first
        assert readers.of_session(sessions[1]) is not second


def test_what_one_reader_read_no_other_one_gets(s3: testbed.Store) -> None:
    allow(s3, {s3.reader.access: [PREFIX], s3.writer.access: []})
    put(s3, _KEY, b"{}")

    async def read(readers: S3Readers) -> list[bytes | str]:
        sessions = [_session(account) for account in (s3.reader, s3.writer)]
        return [_text(await readers.of_session(session).read(_KEY)) for session in sessions * 2]

    with _readers(place(s3), age=60.0) as readers:
        assert awaited(read(readers)) == [b"{}", "no_right"] * 2


def test_the_cache_holds_no_more_than_it_may_and_nothing_of_who_is_gone() -> None:
    cache = Cache(total=5000, single=2000)

    def kept(size: int) -> Kept:
        return Kept(Found(b"x" * size, Info(size, datetime.datetime.now(datetime.UTC), "")), 0.0)

    for name in "abcde":
        cache.put("one", name, kept(500))
    cache.put("two", "a", kept(500))
    assert [name for name in "abcde" if cache.get("one", name)] == ["b", "c", "d", "e"]
    cache.put("one", "big", kept(1600))
    assert cache.get("one", "big") is None
    assert cache.get("two", "a") is not None
    cache.forget("one")
    assert not [name for name in "abcde" if cache.get("one", name)]
    for name in "fghi":
        cache.put("two", name, kept(500))
    assert cache.get("two", "a") is not None


def test_a_large_result_goes_through_block_by_block(s3: testbed.Store) -> None:
    size = 64 * 1024 * 1024
    key = put(s3, f"{PREFIX}/status/logs/demo-v1/R1.txt", b"x" * size)
    with site(place(s3)) as where, where.browser(s3.reader) as browser:
        gc.collect()
        tracemalloc.start()
        try:
            with browser.get(where.at(key), timeout=60, stream=True) as answer:
                got = sum(len(block) for block in answer.iter_content(1024 * 1024))
            peak = tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()

    assert got == size
    assert peak < 16 * 1024 * 1024


def test_a_browser_that_goes_away_ends_the_reading(misbehaving_http: MisbehavingHttp) -> None:
    misbehaving_http.put("/b", "<ListBucketResult><IsTruncated>false</IsTruncated></ListBucketResult>")
    misbehaving_http.put(f"/b/{_KEY}", Answer(b"x" * 50_000_000, headers=_WHOLE, pace=2_000_000))
    where = S3Place("b", Places([PREFIX]), misbehaving_http.url, attempts=1)
    with site(where) as served, served.browser(testbed.Account("key", "secret")) as browser:
        for _ in range(40):
            with browser.get(served.at(_KEY), timeout=60, stream=True) as answer:
                assert answer.status_code == 200
                next(answer.iter_content(1000))
        port, until = int(misbehaving_http.url.rpartition(":")[2]), time.monotonic() + 10

        def reading() -> int:
            connections = psutil.Process().net_connections("tcp")
            return sum(
                bool(one.raddr) and one.raddr.port == port and one.status == "ESTABLISHED" for one in connections
            )

        while reading() and time.monotonic() < until:
            time.sleep(0.1)
        assert reading() == 0


def test_one_reader_whose_store_hangs_leaves_the_others_alone(misbehaving_http: MisbehavingHttp) -> None:
    slow, fast = f"{FOLDER}/slow.json", f"{FOLDER}/fast.json"
    for number in range(40):
        misbehaving_http.put(f"/b/{slow}{number}", Answer("{}", headers=_WHOLE, delay=2.0))
    misbehaving_http.put(f"/b/{fast}", Answer("{}", headers=_WHOLE))

    async def read(readers: S3Readers) -> float:
        hanging = readers.of_session(_session(testbed.Account("key", "secret")))
        other = readers.of_session(_session(testbed.Account("other", "secret")))
        async with anyio.create_task_group() as group:
            for number in range(40):
                group.start_soon(hanging.read, f"{slow}{number}")
            await anyio.sleep(0.3)
            started = anyio.current_time()
            assert _text(await other.read(fast)) == b"{}"
            took = anyio.current_time() - started
            group.cancel_scope.cancel()
        return took

    with _readers(S3Place("b", Places([PREFIX]), misbehaving_http.url, attempts=1)) as readers:
        assert awaited(read(readers)) < 1.5


def test_a_reader_is_made_of_nothing_in_the_environment(
    s3: testbed.Store, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(s3, _KEY, b"{}")
    (tmp_path / "config").write_text("[default]\nregion = nowhere\nendpoint_url = http://127.0.0.1:9\n")
    (tmp_path / "credentials").write_text(
        f"[default]\naws_access_key_id = {s3.root.access}\naws_secret_access_key = {s3.root.secret}\n"
    )
    settings = {
        "AWS_CONFIG_FILE": str(tmp_path / "config"),
        "AWS_SHARED_CREDENTIALS_FILE": str(tmp_path / "credentials"),
        "AWS_PROFILE": "missing",
        "AWS_ACCESS_KEY_ID": s3.root.access,
        "AWS_SECRET_ACCESS_KEY": s3.root.secret,
        "AWS_ENDPOINT_URL": "http://127.0.0.1:9",
        "AWS_ENDPOINT_URL_S3": "http://127.0.0.1:9",
        "AWS_SESSION_TOKEN": "x",
    }
    for name, value in settings.items():
        monkeypatch.setenv(name, value)
    amazon = S3Place("b", Places([PREFIX])).connected(Account("a", "a", "b"))
    assert amazon.meta.endpoint_url == "https://s3.amazonaws.com"
    amazon.close()
    with _readers(place(s3)) as readers:
        assert _text(awaited(readers.of_session(_session(s3.reader)).read(_KEY))) == b"{}"
        stranger = readers.of_session(_session(testbed.Account("stranger", "secret")))
        assert _text(awaited(stranger.read(_KEY))) == "keys_refused"
