"""Two pods at work on one volume at once, as when a node comes back that was taken for dead."""

from __future__ import annotations

import contextlib
import hashlib
import pathlib
import threading
import time
import typing as t

import pytest

from htrflow_batch import provenance
from tests.testbed.plugin.misbehaving_http import MisbehavingHttp
from tests.testbed.plugin.s3 import Store
from tests.wrapper import pods, volumes
from tests.wrapper.watched_store import Moment, WatchedStore

pytestmark = pytest.mark.slow

PAGES = 24
OTHER_IMAGE = f"registry.example.org/htrflow-batch@sha256:{'b' * 64}"


@pytest.mark.parametrize("before", ["nothing", "another recipe's pages"])
def test_two_attempts_at_once_leave_one_whole_volume(
    before: str, s3: Store, misbehaving_http: MisbehavingHttp, tmp_path: pathlib.Path
) -> None:
    manifest = pods.serve_volume(misbehaving_http, PAGES)
    one, other = _pods(s3, tmp_path, manifest)
    if before != "nothing":
        assert one.run(IMAGE_DIGEST=OTHER_IMAGE, ENGINE="tests.wrapper.engines.quick").code == 0
    # The slow one begins, and the quick one overtakes it.
    processes = [one.start(), other.start(GROUP_PAGES="1")]
    ended = [pod.wait(process) for pod, process in zip((one, other), processes, strict=True)]

    assert [pod_ended.code for pod_ended in ended] == [0, 0], ended[0].log + ended[1].log
    _is_whole(one, pods.IMAGE)


def test_pages_that_both_attempts_write_at_the_same_moment_are_whole(
    s3: Store, misbehaving_http: MisbehavingHttp, tmp_path: pathlib.Path
) -> None:
    watched = WatchedStore(s3.url, _Meeting().watch)
    one, other = _pods(s3, tmp_path, pods.serve_volume(misbehaving_http, 8))
    one.url = other.url = watched.url
    one.engine = "quick"
    processes = [one.start(), other.start()]
    ended = [pod.wait(process) for pod, process in zip((one, other), processes, strict=True)]
    watched.close()

    assert [pod_ended.code for pod_ended in ended] == [0, 0], ended[0].log + ended[1].log
    _is_whole(one, pods.IMAGE)
    # Of two that wrote the same page, one kept what the other had made.
    altos = {key: count for key, count in watched.written.items() if "/alto/" in key}
    assert altos == {f"{one.prefix}alto/{number:04}.xml": 1 for number in range(1, 9)}


def test_attempts_of_two_recipes_at_once_do_not_mix_their_pages_and_none_claims_those_of_the_other(
    s3: Store, misbehaving_http: MisbehavingHttp, tmp_path: pathlib.Path
) -> None:
    one, other = _pods(s3, tmp_path, pods.serve_volume(misbehaving_http, PAGES))
    other.image = OTHER_IMAGE
    processes = [one.start(), other.start()]
    ended = [pod.wait(process) for pod, process in zip((one, other), processes, strict=True)]

    assert {pod_ended.code for pod_ended in ended} <= {0, 1}, ended[0].log + ended[1].log
    for pod, pod_ended in zip((one, other), ended, strict=True):
        if pod_ended.code:
            assert pod_ended.message is not None
            assert "another recipe" in pod_ended.message["error"]
            assert pod.run().code == 0
    # Whichever came to its end last says what is there.
    stated = one.json("manifest.json")["pipeline"]["image"]
    assert stated in (pods.IMAGE, OTHER_IMAGE)
    _is_whole(one, stated)


def test_a_page_whose_files_another_recipe_writes_in_between_ends_with_those_of_one_recipe(
    s3: Store, misbehaving_http: MisbehavingHttp, tmp_path: pathlib.Path
) -> None:
    one, other = _pods(s3, tmp_path, pods.serve_volume(misbehaving_http, 3))
    other.image = OTHER_IMAGE
    with _held(one, "annotations/0002.json") as hold:
        process = one.start()
        assert hold.reached.wait(60), one.printed()
        # Its PAGE file is there, and will be the other's.
        assert other.run().code == 0
        hold.released.set()
        ended = one.wait(process)

    # The two pages that it had written before are the other's as well.
    assert ended.code == 1, ended.log
    assert ended.message is not None
    assert "2 pages were made by another recipe meanwhile, page 1 the first" in ended.message["error"]
    assert one.json("manifest.json")["pipeline"]["image"] == OTHER_IMAGE
    keys = [f"{one.prefix}{kind}/0002.xml" for kind in ("page", "alto")]
    found = one.objects(one.prefix)
    assert volumes.stated_in_page(found[keys[0]])["recipe"] == [_recipe(pods.IMAGE)]
    assert provenance.stated(found[keys[1]])["recipe"] == (_recipe(pods.IMAGE),)

    assert one.run().code == 0
    _is_whole(one, pods.IMAGE)


class _Meeting:
    """Holds each write of a page until another one of the same key comes, or a moment has passed."""

    def __init__(self) -> None:
        self._waiting: dict[str, threading.Event] = {}
        self._lock = threading.Lock()

    def watch(self, key: str, moment: Moment) -> None:
        if moment != "before" or not key.endswith(".xml"):
            return
        with self._lock:
            first = key not in self._waiting
            event = self._waiting.setdefault(key, threading.Event())
        if first:
            event.wait(2)
        else:
            event.set()
            time.sleep(0.001)


class _Hold:
    """Holds the first write of a key until a test lets it go."""

    def __init__(self, key: str) -> None:
        self._key = key
        self.reached, self.released = threading.Event(), threading.Event()

    def watch(self, key: str, moment: Moment) -> None:
        if (key, moment) == (self._key, "before"):
            self.reached.set()
            self.released.wait(60)


@contextlib.contextmanager
def _held(pod: pods.Pod, name: str) -> t.Iterator[_Hold]:
    hold = _Hold(f"{pod.prefix}{name}")
    watched = WatchedStore(pod.store.url, hold.watch)
    pod.url = watched.url
    yield hold
    watched.close()
    pod.url = ""


def _pods(s3: Store, folder: pathlib.Path, manifest: str) -> tuple[pods.Pod, pods.Pod]:
    made = []
    for name, engine in (("one", "slow"), ("other", "quick")):
        (folder / name).mkdir()
        made.append(pods.Pod(s3, folder / name, manifest, engine=engine))
    return made[0], made[1]


def _is_whole(pod: pods.Pod, image: str) -> None:
    """The bucket holds one volume, made by one recipe, and its manifest says so."""
    found = volumes.holds_to_its_schemas(pod)
    manifest = pod.json("manifest.json")
    count = len(manifest["pages"])
    assert volumes.became(pod) == ["done"] * count
    assert manifest["pipeline"]["recipe_sha256"] == _recipe(image)
    for page in manifest["pages"]:
        name = f"{page['page']:04}"
        alto = found[f"{pod.prefix}alto/{name}.xml"]
        assert page["sha256"] == hashlib.sha256(alto).hexdigest()
        assert provenance.stated(alto)["recipe"] == (_recipe(image),)
        in_page = volumes.stated_in_page(found[f"{pod.prefix}page/{name}.xml"])
        assert in_page["recipe"] == [_recipe(image)]


def _recipe(image: str) -> str:
    return hashlib.sha256(f"{image}\n".encode() + pods.STEPS).hexdigest()
