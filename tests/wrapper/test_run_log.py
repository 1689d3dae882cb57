"""The run log: what it looks like, what it keeps, and when it goes to the store."""

from __future__ import annotations

import contextlib
import io
import logging
import pathlib
import re
import resource
import threading
import time
import typing as t
import uuid

import pytest

from htrflow_batch import run_log
from htrflow_batch.run_log import Pace, RunLog, Shipper
from htrflow_batch.s3_client import S3Settings
from htrflow_batch.s3_store import S3Store
from tests.testbed.plugin.s3 import OwnStore
from tests.testbed.plugin.s3 import Store as Server

KEY = "ns/status/logs/demo-v1/v1.txt"
TIME = r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z"
GRAMMAR = re.compile(
    rf"=== attempt {TIME}|=== left out: \d+ bytes(?: of earlier attempts)?|    .*"
    rf"|{TIME} (?:DEBUG|INFO |WARN |ERROR) \[(?:{'|'.join(run_log.STAGES)})(?:/htrflow)?\] .*"
)
#: A store that is not there is given up after a moment.
HASTE: dict[str, t.Any] = {"attempts": 1, "connect_timeout": 0.5, "read_timeout": 1.0}
AT_ONCE = Pace(first=0.0, least=0.0, most=0.0)


class Counting(S3Store):
    """The real store, and how many bytes it was given."""

    shipped = 0

    def put(self, key: str, content: bytes, content_type: str, **settings: t.Any) -> None:
        self.shipped += len(content)
        super().put(key, content, content_type, **settings)


@contextlib.contextmanager
def store_of(server: Server, folder: pathlib.Path, **settings: t.Any) -> t.Iterator[Counting]:
    file = folder / "credentials"
    writer = server.writer
    file.write_text(f"[default]\naws_access_key_id = {writer.access}\naws_secret_access_key = {writer.secret}\n")
    store = Counting(S3Settings(**{"bucket": server.bucket, "credentials": file, "endpoint": server.url, **settings}))
    yield store
    store.close()


@contextlib.contextmanager
def logger_of(log: RunLog, name: str = "") -> t.Iterator[logging.Logger]:
    """A logger that leads to a log and nowhere else; the shipper's own words go there too."""
    logger = logging.getLogger(f"{name or 'test'}.{uuid.uuid4().hex}")
    logger.propagate = False
    logger.setLevel(logging.DEBUG)
    shipping = logging.getLogger("htrflow_batch.run_log")
    for each in (logger, shipping):
        each.addHandler(log)
    yield logger
    for each in (logger, shipping):
        each.removeHandler(log)


def quiet(**limits: int) -> RunLog:
    return RunLog(io.StringIO(), **limits)


def lines(log: RunLog) -> list[str]:
    found = log.content().decode().split("\n")
    assert found.pop() == ""
    assert [line for line in found if not GRAMMAR.fullmatch(line)] == []
    return found


def stored(store: S3Store) -> str:
    found = store.get(KEY)
    assert found
    assert found.info.content_type == "text/plain; charset=utf-8"
    return found.content.decode()


# What a line looks like


def test_a_message_is_a_line_with_time_level_and_stage_in_the_log_and_on_the_stream() -> None:
    stream = io.StringIO()
    log = RunLog(stream)
    with logger_of(log) as logger:
        logger.info("%s pages", 3)
        log.stage = "stream"
        logger.debug("a")
        logger.warning("b")
        logger.critical("c")
    head, *said = lines(log)

    assert re.fullmatch(f"=== attempt {TIME}", head)
    assert [re.sub(TIME, "T", line) for line in said] == [
        "T INFO  [config] 3 pages",
        "T DEBUG [stream] a",
        "T WARN  [stream] b",
        "T ERROR [stream] c",
    ]
    assert stream.getvalue() == "".join(f"{line}\n" for line in said)


def test_what_htrflow_says_is_marked() -> None:
    log = quiet()
    log.stage = "stream"
    with logger_of(log, "htrflow") as library, logger_of(log, "htrflow_batch") as ours:
        library.info("Loading weights")
        ours.info("page 1")

    assert [line.split(" ", 2)[2] for line in lines(log)[1:]] == [
        " [stream/htrflow] Loading weights",
        " [stream] page 1",
    ]


def test_a_stage_that_is_none_is_refused() -> None:
    with pytest.raises(ValueError, match="not a stage: 'uploading'"):
        quiet().stage = "uploading"


