"""``render`` writes a whole folder or leaves it as it was, and touches nothing in it but its own files."""

from __future__ import annotations

import contextlib
import os
import pathlib
import resource
import signal
import subprocess
import sys
import tempfile
import time
import typing as t

import pytest

from htrflow_campaigns import cli, delivery, load, render, tree
from tests.cmp_plugin.rendered import EXAMPLE

if t.TYPE_CHECKING:
    from tests.cmp_plugin.conftest import Repo

Snapshot = dict[str, tuple[int, bytes | str | None]]

_OTHER = "pipeline: demo-v1\nvolumes: [{id: A1, manifest: https://example.org/a1}]\n"


def _snapshot(folder: pathlib.Path) -> Snapshot:
    """Everything below a folder: times, and what is in files and behind links."""
    found: Snapshot = {}
    for path in sorted(folder.rglob("*")):
        content = str(path.readlink()) if path.is_symlink() else path.read_bytes() if path.is_file() else None
        found[path.relative_to(folder).as_posix()] = (0 if content is None else path.lstat().st_mtime_ns, content)
    return found


@pytest.fixture
def out(tmp_path: pathlib.Path) -> pathlib.Path:
    return tmp_path / "out"


def _extend(campaign: pathlib.Path) -> None:
    """Adds a volume to a campaign, so that its rendered file would change."""
    campaign.write_text(campaign.read_text() + "  - R0001204\n")


def _render(repo: Repo, out: pathlib.Path) -> str:
    done = repo.run("render", "--out", str(out))
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


def _fails(repo: Repo, out: pathlib.Path, code: int = 1) -> str:
    done = repo.run("render", "--out", str(out))
    assert (done.returncode, done.stdout) == (code, "")
    return done.stderr


def test_a_render_writes_one_file_for_each_file(repo: Repo, out: pathlib.Path) -> None:
    assert (
        _render(repo, out)
        == f"wrote campaigns/letters.yaml\nwrote pipelines/demo-v1.yaml\n2 files in {out}, 0 unchanged\n"
    )
    assert [path for path, (_, content) in _snapshot(out).items() if content] == [
        "campaigns/letters.yaml",
        "pipelines/demo-v1.yaml",
    ]


def test_rendered_files_can_be_read_by_everybody_and_have_no_stray_neighbours(repo: Repo, out: pathlib.Path) -> None:
    _render(repo, out)
    umask = os.umask(0)
    os.umask(umask)
    assert {file.stat().st_mode & 0o777 for file in out.rglob("*.yaml")} == {0o666 & ~umask}
    assert sorted(path.name for path in out.iterdir()) == ["campaigns", "pipelines"]


def test_a_second_render_changes_nothing(repo: Repo, out: pathlib.Path) -> None:
    _render(repo, out)
    before = _snapshot(out)
    assert _render(repo, out) == f"2 files in {out}, 2 unchanged\n"
    assert _snapshot(out) == before


def test_only_changed_files_are_written(repo: Repo, out: pathlib.Path) -> None:
    repo.write("campaigns/other.yaml", _OTHER)
    _render(repo, out)
    before = _snapshot(out)
    repo.write("campaigns/other.yaml", _OTHER.replace("a1", "a2"))
    assert _render(repo, out) == f"wrote campaigns/other.yaml\n3 files in {out}, 2 unchanged\n"
    assert {path for path, found in _snapshot(out).items() if found != before[path]} == {"campaigns/other.yaml"}


def test_what_has_no_source_any_longer_is_removed(repo: Repo, out: pathlib.Path) -> None:
    repo.write("campaigns/other.yaml", _OTHER)
    repo.write("pipelines/demo-v2.yaml", (repo.path / "pipelines/demo-v1.yaml").read_bytes())
    _render(repo, out)
    (repo.path / "campaigns/other.yaml").unlink()
    (repo.path / "pipelines/demo-v2.yaml").unlink()
    assert _render(repo, out) == (
        f"removed campaigns/other.yaml\nremoved pipelines/demo-v2.yaml\n2 files in {out}, 2 unchanged\n"
    )
    assert sorted(file.name for file in out.rglob("*.yaml")) == ["demo-v1.yaml", "letters.yaml"]


