"""Both places for results: what they share, and what each has of its own."""

from __future__ import annotations

import concurrent.futures
import contextlib
import datetime
import json
import os
import pathlib
import socketserver
import ssl
import subprocess
import sys
import textwrap
import threading
import time
import typing as t

import pytest

from htrflow_batch.errors import AttemptError, PermanentError, TransientError
from htrflow_batch.folder_store import FolderStore
from htrflow_batch.keys import Keys
from htrflow_batch.s3_client import S3Settings
from htrflow_batch.s3_store import S3Store
from htrflow_batch.store import GET_BYTES, Exists, Store
from tests.testbed.plugin.certificates import Authority
from tests.testbed.plugin.misbehaving_http import Answer, MisbehavingHttp
from tests.testbed.plugin.s3 import Account, OwnStore
from tests.testbed.plugin.s3 import Store as Server

XML = "application/xml"
NO_SUCH_KEY = "<?xml version='1.0'?><Error><Code>NoSuchKey</Code><Message>none</Message></Error>"
WRITTEN = Answer(headers={"ETag": '"1"'})


def credentials(folder: pathlib.Path, account: Account) -> pathlib.Path:
    file = folder / "credentials"
    file.write_text(f"[default]\naws_access_key_id = {account.access}\naws_secret_access_key = {account.secret}\n")
    return file


@contextlib.contextmanager
def s3_store(
    server: Server, folder: pathlib.Path, account: Account | None = None, **settings: t.Any
) -> t.Iterator[S3Store]:
    file = credentials(folder, account or server.writer)
    store = S3Store(S3Settings(**{"bucket": server.bucket, "credentials": file, "endpoint": server.url, **settings}))
    yield store
    store.close()


@contextlib.contextmanager
def store_at(http: MisbehavingHttp, folder: pathlib.Path, **settings: t.Any) -> t.Iterator[S3Store]:
    """A store whose endpoint answers as the test says."""
    file = credentials(folder, Account("key", "a-very-secret-secret"))
    store = S3Store(S3Settings(**{"bucket": "b", "credentials": file, "endpoint": http.url, "attempts": 2, **settings}))
    yield store
    store.close()


@pytest.fixture(params=["s3", "folder"])
def store(request: pytest.FixtureRequest, tmp_path: pathlib.Path) -> t.Iterator[Store]:
    if request.param == "s3":
        with s3_store(request.getfixturevalue("s3"), tmp_path) as store:
            yield store
    else:
        folder = FolderStore(tmp_path / "results")
        yield folder
        folder.close()


# Both


def test_what_was_put_comes_back_with_its_type_and_metadata(store: Store) -> None:
    before = datetime.datetime.now(datetime.UTC) - datetime.timedelta(seconds=2)
    store.put("ns/p/v/page/0001.xml", "<å/>".encode(), XML, metadata={"recipe-sha256": "ab", "wrapper": "1.0 (x)"})

    found = store.get("ns/p/v/page/0001.xml")

    assert found is not None
    assert found.content == "<å/>".encode()
    assert (found.info.content_type, found.info.size) == (XML, 5)
    assert found.info.metadata == {"recipe-sha256": "ab", "wrapper": "1.0 (x)"}
    assert before < found.info.modified < before + datetime.timedelta(minutes=5)
    assert store.head("ns/p/v/page/0001.xml") == found.info


@pytest.mark.parametrize("kind", [XML, "application/json", "text/plain; charset=utf-8", "application/x-unheard-of"])
def test_any_content_type_comes_back(store: Store, kind: str) -> None:
    store.put("ns/progress.json", b"{}", kind)

    info = store.head("ns/progress.json")

    assert info is not None
    assert (info.content_type, info.metadata) == (kind, {})


def test_what_is_not_there_is_none(store: Store) -> None:
    assert (store.get("ns/none"), store.head("ns/none"), [*store.list("ns/")]) == (None, None, [])


def test_a_new_content_takes_the_place_of_the_old_with_all_that_is_said_of_it(store: Store) -> None:
    store.put("ns/key", b"old", XML, metadata={"recipe": "old"})
    old = store.head("ns/key")
    store.put("ns/key", b"new", "text/plain", metadata={"recipe": "new"})

    found = store.get("ns/key")

    assert found is not None
    assert old is not None
    assert (found.content, found.info.content_type, found.info.metadata) == (b"new", "text/plain", {"recipe": "new"})
    assert found.info.etag != old.etag


