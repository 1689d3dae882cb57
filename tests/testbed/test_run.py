"""A run of tests: its servers start once, end with it, and a missing program is said."""

from __future__ import annotations

import os
import pathlib
import signal
import subprocess
import sys
import time
import typing as t

import pytest

from tests.testbed.plugin.processes import heed_signals

ROOT = pathlib.Path(__file__).parents[2]
_STARTS_A_SERVER = """\
import sys, time
from tests.testbed.plugin import processes

def start(run, folder):
    (port,) = processes.free_ports(1)
    command = [sys.executable, "-m", "http.server", str(port)]
    process = run.started(processes.start("server", command, folder, run.owner))
    process.wait_until(lambda: processes.listens(port))
    with open({log!r}, "a") as stream:
        stream.write(f"{{port}}\\n")
    return {{"port": port}}

def pytest_generate_tests(metafunc):
    metafunc.parametrize("number", range(6))

def test_it(number, testbed_run):
    port = testbed_run.once("server", lambda folder: start(testbed_run, folder))["port"]
    time.sleep({seconds})
    assert processes.listens(port)
"""


@pytest.fixture
def inner(tmp_path: pathlib.Path) -> t.Callable[..., subprocess.Popen[str]]:
    """Runs pytest with the test bed on one file of tests."""

    def run(content: str, *arguments: str, **environment: str) -> subprocess.Popen[str]:
        (tmp_path / "pytest.ini").write_text("[pytest]\n")
        (tmp_path / "test_inner.py").write_text(content)
        command = [sys.executable, "-m", "pytest", "-p", "tests.testbed.plugin", "-p", "no:cacheprovider", "-rs"]
        variables = {name: value for name, value in os.environ.items() if name != "CI"}
        return subprocess.Popen(
            [*command, "-c", str(tmp_path / "pytest.ini"), str(tmp_path / "test_inner.py"), *arguments],
            cwd=ROOT,
            env={**variables, "TMPDIR": str(tmp_path), **environment},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            preexec_fn=heed_signals,
        )

    return run


@pytest.mark.parametrize("workers", [[], ["-n", "3"]], ids=["one process", "three workers"])
def test_a_server_is_started_once_a_run_and_is_gone_after_it(
    inner: t.Callable[..., subprocess.Popen[str]], tmp_path: pathlib.Path, workers: list[str]
) -> None:
    log = tmp_path / "log"

    output, _ = inner(_STARTS_A_SERVER.format(log=str(log), seconds=0), *workers).communicate(timeout=60)

    assert "6 passed" in output
    (port,) = log.read_text().splitlines()
    assert not _listens(int(port))
    assert not list(tmp_path.glob("testbed-*"))


@pytest.mark.parametrize("way", [signal.SIGINT, signal.SIGKILL])
def test_a_server_ends_with_a_run_that_is_stopped(
    inner: t.Callable[..., subprocess.Popen[str]], tmp_path: pathlib.Path, way: signal.Signals
) -> None:
    log = tmp_path / "log"
    with inner(_STARTS_A_SERVER.format(log=str(log), seconds=60)) as run:
        _wait_until(lambda: log.is_file() and log.read_text().endswith("\n"))
        port = int(log.read_text())
        assert _listens(port)

        run.send_signal(way)

        _wait_until(lambda: not _listens(port))
    assert run.returncode != 0


def test_a_server_that_does_not_start_is_an_error_with_the_end_of_its_log(
    inner: t.Callable[..., subprocess.Popen[str]],
) -> None:
    content = """\
import sys
from tests.testbed.plugin import processes

def start(run, folder):
    command = [sys.executable, "-c", "print('no port left'); raise SystemExit(3)"]
    process = run.started(processes.start("server", command, folder, run.owner))
    process.wait_until(lambda: False)

def test_first(testbed_run):
    testbed_run.once("server", lambda folder: start(testbed_run, folder))

def test_second(testbed_run):
    testbed_run.once("server", None)
"""
    output, _ = inner(content).communicate(timeout=60)

    assert "2 failed" in output
    assert output.count("server ended before it was ready") == 2
    assert output.count("no port left") >= 2


def test_without_its_program_a_test_is_skipped_with_the_way_to_get_it(
    inner: t.Callable[..., subprocess.Popen[str]], tmp_path: pathlib.Path
) -> None:
    content = "def test_helm(tool):\n    tool('helm')\n\ndef test_store(s3):\n    pass\n"
    run = inner(content, XDG_CACHE_HOME=str(tmp_path / "cache"))

    output, _ = run.communicate(timeout=60)

    assert "2 skipped" in output
    assert "helm 2.0.0 is missing; run: make tools TOOLS=helm-and-kubectl" in output
    assert "versitygw 1.8.0 is missing; run: make tools TOOLS=versitygw" in output
    assert run.returncode == 0


def test_without_its_program_a_test_fails_in_ci(
    inner: t.Callable[..., subprocess.Popen[str]], tmp_path: pathlib.Path
) -> None:
    content = "def test_helm(tool):\n    tool('helm')\n\ndef test_store(s3):\n    pass\n"
    run = inner(content, XDG_CACHE_HOME=str(tmp_path / "cache"), CI="true")

    output, _ = run.communicate(timeout=60)

    assert "1 failed, 1 error" in output
    assert "helm 2.0.0 is missing; run: make tools TOOLS=helm-and-kubectl" in output
    assert run.returncode == 1


def test_the_summary_counts_what_ran_against_which_program(inner: t.Callable[..., subprocess.Popen[str]]) -> None:
    content = """\
import pytest

@pytest.mark.parametrize("number", range(3))
def test_helm(tool, number):
    tool("helm")
    tool("kubectl")

def test_nothing():
    pass
"""
    output, _ = inner(content, "-n", "2").communicate(timeout=60)

    assert "tests against real programs: helm 4.3.1: 3, kubectl 1.37.1: 3\n" in output


def _listens(port: int) -> bool:
    from tests.testbed.plugin import processes

    return processes.listens(port)


def _wait_until(condition: t.Callable[[], bool], seconds: float = 30) -> None:
    limit = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < limit, "still not so"
        time.sleep(0.05)
