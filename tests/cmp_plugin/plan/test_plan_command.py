"""``plan`` as a command: exit codes, wrong usage, and what it leaves alone."""

from __future__ import annotations

import dataclasses
import re
import subprocess
import typing as t

import pytest

from htrflow_campaigns import git
from htrflow_campaigns.model import Converter
from htrflow_campaigns.plan import change, effects, kubernetes
from htrflow_campaigns.tree import from_folder
from tests.cmp_plugin.conftest import CAMPAIGN, PIPELINE
from tests.cmp_plugin.plan.planned import commit, run, run_json

if t.TYPE_CHECKING:
    from tests.cmp_plugin.conftest import Repo


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--base=nowhere"], 'there is no revision "nowhere" in this repo — fetch it first, with its history'),
        (["--seconds-per-page=0"], "'0' is no number of seconds from 0 to 86400"),
        (["--seconds-per-page=nan"], "'nan' is no number of seconds from 0 to 86400"),
        (["--fetch-seconds=en timme"], "'en timme' is no number of seconds from 0 to 86400"),
        (["--results=htr.example.org"], "--results is no address of results — give the address that ends in /results"),
        (["--results=https://htr.example.org/results?a=b"], "--results is no address of results"),
        (["--format=html"], "invalid choice: 'html'"),
        (["--delivery=helm"], "invalid choice: 'helm'"),
    ],
)
def test_wrong_usage_is_one_sentence_and_prints_no_plan(repo: Repo, arguments: list[str], said: str) -> None:
    commit(repo.path)
    repo.write("campaigns/diaries.yaml", "pipeline: demo-v1\nvolumes: [R0002001]\n")
    done = repo.run("plan", *arguments)
    assert (done.returncode, done.stdout) == (2, "")
    assert said in done.stderr.splitlines()[-1]


def test_a_folder_that_is_no_git_repository_has_no_base(repo: Repo) -> None:
    done = repo.run("plan", "--base=HEAD")
    assert (done.returncode, done.stdout) == (2, "")
    assert "is not in a git repository" in done.stderr
    assert repo.run("plan").returncode == 0


@pytest.mark.parametrize("name", ["pipelines/demo-v1.yaml", "campaigns/letters.yaml"])
def test_a_repo_with_a_broken_file_still_has_a_plan_of_the_rest(
    repo: Repo, capsys: pytest.CaptureFixture[str], name: str
) -> None:
    commit(repo.path)
    repo.write(name, "- [\n")
    repo.write("pipelines/other-v1.yaml", PIPELINE)
    repo.write("campaigns/diaries.yaml", "pipeline: other-v1\nvolumes: [R0002001]\n")
    code, data = run_json(repo, capsys, "--base=HEAD")
    assert code == 1
    assert data["counts"]["problems"] > 0
    changes = {each["name"]: each["change"] for each in data["campaigns"]}
    assert changes == {"diaries": "added"}
    # What is broken is not taken to be gone.
    assert not any(each["action"] == "prune" for each in data["objects"])
    assert run(repo, capsys, "--base=HEAD")[0] == 1


def test_without_settings_nothing_is_planned_and_nothing_is_taken_to_be_gone(
    repo: Repo, capsys: pytest.CaptureFixture[str]
) -> None:
    commit(repo.path)
    repo.write("converter.yaml", "- [\n")
    (repo.path / "campaigns/letters.yaml").unlink()
    repo.write("campaigns/diaries.yaml", "pipeline: demo-v1\nvolumes: [R0002001]\n")
    code, data = run_json(repo, capsys, "--base=HEAD", "--seconds-per-page=3")
    assert code == 1
    assert data["notes"] == ["without a converter.yaml that can be used, nothing can be planned"]
    assert (data["campaigns"], data["pipelines"], data["objects"]) == ([], [], [])
    assert data["counts"]["left_out_campaigns"] == 1
    assert run(repo, capsys, "--base=HEAD")[0] == 1


def test_the_plan_of_no_change_after_a_merge_is_empty(repo: Repo, capsys: pytest.CaptureFixture[str]) -> None:
    repo.write("campaigns/diaries.yaml", "pipeline: demo-v1\nvolumes: [R0002001]\n")
    commit(repo.path)
    code, data = run_json(repo, capsys, "--base=HEAD")
    assert code == 0
    assert (data["campaigns"], data["pipelines"], data["settings"], data["objects"]) == ([], [], [], [])
    assert (data["counts"]["unchanged_campaigns"], data["counts"]["kept_objects"]) == (2, 6)


def test_a_repo_below_the_top_of_its_checkout_is_compared_with_itself(
    repo: Repo, capsys: pytest.CaptureFixture[str]
) -> None:
    commit(repo.path.parent)
    repo.write("campaigns/letters.yaml", f"{CAMPAIGN}suspend: true\n")
    _, data = run_json(repo, capsys, "--base=HEAD")
    assert [each["change"] for each in data["campaigns"]] == ["paused"]


def test_campaigns_that_did_not_change_are_read_from_the_head_alone(repo: Repo) -> None:
    for number in range(20):
        repo.write(f"campaigns/diary-{number}.yaml", f"pipeline: demo-v1\nvolumes: [D{number}]\n")
    commit(repo.path)
    repo.write("campaigns/diary-7.yaml", "pipeline: demo-v1\nsuspend: true\nvolumes: [D7]\n")
    with git.revision(repo.path, "HEAD") as base:
        found = change.compare(from_folder(repo.path), base)
    assert [each.campaign.name for each in found.campaigns] == ["diary-7"]
    # The same value, and not an equal one.
    assert len(found.same) == 20
    assert all(before is after for before, after in found.same)


def test_two_campaigns_with_the_same_content_are_renamed_once_each(
    repo: Repo, capsys: pytest.CaptureFixture[str]
) -> None:
    text = "pipeline: demo-v1\nvolumes: [R0002001]\n"
    repo.write("campaigns/a.yaml", text)
    commit(repo.path)
    (repo.path / "campaigns/a.yaml").unlink()
    repo.write("campaigns/b.yaml", text)
    repo.write("campaigns/c.yaml", text)
    _, data = run_json(repo, capsys, "--base=HEAD")
    assert [(each["name"], each["change"], each["renamed_from"]) for each in data["campaigns"]] == [
        ("b", "renamed", "a"),
        ("c", "added", None),
    ]


def test_nothing_of_the_repo_is_written(repo: Repo, capsys: pytest.CaptureFixture[str]) -> None:
    commit(repo.path)
    repo.write("campaigns/letters.yaml", f"{CAMPAIGN}suspend: true\n")
    run(repo, capsys, "--base=HEAD")
    status = ["git", "-C", str(repo.path), "status", "--porcelain"]
    assert subprocess.run(status, capture_output=True, text=True, check=True).stdout == " M campaigns/letters.yaml\n"


def test_every_key_of_the_settings_has_an_effect_with_each_delivery() -> None:
    for field in dataclasses.fields(Converter):
        for delivery in kubernetes.DELIVERIES:
            assert re.fullmatch(r"[a-z].*[a-z0-9]", effects.effect(field.name, delivery))
