"""What ``htrflow-campaigns local`` says in one sentence when it cannot run, or cannot go on."""

from __future__ import annotations

import os
import pathlib
import resource
import signal
import socket
import subprocess

import pytest

from tests.cmp_plugin.conftest import Repo
from tests.cmp_plugin.local import commands
from tests.cmp_plugin.local.commands import Local
from tests.testbed.plugin.misbehaving_http import MisbehavingHttp

pytestmark = pytest.mark.slow


def test_a_port_in_use_is_one_sentence(local: Local) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        assert (
            commands.said(local, "--port", str(port))
            == f"port {port} is in use or not allowed — name another one with --port"
        )


def test_a_folder_that_is_no_folder_or_cannot_be_written_is_one_sentence(local: Local, tmp_path: pathlib.Path) -> None:
    file = tmp_path / "file"
    file.touch()
    assert commands.said(local, "--data", str(file)) == f"{file} is no folder — name one with --data"
    assert commands.said(local, "--data", str(file / "below")) == f"{file}/below is no folder — name one with --data"
    # The kernel lets nobody make a folder there, not even root.
    found = commands.said(local, "--data", "/sys/htrflow-data")
    assert found == "/sys/htrflow-data cannot be written — name a folder that is yours with --data"


def test_a_folder_that_is_not_there_is_one_sentence(local: Local) -> None:
    for file in sorted(local.repo.path.rglob("*"), reverse=True):
        file.rmdir() if file.is_dir() else file.unlink()
    local.repo.path.rmdir()
    assert commands.said(local) == (
        f"{local.repo.path} cannot be read (no such file or directory) — name the folder of a campaigns repo"
    )


def test_a_second_one_on_the_same_data_is_one_sentence(
    local: Local, python: pathlib.Path, tmp_path: pathlib.Path
) -> None:
    local.start()
    local.says("results and state are in")
    second = subprocess.run(local.command(), capture_output=True, text=True, timeout=30, check=False)

    assert (second.returncode, second.stdout) == (2, "")
    assert second.stderr == (
        f"htrflow-campaigns local: {local.data} is in use by another htrflow-campaigns local — stop that one, or name"
        " another folder with --data\n"
    )


@pytest.mark.parametrize("moment", ["at the start", "while it runs"])
def test_a_full_disk_is_one_sentence_and_ends_everything(local: Local, pages: MisbehavingHttp, moment: str) -> None:
    """A disk on which no file can have a byte more: the kernel's limit for a process is as good as a small disk."""
    commands.campaign(local, "letters", pages, "late")
    command = local.command()
    if moment == "at the start":
        # Through a shell, since nothing may run between fork and exec here.
        command = ["/bin/sh", "-c", 'ulimit -f 0; exec "$@"', "sh", *command]
    process = subprocess.Popen(
        command, env=local.variables(), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    if moment == "while it runs":
        commands.until(lambda: pages.count("/late.png") > 0)
        hard = resource.prlimit(process.pid, resource.RLIMIT_FSIZE)[1]
        resource.prlimit(process.pid, resource.RLIMIT_FSIZE, (0, hard))
        commands.awake(pages)
        for pid in local.left():
            os.kill(pid, signal.SIGKILL)
    _, said = process.communicate(timeout=30)

    assert said == (
        f"htrflow-campaigns local: there is no room left for {local.data} — free some, or name a folder on another disk"
        " with --data\n"
    )
    assert (process.returncode, local.left()) == (2, [])


@pytest.mark.parametrize(
    "address",
    ["results", "https://s3.example.org", "https://s3.example.org/a/b", "s3://results", "ftp://example.org/a"],
)
def test_an_address_that_names_no_bucket_is_one_sentence(local: Local, address: str) -> None:
    assert commands.said(local, "--s3", address) == (
        f"{address} names no bucket — write its endpoint, a slash and its name, such as https://s3.example.org/results"
    )


def test_missing_credentials_are_one_sentence(local: Local, tmp_path: pathlib.Path) -> None:
    address = ("--s3", "https://s3.example.org/results")
    sentence = "the credentials {} cannot be read — name their file with --credentials"
    assert commands.said(local, *address) == sentence.format(tmp_path / ".aws/credentials")
    assert commands.said(local, *address, "--credentials", "nowhere") == sentence.format("nowhere")
    assert commands.said(local, *address, AWS_SHARED_CREDENTIALS_FILE="elsewhere") == sentence.format("elsewhere")


def test_without_the_extra_a_sentence_says_how_to_get_it(repo: Repo, tmp_path: pathlib.Path) -> None:
    for number, name in enumerate(("psutil", "rich", "uvicorn")):
        local = Local(commands.environment(tmp_path / f"environment-{number}", without=[name]), repo)
        assert commands.said(local) == (
            f"{name} is not installed — install htrflow-campaigns with its extra local: pip install"
            " 'htrflow-campaigns[local]'"
        )