def test_the_same_content_with_other_metadata_has_the_other(store: Store) -> None:
    for metadata in ({"recipe": "1"}, {"recipe": "2"}):
        store.put("ns/key", b"same", XML, metadata=metadata)
        info = store.head("ns/key")
        assert info is not None
        assert info.metadata == metadata


def test_what_is_to_be_new_does_not_replace_anything(store: Store) -> None:
    store.put("ns/key", b"first", XML, if_none_match=True, metadata={"by": "first"})

    with pytest.raises(Exists, match="ns/key"):
        store.put("ns/key", b"second", XML, if_none_match=True, metadata={"by": "second"})

    found = store.get("ns/key")
    assert found is not None
    assert (found.content, found.info.metadata) == (b"first", {"by": "first"})


def test_of_sixteen_concurrent_creators_one_has_the_key_and_the_others_are_refused(store: Store) -> None:
    def create(number: int) -> bool:
        try:
            store.put("ns/claim", b"%d" % number, "text/plain", if_none_match=True, metadata={"by": str(number)})
        except Exists:
            return False
        return True

    with concurrent.futures.ThreadPoolExecutor(16) as pool:
        outcomes = list(pool.map(create, range(16)))

    found = store.get("ns/claim")
    assert found is not None
    if isinstance(store, FolderStore):
        assert outcomes.count(True) == 1
        assert found.info.metadata == {"by": found.content.decode()}
    # The server behind the other store looks before it writes, and may let two through that come in the same instant.
    assert 1 <= outcomes.count(True) < 8
    assert outcomes[int(found.content)]


def test_a_reader_sees_one_whole_content_while_others_write(store: Store) -> None:
    contents = [bytes([65 + number]) * 100_000 for number in range(4)]
    store.put("ns/key", contents[0], "text/plain")

    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        writes = [pool.submit(store.put, "ns/key", content, "text/plain") for content in contents * 5]
        seen = [store.get("ns/key") for _ in range(20)]
        for write in writes:
            write.result()

    assert all(found is not None and found.content in contents for found in seen)


def test_a_listing_of_2500_keys_is_whole_and_in_order(store: Store) -> None:
    names = [f"ns/p/v/page/{number:04}.xml" for number in range(1, 2501)]
    with concurrent.futures.ThreadPoolExecutor(16) as pool:
        list(pool.map(lambda name: store.put(name, name.encode(), XML), reversed(names)))

    listing = list(store.list("ns/p/v/"))

    assert [row.key for row in listing] == names
    assert {row.size for row in listing} == {len(names[0])}
    assert all(row.modified.tzinfo is datetime.UTC for row in listing)


def test_a_listing_is_in_the_order_of_utf8_bytes_as_s3_has_it(store: Store) -> None:
    names = ["a/b.x", "a/b/c", "a/b0", "a/Z", "a/z", "a/å", "a/ｚ", "a/𝒛", "ab", "a.b"]
    for name in names:
        store.put(name, b"", "text/plain")

    assert [row.key for row in store.list("")] == sorted(names, key=str.encode)
    assert [row.key for row in store.list("a")] == sorted(names, key=str.encode)


@pytest.mark.parametrize(
    ("prefix", "keys"),
    [
        ("ns/p/R1/", ["ns/p/R1/page/0001.xml"]),
        ("ns/p/R1", ["ns/p/R1/page/0001.xml", "ns/p/R10/page/0001.xml"]),
        ("ns/p/R1/pa", ["ns/p/R1/page/0001.xml"]),
        ("ns/p/R1/page/0001.xml", ["ns/p/R1/page/0001.xml"]),
        ("ns/p/R1/page/0001.xml/", []),
        ("ns/none/", []),
    ],
)
def test_a_listing_holds_what_begins_with_the_prefix(store: Store, prefix: str, keys: list[str]) -> None:
    for name in ("ns/p/R1/page/0001.xml", "ns/p/R10/page/0001.xml", "ns/q/R1"):
        store.put(name, b"", XML)

    assert [row.key for row in store.list(prefix)] == keys