def test_a_traceback_is_indented_and_holds_no_secret() -> None:
    stream = io.StringIO()
    log = RunLog(stream)
    with logger_of(log) as logger:
        try:
            try:
                raise OSError("https://eva:hemligt@example.org/a?token=hemligt is not there")
            except OSError as error:
                raise RuntimeError("again\n=== attempt 2026-11-29T20:00:00.123Z") from error
        except RuntimeError:
            logger.exception("cannot fetch https://eva:hemligt@example.org/b", stack_info=True)
    said = lines(log)[1:]

    assert said[0].endswith("ERROR [config] cannot fetch https://…@example.org/b")
    assert all(line.startswith("    ") for line in said[1:])
    assert "    OSError: https://…@example.org/a?… is not there" in said
    assert "    === attempt 2026-11-29T20:00:00.123Z" in said
    assert "    Stack (most recent call last):" in said
    assert b"hemligt" not in log.content()
    assert "hemligt" not in stream.getvalue()


@pytest.mark.parametrize(
    ("message", "arguments", "shown"),
    [
        ("a\x1b[2Jb\x00c", (), "abc"),
        ("half \ud83d of a sign", (), "half \ufffd of a sign"),
        ("%d pages", ("three",), "%d pages ('three',)"),
        ("%s and %s", ("https://eva:hemligt@h/",), "%s and %s ('https://…@h/',)"),
        ("", (), ""),
    ],
)
def test_no_message_breaks_the_log(message: str, arguments: tuple[str, ...], shown: str) -> None:
    log = quiet()
    with logger_of(log) as logger:
        logger.info(message, *arguments)

    assert lines(log)[1].partition("[config] ")[2] == shown


def test_a_stream_that_is_closed_does_not_end_the_log() -> None:
    stream = io.StringIO()
    log = RunLog(stream)
    stream.close()
    with logger_of(log) as logger:
        logger.info("still here")

    assert lines(log)[1].endswith("still here")


# What is kept


def test_of_100_000_lines_the_first_and_the_last_are_kept_in_bounded_memory() -> None:
    first, last = run_log.FIRST, run_log.LAST
    before, most = resident(), 0
    log = RunLog(Nowhere())
    with logger_of(log) as logger:
        for number in range(100_000):
            logger.info("line %d of many %s", number, "x" * 700)
            if number % 1000 == 0:
                most = max(most, resident())
    said = lines(log)
    numbers = [int(found[1]) for line in said if (found := re.search(r"line (\d+) of many", line))]
    (gap,) = (place for place in range(1, len(numbers)) if numbers[place] != numbers[place - 1] + 1)
    (left_out,) = (line for line in said if line.startswith("=== left out: "))

    # Of 75 MB that were logged.
    assert most - before < 4 * (first + last)
    assert first + last - 2000 < log.size <= first + last
    assert (numbers[0], numbers[-1]) == (0, 99_999)
    missing = numbers[gap] - numbers[gap - 1] - 1
    assert said.index(left_out) == gap + 1
    assert 750 * missing < int(re.sub(r"\D", "", left_out)) < 780 * missing


