"""``validate --base``: what a change may do to campaigns that may already run, held in real git repositories."""

from __future__ import annotations

import pathlib
import re
import shutil
import subprocess
import typing as t

import pytest

if t.TYPE_CHECKING:
    from tests.cmp_plugin.conftest import Repo

CONVERTER = "source_template: https://iiif.example.org/{ref}/manifest\n"
LETTERS = "pipeline: demo-v1\nvolumes:\n  - R0001203\n  - R0001204\n  - R0001205\n"
NAMED = "pipeline: demo-v1\nvolumes:\n  - id: letters-1\n    manifest: https://iiif.example.org/letters-1/manifest\n"
OTHER_STEPS = ("regions-1", "regions-2")
OTHER_IMAGE = ("@sha256:0123", "@sha256:4567")


def git(folder: pathlib.Path, *arguments: str) -> str:
    identity = ["-c", "user.name=Anna", "-c", "user.email=anna@example.org", "-c", "commit.gpgsign=false"]
    done = subprocess.run(
        ["git", "-C", str(folder), *identity, *arguments], capture_output=True, text=True, encoding="utf-8", check=True
    )
    return done.stdout.strip()


def commit(folder: pathlib.Path) -> str:
    """Commits everything in ``folder`` and gives the commit's id."""
    git(folder, "init", "--quiet", "--initial-branch=main")
    git(folder, "add", "--all", ".")
    git(folder, "commit", "--quiet", "--message=letters")
    return git(folder, "rev-parse", "HEAD")


def edit(repo: Repo, path: str, *change: str) -> None:
    """Replaces the first of one text in a file by another."""
    text = (repo.path / path).read_text("utf-8")
    assert change[0] in text
    repo.write(path, text.replace(change[0], change[1], 1))


def rules(repo: Repo, base: str = "HEAD") -> list[str]:
    """The ids of the rules that the change from ``base`` breaks."""
    done = repo.run("validate", f"--base={base}")
    assert done.stderr == ""
    found = re.findall(r"\[(HTR\d{3})\]$", done.stdout, re.MULTILINE)
    assert len(found) == len(done.stdout.splitlines()) - 1
    return found


@pytest.fixture
def base(repo: Repo) -> Repo:
    """A git repository with a pipeline, and a campaign of three bare reference codes that runs it."""
    repo.write("converter.yaml", CONVERTER)
    repo.write("campaigns/letters.yaml", LETTERS)
    commit(repo.path)
    return repo


def test_nothing_is_said_when_nothing_changed(base: Repo) -> None:
    assert rules(base) == []


# Volumes


@pytest.mark.parametrize(
    ("before", "after", "place", "said"),
    [
        ("  - R0001205\n", "  - R0001205\n  - R0001206\n", "6:5", "added R0001206"),
        ("  - R0001203\n", "  - R0001202\n  - R0001203\n", "3:5", "added R0001202"),
        ("  - R0001205\n", "  - R0001205\n  - R0001206\n  - R0001207\n", "6:5", "added 2 volumes"),
        ("  - R0001204\n", "", "4:5", "removed R0001204"),
        ("  - R0001205\n", "", "2:1", "removed R0001205"),
        ("  - R0001204\n", "  - R0001206\n", "4:5", "added R0001206, removed R0001204"),
        ("R0001203\n  - R0001204", "R0001204\n  - R0001203", "3:5", "another order"),
        ("- R0001204", "- {id: R0001204, manifest: 'https://example.org/m'}", "4:5", "another source"),
        ("- R0001204", "- {id: R0001204, images: ['https://example.org/1.jpg']}", "4:5", "another source"),
    ],
)
def test_a_changed_list_of_volumes_is_named_where_it_changed(
    base: Repo, before: str, after: str, place: str, said: str
) -> None:
    edit(base, "campaigns/letters.yaml", before, after)
    done = base.run("validate", "--base=HEAD")
    assert done.returncode == 1
    first, last = done.stdout.splitlines()
    assert first.startswith(f"campaigns/letters.yaml:{place}: the volumes of the campaign ")
    assert f'"letters" have changed ({said})' in first
    assert last == "1 problem in 3 files"