@pytest.mark.parametrize(
    "key", ["", "/a", "a/", "a//b", "..", "a/../b", "./a", "a/.hidden", "a\nb", "a\\b", "a\0", "a\ud800", "x" * 1025]
)
def test_what_is_no_key_is_refused_before_anything_happens(store: Store, key: str) -> None:
    for act in (lambda: store.put(key, b"", XML), lambda: store.get(key), lambda: store.head(key)):
        with pytest.raises(ValueError, match="not a key"):
            act()


@pytest.mark.parametrize("prefix", ["/", "../", "a/../", "a//b", ".store/about"])
def test_a_prefix_that_no_key_has_is_refused(store: Store, prefix: str) -> None:
    with pytest.raises(ValueError, match="no key can begin so"):
        store.list(prefix)


@pytest.mark.parametrize(
    "metadata",
    [{"A": "x"}, {"a_b": "x"}, {"": "x"}, {"a": ""}, {"a": "å"}, {"a": " x"}, {"a": "x\n"}, {"a": "x" * 2048}],
)
def test_metadata_that_would_not_come_back_as_it_was_is_refused(store: Store, metadata: dict[str, str]) -> None:
    with pytest.raises(ValueError, match="metadata of an object"):
        store.put("ns/key", b"", XML, metadata=metadata)
    assert store.head("ns/key") is None


# A bucket


def test_an_account_without_the_right_to_write_is_told_so(s3: Server, tmp_path: pathlib.Path) -> None:
    with s3_store(s3, tmp_path) as writer:
        writer.put("ns/key", b"text", "text/plain")
    with s3_store(s3, tmp_path, s3.reader) as reader:
        found = reader.get("ns/key")
        assert found is not None
        assert found.content == b"text"
        with pytest.raises(PermanentError, match=r"cannot write ns/key in bucket .* no right .* Secret"):
            reader.put("ns/key", b"other", "text/plain")


@pytest.mark.parametrize(
    ("access", "secret", "settings", "message"),
    [
        (None, "wrong-secret-value", {}, "aws_secret_access_key in the Secret"),
        ("stranger", "wrong-secret-value", {}, "aws_access_key_id and S3_ENDPOINT in the Secret"),
        (None, None, {"bucket": "no-such-bucket-here"}, "there is no such bucket — check S3_BUCKET"),
        (None, None, {"bucket": "Not A Bucket"}, "check S3_BUCKET"),
    ],
)
def test_what_is_wrong_with_the_secret_is_said_without_it(
    s3: Server,
    tmp_path: pathlib.Path,
    access: str | None,
    secret: str | None,
    settings: dict[str, str],
    message: str,
) -> None:
    account = Account(access or s3.writer.access, secret or s3.writer.secret)
    with s3_store(s3, tmp_path, account, **settings) as store:
        for act in (lambda: list(store.list("ns/")), lambda: store.put("ns/key", b"", XML)):
            with pytest.raises(PermanentError, match=message) as caught:
                act()
            assert account.secret not in str(caught.value)
            assert caught.value.__cause__ is None


@pytest.mark.parametrize(
    "content", [None, "", "[other]\naws_access_key_id = x\n", "[default]\naws_access_key_id = x\n", "]["]
)
def test_a_file_without_keys_is_said_to_be_one(s3: Server, tmp_path: pathlib.Path, content: str | None) -> None:
    file = tmp_path / "credentials"
    if content is not None:
        file.write_text(content)
    with pytest.raises(PermanentError, match=r"no keys of the store in .*credentials — write aws_access_key_id"):
        S3Store(S3Settings(s3.bucket, file, s3.url))


def test_the_message_that_the_documentation_shows_is_a_real_one(s3: Server, tmp_path: pathlib.Path) -> None:
    page = pathlib.Path(__file__).parent.parent.parent / "docs/s3-layout.md"
    (shown,) = [line for line in page.read_text(encoding="utf-8").splitlines() if line.startswith("cannot write ")]
    key = Keys("htr-batch/", "demo-v1", "R0001203").page(1)

    with s3_store(s3, tmp_path, Account(s3.writer.access, "wrong")) as store, pytest.raises(PermanentError) as caught:
        store.put(key, b"", XML)

    said = str(caught.value).replace(s3.url, "https://s3.example.org").replace(s3.bucket, "results")
    assert said == shown


