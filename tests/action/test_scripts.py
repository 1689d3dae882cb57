"""The scripts that get Kyverno and install the converter, run as the runner runs them."""

from __future__ import annotations

import hashlib
import http.server
import os
import pathlib
import re
import shutil
import subprocess
import tarfile
import threading
import typing as t

import pytest

from tests.action.runner import TOP, obeyed, outputs

VERSION = "v1.19.0"
ARCHIVE = f"kyverno-cli_{VERSION}_linux_x86_64.tar.gz"


class Releases(t.NamedTuple):
    """A server with releases, and the folder that it serves."""

    address: str
    folder: pathlib.Path


@pytest.fixture
def releases(tmp_path: pathlib.Path) -> t.Iterator[Releases]:
    folder = tmp_path / "releases"
    (folder / VERSION).mkdir(parents=True)

    class Handler(http.server.SimpleHTTPRequestHandler):
        def __init__(self, *arguments: t.Any) -> None:
            super().__init__(*arguments, directory=str(folder))

        def log_message(self, *_: t.Any) -> None:
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield Releases(f"http://127.0.0.1:{server.server_port}", folder)
        server.shutdown()
        thread.join()


class Scripted(t.NamedTuple):
    code: int
    errors: list[str]
    outputs: dict[str, str]


@pytest.fixture
def action(tmp_path: pathlib.Path) -> pathlib.Path:
    """A checkout of the action whose files a test may change."""
    folder = tmp_path / "checkout"
    shutil.copytree(TOP / "action", folder / "action")
    return folder


def get(action: pathlib.Path, tmp_path: pathlib.Path, *, path: str = "", **given: str) -> Scripted:
    output = tmp_path / "output"
    output.write_text("", encoding="utf-8")
    temp = tmp_path / "runner temp"
    temp.mkdir(exist_ok=True)
    environment = {
        "PATH": path or os.environ["PATH"],
        "GITHUB_ACTION_PATH": str(action),
        "GITHUB_OUTPUT": str(output),
        "RUNNER_TEMP": str(temp),
        "INPUT_POLICIES": "",
        "INPUT_KYVERNO": "",
        "INPUT_KYVERNO_RELEASES": "",
        **given,
    }
    done = subprocess.run(
        [str(action / "action" / "get-kyverno.sh")],
        env=environment,
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    found = [command.data for command in obeyed(done.stdout) if command.name == "error"]
    return Scripted(done.returncode, found, outputs(output.read_text(encoding="utf-8")))


def release(releases: Releases, action: pathlib.Path, program: str) -> None:
    """Makes a release with ``program`` in it, and pins it."""
    file = releases.folder / "kyverno"
    file.write_text(program, encoding="utf-8")
    file.chmod(0o755)
    archive = releases.folder / VERSION / ARCHIVE
    with tarfile.open(archive, "w:gz") as stream:
        stream.add(file, "kyverno")
    sums = action / "action" / "kyverno.sha256"
    digest = hashlib.sha256(archive.read_bytes()).hexdigest()
    sums.write_text(re.sub(f"[0-9a-f]{{64}}  {re.escape(ARCHIVE)}", f"{digest}  {ARCHIVE}", sums.read_text()))


needs_x86 = pytest.mark.skipif(os.uname().machine != "x86_64", reason="the releases of this test are for x86-64")


@needs_x86
def test_the_release_with_the_pinned_digest_is_unpacked(
    action: pathlib.Path, releases: Releases, tmp_path: pathlib.Path
) -> None:
    release(releases, action, "#!/bin/sh\necho I am Kyverno\n")

    done = get(action, tmp_path, INPUT_KYVERNO_RELEASES=f"{releases.address}/")

    assert (done.code, done.errors) == (0, [])
    assert (
        subprocess.run([done.outputs["program"]], capture_output=True, text=True, check=True).stdout == "I am Kyverno\n"
    )


@needs_x86
def test_what_has_another_digest_is_never_run(action: pathlib.Path, releases: Releases, tmp_path: pathlib.Path) -> None:
    release(releases, action, "#!/bin/sh\n")
    shutil.copy2(TOP / "action" / "kyverno.sha256", action / "action" / "kyverno.sha256")

    done = get(action, tmp_path, INPUT_KYVERNO_RELEASES=releases.address)

    assert (done.code, done.outputs) == (1, {})
    assert re.fullmatch(
        f"what was downloaded for Kyverno {VERSION} has the digest [0-9a-f]{{64}} and not [0-9a-f]{{64}} — it is not"
        " that release",
        done.errors[0],
    )


def test_a_release_that_cannot_be_had_is_said(action: pathlib.Path, releases: Releases, tmp_path: pathlib.Path) -> None:
    done = get(action, tmp_path, INPUT_KYVERNO_RELEASES=releases.address)

    assert (done.code, done.outputs) == (1, {})
    assert done.errors[0].startswith(f"Kyverno {VERSION} cannot be downloaded — ")


def test_a_program_of_ones_own_is_taken_and_nothing_is_downloaded(action: pathlib.Path, tmp_path: pathlib.Path) -> None:
    done = get(action, tmp_path, INPUT_KYVERNO="/opt/kyverno", INPUT_KYVERNO_RELEASES="http://127.0.0.1:9")

    assert (done.code, done.outputs) == (0, {"program": "/opt/kyverno"})


def test_without_policies_there_is_no_need_of_kyverno(action: pathlib.Path, tmp_path: pathlib.Path) -> None:
    assert get(action, tmp_path, INPUT_POLICIES="none", INPUT_KYVERNO="x") == Scripted(0, [], {})


def test_the_pinned_releases_are_of_one_version_and_the_one_that_is_tested() -> None:
    lines = (TOP / "action" / "kyverno.sha256").read_text(encoding="utf-8").splitlines()
    found = [re.fullmatch(r"[0-9a-f]{64}  kyverno-cli_v([\d.]+)_(\w+)\.tar\.gz", line) for line in lines]

    assert sorted(match[2] for match in found if match) == [
        "darwin_arm64",
        "darwin_x86_64",
        "linux_arm64",
        "linux_x86_64",
    ]
    tested = re.search(
        '^_KYVERNO = "(.*)"$', (TOP / "tests/tools/programs.py").read_text(encoding="utf-8"), re.MULTILINE
    )
    assert tested is not None
    assert {match[1] for match in found if match} == {tested[1]}


def install(tmp_path: pathlib.Path, path: str) -> tuple[int, str]:
    output = tmp_path / "output"
    done = subprocess.run(
        [str(TOP / "action" / "install.sh")],
        env={"PATH": path, "GITHUB_ACTION_PATH": str(TOP), "GITHUB_OUTPUT": str(output), "RUNNER_TEMP": str(tmp_path)},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    return done.returncode, done.stdout


def test_a_runner_without_a_python_that_is_new_enough_is_told_what_to_do(tmp_path: pathlib.Path) -> None:
    programs = tmp_path / "bin"
    programs.mkdir()
    for name in ("bash", "env", "cmp"):
        found = shutil.which(name)
        assert found
        (programs / name).symlink_to(found)
    old = programs / "python3"
    old.write_text("#!/bin/sh\nexit 1\n", encoding="utf-8")
    old.chmod(0o755)

    code, printed = install(tmp_path, str(programs))

    (error,) = obeyed(printed)
    assert (code, error.name) == (1, "error")
    assert error.data == (
        "there is no Python 3.11 or newer with the module venv — put actions/setup-python before this step"
    )