@pytest.mark.parametrize(
    "change",
    [
        ("volumes:\n", "# on the shelf\nvolumes:   # three\n\n"),
        ("  - R0001203", "  -   R0001203"),
        ("- R0001203", "- 'R0001203'"),
        ("  - R0001203\n  - R0001204\n  - R0001205\n", "  [R0001203, R0001204, R0001205]\n"),
        ("- R0001204", "- {id: R0001204, manifest: 'https://iiif.example.org/R0001204/manifest'}"),
        ("pipeline: demo-v1\n", "pipeline: demo-v1\nfinished: true\n"),
        ("pipeline: demo-v1\n", "pipeline: demo-v1\nsuspend: true\n"),
    ],
    ids=["comments", "white-space", "quotes", "flow-style", "written-out", "finished", "pause"],
)
def test_a_change_that_leaves_the_volumes_as_they_are_is_fine(base: Repo, change: tuple[str, str]) -> None:
    edit(base, "campaigns/letters.yaml", *change)
    assert rules(base) == []


def test_a_new_campaign_is_fine(base: Repo) -> None:
    base.write("campaigns/more-letters.yaml", "pipeline: demo-v1\nvolumes:\n  - R0001206\n")
    assert rules(base) == []


def test_a_deleted_campaign_is_fine(base: Repo) -> None:
    (base.path / "campaigns/letters.yaml").unlink()
    assert rules(base) == []


def test_a_campaign_whose_file_gets_the_other_ending_stays_the_same_campaign(base: Repo) -> None:
    (base.path / "campaigns/letters.yaml").rename(base.path / "campaigns/letters.yml")
    assert rules(base) == []
    edit(base, "campaigns/letters.yml", "  - R0001205\n", "")
    assert rules(base) == ["HTR501"]


def test_a_file_under_a_new_name_is_a_new_campaign(base: Repo) -> None:
    (base.path / "campaigns/letters.yaml").rename(base.path / "campaigns/court-letters.yaml")
    edit(base, "campaigns/court-letters.yaml", "  - R0001205\n", "")
    assert rules(base) == []


def test_a_swedish_file_name_is_found_in_the_base(base: Repo) -> None:
    base.write("campaigns/häradsrätt.yaml", LETTERS)
    commit(base.path)
    edit(base, "campaigns/häradsrätt.yaml", "  - R0001205\n", "")
    assert "HTR301" in rules(base)


# Pipelines


def test_another_pipeline_is_refused_at_its_name(base: Repo) -> None:
    shutil.copy(base.path / "pipelines/demo-v1.yaml", base.path / "pipelines/demo-v2.yaml")
    edit(base, "campaigns/letters.yaml", "demo-v1", "demo-v2")
    done = base.run("validate", "--base=HEAD")
    assert done.stdout.startswith("campaigns/letters.yaml:1:11: ")
    assert "write pipeline: demo-v1 again" in done.stdout
    assert done.stdout.endswith("[HTR502]\n1 problem in 4 files\n")


@pytest.mark.parametrize("change", [OTHER_STEPS, OTHER_IMAGE, ("steps:", "size: small\nsteps:")])
def test_the_recipe_of_a_campaign_in_the_base_stays(base: Repo, change: tuple[str, str]) -> None:
    base.write("converter.yaml", CONVERTER + "sizes:\n  small: {gpu: 1, cpu: 4, memory: 16Gi}\n")
    commit(base.path)
    edit(base, "pipelines/demo-v1.yaml", *change)
    assert rules(base) == ["HTR503"]


def test_a_recipe_stays_although_its_campaign_is_deleted_with_the_change(base: Repo) -> None:
    (base.path / "campaigns/letters.yaml").unlink()
    edit(base, "pipelines/demo-v1.yaml", *OTHER_STEPS)
    assert rules(base) == ["HTR503"]


