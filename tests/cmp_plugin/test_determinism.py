"""The same files give the same bytes: on every machine, in every locale, at any time and from any folder."""

from __future__ import annotations

import os
import pathlib
import shutil
import subprocess
import sys
import typing as t

import pytest

from tests.cmp_plugin.rendered import FEATURES

_BASE = {"PATH": os.environ["PATH"], "PYTHONPATH": os.pathsep.join(sys.path)}
#: Python with the locale's own encoding, which is ASCII in the last of them.
_PLAIN = {"PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
ENVIRONMENTS: dict[str, dict[str, str]] = {
    **{f"hash-seed-{seed}": {"PYTHONHASHSEED": seed} for seed in ("0", "1", "4294967295", "random")},
    **{f"lc-all-{name}": {"LC_ALL": name} for name in ("C", "C.UTF-8", "POSIX", "sv_SE.UTF-8", "tr_TR.UTF-8")},
    **{f"lang-{name}": {"LANG": name} for name in ("C", "C.UTF-8", "sv_SE.UTF-8")},
    "ascii": {"LC_ALL": "POSIX", **_PLAIN},
    **{f"tz-{zone}": {"TZ": zone} for zone in ("UTC", "Pacific/Kiritimati", "America/St_Johns", "Nonsense/Zone")},
    "argocd": {
        "ARGOCD_APP_NAME": "campaigns",
        "ARGOCD_APP_NAMESPACE": "elsewhere",
        "ARGOCD_APP_PARAMETERS": '[{"name": "namespace", "string": "elsewhere"}]',
        "ARGOCD_APP_REVISION": "0123456789abcdef0123456789abcdef01234567",
        "ARGOCD_APP_REVISION_SHORT": "0123456",
        "ARGOCD_ENV_NAMESPACE": "elsewhere",
        "KUBE_API_VERSIONS": "batch/v1,v1",
        "KUBE_VERSION": "1.37.0",
        "PARAM_NAMESPACE": "elsewhere",
    },
    "another-user": {"HOME": "/nonexistent", "USER": "argocd", "HOSTNAME": "repo-server-0", "SOURCE_DATE_EPOCH": "0"},
    "no-terminal": {"TERM": "dumb", "COLUMNS": "20", "NO_COLOR": "1", "CI": "true"},
}


def _run(*arguments: str, cwd: pathlib.Path, environment: t.Mapping[str, str] | None = None) -> bytes:
    done = subprocess.run(
        [sys.executable, "-m", "htrflow_campaigns", *arguments],
        cwd=cwd,
        env={**_BASE, **(environment or {})},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=60,
        check=True,
    )
    assert done.stderr == b""
    return done.stdout


def _content(folder: pathlib.Path) -> dict[str, bytes]:
    return {file.relative_to(folder).as_posix(): file.read_bytes() for file in folder.rglob("*") if file.is_file()}


def _both(
    repo: str, out: pathlib.Path, cwd: pathlib.Path, environment: t.Mapping[str, str] | None = None
) -> tuple[bytes, dict[str, bytes]]:
    """What ``generate`` prints and ``render`` writes."""
    lines = _run("generate", repo, cwd=cwd, environment=environment)
    _run("render", repo, "--out", str(out), cwd=cwd, environment=environment)
    return lines, _content(out)


@pytest.fixture(scope="module")
def expected(tmp_path_factory: pytest.TempPathFactory) -> tuple[bytes, dict[str, bytes]]:
    folder = tmp_path_factory.mktemp("expected")
    lines, files = _both(str(FEATURES), folder / "out", folder)
    assert lines.count(b"\n") == 12
    assert len(files) == 6
    return lines, files


@pytest.mark.parametrize("environment", ENVIRONMENTS.values(), ids=ENVIRONMENTS)
def test_the_environment_changes_no_byte(
    environment: dict[str, str], expected: tuple[bytes, dict[str, bytes]], tmp_path: pathlib.Path
) -> None:
    assert _both(str(FEATURES), tmp_path / "out", tmp_path, environment) == expected


def test_the_working_directory_changes_no_byte(
    expected: tuple[bytes, dict[str, bytes]], tmp_path: pathlib.Path
) -> None:
    assert _both(".", tmp_path / "1", FEATURES) == expected
    assert _both("../features/", tmp_path / "2", FEATURES / "campaigns" / "..") == expected
    assert _both(str(FEATURES), tmp_path / "3", pathlib.Path("/")) == expected
    (tmp_path / "link").symlink_to(FEATURES)
    assert _both("link", tmp_path / "4", tmp_path) == expected
    assert _run("generate", cwd=FEATURES) == expected[0]


def _copy(to: pathlib.Path, *, backwards: bool) -> pathlib.Path:
    for folder in sorted(("campaigns", "pipelines"), reverse=backwards):
        (to / folder).mkdir(parents=True)
    for file in sorted((file for file in FEATURES.rglob("*.y*ml")), reverse=backwards):
        (to / file.relative_to(FEATURES)).write_bytes(file.read_bytes())
    return to


def test_the_order_in_which_files_were_made_changes_no_byte(
    expected: tuple[bytes, dict[str, bytes]], tmp_path: pathlib.Path
) -> None:
    for backwards in (False, True):
        repo = _copy(tmp_path / f"backwards-{backwards}", backwards=backwards)
        assert _both(str(repo), tmp_path / f"out-{backwards}", tmp_path) == expected


def test_names_times_and_modes_of_the_files_change_no_byte(
    expected: tuple[bytes, dict[str, bytes]], tmp_path: pathlib.Path
) -> None:
    repo = tmp_path / "räkenskaper 'och' brev"
    shutil.copytree(FEATURES, repo)
    for number, file in enumerate(sorted(repo.rglob("*.y*ml"))):
        file.chmod(0o400 if number % 2 else 0o666)
        os.utime(file, (number, 4_000_000_000 + number))
    assert _both(str(repo), tmp_path / "out", tmp_path) == expected


def test_other_files_beside_the_campaigns_change_no_byte(
    expected: tuple[bytes, dict[str, bytes]], tmp_path: pathlib.Path
) -> None:
    repo = tmp_path / "repo"
    shutil.copytree(FEATURES, repo)
    (repo / ".git").mkdir()
    (repo / ".git" / "HEAD").write_text("ref: refs/heads/main\n")
    (repo / "README.md").write_text("# Campaigns\n")
    (repo / "campaigns" / "README.md").write_text("# Campaigns\n")
    (repo / "rendered" / "campaigns").mkdir(parents=True)
    (repo / "rendered" / "campaigns" / "old.yaml").write_text("{}\n")
    assert _both(str(repo), tmp_path / "out", tmp_path) == expected


def test_two_runs_give_the_same_bytes_and_the_second_writes_nothing(tmp_path: pathlib.Path) -> None:
    out = tmp_path / "out"
    first = _both(str(FEATURES), out, tmp_path)
    stats = {file: (file.stat().st_mtime_ns, file.stat().st_ino) for file in out.rglob("*")}
    assert _both(str(FEATURES), out, tmp_path) == first
    assert {file: (file.stat().st_mtime_ns, file.stat().st_ino) for file in out.rglob("*") if file.is_file()} == {
        file: stat for file, stat in stats.items() if file.is_file()
    }
