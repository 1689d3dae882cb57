"""``htrflow-campaigns local``, the whole command, with real wrappers whose engine takes no time."""

from __future__ import annotations

import contextlib
import json
import os
import pathlib
import pty
import re
import select
import signal
import subprocess
import termios
import time

import pytest

from tests.cmp_plugin.conftest import Repo
from tests.cmp_plugin.local import commands
from tests.cmp_plugin.local.commands import Local
from tests.testbed.plugin.misbehaving_http import MisbehavingHttp
from tests.testbed.plugin.processes import heed_signals
from tests.testbed.plugin.s3 import Store

pytestmark = pytest.mark.slow


def test_a_repo_runs_from_its_files_to_its_results(local: Local, pages: MisbehavingHttp) -> None:
    commands.campaign(local, "letters", pages, "1 2", "3 missing 4")
    code, printed = local.run("--once")

    assert code == 0, printed
    lines = printed.splitlines()
    for line in (
        "letters: running",
        "letters: letters-0 is done, 2 of 2 pages",
        "letters: letters-1 is done, 2 of 3 pages",
        "htr-warmup-demo-v1 has ended: Complete",
        "letters: partially succeeded",
    ):
        assert line in lines
    assert "\x1b" not in printed, "in a pipe or a file, it is lines"
    for volume, pages_ in (("letters-0", (2, 2, 0)), ("letters-1", (3, 2, 1))):
        counts = commands.result(local, volume, "manifest.json")["counts"]
        assert (counts["total"], counts["done"], counts["failed"]) == pages_
    assert local.left() == []

    # Everything is done: the next start only says so.
    asked = len(pages.requests)
    code, printed = local.run("--once")
    assert (code, len(pages.requests)) == (0, asked), printed
    assert "letters: partially succeeded" in printed.splitlines()


def test_a_volume_that_cannot_be_read_is_said_and_is_the_exit_code(local: Local, pages: MisbehavingHttp) -> None:
    manifest = {"id": "gone", "manifest": f"{pages.url}/gone.json"}
    local.repo.write("campaigns/letters.yaml", json.dumps({"pipeline": "demo-v1", "volumes": [manifest]}))
    code, printed = local.run("--once")

    assert code == 1
    (line,) = [line for line in printed.splitlines() if line.startswith("letters: gone is failed")]
    assert "404" in line
    assert "letters: failed, Job has failed indexes" in printed


def test_a_window_above_the_slots_is_said_and_does_not_wait_for_ever(local: Local, pages: MisbehavingHttp) -> None:
    local.repo.write("converter.yaml", "window: 5\n")
    commands.campaign(local, "letters", pages, "1", "2", "3")
    code, printed = local.run("--once", "--slots", "2")

    assert code == 1
    assert "letters never starts: its window is more than the 2 slots" in printed
    assert "lower its window, or use --slots 3" in printed


def test_a_bad_repo_is_said_as_validate_says_it_and_nothing_is_made(python: pathlib.Path, repo: Repo) -> None:
    repo.write("campaigns/letters.yaml", "pipeline: nobody-v1\nvolumes: [V1]\n")
    local = Local(python, repo)
    code, printed = local.run("--once")

    assert (code, printed) == (1, repo.run("validate").stdout)
    assert not local.data.exists()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_it_stops_within_seconds_and_goes_on_where_it_was(
    local: Local, pages: MisbehavingHttp, number: signal.Signals
) -> None:
    commands.campaign(local, "letters", pages, "1 2 late")
    local.start()
    local.until(lambda: pages.count("/late.png"))
    local.until(lambda: [*local.data.glob("results/htr-batch/demo-v1/letters-0/alto/*")])
    began = time.monotonic()
    code, printed = local.end(number)

    assert (code, local.left()) == (130, []), printed
    assert time.monotonic() - began < 12
    assert printed.endswith("stopped; the same command goes on from here\n")
    commands.awake(pages)
    code, printed = local.run("--once")
    assert code == 0, printed
    assert commands.result(local, "letters-0", "manifest.json")["counts"]["done"] == 3
    assert (pages.count("/1.png"), pages.count("/late.png")) == (1, 2), "a page that is there is not read again"