@pytest.mark.parametrize(
    "change",
    [
        ("steps:", "# two models and a reader\nsteps:"),
        ("model: yolo", "model: 'yolo'"),
        ("steps:", "max_seconds: 100\nttl_seconds_after_finished: 100\nsteps:"),
    ],
    ids=["comment", "quotes", "time-limits"],
)
def test_a_change_that_leaves_the_recipe_as_it_is_is_fine(base: Repo, change: tuple[str, str]) -> None:
    edit(base, "pipelines/demo-v1.yaml", *change)
    assert rules(base) == []


@pytest.mark.parametrize(("change", "expected"), [(OTHER_STEPS, ["HTR507"]), (OTHER_IMAGE, [])])
def test_the_recipe_of_a_pipeline_that_nobody_runs_may_change(
    base: Repo, change: tuple[str, str], expected: list[str]
) -> None:
    shutil.copy(base.path / "pipelines/demo-v1.yaml", base.path / "pipelines/demo-v2.yaml")
    commit(base.path)
    edit(base, "pipelines/demo-v2.yaml", *change)
    assert rules(base) == expected


def test_a_deleted_pipeline_that_a_campaign_names_is_only_missing(base: Repo) -> None:
    (base.path / "pipelines/demo-v1.yaml").unlink()
    assert rules(base) == ["HTR304"]


# Windows


def window(repo: Repo, text: str) -> None:
    edit(repo, "campaigns/letters.yaml", "pipeline: demo-v1\n", f"pipeline: demo-v1\n{text}")


def test_another_window_of_a_campaign_is_a_warning_at_its_value(base: Repo) -> None:
    window(base, "window: 2\n")
    commit(base.path)
    edit(base, "campaigns/letters.yaml", "window: 2", "window: 1")
    done = base.run("validate", "--base=HEAD")
    assert done.returncode == 0
    assert done.stdout.startswith("campaigns/letters.yaml:2:9: warning: the window of the campaign letters changes ")
    assert " from 2 to 1: " in done.stdout
    assert base.run("validate", "--base=HEAD", "--strict").returncode == 1


def test_another_window_of_the_platform_is_one_warning_for_all_campaigns(base: Repo) -> None:
    for number in range(5):
        base.write(f"campaigns/letters-{number}.yaml", LETTERS.replace("R000", f"R{number + 1}00"))
    base.write("converter.yaml", f"window: 2\n{CONVERTER}")
    commit(base.path)
    base.write("converter.yaml", f"window: 1\n{CONVERTER}")
    done = base.run("validate", "--base=HEAD")
    assert done.stdout.endswith("[HTR504]\nno problems in 8 files, 1 warning\n")
    assert done.stdout.startswith(
        "converter.yaml:1:9: warning: the window of the campaigns letters, letters-0, letters-1 and 3 more"
        " changes from 2 to 1: "
    )


@pytest.mark.parametrize("when", ["before", "after"])
def test_a_paused_campaign_may_change_its_window(base: Repo, when: str) -> None:
    window(base, "window: 2\nsuspend: true\n" if when == "before" else "window: 2\n")
    commit(base.path)
    after = "window: 1\n" if when == "before" else "window: 1\nsuspend: true\n"
    edit(base, "campaigns/letters.yaml", "window: 2\n", after)
    assert rules(base) == []


def test_a_window_above_the_number_of_volumes_changes_nothing(base: Repo) -> None:
    window(base, "window: 4\n")
    commit(base.path)
    edit(base, "campaigns/letters.yaml", "window: 4", "window: 20")
    assert rules(base) == []


def test_a_window_above_the_platforms_changes_nothing(base: Repo) -> None:
    base.write("converter.yaml", f"window: 2\n{CONVERTER}")
    commit(base.path)
    window(base, "window: 3\n")
    assert rules(base) == ["HTR312"]