@pytest.mark.parametrize("endpoint", ["s3.example.org", "http://", "http://user:password@a b?token=x"])
def test_an_endpoint_that_is_no_address_is_said_to_be_none(tmp_path: pathlib.Path, endpoint: str) -> None:
    file = credentials(tmp_path, Account("a", "b"))
    with pytest.raises(PermanentError, match="http:// or https://") as caught:
        S3Store(S3Settings("bucket", file, endpoint))
    assert "password" not in str(caught.value)
    assert "token" not in str(caught.value)


def test_keys_that_were_replaced_while_it_runs_are_read_again(s3: Server, tmp_path: pathlib.Path) -> None:
    with s3_store(s3, tmp_path, Account(s3.writer.access, "old")) as store:
        credentials(tmp_path, s3.writer)
        store.put("ns/key", b"text", "text/plain")
        assert store.head("ns/key") is not None


def test_the_environment_does_not_say_where_the_store_is(s3: Server, tmp_path: pathlib.Path) -> None:
    file = credentials(tmp_path, s3.writer)
    program = textwrap.dedent("""
        import pathlib, sys
        from htrflow_batch.s3_store import S3Store
        from htrflow_batch.s3_client import S3Settings
        store = S3Store(S3Settings(sys.argv[1], pathlib.Path(sys.argv[2]), sys.argv[3]))
        store.put("ns/key", b"text", "text/plain")
    """)
    misleading = {
        "AWS_PROFILE": "none",
        "AWS_ACCESS_KEY_ID": "x",
        "AWS_SECRET_ACCESS_KEY": "x",
        "AWS_ENDPOINT_URL": "http://127.0.0.1:1",
        "AWS_CONFIG_FILE": str(file),
        "AWS_MAX_ATTEMPTS": "1",
    }
    done = subprocess.run(
        [sys.executable, "-c", program, s3.bucket, str(file), s3.url],
        env={**os.environ, **misleading},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    with s3_store(s3, tmp_path) as store:
        assert store.head("ns/key") is not None


def test_a_store_that_is_stopped_is_an_error_for_a_while_and_works_again_once_started(
    own_s3: OwnStore, tmp_path: pathlib.Path
) -> None:
    with s3_store(own_s3, tmp_path, attempts=3) as store:
        store.put("ns/key", b"text", "text/plain")
        own_s3.stop()
        for act in (
            lambda: store.put("ns/key", b"new", "text/plain"),
            lambda: store.put("ns/other", b"new", "text/plain", if_none_match=True),
            lambda: store.get("ns/key"),
            lambda: store.head("ns/key"),
            lambda: list(store.list("ns/")),
        ):
            started = time.monotonic()
            with pytest.raises(TransientError, match=r"cannot \w+ ns/\w* in bucket .* for a while: .* reachable"):
                act()
            assert time.monotonic() - started < 15
        own_s3.start()

        found = store.get("ns/key")
        assert found is not None
        assert found.content == b"text"
        store.put("ns/key", b"new", "text/plain")


def test_a_store_that_is_too_slow_is_an_error_for_a_while(own_s3: OwnStore, tmp_path: pathlib.Path) -> None:
    with s3_store(own_s3, tmp_path, attempts=2, read_timeout=0.3) as store:
        store.put("ns/key", b"x" * 400_000, "text/plain")
        own_s3.slow(delay=1)
        started = time.monotonic()
        with pytest.raises(TransientError, match="ReadTimeoutError"):
            store.get("ns/key")
        assert time.monotonic() - started < 10
        own_s3.slow(pace=100_000)  # each read is in time, the whole is not
        started = time.monotonic()
        with pytest.raises(TransientError, match="ReadTimeoutError"):
            store.get("ns/key")
        assert time.monotonic() - started < 3
        own_s3.slow()
        assert store.head("ns/key") is not None


def test_a_store_that_says_slow_down_is_asked_again(misbehaving_http: MisbehavingHttp, tmp_path: pathlib.Path) -> None:
    busy = Answer("<Error><Code>SlowDown</Code></Error>", 503)
    misbehaving_http.put("/b/ns/key", busy, WRITTEN)
    misbehaving_http.put("/b/ns/busy", busy)
    with store_at(misbehaving_http, tmp_path) as store:
        store.put("ns/key", b"text", "text/plain")
        assert misbehaving_http.count("/b/ns/key") == 2
        with pytest.raises(TransientError, match=r"503 \(SlowDown\)"):
            store.put("ns/busy", b"text", "text/plain")


@pytest.mark.parametrize(
    ("answer", "error", "message"),
    [
        (Answer("<Error><Code>InternalError</Code></Error>", 500), TransientError, "500"),
        (Answer("bad gateway", 502), TransientError, "502"),
        (Answer("too many", 429), TransientError, "429"),
        (Answer("<Error><Code>RequestTimeTooSkewed</Code></Error>", 403), TransientError, "RequestTimeTooSkewed"),
        (Answer("<Error><Code>QuotaExceeded</Code></Error>", 403), TransientError, "QuotaExceeded"),
        (Answer("<Error><Code>MethodNotAllowed</Code></Error>", 405), PermanentError, "check S3_ENDPOINT"),
        (Answer("<Error><Code>a\nb a-very-secret-secret</Code></Error>", 400), PermanentError, "unknown"),
        (Answer("<html><body>Log in</body></html>"), TransientError, "what answers is not S3"),
        (Answer("<html><p>Log in</html>"), TransientError, "what answers is not S3|it answers 500"),
        (Answer(reset=True), TransientError, "no whole answer came"),
    ],
)
def test_an_answer_that_is_no_success_is_sorted(
    misbehaving_http: MisbehavingHttp,
    tmp_path: pathlib.Path,
    answer: Answer,
    error: type[AttemptError],
    message: str,
) -> None:
    for path in ("/b", "/b/ns/key"):
        misbehaving_http.put(path, answer)
    with store_at(misbehaving_http, tmp_path) as store:
        for act in (
            lambda: store.put("ns/key", b"", XML),
            lambda: store.put("ns/key", b"", XML, if_none_match=True),
            lambda: store.get("ns/key"),
            lambda: list(store.list("ns/")),
        ):
            with pytest.raises(error, match=message) as caught:
                act()
            assert "\n" not in str(caught.value)
            assert "secret-secret" not in str(caught.value)


def test_a_body_that_is_cut_off_is_read_again(misbehaving_http: MisbehavingHttp, tmp_path: pathlib.Path) -> None:
    headers = {"ETag": '"1"', "Last-Modified": "Wed, 01 Jul 2026 10:00:00 GMT"}
    cut, whole = Answer(b"x" * 100, headers=headers, cut_after=50), Answer(b"x" * 100, headers=headers)
    misbehaving_http.put("/b/ns/key", cut, whole)
    misbehaving_http.put("/b/ns/broken", cut)
    with store_at(misbehaving_http, tmp_path) as store:
        found = store.get("ns/key")
        assert found is not None
        assert found.content == b"x" * 100
        with pytest.raises(TransientError, match="no whole answer came"):
            store.get("ns/broken")
        assert misbehaving_http.count("/b/ns/broken") == 2


def test_a_listing_that_turns_in_a_circle_ends(misbehaving_http: MisbehavingHttp, tmp_path: pathlib.Path) -> None:
    page = "<IsTruncated>true</IsTruncated><NextContinuationToken>a</NextContinuationToken>"
    misbehaving_http.put("/b", f"<ListBucketResult>{page}</ListBucketResult>")
    with store_at(misbehaving_http, tmp_path) as store, pytest.raises(TransientError, match="not S3"):
        list(store.list("ns/"))


def test_an_object_that_is_too_large_is_not_read(misbehaving_http: MisbehavingHttp, tmp_path: pathlib.Path) -> None:
    headers = {"ETag": '"1"', "Last-Modified": "Wed, 01 Jul 2026 10:00:00 GMT", "Content-Length": str(GET_BYTES + 1)}
    misbehaving_http.put("/b/ns/key", Answer(headers=headers))
    with store_at(misbehaving_http, tmp_path) as store, pytest.raises(PermanentError, match="is 67108865 bytes"):
        store.get("ns/key")


def test_a_store_without_conditional_writes_is_asked_first_and_that_is_said_once(
    misbehaving_http: MisbehavingHttp, tmp_path: pathlib.Path, caplog: pytest.LogCaptureFixture
) -> None:
    refusal = Answer("<Error><Code>NotImplemented</Code></Error>", 501)
    misbehaving_http.put("/b/ns/a", refusal, Answer(status=404), WRITTEN)
    misbehaving_http.put("/b/ns/b", Answer(status=404), WRITTEN)
    there = {"ETag": '"1"', "Last-Modified": "Wed, 01 Jul 2026 10:00:00 GMT"}
    misbehaving_http.put("/b/ns/c", Answer(headers=there))
    with store_at(misbehaving_http, tmp_path) as store:
        store.put("ns/a", b"", XML, if_none_match=True)
        store.put("ns/b", b"", XML, if_none_match=True)
        with pytest.raises(Exists):
            store.put("ns/c", b"", XML, if_none_match=True)

    methods = [(request.method, request.headers["If-None-Match"]) for request in misbehaving_http.requests]
    assert methods == [("PUT", "*"), ("HEAD", None), ("PUT", None), ("HEAD", None), ("PUT", None), ("HEAD", None)]
    assert [record.message for record in caplog.records if "conditional" in record.message] == [
        f"bucket b at {misbehaving_http.url} has no conditional writes, so it is asked before each write instead"
    ]


def test_a_new_object_whose_first_sending_came_through_is_ours(
    misbehaving_http: MisbehavingHttp, tmp_path: pathlib.Path
) -> None:
    there = {"ETag": '"1"', "Last-Modified": "Wed, 01 Jul 2026 10:00:00 GMT", "x-amz-meta-by": "me"}
    lost, taken = Answer(reset=True), Answer("<Error><Code>PreconditionFailed</Code></Error>", 412)
    misbehaving_http.put("/b/ns/ours", lost, taken, Answer(b"text", headers=there))
    misbehaving_http.put("/b/ns/theirs", lost, taken, Answer(b"other", headers=there))
    with store_at(misbehaving_http, tmp_path) as store:
        store.put("ns/ours", b"text", XML, if_none_match=True, metadata={"by": "me"})
        with pytest.raises(Exists):
            store.put("ns/theirs", b"text", XML, if_none_match=True, metadata={"by": "me"})


def test_two_creators_who_meet_try_again(misbehaving_http: MisbehavingHttp, tmp_path: pathlib.Path) -> None:
    conflict = Answer("<Error><Code>ConditionalRequestConflict</Code></Error>", 409)
    misbehaving_http.put("/b/ns/key", conflict, WRITTEN)
    misbehaving_http.put("/b/ns/always", conflict)
    with store_at(misbehaving_http, tmp_path) as store:
        store.put("ns/key", b"", XML, if_none_match=True)
        with pytest.raises(TransientError, match="ConditionalRequestConflict"):
            store.put("ns/always", b"", XML, if_none_match=True)


def test_the_requests_hold_nothing_that_older_stores_refuse(
    misbehaving_http: MisbehavingHttp, tmp_path: pathlib.Path
) -> None:
    misbehaving_http.put("/b/ns/key", WRITTEN)
    with store_at(misbehaving_http, tmp_path) as store:
        store.put("ns/key", b"text", XML)

    headers = misbehaving_http.requests[0].headers
    assert [
        name for name in headers if "checksum" in name.lower() or name.lower() in ("trailer", "x-amz-trailer")
    ] == []
    assert headers["Content-Length"] == "4"
    assert len(headers["X-Amz-Content-SHA256"]) == 64
    assert "AWS4-HMAC-SHA256" in headers["Authorization"]


class _Handshakes(socketserver.StreamRequestHandler):
    def handle(self) -> None:
        with contextlib.suppress(OSError):
            self.server.context.wrap_socket(self.request, server_side=True).close()  # type: ignore[attr-defined]


def test_a_certificate_counts_only_if_its_authority_is_trusted(tmp_path: pathlib.Path) -> None:
    authority = Authority(tmp_path, "authority")
    authority.server(tmp_path / "server.crt", tmp_path / "server.key", "127.0.0.1")
    server = socketserver.ThreadingTCPServer(("127.0.0.1", 0), _Handshakes)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(tmp_path / "server.crt", tmp_path / "server.key")
    server.context = context  # type: ignore[attr-defined]
    file = credentials(tmp_path, Account("key", "secret"))
    endpoint = f"https://127.0.0.1:{server.server_address[1]}"
    with server:
        thread = threading.Thread(target=server.serve_forever, args=(0.02,))
        thread.start()
        try:
            stranger = S3Store(S3Settings("b", file, endpoint, attempts=2))
            with pytest.raises(PermanentError, match="its certificate is not trusted"):
                stranger.get("ns/key")
            # The handshake is all that this server does.
            for verify in (authority.certificate, False):
                store = S3Store(S3Settings("b", file, endpoint, attempts=2, verify=verify))
                with pytest.raises(TransientError, match="no whole answer came"):
                    store.get("ns/key")
        finally:
            server.shutdown()
            thread.join()


# A folder


@pytest.fixture
def folder(tmp_path: pathlib.Path) -> t.Iterator[FolderStore]:
    store = FolderStore(tmp_path / "results")
    yield store
    store.close()


def test_a_key_is_a_path_and_files_have_the_modes_of_the_umask(folder: FolderStore, tmp_path: pathlib.Path) -> None:
    folder.put("ns/p/page/0001.xml", b"<x/>", XML)

    file = tmp_path / "results/ns/p/page/0001.xml"
    (tmp_path / "usual").touch()
    (tmp_path / "usual-folder").mkdir()
    assert file.read_bytes() == b"<x/>"
    assert file.stat().st_mode == (tmp_path / "usual").stat().st_mode
    assert file.parent.stat().st_mode == (tmp_path / "usual-folder").stat().st_mode


@pytest.mark.parametrize("target", ["elsewhere", "ns"])
def test_nothing_goes_through_a_symbolic_link(folder: FolderStore, tmp_path: pathlib.Path, target: str) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere/secret.xml").write_text("secret")
    (tmp_path / "results/ns").mkdir()
    where = tmp_path / target if target == "elsewhere" else tmp_path / "results/ns"
    (tmp_path / "results/link").symlink_to(where)
    (tmp_path / "results/ns/file.xml").symlink_to(tmp_path / "elsewhere/secret.xml")

    for act in (
        lambda: folder.put("link/new.xml", b"", XML),
        lambda: folder.put("link/new.xml", b"", XML, if_none_match=True),
        lambda: folder.get("link/secret.xml"),
        lambda: folder.head("ns/file.xml"),
        lambda: folder.get("ns/file.xml"),
    ):
        with pytest.raises(PermanentError, match=r"a symbolic link, or something else .* remove it"):
            act()
    assert list(folder.list("")) == []
    assert [path.name for path in (tmp_path / "elsewhere").iterdir()] == ["secret.xml"]
    assert (tmp_path / "elsewhere/secret.xml").read_text() == "secret"


def test_what_is_no_file_is_refused_and_does_not_keep_anyone_waiting(
    folder: FolderStore, tmp_path: pathlib.Path
) -> None:
    os.mkfifo(tmp_path / "results/pipe")
    folder.put("ns/key", b"", XML)

    acts: list[t.Callable[[], object]] = [
        lambda: folder.get("pipe"),
        lambda: folder.get("ns"),
        lambda: folder.put("ns", b"", XML),
        lambda: folder.put("ns/key/below", b"", XML),
        lambda: folder.put("ns/" + "x" * 300, b"", XML),
    ]
    for act in acts:
        with pytest.raises(PermanentError, match="in its place"):
            act()
    assert [row.key for row in folder.list("")] == ["ns/key"]


def test_a_file_that_someone_else_replaced_has_no_metadata(folder: FolderStore, tmp_path: pathlib.Path) -> None:
    folder.put("ns/a.xml", b"<a/>", XML, metadata={"recipe": "1"})
    (tmp_path / "results/ns/a.xml").write_bytes(b"<b/>")

    info = folder.head("ns/a.xml")

    assert info is not None
    assert (info.content_type, info.metadata) == (XML, {})


def test_a_second_store_finds_what_the_first_one_wrote(folder: FolderStore, tmp_path: pathlib.Path) -> None:
    folder.put("ns/a.xml", b"<a/>", XML, metadata={"recipe": "1"})

    other = FolderStore(tmp_path / "results")
    assert other.get("ns/a.xml") == folder.get("ns/a.xml")
    other.close()


def test_metadata_that_is_not_given_again_is_gone(folder: FolderStore) -> None:
    folder.put("ns/a.xml", b"same", XML, metadata={"recipe": "1"})
    folder.put("ns/a.xml", b"same", XML)

    info = folder.head("ns/a.xml")

    assert info is not None
    assert info.metadata == {}


def test_nothing_is_left_of_what_was_replaced_or_refused(folder: FolderStore, tmp_path: pathlib.Path) -> None:
    for number in range(5):
        folder.put("ns/a.xml", b"%d" % number, XML, metadata={"number": str(number)})
    with pytest.raises(Exists):
        folder.put("ns/a.xml", b"late", XML, if_none_match=True)

    own = tmp_path / "results/.store"
    assert list((own / "unfinished").iterdir()) == []
    (note,) = (own / "about").iterdir()
    assert json.loads(note.read_text()) == {"key": "ns/a.xml", "content_type": XML, "metadata": {"number": "4"}}


def test_what_a_killed_writer_left_is_no_result_and_is_removed_a_day_later(tmp_path: pathlib.Path) -> None:
    program = textwrap.dedent("""
        import os, pathlib, signal, stat, sys
        from htrflow_batch.folder_store import FolderStore
        store = FolderStore(pathlib.Path(sys.argv[1]))
        os.fsync = lambda file: stat.S_ISREG(os.fstat(file).st_mode) and os.kill(os.getpid(), signal.SIGKILL)
        store.put("key", b"half", "text/plain")
    """)
    done = subprocess.run([sys.executable, "-c", program, str(tmp_path)], check=False)
    assert done.returncode == -9
    left = tmp_path / ".store/unfinished"

    FolderStore(tmp_path).close()
    (file,) = left.iterdir()
    os.utime(file, (time.time() - 90_000,) * 2)
    again = FolderStore(tmp_path)

    assert list(left.iterdir()) == []
    assert (again.get("key"), list(again.list(""))) == (None, [])
    again.close()


def _limited(folder: pathlib.Path, before: str) -> tuple[str, str]:
    """The kind and message of the error of a write in a process of its own, which first does something."""
    program = textwrap.dedent("""
        import os, pathlib, resource, sys
        from htrflow_batch.folder_store import FolderStore
        store = FolderStore(pathlib.Path(sys.argv[1]))
        store.put("ns/key", b"old", "text/plain")
        exec(sys.argv[2])
        try:
            store.put("ns/key", b"x" * 10_000, "text/plain")
        except Exception as error:
            os.seteuid(os.getuid())
            print(type(error).__name__, store.get("ns/key").content == b"old", error, sep="|")
    """)
    done = subprocess.run(
        [sys.executable, "-c", program, str(folder), before], capture_output=True, text=True, check=True
    )
    kind, same, message = done.stdout.strip().split("|")
    assert same == "True"
    return kind, message


def test_no_room_is_an_error_for_a_while_and_the_old_content_stays(tmp_path: pathlib.Path) -> None:
    kind, message = _limited(tmp_path / "results", "resource.setrlimit(resource.RLIMIT_FSIZE, (5000, 5000))")

    assert kind == "TransientError"
    assert message.endswith(
        f"ns/key in the folder {tmp_path / 'results'}: there is no room left — free some, or use another folder"
    )
    assert list((tmp_path / "results/.store/unfinished").iterdir()) == []


def test_a_folder_that_may_not_be_written_is_a_permanent_error(tmp_path: pathlib.Path) -> None:
    # Root may write everywhere.
    before = "(pathlib.Path(sys.argv[1]) / '.store/unfinished').chmod(0o555); os.geteuid() or os.seteuid(65534)"
    kind, message = _limited(tmp_path, before)

    assert kind == "PermanentError"
    assert "it is not allowed — let the user" in message


def test_a_file_in_place_of_the_folder_is_a_permanent_error(tmp_path: pathlib.Path) -> None:
    (tmp_path / "results").touch()
    with pytest.raises(PermanentError, match="cannot use it in the folder"):
        FolderStore(tmp_path / "results")
