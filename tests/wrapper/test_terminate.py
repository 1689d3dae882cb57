"""A pod that is asked to end, at any moment: how it ends, what it leaves, and that the next attempt goes on."""

from __future__ import annotations

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
from tests.testbed.plugin.s3 import OwnStore, Store
from tests.wrapper import ledgers, pods, volumes
from tests.wrapper.watched_store import Moment, WatchedStore

pytestmark = pytest.mark.slow

PAGES = 30
#: Seconds in which an attempt ends. A pod has 120.
AT_MOST = 20


@pytest.mark.parametrize("moment", ["download", "model work"])
def test_an_attempt_that_is_asked_to_end_says_so_and_the_next_one_goes_on(
    moment: str, s3: Store, misbehaving_http: MisbehavingHttp, tmp_path: pathlib.Path
) -> None:
    pod = pods.Pod(s3, tmp_path, pods.serve_volume(misbehaving_http, PAGES), engine="slow")
    if moment == "download":
        slow = Answer(pods.picture(9), delay=60)
        misbehaving_http.put("/volume/9.jpg", slow, Answer(pods.picture(9)))
    process = pod.start()
    if moment == "download":
        _wait_until(lambda: f"page {PAGES} done" in pod.printed())
    else:
        _wait_until(lambda: "page 3 done" in pod.printed())
    ended = _terminated(pod, process)

    assert ended.code == 143, ended.log
    _says_that_it_was_stopped(pod, ended)
    progress = pod.json("progress.json")
    done = progress["counts"]["done"]
    assert 0 < done < PAGES
    assert (progress["active"], progress["stage"]) == ([], "stream")

    again = pod.run()

    assert again.code == 0, again.log
    assert volumes.became(pod) == ["done"] * PAGES
    read = len(re.findall(r"page \d+ done:", again.log))
    # What was being written when it ended may have become whole.
    assert 0 < read <= PAGES - done
    assert pod.json("progress.json")["state"] == "finished"


@pytest.mark.parametrize("key", ["iiif.json", "manifest.json"])
def test_an_attempt_that_is_asked_to_end_while_it_publishes_comes_to_its_end(
    key: str, s3: Store, misbehaving_http: MisbehavingHttp, tmp_path: pathlib.Path
) -> None:
    watched = WatchedStore(s3.url)
    pod = pods.Pod(s3, tmp_path, pods.serve_volume(misbehaving_http, 5), url=watched.url)
    started = threading.Event()

    def end(written: str, moment: Moment) -> None:
        if (written, moment) == (f"{pod.prefix}{key}", "before"):
            started.wait(30)
            os.kill(process.pid, signal.SIGTERM)
            time.sleep(0.3)

    watched.watch = end
    process = pod.start()
    started.set()
    ended = pod.wait(process, AT_MOST)
    watched.close()

    assert (ended.code, ended.message) == (0, None), ended.log
    assert "asked to end by SIGTERM" in ended.log
    assert volumes.became(pod) == ["done"] * 5
    assert pod.json("progress.json")["state"] == "finished"
    assert _run_log(pod).endswith(ended.log)


def test_an_attempt_that_is_asked_to_end_before_its_first_page_ends_at_once(
    own_s3: OwnStore, misbehaving_http: MisbehavingHttp, tmp_path: pathlib.Path
) -> None:
    pod = pods.Pod(own_s3, tmp_path, misbehaving_http.put("/m", Answer("{}", delay=60)))
    process = pod.start()
    _wait_until(lambda: misbehaving_http.count("/m") > 0)
    ended = _terminated(pod, process)
    assert ended.code == 143, ended.log
    assert _run_log(pod).endswith(ended.log)

    # The store does not answer, and its client asks again and again.
    pod.manifest = pods.serve_volume(misbehaving_http, 3)
    own_s3.slow(delay=60)
    process = pod.start()
    _wait_until(lambda: misbehaving_http.count("/volume/manifest.json") > 0)
    time.sleep(0.5)
    os.kill(process.pid, signal.SIGTERM)
    _wait_until(lambda: (tmp_path / "termination-log").exists(), 5)
    ended = pod.wait(process, 110)
    assert ended.code == 143, ended.log
    assert ended.message is not None
    assert ended.message["stage"] == "resume"


def test_an_attempt_that_is_asked_to_end_while_it_starts_ends_as_asked(
    s3: Store, misbehaving_http: MisbehavingHttp, tmp_path: pathlib.Path
) -> None:
    pod = pods.Pod(s3, tmp_path, pods.serve_volume(misbehaving_http, 3))
    codes = []
    for moment in (0.15, 0.25, 0.35, 0.45, 0.6):
        process = pod.start()
        time.sleep(moment)
        ended = _terminated(pod, process)
        codes.append(ended.code)
        assert "Traceback" not in ended.log
        # Before the program itself has begun there is nobody to handle the signal.
        assert ended.code in (143, -signal.SIGTERM, 0), ended.log
        if ended.code == 143:
            assert ended.message is not None
            assert ledgers.faults(ended.message, "termination") == []
            assert not ended.message["permanent"]
    assert 143 in codes

    assert pod.run().code == 0
    assert volumes.became(pod) == ["done"] * 3


def _terminated(pod: pods.Pod, process: subprocess.Popen[bytes]) -> pods.Ended:
    os.kill(process.pid, signal.SIGTERM)
    return pod.wait(process, AT_MOST)


def _says_that_it_was_stopped(pod: pods.Pod, ended: pods.Ended) -> None:
    progress = pod.json("progress.json")
    assert ledgers.faults(progress, "progress") == []
    assert progress["state"] == "stopped"
    assert ended.message is not None
    assert ledgers.faults(ended.message, "termination") == []
    assert not ended.message["permanent"]
    assert ended.message["error"] == progress["error"]
    assert _run_log(pod).endswith(ended.log)


def _run_log(pod: pods.Pod) -> str:
    key = f"htr-batch/status/logs/demo-v1/{pod.volume}.txt"
    return pod.objects(key)[key].decode()


def _wait_until(condition: t.Callable[[], bool], seconds: float = 30) -> None:
    until = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < until, "it did not happen in time"
        time.sleep(0.02)
