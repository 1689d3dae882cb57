"""The comment on a pull request, against a server that behaves as GitHub's API."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from htrflow_action import comment, summary
from htrflow_action.github_api import Api
from tests.action.github_server import GitHub
from tests.action.runner import CAMPAIGN, Done, Workspace

BOT = {"login": "github-actions[bot]", "type": "Bot"}


def keep(github: GitHub, text: str, token: str = "may-write") -> str | None:  # noqa: S107
    return comment.keep(Api(github.address, token), "arkiv/campaigns", 7, text)


def written(github: GitHub) -> list[str]:
    return [method for method, _ in github.requests if method != "GET"]


def test_one_comment_is_written_and_then_kept_up_to_date(github: GitHub) -> None:
    github.add("A comment of somebody's.")
    for plan in ("first", "second", "second"):
        assert keep(github, comment.body(".", "No problems.", plan)) is None

    assert written(github) == ["POST", "PATCH"]
    assert [each["body"].splitlines()[-1] for each in github.comments] == ["A comment of somebody's.", "second"]


def test_each_campaigns_repo_of_a_repository_has_a_comment_of_its_own(github: GitHub) -> None:
    for path in ("arkiv/a", "arkiv/å--b", "arkiv/a"):
        keep(github, comment.body(path, "No problems.", path))

    assert len(github.comments) == 2
    assert all(each["body"].count("<!--") == each["body"].count("-->") == 1 for each in github.comments)


def test_the_comment_is_found_on_a_later_page(github: GitHub) -> None:
    for number in range(130):
        github.add(f"talk {number}")
    keep(github, comment.body(".", "One.", ""))
    keep(github, comment.body(".", "Two.", ""))

    assert written(github) == ["POST", "PATCH"]


def test_a_comment_of_an_outsider_with_our_mark_is_never_taken_for_ours(github: GitHub) -> None:
    forged = github.add(comment.body(".", "No problems.", "All is well."), association="CONTRIBUTOR")
    keep(github, comment.body(".", "One problem.", ""))

    assert "All is well." in forged["body"]
    assert len(github.comments) == 2


def test_a_comment_of_a_member_may_be_ours_when_the_token_is_a_persons(github: GitHub) -> None:
    github.add(comment.body(".", "Old.", ""), association="MEMBER", user={"login": "anna", "type": "User"})
    keep(github, comment.body(".", "New.", ""))

    assert written(github) == ["PATCH"]


@pytest.mark.parametrize("token", ["may-read", "unknown"])
def test_without_permission_a_sentence_says_why(github: GitHub, token: str) -> None:
    said = keep(github, comment.body(".", "x", ""), token)

    assert said is not None
    assert "a pull request from a fork never may" in said.lower()
    assert github.comments == []


@pytest.mark.parametrize("status", [302, 422, 500, 502])
def test_a_server_that_fails_is_said_and_the_token_goes_nowhere_else(github: GitHub, status: int) -> None:
    github.broken = status

    said = keep(github, comment.body(".", "x", ""))

    assert said is not None
    assert said.startswith(f"The plan is not in a comment: GitHub answered {status} ")
    assert len(github.requests) == 1


def test_a_server_that_is_not_there_is_said() -> None:
    server = GitHub()
    server.close()
    said = keep(server, comment.body(".", "x", ""))
    assert said is not None
    assert "GitHub did not answer" in said


def test_a_long_plan_is_cut_to_what_github_takes_and_says_so(github: GitHub) -> None:
    plan = "".join(
        f"<details><summary>å{number}</summary>\n\n```diff\n+𝔸å\n```\n\n</details>\n" for number in range(3000)
    )

    assert keep(github, comment.body(".", "No problems.", plan)) is None
    (kept,) = github.comments
    assert kept["body"].endswith("\nThe plan goes on in the summary of the check.\n")
    assert kept["body"].count("<details>") == kept["body"].count("</details>") > 500
    assert kept["body"].count("```") % 2 == 0


PIECES = [
    "line\n",
    "<details><summary>x</summary>\n",
    "</details>\n",
    "```diff\n",
    "```\n",
    "~~~\n",
    "åäö\n",
    "| a |\n",
]


@given(st.lists(st.sampled_from(PIECES)).map("".join), st.integers(0, 200))
def test_a_cut_text_is_a_start_of_it_that_fits(text: str, size: int) -> None:
    kept, is_whole = summary.cut(text, size)
    assert text.startswith(kept)
    assert len(kept.encode()) <= size or is_whole
    assert is_whole == (kept == text)


def commented(workspace: Workspace, github: GitHub, token: str, *, fork: bool = False) -> Done:
    workspace.write("campaigns/dagbok.yaml", CAMPAIGN.replace("brev-1", "dagbok-1"))
    workspace.commit()
    environment = {**workspace.pull_request(fork=fork), "GITHUB_API_URL": github.address}
    return workspace.run(environment, policies="none", comment="true", token=token)


def test_the_plan_of_a_pull_request_becomes_a_comment(workspace: Workspace, github: GitHub) -> None:
    done = commented(workspace, github, "may-write")

    (kept,) = github.comments
    assert done.code == 0
    assert "No problems in 4 files." in kept["body"]
    assert "dagbok" in kept["body"]


def test_a_fork_that_may_not_write_gets_its_plan_in_the_summary_and_passes(
    workspace: Workspace, github: GitHub
) -> None:
    done = commented(workspace, github, "may-read", fork=True)

    assert (done.code, github.comments, done.commands) == (0, [], [])
    assert "The plan is not in a comment&#58; this run may not write on pull requests." in done.summary
    assert "dagbok" in done.summary


def test_the_token_is_in_nothing_that_is_written(workspace: Workspace, github: GitHub) -> None:
    done = commented(workspace, github, "may-write")

    assert "may-write" not in done.printed + done.summary + str(done.outputs)


def test_a_push_has_no_pull_request_to_comment_on(workspace: Workspace, github: GitHub) -> None:
    done = workspace.run({"GITHUB_API_URL": github.address}, policies="none", comment="true", token="may-write")  # noqa: S106

    assert (done.code, github.requests) == (0, [])
    assert "- There is no pull request to comment on." in done.summary
