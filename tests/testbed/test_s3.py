"""The store that checks signatures."""

from __future__ import annotations

import concurrent.futures
import io
import threading
import time
import typing as t

import botocore.exceptions
import pytest
import requests

from tests.testbed.plugin.s3 import Account, OwnStore, Store


def test_an_account_with_a_wrong_secret_is_refused(s3: Store) -> None:
    forger = s3.client(Account(s3.writer.access, "wrong"))

    assert _refusal(lambda: forger.put_object(Bucket=s3.bucket, Key="page", Body=b"x")) == "SignatureDoesNotMatch"
    assert _refusal(lambda: forger.list_objects_v2(Bucket=s3.bucket)) == "SignatureDoesNotMatch"


def test_an_unknown_account_and_a_request_without_signature_are_refused(s3: Store) -> None:
    stranger = s3.client(Account("stranger", "secret"))

    assert _refusal(lambda: stranger.list_objects_v2(Bucket=s3.bucket)) == "InvalidAccessKeyId"
    assert requests.get(f"{s3.url}/{s3.bucket}", timeout=5).status_code == 403


def test_a_presigned_address_works_until_it_is_changed_or_over(s3: Store) -> None:
    s3.client(s3.writer).put_object(Bucket=s3.bucket, Key="page", Body=b"text")
    reader = s3.client(s3.reader, signature_version="s3v4")
    where = {"Bucket": s3.bucket, "Key": "page"}
    good = reader.generate_presigned_url("get_object", Params=where, ExpiresIn=60)
    short = reader.generate_presigned_url("get_object", Params=where, ExpiresIn=1)

    assert requests.get(good, timeout=5).content == b"text"
    assert requests.get(good.replace("/page?", "/other?"), timeout=5).status_code == 403
    time.sleep(2.1)
    assert requests.get(short, timeout=5).status_code == 403


def test_the_reader_lists_and_reads_and_cannot_write_or_delete(s3: Store) -> None:
    s3.client(s3.writer).put_object(Bucket=s3.bucket, Key="page", Body=b"text")
    reader = s3.client(s3.reader)

    assert [row["Key"] for row in reader.list_objects_v2(Bucket=s3.bucket)["Contents"]] == ["page"]
    assert reader.get_object(Bucket=s3.bucket, Key="page")["Body"].read() == b"text"
    assert _refusal(lambda: reader.put_object(Bucket=s3.bucket, Key="page", Body=b"x")) == "AccessDenied"
    assert _refusal(lambda: reader.delete_object(Bucket=s3.bucket, Key="page")) == "AccessDenied"


def test_a_creator_is_refused_where_an_object_is(s3: Store) -> None:
    first, second = (s3.client(s3.writer) for _ in range(2))
    first.put_object(Bucket=s3.bucket, Key="claim", Body=b"first", IfNoneMatch="*")

    refusal = _refusal(lambda: second.put_object(Bucket=s3.bucket, Key="claim", Body=b"second", IfNoneMatch="*"))

    assert refusal == "PreconditionFailed"
    assert second.get_object(Bucket=s3.bucket, Key="claim")["Body"].read() == b"first"


def test_of_sixteen_concurrent_creators_one_wins_and_the_object_is_its_own(s3: Store) -> None:
    clients = [s3.client(s3.writer) for _ in range(16)]
    together = threading.Barrier(16)

    def create(key: str, number: int) -> str:
        content, metadata = b"%02d" % number * 10_000, {"by": str(number)}
        together.wait(30)
        try:
            clients[number].put_object(Bucket=s3.bucket, Key=key, Body=content, Metadata=metadata, IfNoneMatch="*")
        except botocore.exceptions.ClientError as error:
            return error.response["Error"]["Code"]
        return "created"

    with concurrent.futures.ThreadPoolExecutor(16) as pool:
        for key in (f"{turn}/claim" for turn in range(20)):
            outcomes = list(pool.map(create, [key] * 16, range(16)))

            assert sorted(outcomes) == ["PreconditionFailed"] * 15 + ["created"]
            winner = outcomes.index("created")
            found = clients[0].get_object(Bucket=s3.bucket, Key=key)
            assert (found["Body"].read(), found["Metadata"]) == (b"%02d" % winner * 10_000, {"by": str(winner)})


class _HeldBack(io.BytesIO):
    """A content whose last block is sent when the others of the sixteen have come to theirs."""

    def __init__(self, content: bytes, together: threading.Barrier) -> None:
        super().__init__(content)
        self._size, self._together = len(content), together

    def read(self, size: int | None = -1, /) -> bytes:
        block = super().read(size)
        if block and self.tell() == self._size:
            self._together.wait(30)
        return block