def test_it_is_killed_and_goes_on_where_it_was(local: Local, pages: MisbehavingHttp) -> None:
    commands.campaign(local, "letters", pages, "1 2 late")
    process = local.start()
    local.until(lambda: pages.count("/late.png"))
    local.until(lambda: [*local.data.glob("results/htr-batch/demo-v1/letters-0/alto/*")])
    process.kill()
    process.wait()
    assert local.left(), "nobody has ended the pod"
    commands.awake(pages)
    code, printed = local.run("--once")

    assert (code, local.left()) == (0, []), printed
    assert "ended 1 pods of a runner that was killed; their volumes go on from where they were" in printed
    assert pages.count("/1.png") == 1


def test_when_nobody_reads_what_it_prints_it_ends_and_so_do_its_pods(local: Local, pages: MisbehavingHttp) -> None:
    commands.campaign(local, "letters", pages, "late")
    process = subprocess.Popen(
        local.command("--watch"), env=local.variables(), stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    assert process.stdout is not None
    commands.until(lambda: pages.count("/late.png") > 0)
    process.stdout.close()
    (local.repo.path / "campaigns/letters.yaml").write_text("[")

    assert process.stderr is not None
    assert process.stderr.read() == b""
    process.stderr.close()
    assert process.wait(20) == 1
    assert local.left() == []


def test_results_go_into_a_bucket(local: Local, pages: MisbehavingHttp, s3: Store, tmp_path: pathlib.Path) -> None:
    commands.campaign(local, "letters", pages, "1 2")
    keys = f"[default]\naws_access_key_id = {s3.writer.access}\naws_secret_access_key = {s3.writer.secret}\n"
    (tmp_path / ".aws").mkdir()
    (tmp_path / ".aws/credentials").write_text(keys)
    code, printed = local.run("--once", "--s3", f"{s3.url}/{s3.bucket}")

    assert code == 0, printed
    assert "letters: letters-0 is done, 2 of 2 pages" in printed
    found = s3.client(s3.reader).get_object(Bucket=s3.bucket, Key="htr-batch/demo-v1/letters-0/manifest.json")
    assert json.load(found["Body"])["counts"]["done"] == 2
    assert not [path for path in (local.data / "results").rglob("*") if path.is_file()]
    assert not [
        path for path in local.data.rglob("*") if path.is_file() and s3.writer.secret in path.read_text("latin-1")
    ]


def test_on_a_terminal_it_is_a_table_that_fits(local: Local, pages: MisbehavingHttp) -> None:
    commands.campaign(local, "letters-of-a-long-winded-and-long-forgotten-family", pages, "1 2 late")
    commands.campaign(local, "diaries", pages, "3")
    controller, terminal = pty.openpty()
    termios.tcsetwinsize(terminal, (24, 80))
    given = {"TERM": "xterm-256color", "COLUMNS": "", "LINES": "", "NO_COLOR": ""}
    process = subprocess.Popen(
        local.command("--slots", "2"),
        env=local.variables(**given),
        stdin=terminal,
        stdout=terminal,
        stderr=terminal,
        start_new_session=True,
        preexec_fn=heed_signals,
    )
    os.close(terminal)
    shown = b""

    def read() -> bytes:
        nonlocal shown
        if select.select([controller], [], [], 0.1)[0]:
            shown += os.read(controller, 65536)
        return shown

    commands.until(lambda: b"2 of 3" in read() and b"1 of 1" in shown)
    process.send_signal(signal.SIGINT)
    with contextlib.suppress(OSError):  # when the last of them has closed the terminal
        while True:
            read()
    os.close(controller)

    assert process.wait(20) == 130
    text = shown.decode()
    assert "\x1b[" in text, "it is redrawn in place"
    lines = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", text).replace("\r", "\n").split("\n")
    long = [line for line in lines if len(line) > 80 and "results" not in line]
    assert long == []
    heads = [line.split() for line in lines if "campaign" in line and "state" in line]
    assert ["campaign", "state", "volumes", "pages", "failed", "pages/min", "time", "left"] in heads
    assert not re.search(r"[…\[]", "".join(lines)), "nothing is cut off, and nothing of the table's own shows"