def test_a_window_that_is_written_out_changes_nothing(base: Repo) -> None:
    window(base, "window: 20\n")
    assert rules(base) == []


# Settings


def test_another_source_template_is_refused_when_it_moves_a_campaign(base: Repo) -> None:
    base.write("campaigns/named.yaml", NAMED)
    commit(base.path)
    edit(base, "converter.yaml", "iiif.example", "manifests.example")
    done = base.run("validate", "--base=HEAD")
    assert done.stdout.endswith("[HTR505]\n1 problem in 4 files\n")
    assert done.stdout.startswith(
        "converter.yaml:1:18: source_template changes the addresses of volumes in the campaign letters,"
    )


def test_another_source_template_moves_no_campaign_whose_volumes_name_their_manifests(base: Repo) -> None:
    base.write("campaigns/letters.yaml", NAMED)
    commit(base.path)
    edit(base, "converter.yaml", "iiif.example", "manifests.example")
    assert rules(base) == []


def test_another_namespace_is_a_warning(base: Repo) -> None:
    base.write("converter.yaml", f"namespace: htr-large\n{CONVERTER}")
    done = base.run("validate", "--base=HEAD")
    assert done.returncode == 0
    assert done.stdout.startswith('converter.yaml:1:12: warning: the namespace changes from "htr-batch" to "htr-large"')


# Where the base is


@pytest.mark.parametrize("revision", ["HEAD", "main", "v1", "HEAD~1", "@", "commit", "short"])
def test_a_base_is_named_as_git_names_revisions(base: Repo, revision: str) -> None:
    first = git(base.path, "rev-parse", "HEAD")
    git(base.path, "tag", "v1")
    edit(base, "campaigns/letters.yaml", "  - R0001205\n", "")
    if revision == "HEAD~1":
        commit(base.path)
    assert rules(base, {"commit": first, "short": first[:10]}.get(revision, revision)) == ["HTR501"]


def test_the_base_of_a_campaigns_repo_below_the_top_is_the_same_folder(repo: Repo, tmp_path: pathlib.Path) -> None:
    (tmp_path / "campaigns").mkdir()
    (tmp_path / "campaigns/letters.yaml").write_text("not: [ours\n")
    commit(tmp_path)
    assert rules(repo) == []
    edit(repo, "campaigns/letters.yaml", "  - R0001203\n", "")
    assert rules(repo) == ["HTR501"]


def test_what_is_not_committed_yet_is_held_against_the_base(base: Repo) -> None:
    base.write("campaigns/more-letters.yaml", LETTERS.replace("R000", "R100"))
    git(base.path, "add", "--all")
    assert rules(base) == []


def test_a_base_without_the_campaigns_repo_holds_nothing(repo: Repo, tmp_path: pathlib.Path) -> None:
    (tmp_path / "README.md").write_text("Our archive.\n")
    git(tmp_path, "init", "--quiet")
    git(tmp_path, "add", "README.md")
    git(tmp_path, "commit", "--quiet", "--message=first")
    assert rules(repo) == []


@pytest.mark.parametrize(
    ("path", "broken"),
    [
        ("converter.yaml", "source_template: [\n"),
        ("converter.yaml", "namespace: Archive_A\n"),
        ("campaigns/letters.yaml", "pipeline: 'demo-v1\n"),
        ("campaigns/letters.yaml", "- R0001203\n"),
        ("campaigns/letters.yaml", "pipeline: demo-v1\nvolumes:\n  - R 1203\n"),
        ("campaigns/letters.yaml", "pipeline: gone\nvolumes:\n  - R0001203\n"),
        ("pipelines/demo-v1.yaml", "image: htrflow\nsteps: []\n"),
        ("pipelines/demo-v1.yaml", "\0"),
    ],
)
def test_what_was_broken_in_the_base_is_held_against_nothing(base: Repo, path: str, broken: str) -> None:
    good = (base.path / path).read_text("utf-8")
    base.write(path, broken)
    commit(base.path)
    base.write(path, good)
    assert rules(base) == []


