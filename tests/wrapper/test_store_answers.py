"""A bucket: what is made of each answer of a server, also of those that real servers seldom give."""

from __future__ import annotations

import pathlib

import pytest

from htrflow_batch.errors import AttemptError, PermanentError, TransientError
from htrflow_batch.store import GET_BYTES, Exists
from tests.testbed.plugin.misbehaving_http import Answer, MisbehavingHttp
from tests.wrapper.stores import store_at

XML = "application/xml"
WRITTEN = Answer(headers={"ETag": '"1"'})


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