def resident() -> int:
    """Bytes of memory that this process has."""
    return int(pathlib.Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()


class Nowhere(io.StringIO):
    def write(self, _: str) -> int:
        return 0


def test_a_message_larger_than_all_room_leaves_a_log_that_says_so() -> None:
    log = quiet(first=100, last=100)
    with logger_of(log) as logger:
        logger.info("word " * 200)
        logger.info("after")

    assert [line.split(" ")[0] for line in lines(log)[:2]] == ["===", "==="]
    assert lines(log)[-1].endswith("after")


def test_many_threads_log_whole_lines() -> None:
    log = quiet()
    with logger_of(log) as logger:

        def work(thread: int) -> None:
            for number in range(500):
                logger.info("thread %d line %d\nand more", thread, number)

        threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
        for each in threads:
            each.start()
        for each in threads:
            each.join()
    said = lines(log)[1:]

    assert log.count == 8 * 500
    assert said[1::2] == ["    and more"] * 4000
    for thread in range(8):
        mine = [line for line in said if f"thread {thread} " in line]
        assert [int(line.rpartition(" ")[2]) for line in mine] == [*range(500)]


def test_of_earlier_attempts_whole_lines_at_the_end_are_kept() -> None:
    log = quiet()
    earlier = "".join(f"2026-11-29T20:00:00.123Z INFO  [stream] {number}\n" for number in range(10_000)).encode()
    log.recall(earlier)
    said = lines(log)
    place = next(number for number, line in enumerate(said) if line.startswith("=== attempt"))

    assert said[place - 1].endswith("[stream] 9999")
    kept = "".join(f"{line}\n" for line in said[1:place])
    assert said[0] == f"=== left out: {len(earlier) - len(kept)} bytes of earlier attempts"
    assert run_log.EARLIER - 100 < len(kept) <= run_log.EARLIER


@pytest.mark.parametrize("earlier", [b"", b"half a line", b"\xff\xfe\n", b"x" * 1_000_000])
def test_whatever_is_there_from_before_does_not_run_into_this_attempt(earlier: bytes) -> None:
    log = quiet()
    log.recall(earlier)
    said = log.content().decode()

    assert len(said) < 1000
    assert len(re.findall("^=== attempt", said, re.MULTILINE)) == 1


# When it goes to the store


@pytest.mark.parametrize(("size", "pause"), [(0, 3), (6143, 3), (20_480, 10), (204_800, 100), (8_650_000, 300)])
def test_the_pause_grows_with_the_log(size: int, pause: float) -> None:
    assert Pace().pause(size) == pytest.approx(pause, abs=0.01)


def test_the_first_shipment_waits_and_later_ones_come_only_when_there_is_something_new(
    s3: Server, tmp_path: pathlib.Path
) -> None:
    log = quiet()
    with store_of(s3, tmp_path) as store, logger_of(log) as logger:
        began = time.monotonic()
        shipper = Shipper(log, store, KEY, Pace(first=0.5, least=0.1, most=0.1))
        while not store.shipped:
            shipper.tick()
            time.sleep(0.01)
        assert time.monotonic() - began >= 0.5
        once = store.shipped
        time.sleep(0.2)
        shipper.tick()
        assert store.shipped == once
        logger.info("new")
        shipper.tick()
        assert store.shipped > once
        assert stored(store) == log.content().decode()


def test_shipping_costs_so_many_bytes_a_second_as_it_may(s3: Server, tmp_path: pathlib.Path) -> None:
    log = quiet()
    pace = Pace(first=0.0, least=0.01, most=60.0, bytes_per_second=100_000)
    with store_of(s3, tmp_path) as store, logger_of(log) as logger:
        shipper = Shipper(log, store, KEY, pace)
        began, ships = time.monotonic(), set()
        while time.monotonic() - began < 3:
            logger.info("x" * 60)
            shipper.tick()
            ships.add(store.shipped)
            time.sleep(0.001)
        spent = time.monotonic() - began

        # What was shipped last is paid for by the pause that follows.
        assert store.shipped - log.size <= pace.bytes_per_second * spent
        assert len(ships) > 5


def test_the_log_of_earlier_attempts_stays_in_front(s3: Server, tmp_path: pathlib.Path) -> None:
    with store_of(s3, tmp_path) as store:
        for attempt in (1, 2, 3):
            log = quiet()
            with logger_of(log) as logger:
                shipper = Shipper(log, store, KEY, AT_ONCE)
                logger.info("attempt %d begins", attempt)
                shipper.tick()
                logger.info("attempt %d ends", attempt)
                assert shipper.finish(10)
        text = stored(store)

    assert all(GRAMMAR.fullmatch(line) for line in text.splitlines())
    assert re.findall("=== attempt|attempt [0-9] [a-z]+$", text, re.MULTILINE) == [
        said for n in "123" for said in ("=== attempt", f"attempt {n} begins", f"attempt {n} ends")
    ]


def test_a_second_shipper_of_the_same_log_does_not_take_it_for_an_earlier_attempts(
    s3: Server, tmp_path: pathlib.Path
) -> None:
    log = quiet()
    with store_of(s3, tmp_path) as store, logger_of(log) as logger:
        logger.info("once")
        Shipper(log, store, KEY, AT_ONCE).tick()
        assert Shipper(log, store, KEY).finish(10)
        assert stored(store).count("once") == 1


def test_a_store_that_stops_is_logged_once_and_has_the_log_when_it_is_back(
    own_s3: OwnStore, tmp_path: pathlib.Path
) -> None:
    log = quiet()
    with store_of(own_s3, tmp_path, **HASTE) as store, logger_of(log) as logger:
        shipper = Shipper(log, store, KEY, AT_ONCE)
        logger.info("before")
        shipper.tick()
        for _ in range(2):
            own_s3.stop()
            for number in range(3):
                logger.info("meanwhile %d", number)
                shipper.tick()
            own_s3.start()
            logger.info("after")
            shipper.tick()
            assert "after" in stored(store)
        text = stored(store)

    assert text == log.content().decode()
    assert text.count("meanwhile") == 6
    assert len(re.findall("WARN .*the run log is not in the store yet", text)) == 2


def test_a_store_that_is_not_there_at_the_start_keeps_the_log_of_earlier_attempts(
    own_s3: OwnStore, tmp_path: pathlib.Path
) -> None:
    with store_of(own_s3, tmp_path, **HASTE) as store:
        store.put(KEY, b"why the attempt before failed\n", run_log.CONTENT_TYPE)
        own_s3.stop()
        log = quiet()
        with logger_of(log) as logger:
            shipper = Shipper(log, store, KEY, AT_ONCE)
            logger.info("here")
            shipper.tick()
            assert not log.recalled
            own_s3.start()
            assert shipper.finish(10)
        assert stored(store).startswith("why the attempt before failed\n=== attempt")


def test_a_store_that_refuses_to_be_read_gets_this_attempts_log(s3: Server, tmp_path: pathlib.Path) -> None:
    log = quiet()
    with store_of(s3, tmp_path) as store, logger_of(log):
        store.put(KEY, b"x" * (64 * 1024 * 1024 + 1), run_log.CONTENT_TYPE)
        assert Shipper(log, store, KEY).finish(10)
        assert stored(store).startswith("=== attempt")
        assert "the log of earlier attempts is lost" in stored(store)


def test_the_end_waits_no_longer_than_it_may_for_a_store_that_is_gone(own_s3: OwnStore, tmp_path: pathlib.Path) -> None:
    log = quiet()
    with store_of(own_s3, tmp_path) as store, logger_of(log):
        own_s3.stop()
        began = time.monotonic()
        assert not Shipper(log, store, KEY).finish(1.5)
        assert time.monotonic() - began < 2.5


def test_the_end_comes_through_while_another_shipment_hangs(own_s3: OwnStore, tmp_path: pathlib.Path) -> None:
    log = quiet()
    with store_of(own_s3, tmp_path) as store, logger_of(log) as logger:
        shipper = Shipper(log, store, KEY, AT_ONCE)
        shipper.tick()
        own_s3.slow(delay=2.0)
        hanging = threading.Thread(target=shipper.tick)
        logger.info("old")
        hanging.start()
        time.sleep(0.3)
        own_s3.slow()
        logger.info("new")
        assert shipper.finish(10)
        hanging.join()
        assert stored(store) == log.content().decode()


def test_an_older_shipment_that_ends_after_the_last_one_does_not_replace_it(
    own_s3: OwnStore, tmp_path: pathlib.Path
) -> None:
    log = quiet()
    straight = f"http://127.0.0.1:{own_s3._port}"
    with (
        store_of(own_s3, tmp_path) as slow,
        store_of(own_s3, tmp_path, endpoint=straight) as fast,
        logger_of(log) as logger,
    ):
        shipper = Shipper(log, slow, KEY, AT_ONCE)
        shipper.tick()
        logger.info("old %s", "x" * 30_000)
        own_s3.slow(pace=10_000)
        hanging = threading.Thread(target=shipper.tick)
        hanging.start()
        time.sleep(0.3)
        logger.info("new")
        assert shipper.finish(4, fast)
        hanging.join(0.3)
        assert not hanging.is_alive()
        assert (slow.shipped > 30_000, fast.shipped > 60_000) == (True, True)
        assert stored(fast) == log.content().decode()


def test_the_end_may_take_another_way_to_the_store(own_s3: OwnStore, tmp_path: pathlib.Path) -> None:
    log = quiet()
    with store_of(own_s3, tmp_path) as patient, store_of(own_s3, tmp_path, **HASTE) as hasty, logger_of(log) as logger:
        shipper = Shipper(log, patient, KEY, AT_ONCE)
        logger.info("the last word")
        own_s3.stop()
        threading.Timer(1.5, own_s3.start).start()
        assert shipper.finish(20, hasty)
        assert (patient.shipped, stored(hasty)) == (0, log.content().decode())


def test_after_the_end_nothing_more_is_shipped(s3: Server, tmp_path: pathlib.Path) -> None:
    log = quiet()
    with store_of(s3, tmp_path) as store, logger_of(log) as logger:
        shipper = Shipper(log, store, KEY, AT_ONCE)
        assert shipper.finish(10)
        logger.info("late")
        shipper.tick()
        assert "late" not in stored(store)
