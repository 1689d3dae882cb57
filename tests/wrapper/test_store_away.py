"""A store that goes away in the middle of a volume, and comes back or does not."""

from __future__ import annotations

import pathlib
import time
import typing as t

import pytest

from tests.testbed.plugin.misbehaving_http import MisbehavingHttp
from tests.testbed.plugin.s3 import OwnStore
from tests.wrapper import ledgers, pods, volumes

pytestmark = pytest.mark.slow

PAGES = 40


def test_a_store_that_is_away_for_five_seconds_costs_no_page_and_no_attempt(
    own_s3: OwnStore, misbehaving_http: MisbehavingHttp, tmp_path: pathlib.Path
) -> None:
    pod = pods.Pod(own_s3, tmp_path, pods.serve_volume(misbehaving_http, PAGES), engine="slow")
    process = pod.start()
    _wait_until(lambda: "page 5 done" in pod.printed())
    own_s3.stop()
    time.sleep(5)
    own_s3.start()
    ended = pod.wait(process)

    assert (ended.code, ended.message) == (0, None), ended.log
    assert "is written again" in ended.log
    assert volumes.became(pod) == ["done"] * PAGES
    volumes.holds_to_its_schemas(pod)
    # No page was fetched or read twice.
    assert [misbehaving_http.count(f"/volume/{number}.jpg") for number in range(1, PAGES + 1)] == [1] * PAGES


def test_a_store_that_is_away_at_the_end_costs_no_attempt(
    own_s3: OwnStore, misbehaving_http: MisbehavingHttp, tmp_path: pathlib.Path
) -> None:
    pod = pods.Pod(own_s3, tmp_path, pods.serve_volume(misbehaving_http, 5))
    own_s3.slow(delay=0.3)
    process = pod.start()
    _wait_until(lambda: "[verify]" in pod.printed())
    own_s3.stop()
    time.sleep(5)
    own_s3.slow()
    own_s3.start()
    ended = pod.wait(process)

    assert (ended.code, ended.message) == (0, None), ended.log
    assert "this is tried again" in ended.log
    assert volumes.became(pod) == ["done"] * 5
    assert pod.json("progress.json")["state"] == "finished"


def test_a_store_that_stays_away_ends_the_attempt_with_its_name_and_the_next_one_goes_on(
    own_s3: OwnStore, misbehaving_http: MisbehavingHttp, tmp_path: pathlib.Path
) -> None:
    pod = pods.Pod(own_s3, tmp_path, pods.serve_volume(misbehaving_http, PAGES), engine="slow")
    process = pod.start()
    _wait_until(lambda: "page 5 done" in pod.printed())
    own_s3.stop()
    began = time.monotonic()
    ended = pod.wait(process, 120)

    assert time.monotonic() - began < 110
    assert ended.code == 1, ended.log
    assert ended.message is not None
    assert ledgers.faults(ended.message, "termination") == []
    assert (ended.message["stage"], ended.message["permanent"]) == ("stream", False)
    assert f"in bucket {own_s3.bucket} at {own_s3.url} for a while" in ended.message["error"]
    assert "Traceback" not in ended.log

    own_s3.start()
    ended = pod.run()
    assert (ended.code, volumes.became(pod)) == (0, ["done"] * PAGES), ended.log


def _wait_until(condition: t.Callable[[], bool], seconds: float = 30) -> None:
    until = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < until, "it did not happen in time"
        time.sleep(0.02)