def test_nothing_else_in_the_folder_is_touched(repo: Repo, out: pathlib.Path, tmp_path: pathlib.Path) -> None:
    _render(repo, out)
    ours = (out / "campaigns/letters.yaml").read_text()
    foreign = {
        "README.md": "# Rendered\n",
        "kustomization.yaml": "resources: []\n",
        "campaigns/README.md": ours,
        "campaigns/by-hand.yaml": "kind: ConfigMap\nmetadata:\n  labels:\n    app: other\n",
        "campaigns/said-in-a-comment.yaml": "# htrflow.riksarkivet.se/managed-by: converter\nkind: ConfigMap\n",
        "campaigns/old.yml": ours,
        "campaigns/deeper/old.yaml": ours,
        "campaigns/empty.yaml": "",
        "campaigns/not-utf-8.yaml": "\xff",
        "elsewhere/campaigns/old.yaml": ours,
        "status/old.yaml": ours,
        ".hidden/old.yaml": ours,
    }
    for path, content in foreign.items():
        (out / path).parent.mkdir(parents=True, exist_ok=True)
        (out / path).write_bytes(content.encode("latin-1"))
    (tmp_path / "elsewhere.yaml").write_text(ours)
    (out / "campaigns/linked.yaml").symlink_to(tmp_path / "elsewhere.yaml")
    (out / "campaigns/folder.yaml").mkdir()
    before = _snapshot(tmp_path)
    assert _render(repo, out) == f"2 files in {out}, 2 unchanged\n"
    assert _snapshot(tmp_path) == before


@pytest.mark.parametrize(
    ("path", "content"),
    [
        ("campaigns/zzz.yaml", "pipeline: demo-v1\nvolumes: []\n"),
        ("campaigns/zzz.yaml", "pipeline: [\n"),
        ("campaigns/zzz.yaml", b"\xff"),
        ("pipelines/demo-v1.yaml", "steps: []\n"),
        ("converter.yaml", "window: 0\n"),
    ],
)
def test_a_bad_repo_changes_nothing(repo: Repo, out: pathlib.Path, path: str, content: str | bytes) -> None:
    _render(repo, out)
    before = _snapshot(out)
    _extend(repo.path / "campaigns/letters.yaml")
    repo.write("campaigns/more.yaml", _OTHER)
    repo.write(path, content)
    assert path in _fails(repo, out)
    assert _snapshot(out) == before


def test_a_bad_repo_leaves_no_new_folder_behind(repo: Repo, out: pathlib.Path) -> None:
    repo.write("campaigns/zzz.yaml", "volumes: []\n")
    _fails(repo, out / "deeper")
    assert not out.exists()


def test_a_target_that_is_a_folder_changes_nothing(repo: Repo, out: pathlib.Path) -> None:
    _render(repo, out)
    (out / "pipelines/demo-v1.yaml").unlink()
    (out / "pipelines/demo-v1.yaml").mkdir()
    _extend(repo.path / "campaigns/letters.yaml")
    before = _snapshot(out)
    assert "pipelines/demo-v1.yaml cannot be written" in _fails(repo, out, 2)
    assert _snapshot(out) == before


@pytest.mark.parametrize("name", ["campaigns", "pipelines"])
def test_a_folder_that_is_a_file_or_a_link_changes_nothing(
    repo: Repo, out: pathlib.Path, tmp_path: pathlib.Path, name: str
) -> None:
    out.mkdir()
    (out / name).write_text("")
    before = _snapshot(out)
    assert f"{name} cannot be written" in _fails(repo, out, 2)
    assert _snapshot(out) == before
    (out / name).unlink()
    (tmp_path / "elsewhere").mkdir()
    (out / name).symlink_to(tmp_path / "elsewhere")
    before = _snapshot(tmp_path)
    assert f"{name} cannot be written" in _fails(repo, out, 2)
    assert _snapshot(tmp_path) == before


def test_a_disk_that_is_full_changes_nothing(repo: Repo, out: pathlib.Path) -> None:
    _render(repo, out)
    _extend(repo.path / "campaigns/letters.yaml")
    repo.write("campaigns/zzz.yaml", "pipeline: demo-v1\nvolumes:\n" + "".join(f"  - R{n}\n" for n in range(1000)))
    before = _snapshot(out)
    done = subprocess.run(
        [sys.executable, "-m", "htrflow_campaigns", "render", str(repo.path), "--out", str(out)],
        # A file that grows past its limit is refused in the same place as one that the disk has no room for.
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, 20_000)),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (done.returncode, done.stdout) == (2, "")
    assert "cannot be written (File too large)" in done.stderr
    assert _snapshot(out) == before


