"""What both places for results have to do: a bucket and a folder."""

from __future__ import annotations

import concurrent.futures
import datetime
import pathlib
import threading
import typing as t

import pytest

from htrflow_batch.folder_store import FolderStore
from htrflow_batch.store import Exists, Store
from tests.wrapper.stores import s3_store

XML = "application/xml"


@pytest.fixture(params=["s3", "folder"])
def store(request: pytest.FixtureRequest, tmp_path: pathlib.Path) -> t.Iterator[Store]:
    if request.param == "s3":
        with s3_store(request.getfixturevalue("s3"), tmp_path) as store:
            yield store
    else:
        folder = FolderStore(tmp_path / "results")
        yield folder
        folder.close()


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
    together = threading.Barrier(16)

    def create(key: str, number: int) -> bool:
        together.wait(30)
        try:
            content = b"%02d" % number * 10_000
            store.put(key, content, "text/plain", if_none_match=True, metadata={"by": str(number)})
        except Exists:
            return False
        return True

    with concurrent.futures.ThreadPoolExecutor(16) as pool:
        for key in (f"ns/{turn}/claim" for turn in range(20)):
            outcomes = list(pool.map(create, [key] * 16, range(16)))

            assert outcomes.count(True) == 1
            winner = outcomes.index(True)
            found = store.get(key)
            assert found is not None
            assert (found.content, found.info.metadata) == (b"%02d" % winner * 10_000, {"by": str(winner)})


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
