"""An attempt that is killed at any moment, and the one after it."""

from __future__ import annotations

import contextlib
import json
import os
import pathlib
import re
import signal
import subprocess
import threading
import time
import typing as t

import pytest

from tests.testbed.plugin.misbehaving_http import Answer, MisbehavingHttp
from tests.testbed.plugin.s3 import Store
from tests.wrapper import pods
from tests.wrapper.watched_store import Moment, WatchedStore

pytestmark = pytest.mark.slow

PAGES = 23
#: The key below the volume's folder, and whether the store has it when the process is killed. Each is of one kind.
WRITES: list[tuple[str, Moment]] = [
    ("progress.json", "after"),
    ("page/0007.xml", "before"),
    ("page/0007.xml", "after"),
    ("annotations/0007.json", "after"),
    ("alto/0007.xml", "before"),
    ("alto/0007.xml", "after"),
    ("alto/0023.xml", "after"),
    ("iiif.json", "before"),
    ("iiif.json", "after"),
    ("pipeline.yaml", "before"),
    ("pipeline.yaml", "after"),
    ("manifest.json", "before"),
    ("manifest.json", "after"),
]


@pytest.mark.parametrize(("key", "moment"), WRITES)
def test_a_volume_killed_at_a_write_is_finished_by_the_next_attempt_as_if_nothing_had_happened(
    key: str, moment: Moment, s3: Store, misbehaving_http: MisbehavingHttp, tmp_path: pathlib.Path
) -> None:
    with _watched(s3) as watched:
        pod = pods.Pod(s3, tmp_path, pods.serve_volume(misbehaving_http, PAGES), url=watched.url)
        killer = _Killer(f"{pod.prefix}{key}", moment)
        watched.watch = killer.watch
        process = pod.start()
        killer.process = process
        process.wait(60)
        assert process.returncode == -signal.SIGKILL, pod.printed()
        watched.watch = lambda key, moment: None

        ended = pod.run(INDEX_FAILURE_COUNT="0")

        assert ended.code == 0, ended.log
        altos = {name: count for name, count in watched.written.items() if "/alto/" in name}
        assert altos == {f"{pod.prefix}alto/{number:04}.xml": 1 for number in range(1, PAGES + 1)}
        assert watched.order[-1].endswith(".txt")
        assert [name for name in watched.order if name.startswith(pod.prefix)][-1] == f"{pod.prefix}manifest.json"
        assert _timeless(pod) == _timeless(_undisturbed(s3, misbehaving_http, tmp_path))


@pytest.mark.parametrize("moment", ["download", "model work"])
def test_a_volume_killed_during_work_is_finished_by_the_next_attempt_as_if_nothing_had_happened(
    moment: str, s3: Store, misbehaving_http: MisbehavingHttp, tmp_path: pathlib.Path
) -> None:
    pod = pods.Pod(s3, tmp_path, pods.serve_volume(misbehaving_http, PAGES), engine="slow")
    pod.variables["GROUP_PAGES"] = "4"
    groups = tmp_path / "work/home/groups"
    if moment == "download":
        misbehaving_http.put("/volume/9.jpg", Answer(pods.picture(9), delay=20), Answer(pods.picture(9)))
    process = pod.start()
    if moment == "download":
        _wait_until(lambda: misbehaving_http.count("/volume/9.jpg") > 0 and "page 3 done" in pod.printed())
    else:
        _wait_until(lambda: groups.exists() and groups.read_text().count("\n") > 2)
    os.killpg(process.pid, signal.SIGKILL)
    process.wait(30)

    ended = pod.run()

    assert ended.code == 0, ended.log
    assert pod.json("manifest.json")["counts"]["done"] == PAGES
    # What the killed attempt had finished was not done again.
    assert 0 < len(re.findall(r"page \d+ done:", ended.log)) < PAGES
    undisturbed = _undisturbed(s3, misbehaving_http, tmp_path, engine="slow")
    assert _timeless(pod) == _timeless(undisturbed)


def test_the_models_end_with_the_process_that_started_them(
    s3: Store, misbehaving_http: MisbehavingHttp, tmp_path: pathlib.Path
) -> None:
    pod = pods.Pod(s3, tmp_path, pods.serve_volume(misbehaving_http, 200), engine="slow")
    process = pod.start()
    _wait_until(lambda: (tmp_path / "work/home/groups").exists())
    children = pathlib.Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
    assert children

    process.kill()
    process.wait(30)

    _wait_until(lambda: not any(_runs(int(child)) for child in children))


class _Killer:
    """Kills a process at a write, once."""

    def __init__(self, key: str, moment: Moment) -> None:
        self._key, self._moment = key, moment
        self.process: subprocess.Popen[bytes] | None = None
        self._lock = threading.Lock()

    def watch(self, key: str, moment: Moment) -> None:
        with self._lock:
            # The documents that are written again and again are killed at their last: no other page is missing then.
            if (key, moment) != (self._key, self._moment):
                return
            while self.process is None:
                time.sleep(0.01)
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait(30)


def _undisturbed(s3: Store, http: MisbehavingHttp, folder: pathlib.Path, engine: str = "quick") -> pods.Pod:
    other = Store(s3.url, {"root": s3.root, "writer": s3.writer, "reader": s3.reader})
    other.create_bucket()
    pod = pods.Pod(other, folder / "undisturbed", f"{http.url}/volume/manifest.json", engine=engine)
    pod.folder.mkdir()
    ended = pod.run()
    assert ended.code == 0, ended.log
    return pod


def _timeless(pod: pods.Pod) -> dict[str, t.Any]:
    """What is in the bucket, without times and what follows from them, and without the run log."""
    found: dict[str, t.Any] = {}
    for key, content in pod.objects().items():
        text = re.sub(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z?", "TIME", content.decode())
        if key.endswith(".txt"):
            continue
        found[key] = json.loads(text, object_hook=_without_times) if key.endswith(".json") else text
    return found


def _without_times(found: dict[str, t.Any]) -> dict[str, t.Any]:
    # A page's digest is that of a file that states when it was made.
    return {name: value for name, value in found.items() if name not in ("seconds", "pages_per_hour", "sha256")}


@contextlib.contextmanager
def _watched(s3: Store) -> t.Iterator[WatchedStore]:
    watched = WatchedStore(s3.url)
    try:
        yield watched
    finally:
        watched.close()


def _wait_until(condition: t.Callable[[], bool], seconds: float = 30) -> None:
    until = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < until, "it did not happen in time"
        time.sleep(0.02)


def _runs(pid: int) -> bool:
    try:
        return pathlib.Path(f"/proc/{pid}/stat").read_text().split(") ")[1][0] != "Z"
    except OSError:
        return False
