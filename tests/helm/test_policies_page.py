"""The page on the policies: its commands print what it shows, and it leaves no policy out."""

from __future__ import annotations

import os
import pathlib
import re
import subprocess
import sys
import typing as t

import pytest

from tests.helm import policy_files
from tests.helm.chart import TOP

#: They take long together.
pytestmark = pytest.mark.slow

Tool = t.Callable[[str], pathlib.Path]

_PAGE = TOP / "docs" / "policies.md"
_BLOCK = re.compile(r"<!-- commands: policies -->\n\n```console\n(.*?)```", re.DOTALL)


def test_the_commands_of_the_page_print_what_it_shows(tool: Tool, tmp_path: pathlib.Path) -> None:
    folders = (tool("kyverno").parent, pathlib.Path(sys.executable).parent)
    environment = {**os.environ, "PATH": os.pathsep.join([*map(str, folders), os.environ.get("PATH", os.defpath)])}
    blocks = _BLOCK.findall(_PAGE.read_text(encoding="utf-8"))
    assert len(blocks) == 2

    for block in blocks:
        printed = []
        for command in re.findall(r"^\$ (.*)$", block, re.MULTILINE):
            done = subprocess.run(
                ["/bin/sh", "-c", command.replace("/tmp/", f"{tmp_path}/")],
                cwd=TOP,
                env=environment,
                capture_output=True,
                text=True,
                check=False,
                timeout=120,
            )
            assert done.returncode == 0, done.stderr
            printed += [f"$ {command}", *filter(None, map(str.rstrip, done.stdout.splitlines()))]
        assert printed == block.splitlines()


def test_the_page_has_a_row_for_every_policy() -> None:
    rows = re.findall(r"^\| `htr-([a-z-]+)` \|", _PAGE.read_text(encoding="utf-8"), re.MULTILINE)

    assert sorted(rows) == sorted([*policy_files.NAMES, "apply-identity", "image-signatures"])


def test_the_messages_on_the_page_are_those_of_the_policies() -> None:
    said = (TOP / "tests" / "helm" / "__snapshots__" / "test_policies.ambr").read_text(encoding="utf-8")
    shown = re.findall(r"^((?:image|model|processor|setting|a Job).* — .*)$", _PAGE.read_text(encoding="utf-8"), re.M)

    assert len(shown) == 6
    for message in shown:
        what, _, instead = message.partition(" — ")
        assert what.partition(": ")[0] in said
        assert instead.replace("docker.io/riksarkivet", "") in said