@contextlib.contextmanager
def _without_privileges() -> t.Iterator[pathlib.Path]:
    """A new folder, in a process that may not write everywhere: root gives its rights away for the while."""
    with tempfile.TemporaryDirectory() as folder:
        was_root = os.geteuid() == 0
        if was_root:
            os.chown(folder, 65534, 65534)
            os.seteuid(65534)
        try:
            yield pathlib.Path(folder)
        finally:
            if was_root:
                os.seteuid(0)


def test_a_file_that_cannot_be_replaced_has_the_files_before_it_put_back() -> None:
    with _without_privileges() as top:
        repo, out = top / "repo", top / "out"
        for file in EXAMPLE.rglob("*.yaml"):
            (repo / file.relative_to(EXAMPLE)).parent.mkdir(parents=True, exist_ok=True)
            (repo / file.relative_to(EXAMPLE)).write_bytes(file.read_bytes())
        (repo / "campaigns/removed.yaml").write_text(_OTHER)
        assert cli.main(["render", str(repo), "--out", str(out)]) == 0
        (repo / "campaigns/removed.yaml").unlink()
        (repo / "campaigns/new.yaml").write_text(_OTHER)
        pipeline = repo / "pipelines/demo-v1.yaml"
        pipeline.write_text(pipeline.read_text().replace("0123456789abcdef", "fedcba9876543210"))
        before = _snapshot(out)
        (out / "pipelines").chmod(0o555)
        # Campaigns are written before the pipeline that fails.
        loaded = load.load(tree.from_folder(repo))
        with pytest.raises(PermissionError):
            render.render(loaded, delivery.Apply(), out)
        (out / "pipelines").chmod(0o755)
        assert _snapshot(out) == before


@pytest.mark.parametrize("below", ["", "campaigns", "pipelines", "campaigns/rendered", "pipelines/a/b"])
def test_the_sources_are_no_place_to_write_to(repo: Repo, below: str) -> None:
    before = _snapshot(repo.path)
    assert "write into another folder" in _fails(repo, repo.path / below, 2)
    assert _snapshot(repo.path) == before


@pytest.mark.parametrize("name", ["campaigns", "pipelines"])
def test_a_folder_is_no_place_when_the_sources_would_be_written_over(
    repo: Repo, tmp_path: pathlib.Path, name: str
) -> None:
    repo.path = repo.path.rename(tmp_path / name)
    repo.write("pipelines/converter.yaml", (repo.path / "pipelines/demo-v1.yaml").read_bytes())
    repo.write("campaigns/converter.yaml", _OTHER)
    before = _snapshot(tmp_path)
    assert "write into another folder" in _fails(repo, tmp_path, 2)
    assert _snapshot(tmp_path) == before


@pytest.mark.parametrize("below", ["rendered", "a/b/c", "campaigns-rendered"])
def test_the_folder_may_lie_in_the_repo(repo: Repo, below: str) -> None:
    _render(repo, repo.path / below)
    before = _snapshot(repo.path)
    assert _render(repo, repo.path / below) == f"2 files in {repo.path / below}, 2 unchanged\n"
    assert _snapshot(repo.path) == before


def test_what_a_killed_render_left_is_cleared_away_by_the_next(repo: Repo, out: pathlib.Path) -> None:
    for number in range(60):
        repo.write(f"campaigns/c{number}.yaml", _OTHER)
    out.mkdir()
    command = [sys.executable, "-m", "htrflow_campaigns", "render", str(repo.path), "--out", str(out)]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL) as process:
        while not [*out.glob(".rendering-*/campaigns/c1.yaml")]:
            assert process.poll() is None
            time.sleep(0.001)
        process.send_signal(signal.SIGKILL)
    assert process.returncode == -signal.SIGKILL
    assert [path.name.rpartition("-")[0] for path in out.iterdir()] == [".rendering"]
    _render(repo, out)
    assert sorted(path.name for path in out.iterdir()) == ["campaigns", "pipelines"]
    assert len([*out.rglob("*.yaml")]) == 62


def test_two_renders_at_once_do_not_disturb_each_other(repo: Repo, out: pathlib.Path) -> None:
    for number in range(12):
        repo.write(f"campaigns/c{number}.yaml", _OTHER)
    command = [sys.executable, "-m", "htrflow_campaigns", "render", str(repo.path), "--out", str(out)]
    processes = [subprocess.Popen(command, stdout=subprocess.DEVNULL) for _ in range(4)]
    assert [process.wait(60) for process in processes] == [0, 0, 0, 0]
    assert len([*out.rglob("*.yaml")]) == 14
    assert sorted(path.name for path in out.iterdir()) == ["campaigns", "pipelines"]