def test_what_is_broken_is_said_once_and_held_against_nothing(base: Repo) -> None:
    base.write("converter.yaml", "namespace: Archive_A\n" + CONVERTER)
    edit(base, "campaigns/letters.yaml", "  - R0001205\n", "")
    assert rules(base) == ["HTR201"]


# A base that cannot be read


def refused(repo: Repo, base: str, environment: t.Mapping[str, str] | None = None) -> str:
    """The one sentence that says why the command cannot do its work."""
    done = repo.run("validate", f"--base={base}", environment=environment)
    assert (done.returncode, done.stdout) == (2, "")
    [line] = done.stderr.splitlines()
    assert line.startswith("htrflow-campaigns validate: ")
    return line.removeprefix("htrflow-campaigns validate: ")


@pytest.mark.parametrize("revision", ["gone", "0123456789" * 4, "HEAD~9", "HEAD:converter.yaml", ""])
def test_a_base_that_does_not_exist_is_named(base: Repo, revision: str) -> None:
    said = refused(base, revision)
    assert said == f'there is no revision "{revision}" in this repo — fetch it first, with its history'


@pytest.mark.parametrize("option", ["--output=x", "--all", "-h", "--exec-path", "--git-dir=/", "--end-of-options"])
def test_a_base_is_never_an_option_of_git(base: Repo, option: str) -> None:
    before = sorted(base.path.rglob("*"))
    assert f'there is no revision "{option}"' in refused(base, option)
    assert sorted(base.path.rglob("*")) == before


def test_a_shallow_clone_is_told_to_fetch_the_history(base: Repo, tmp_path: pathlib.Path) -> None:
    base.write("campaigns/more-letters.yaml", LETTERS.replace("R000", "R100"))
    commit(base.path)
    git(tmp_path, "clone", "--quiet", "--depth=1", base.path.as_uri(), "shallow")
    shallow = type(base)(tmp_path / "shallow")
    assert rules(base, "HEAD~1") == []
    assert refused(shallow, "HEAD~1").endswith("fetch it first, with its history")


def test_a_folder_that_is_no_git_repository_is_said_to_be_none(repo: Repo) -> None:
    said = refused(repo, "HEAD", {"GIT_CEILING_DIRECTORIES": str(repo.path.parent)})
    assert said == f"{repo.path} is not in a git repository — name the folder of a campaigns repo that is"


def test_a_repository_without_a_commit_has_no_base(repo: Repo) -> None:
    git(repo.path, "init", "--quiet")
    assert 'there is no revision "HEAD"' in refused(repo, "HEAD")


def test_a_machine_without_git_is_told_to_install_it(base: Repo, tmp_path: pathlib.Path) -> None:
    (tmp_path / "bin").mkdir()
    assert refused(base, "HEAD", {"PATH": str(tmp_path / "bin")}) == (
        "git is not installed — install it, which --base needs"
    )


def test_a_base_whose_content_the_clone_lacks_is_refused(base: Repo) -> None:
    sha = git(base.path, "rev-parse", "HEAD:campaigns/letters.yaml").strip()
    (base.path / ".git/objects" / sha[:2] / sha[2:]).unlink()
    assert refused(base, "HEAD") == (
        "the base's campaigns/letters.yaml is not in this clone — fetch it with its history (fetch-depth: 0)"
    )


def test_a_checkout_of_another_user_is_to_be_declared_safe(base: Repo) -> None:
    # As in a container that runs as another user than the one that checked the repo out.
    other_user = {"GIT_TEST_ASSUME_DIFFERENT_OWNER": "1", "GIT_CONFIG_NOSYSTEM": "1"}
    said = refused(base, "HEAD", {"HOME": str(base.path.parent), **other_user})
    assert said.startswith(f"git does not trust {base.path}, ")