def test_of_sixteen_creators_who_all_began_before_one_ended_one_wins(s3: Store) -> None:
    # A server that looks only when a request begins lets all sixteen win.
    writer = s3.client(s3.writer, signature_version="s3v4")
    together = threading.Barrier(16)

    def create(address: str, content: bytes) -> int:
        body = _HeldBack(content, together)
        return requests.put(address, data=body, headers={"If-None-Match": "*"}, timeout=30).status_code

    with concurrent.futures.ThreadPoolExecutor(16) as pool:
        for key in (f"{turn}/claim" for turn in range(20)):
            what = {"Bucket": s3.bucket, "Key": key, "IfNoneMatch": "*"}
            address = writer.generate_presigned_url("put_object", Params=what, ExpiresIn=60)
            contents = [b"%02d" % number * 20_000 for number in range(16)]
            answers = list(pool.map(create, [address] * 16, contents))

            assert sorted(answers) == [200] + [412] * 15
            assert writer.get_object(Bucket=s3.bucket, Key=key)["Body"].read() == contents[answers.index(200)]


def test_a_body_that_is_not_what_its_digest_says_is_refused(s3: Store) -> None:
    writer = s3.client(s3.writer)
    wrong = "1B2M2Y8AsgTpgAmY7PhCfg=="  # of nothing

    assert _refusal(lambda: writer.put_object(Bucket=s3.bucket, Key="page", Body=b"x", ContentMD5=wrong)) in (
        "BadDigest",
        "InvalidDigest",
    )
    assert "Contents" not in writer.list_objects_v2(Bucket=s3.bucket)


def test_a_long_list_comes_in_pages(s3: Store) -> None:
    writer = s3.client(s3.writer)
    names = [f"page/{number:04}.xml" for number in range(25)]
    for name in names:
        writer.put_object(Bucket=s3.bucket, Key=name, Body=b"")

    pages = list(writer.get_paginator("list_objects_v2").paginate(Bucket=s3.bucket, PaginationConfig={"PageSize": 10}))

    assert [len(page["Contents"]) for page in pages] == [10, 10, 5]
    assert [row["Key"] for page in pages for row in page["Contents"]] == names


def test_metadata_and_type_of_an_object_stay(s3: Store) -> None:
    writer = s3.client(s3.writer)
    writer.put_object(
        Bucket=s3.bucket, Key="page", Body=b"<xml/>", ContentType="application/xml", Metadata={"source": "abc"}
    )

    found = writer.head_object(Bucket=s3.bucket, Key="page")

    assert (found["ContentType"], found["Metadata"]) == ("application/xml", {"source": "abc"})


def test_two_tests_do_not_see_each_others_buckets(s3: Store) -> None:
    other = Store(s3.url, {"root": s3.root, "writer": s3.writer, "reader": s3.reader})
    other.create_bucket()
    s3.client(s3.writer).put_object(Bucket=s3.bucket, Key="page", Body=b"")

    assert "Contents" not in s3.client(s3.writer).list_objects_v2(Bucket=other.bucket)


def test_a_store_can_be_stopped_and_started_and_keeps_what_it_has(own_s3: OwnStore) -> None:
    writer = own_s3.client(own_s3.writer)
    writer.put_object(Bucket=own_s3.bucket, Key="page", Body=b"text")

    own_s3.stop()
    with pytest.raises((botocore.exceptions.HTTPClientError, botocore.exceptions.ClientError)):
        writer.get_object(Bucket=own_s3.bucket, Key="page")
    own_s3.start()

    assert writer.get_object(Bucket=own_s3.bucket, Key="page")["Body"].read() == b"text"


def test_a_store_can_be_slowed(own_s3: OwnStore) -> None:
    writer = own_s3.client(own_s3.writer)
    content = b"x" * 200_000
    writer.put_object(Bucket=own_s3.bucket, Key="page", Body=content)

    own_s3.slow(pace=400_000)
    started = time.monotonic()
    assert writer.get_object(Bucket=own_s3.bucket, Key="page")["Body"].read() == content
    assert time.monotonic() - started > 0.45

    own_s3.slow(delay=0.5)
    hasty = own_s3.client(own_s3.writer, read_timeout=0.2)
    with pytest.raises(botocore.exceptions.ReadTimeoutError):
        hasty.get_object(Bucket=own_s3.bucket, Key="page")


def _refusal(request: t.Callable[[], object]) -> str:
    with pytest.raises(botocore.exceptions.ClientError) as caught:
        request()
    return caught.value.response["Error"]["Code"]
