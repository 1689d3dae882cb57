"""The action as a step of a workflow that really runs."""

from __future__ import annotations

import pathlib
import typing as t

import pytest

from tests.action import acting
from tests.action.acting import Runner
from tests.action.github_server import GitHub
from tests.action.runner import ALLOWED, CAMPAIGN, DIGEST, Workspace, pipeline

#: They take long together.
pytestmark = pytest.mark.slow

Tool = t.Callable[[str], pathlib.Path]


@pytest.fixture(scope="module")
def action(tmp_path_factory: pytest.TempPathFactory) -> tuple[pathlib.Path, pathlib.Path]:
    """A checkout of the action, and an environment in which it is installed."""
    folder = tmp_path_factory.mktemp("action")
    checkout = acting.checkout_of_the_action(folder / "checkout")
    return checkout, acting.environment(folder / "environment")


@pytest.fixture
def runner(tool: Tool, action: tuple[pathlib.Path, pathlib.Path]) -> Runner:
    return Runner(tool("act"), *action)


def pull_request(workspace: Workspace, **more: t.Any) -> dict[str, t.Any]:
    return {"number": 7, "pull_request": {"number": 7, "base": {"sha": workspace.base}, "head": {"sha": ""}, **more}}


def test_a_bad_repo_below_the_root_is_annotated_where_it_is_wrong(
    runner: Runner, kyverno: pathlib.Path, tmp_path: pathlib.Path
) -> None:
    workspace = Workspace(tmp_path, at="läsning")
    workspace.write("pipelines/elsewhere.yaml", pipeline(f"ghcr.io/elsewhere/htrflow{DIGEST}", regions="main"))
    workspace.write("campaigns/räkenskaper 50%.yaml", "pipeline: demo-v1\nvolumes:\n  - '100% ::error::x'\n")

    done = runner.run(
        workspace,
        "pull_request",
        pull_request(workspace),
        path="läsning",
        kyverno=str(kyverno),
        allowed_repositories=ALLOWED,
        fetch="false",
    )

    assert [(each.place, each.properties["title"]) for each in done.annotations()] == [
        ("läsning/campaigns/räkenskaper 50%.yaml:1:1", "HTR301 campaign-name"),
        ("läsning/campaigns/räkenskaper 50%.yaml:3:5", "HTR305 volume-id"),
        ("läsning/pipelines/elsewhere.yaml:1:8", "htr-image-repositories (Kyverno)"),
        ("läsning/pipelines/elsewhere.yaml:7:16", "HTR409 model-not-pinned"),
    ]
    assert done.annotations()[1].data.startswith('"100% ::error::x" cannot be a volume id: ')
    assert {key: done.outputs[key] for key in ("outcome", "problems", "warnings", "rendered")} == {
        "outcome": "failure",
        "problems": "4",
        "warnings": "0",
        "rendered": "",
    }
    assert done.summary.count("\n| läsning/") == 4
    assert "## Plan of the change" in done.summary


def test_a_good_push_passes_with_everything_rendered(
    runner: Runner, kyverno: pathlib.Path, workspace: Workspace
) -> None:
    done = runner.run(workspace, "push", {}, kyverno=str(kyverno), allowed_repositories=ALLOWED)

    assert done.annotations() == []
    assert done.outputs["outcome"] == "success"
    assert (done.outputs["problems"], done.outputs["plan"]) == ("0", "")
    assert done.outputs["files"] == "campaigns/brev.yaml pipelines/demo-v1.yaml"
    assert "- Kyverno held 4 objects to 11 policies." in done.summary


@pytest.mark.slow
@pytest.mark.parametrize(("token", "fork"), [("may-write", False), ("may-read", True)])
def test_the_plan_is_a_comment_unless_a_fork_may_not_write(
    runner: Runner, workspace: Workspace, github: GitHub, token: str, fork: bool
) -> None:
    workspace.write("campaigns/dagbok.yaml", CAMPAIGN.replace("brev-1", "dagbok-1"))
    head = {"sha": "", "repo": {"full_name": "other/campaigns" if fork else "arkiv/campaigns"}}

    done = runner.run(
        workspace,
        "pull_request",
        pull_request(workspace, head=head),
        env={"GITHUB_API_URL": github.address, "GITHUB_REPOSITORY": "arkiv/campaigns"},
        policies="none",
        comment="true",
        token=token,
        fetch="false",
    )

    assert (done.outputs["outcome"], done.annotations()) == ("success", [])
    assert len(github.comments) == (0 if fork else 1)
    assert ("The plan is not in a comment" in done.summary) == fork


@pytest.mark.slow
def test_more_than_ten_problems_and_a_warning_are_counted(runner: Runner, workspace: Workspace) -> None:
    ids = "".join(f"  - SE/RA/{number}\n" for number in range(15))
    workspace.write("campaigns/brev.yaml", f"pipeline: demo-v1\nwindow: 500\nvolumes:\n{ids}")

    done = runner.run(workspace, "push", {}, policies="none")

    assert (len(done.annotations()), len(done.annotations("warning"))) == (10, 1)
    assert (done.outputs["problems"], done.outputs["warnings"]) == ("15", "1")


@pytest.mark.slow
def test_a_warning_alone_passes(runner: Runner, workspace: Workspace) -> None:
    workspace.write("campaigns/brev.yaml", "window: 500\n" + CAMPAIGN)

    done = runner.run(workspace, "push", {}, policies="none")

    assert (done.outputs["outcome"], len(done.annotations("warning"))) == ("success", 1)


@pytest.mark.slow
def test_policies_that_are_not_there_fail_the_step(runner: Runner, workspace: Workspace, kyverno: pathlib.Path) -> None:
    done = runner.run(workspace, "push", {}, policies="nowhere", kyverno=str(kyverno))

    assert done.outputs["outcome"] == "failure"
    assert [each.data.partition(" — ")[0] for each in done.annotations()] == [
        "policies is 'nowhere', and there is no such folder in the checkout"
    ]


@pytest.mark.slow
def test_inputs_with_shell_in_them_run_nothing(runner: Runner, workspace: Workspace) -> None:
    proof = workspace.temp / "proof"
    evil = f'$(touch {proof})`touch {proof}`"; touch {proof}; "'

    for name in ("path", "base", "policies", "kyverno", "allowed_repositories"):
        given: dict[str, t.Any] = {"policies": "none", name: evil}
        done = runner.run(workspace, "push", {}, **given)
        assert (done.outputs["outcome"] == "failure") == (name != "kyverno")
    assert not proof.exists()


@pytest.mark.slow
def test_the_action_installs_itself_on_a_runner_that_has_nothing_but_python(
    tool: Tool, action: tuple[pathlib.Path, pathlib.Path], workspace: Workspace
) -> None:
    manifest = "http://127.0.0.1:9/manifest.json"
    workspace.write("campaigns/ny.yaml", f"pipeline: demo-v1\nvolumes:\n  - id: a\n    manifest: {manifest}\n")

    done = Runner(tool("act"), action[0], None).run(
        workspace, "pull_request", pull_request(workspace), policies="none", fetch="true"
    )

    assert (done.outputs["outcome"], done.outputs["problems"]) == ("success", "0")
    assert [each.properties["title"] for each in done.annotations("warning")] == ["HTR804 manifest-private"]
