"""The command that gets the programs, and its cache."""

from __future__ import annotations

import os
import pathlib
import re
import shutil
import subprocess
import sys
import time

import pytest

from tests.testbed.plugin.skipping import give_up
from tests.tools import PROGRAMS, Program
from tests.tools.cache import owner
from tests.tools.sources import Go

ROOT = pathlib.Path(__file__).parents[2]
_MODULES = [pytest.param(program, id=program.name) for program in PROGRAMS if isinstance(program.source, Go)]


def _tools(cache: pathlib.Path, *arguments: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "tests.tools", *arguments],
        cwd=ROOT,
        env={**os.environ, "XDG_CACHE_HOME": str(cache)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


@pytest.fixture
def npm() -> None:
    if shutil.which("npm") is None:
        give_up("npm is not installed: it gets some of the programs")


@pytest.mark.usefixtures("npm")
def test_a_program_is_got_once_and_found_the_second_time(tmp_path: pathlib.Path) -> None:
    first, _ = _tools(tmp_path, "axe-core").communicate(timeout=120)
    started = time.monotonic()
    second, _ = _tools(tmp_path, "axe-core").communicate(timeout=120)

    (folder,) = (tmp_path / "htrflow-campaigns/tools").glob("axe-core-*")
    assert re.search(rf"^axe-core +4\.14\.1 +\d+ +\d+  {folder}$", first, re.MULTILINE)
    assert re.search(rf"^axe-core +4\.14\.1 +- +-  {folder}$", second, re.MULTILINE)
    assert time.monotonic() - started < 10
    assert (folder / "share/axe.min.js").is_file()


@pytest.mark.usefixtures("npm")
def test_two_processes_that_want_a_program_get_it_once(tmp_path: pathlib.Path) -> None:
    runs = [_tools(tmp_path, "cel-js") for _ in range(2)]
    tables = [run.communicate(timeout=120)[0] for run in runs]

    assert [run.returncode for run in runs] == [0, 0]
    fresh = [bool(re.search(r"^cel-js +8\.0\.0 +\d", table, re.MULTILINE)) for table in tables]
    assert sorted(fresh) == [False, True]


def test_a_program_that_is_asked_for_by_name_is_got_if_it_is_missing(tmp_path: pathlib.Path) -> None:
    script = "from tests import tools; print(tools.get('helm'))"
    variables = {**os.environ, "XDG_CACHE_HOME": str(tmp_path)}

    done = subprocess.run(
        [sys.executable, "-c", script], cwd=ROOT, env=variables, capture_output=True, text=True, check=True
    )

    version = subprocess.run([done.stdout.strip(), "version", "--short"], capture_output=True, text=True, check=True)
    assert version.stdout.startswith(f"v{owner('helm').version_of('helm')}+")


def test_what_is_missing_is_listed_and_makes_the_command_fail(tmp_path: pathlib.Path) -> None:
    run = _tools(tmp_path, "--list", "helm-and-kubectl", "kueue")
    table, _ = run.communicate(timeout=60)

    assert re.findall(r"^(\S+) .* missing$", table, re.MULTILINE) == ["helm-and-kubectl", "kueue"]
    assert run.returncode == 1


def test_a_program_that_cannot_be_had_is_said_with_the_command_and_its_answer(tmp_path: pathlib.Path) -> None:
    script = """\
import pathlib, sys
from tests.tools import PROGRAMS, Program, cache
from tests.tools.sources import Npm, RefusedError
for source, version in ((Npm("axe-core", "sha512-other"), "4.14.1"), (Npm("axe-core", ""), "0.0.0-none")):
    try:
        cache.install(Program("wrong", version, source))
    except RefusedError as refusal:
        print(refusal)
"""
    done = subprocess.run(
        [sys.executable, "-c", script],
        cwd=ROOT,
        env={**os.environ, "XDG_CACHE_HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )

    assert "axe-core@4.14.1 has the digest sha512-" in done.stdout
    assert "which is not the pinned one" in done.stdout
    assert re.search(r"npm pack .* axe-core@0\.0\.0-none: exit code 1\n", done.stdout)
    left = [path.name for path in (tmp_path / "htrflow-campaigns/tools").iterdir()]
    assert [name for name in left if not name.endswith(".lock")] == []


def test_a_name_that_is_no_programs_is_wrong_usage(tmp_path: pathlib.Path) -> None:
    run = _tools(tmp_path, "kube")
    _, said = run.communicate(timeout=60)

    assert run.returncode == 2
    assert "there is no kube; there are helm-and-kubectl, etcd, kubernetes, kueue," in said


@pytest.mark.parametrize("program", _MODULES)
def test_the_module_of_a_program_pins_the_version_that_the_list_says(program: Program) -> None:
    assert isinstance(program.source, Go)
    text = (ROOT / "tests/tools/go" / program.source.module / "go.mod").read_text(encoding="utf-8")
    required = dict(re.findall(r"^\t(\S+) (v\S+)(?: // indirect)?$", text, re.MULTILINE))

    for package in program.source.packages.values():
        module = max((name for name in required if f"{package}/".startswith(f"{name}/")), key=len)
        assert required[module] == f"v{program.version}"


def test_all_parts_of_kubernetes_have_one_version() -> None:
    text = (ROOT / "tests/tools/go/kubernetes/go.mod").read_text(encoding="utf-8")
    replaced = re.findall(r"^\t(k8s\.io/\S+) => (\S+) v0\.(\S+)$", text, re.MULTILINE)
    (version,) = (program.version for program in PROGRAMS if program.name == "kubernetes")

    assert len(replaced) > 25
    assert {(name == target, f"1.{minor}") for name, target, minor in replaced} == {(True, version)}
    unpinned = set(re.findall(r"^\t(k8s\.io/\S+) v0\.0\.0(?: // indirect)?$", text, re.MULTILINE))
    assert unpinned <= {name for name, _, _ in replaced}
