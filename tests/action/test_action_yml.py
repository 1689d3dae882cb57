"""What stands in ``action.yml``, in the hook for pre-commit and on the page about them."""

from __future__ import annotations

import pathlib
import re
import subprocess
import sys
import typing as t

import pytest
import yaml

from tests.action.runner import TOP, Workspace

BIN = pathlib.Path(sys.executable).parent
ACTION: dict[str, t.Any] = yaml.safe_load((TOP / "action.yml").read_text(encoding="utf-8"))
PAGE = (TOP / "docs" / "action.md").read_text(encoding="utf-8")


def steps() -> list[dict[str, t.Any]]:
    return list(ACTION["runs"]["steps"])


def test_the_linters_find_nothing(tmp_path: pathlib.Path) -> None:
    for command in (
        [BIN / "shellcheck", *sorted(TOP.glob("action/*.sh"))],
        [BIN / "zizmor", "--offline", "--quiet", "--pedantic", "action.yml"],
        [BIN / "check-jsonschema", "--builtin-schema", "vendor.github-actions", "action.yml"],
    ):
        done = subprocess.run([*map(str, command)], cwd=TOP, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr


def test_inputs_reach_scripts_through_the_environment_alone() -> None:
    assert all("${{" not in step["run"] for step in steps())
    assert {step["shell"] for step in steps()} == {"bash"}
    for step in steps():
        (script,) = re.findall(r"/action/([\w-]+\.sh)", step["run"])
        assert "set -euo pipefail" in (TOP / "action" / script).read_text(encoding="utf-8")


def test_every_input_is_handed_to_a_step() -> None:
    given = {value for step in steps() for value in step.get("env", {}).values()}
    assert {f"${{{{ inputs.{name} }}}}" for name in ACTION["inputs"]} <= given


def test_every_output_is_one_of_a_step() -> None:
    for name, output in ACTION["outputs"].items():
        assert output["value"] == f"${{{{ steps.check.outputs.{name} }}}}"


def workflow() -> str:
    (found,) = re.findall(r"^```yaml\n(name: .*?)^```$", PAGE, re.DOTALL | re.MULTILINE)
    return str(found)


def test_the_workflow_to_copy_is_one_that_github_takes(tmp_path: pathlib.Path) -> None:
    file = tmp_path / ".github" / "workflows" / "campaigns.yml"
    file.parent.mkdir(parents=True)
    file.write_text(workflow(), encoding="utf-8")
    for command in (
        [BIN / "actionlint", "-shellcheck=", file],
        [BIN / "check-jsonschema", "--builtin-schema", "vendor.github-workflows", file],
    ):
        done = subprocess.run([*map(str, command)], cwd=tmp_path, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr


def test_the_workflow_to_copy_has_the_least_permissions_and_inputs_that_there_are() -> None:
    data = yaml.safe_load(workflow())
    (job,) = data["jobs"].values()
    assert data["permissions"] == {}
    assert job["permissions"] == {"contents": "read", "pull-requests": "write"}
    assert job["steps"][-1]["with"].keys() <= ACTION["inputs"].keys()
    assert data[True] == {"pull_request": None, "push": {"branches": ["main"]}}


def test_the_tables_of_the_page_are_those_of_the_action() -> None:
    done = subprocess.run(
        [sys.executable, str(TOP / "docs" / "action_inputs.py"), "--check"], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout) == (0, "")


def test_the_workflow_that_init_writes_names_inputs_that_there_are(tmp_path: pathlib.Path) -> None:
    subprocess.run([BIN / "htrflow-campaigns", "init", str(tmp_path)], check=True, capture_output=True)
    data = yaml.safe_load((tmp_path / ".github" / "workflows" / "validate.yml").read_text(encoding="utf-8"))
    (job,) = data["jobs"].values()
    given = job["steps"][-1]["with"]
    assert given.keys() <= ACTION["inputs"].keys()
    image = yaml.safe_load((tmp_path / "pipelines" / "demo-v1.yaml").read_text(encoding="utf-8"))["image"]
    assert image.startswith(f"{given['allowed-repositories']}/")


def hook() -> dict[str, t.Any]:
    (found,) = yaml.safe_load((TOP / ".pre-commit-hooks.yaml").read_text(encoding="utf-8"))
    return dict(found)


@pytest.mark.parametrize(
    ("path", "matches"),
    [
        ("converter.yaml", True),
        ("campaigns/brev.yaml", True),
        ("pipelines/demo.yml", True),
        ("below/campaigns/brev.yaml", False),
        ("README.md", False),
        ("policies/a.yaml", False),
    ],
)
def test_the_hook_runs_when_a_file_of_the_repo_changes(path: str, matches: bool) -> None:
    assert (re.search(hook()["files"], path) is not None) == matches


def test_the_hook_is_the_command_and_fails_on_a_bad_repo(workspace: Workspace) -> None:
    command = [str(BIN / hook()["entry"].split()[0]), *hook()["entry"].split()[1:], *hook()["args"]]
    assert hook()["pass_filenames"] is False

    assert subprocess.run(command, cwd=workspace.repo, capture_output=True, check=False).returncode == 0
    workspace.write("campaigns/brev.yaml", "pipeline: nope\n")
    assert subprocess.run(command, cwd=workspace.repo, capture_output=True, check=False).returncode == 1


def test_the_run_on_the_page_is_a_real_one(workspace: Workspace, kyverno: pathlib.Path) -> None:
    (shown,) = re.findall(r"^```text\n(pipelines/.*?)^```$", PAGE, re.DOTALL | re.MULTILINE)
    ((name, text),) = re.findall(r"^```yaml\n# (\S+)\n(.*?)^```$", PAGE, re.DOTALL | re.MULTILINE)
    workspace.write(name, text)

    done = workspace.run(kyverno=kyverno, allowed_repositories="docker.io/riksarkivet registry.example.org")

    for line in shown.splitlines():
        assert (
            line.replace("from docker.io/riksarkivet", "from docker.io/riksarkivet, registry.example.org")
            in done.printed
        )
