"""Pairs of a campaigns repo before and after a change, and the plan of each.

``cases/<case>/base/`` and ``head/`` hold the files that differ from the good repo of the fixture ``repo``. Beside them
may lie ``DELETE``, paths to delete in the head, and ``ARGUMENTS``, options of ``plan``; with an empty line there, also
``--base`` is left out. ``expected.md`` and ``expected.json`` are the plan.
"""

from __future__ import annotations

import gc
import json
import pathlib
import shlex
import shutil
import subprocess
import typing as t

import jsonschema

from htrflow_campaigns import __version__, cli, schemas

if t.TYPE_CHECKING:
    import pytest

    from tests.cmp_plugin.conftest import Repo

CASES = pathlib.Path(__file__).parent / "cases"
SCHEMA = json.loads(schemas.path("plan").read_text("utf-8"))


def commit(folder: pathlib.Path) -> None:
    """Commits everything in ``folder``, which becomes a git repository if it is none."""
    identity = ["-c", "user.name=Anna", "-c", "user.email=anna@example.org", "-c", "commit.gpgsign=false"]
    for arguments in (["init", "--quiet"], ["add", "--all", "."], ["commit", "--quiet", "--message=letters"]):
        subprocess.run(["git", "-C", str(folder), *identity, *arguments], check=True, capture_output=True)


def set_up(case: str, repo: Repo, settings: str = "") -> list[str]:
    """Makes ``repo`` the one of a case, and gives the arguments of ``plan``. ``settings`` end each converter.yaml."""
    folder, converter = CASES / case, repo.path / "converter.yaml"
    lay_over(folder / "base", repo.path)
    repo.write("converter.yaml", converter.read_text("utf-8") + settings)
    commit(repo.path)
    lay_over(folder / "head", repo.path)
    if (folder / "head/converter.yaml").exists():
        repo.write("converter.yaml", converter.read_text("utf-8") + settings)
    if (deleted := folder / "DELETE").exists():
        for path in deleted.read_text("utf-8").split():
            (repo.path / path).unlink()
    if not (written := folder / "ARGUMENTS").exists():
        return ["--base=HEAD"]
    arguments = shlex.split(written.read_text("utf-8"))
    return ["--base=HEAD", *arguments] if arguments else []


def lay_over(folder: pathlib.Path, repo: pathlib.Path) -> None:
    """Copies what is in ``folder``, if it is there, into a repo."""
    if folder.exists():
        shutil.copytree(folder, repo, dirs_exist_ok=True)


def run(repo: Repo, capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str]:
    """The exit code of ``plan`` and what it prints, which is all it says."""
    try:
        code = cli.main(["plan", str(repo.path), *arguments])
    finally:
        gc.enable()
    out, err = capsys.readouterr()
    assert err == ""
    return code, out


def run_json(repo: Repo, capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, dict[str, t.Any]]:
    """The same as data, which is held to its schema."""
    code, out = run(repo, capsys, "--format=json", *arguments)
    assert out.isascii()
    data = json.loads(out)
    jsonschema.Draft202012Validator(SCHEMA).validate(data)
    assert data["tool"]["version"] == __version__
    return code, t.cast("dict[str, t.Any]", data)
