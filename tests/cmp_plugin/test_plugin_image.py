"""The image of the plugin, as far as it can be checked without building it."""

from __future__ import annotations

import pathlib
import re
import subprocess
import sys

from tests.cmp_plugin.plugin_server import sandbox

DOCKERFILE = sandbox.TOP / "cmp-plugin" / "Dockerfile"


def instructions() -> list[tuple[str, str]]:
    text = re.sub(r"^#.*\n", "", DOCKERFILE.read_text("utf-8"), flags=re.MULTILINE).replace("\\\n", " ")
    return [(name, rest) for name, _, rest in (line.partition(" ") for line in text.splitlines() if line)]


def test_the_dockerfile_has_no_lint() -> None:
    result = subprocess.run(
        [pathlib.Path(sys.executable).parent / "hadolint", DOCKERFILE], capture_output=True, text=True, check=False
    )
    assert (result.returncode, result.stdout, result.stderr) == (0, "", "")


def copied() -> list[str]:
    """What the Dockerfile copies from the repo."""
    copies = [rest for name, rest in instructions() if name == "COPY" and "--from" not in rest]
    return [source for rest in copies for source in rest.split()[:-1]]


def test_everything_that_the_dockerfile_copies_is_in_the_repo() -> None:
    assert {"requirements", "cmp-plugin/plugin.yaml"} <= {*copied()}
    assert all((sandbox.TOP / source).exists() for source in copied())


def test_the_image_runs_argo_cds_server_as_uid_999_and_writes_no_byte_code() -> None:
    last = instructions()[[name for name, _ in instructions()].index("FROM", 2) :]
    assert ("ENTRYPOINT", '["/var/run/argocd/argocd-cmp-server"]') in last
    assert ("USER", "999:999") in last
    assert ("COPY", "cmp-plugin/plugin.yaml /home/argocd/cmp-server/config/plugin.yaml") in last
    (environment,) = (rest for name, rest in last if name == "ENV")
    assert "PYTHONDONTWRITEBYTECODE=1" in environment.split()


def test_the_image_holds_only_what_is_locked() -> None:
    runs = " && ".join(rest for name, rest in instructions() if name == "RUN")
    installs = re.findall(r"install (.*?)(?:&&|$)", runs.replace(" uninstall ", " remove "))
    assert len(installs) == 2
    assert "--require-hashes --requirement requirements/converter.lock" in installs[0]
    assert "--no-deps --build-constraint requirements/dev.lock ." in installs[1]


def test_the_build_is_sent_no_more_than_the_image_needs() -> None:
    lines = DOCKERFILE.with_name("Dockerfile.dockerignore").read_text("utf-8").splitlines()
    assert lines[1] == "*"
    sent = {line.removeprefix("!").removesuffix("/*.lock") for line in lines if line.startswith("!")}
    assert sent == {*copied()}
