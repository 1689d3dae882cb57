"""A run without Kyverno: what the validator finds, what is compared, and what is said where."""

from __future__ import annotations

import os
import pathlib
import subprocess
import typing as t

import pytest

from tests.action.runner import CAMPAIGN, Done, Workspace, pipeline

BAD: dict[str, tuple[dict[str, str | bytes], list[str]]] = {
    "a volume id": (
        {"campaigns/brev.yaml": "pipeline: demo-v1\nvolumes:\n  - SE/RA/1\n"},
        ["campaigns/brev.yaml:3:5 HTR306"],
    ),
    "not YAML": ({"campaigns/brev.yaml": "a: b: c\n"}, ["campaigns/brev.yaml:1:5 HTR004"]),
    "no such pipeline": ({"campaigns/ny.yaml": CAMPAIGN.replace("demo", "dmeo")}, ["campaigns/ny.yaml:1:11 HTR304"]),
    "an image by its tag": ({"pipelines/ny.yaml": pipeline("busybox:1")}, ["pipelines/ny.yaml:1:8 HTR402"]),
    "settings": ({"converter.yaml": "namespace: [\n"}, ["converter.yaml:2:1 HTR004"]),
    "a folder below": ({"campaigns/2026/a.yaml": CAMPAIGN}, ["campaigns/2026/a.yaml:1:1 HTR016"]),
}


def places(done: Done, name: str = "error") -> list[str]:
    return [f"{each.place} {each.properties['title'].partition(' ')[0]}" for each in done.annotations(name)]


def test_a_good_repo_has_nothing_to_say_and_is_rendered(workspace: Workspace) -> None:
    done = workspace.run(policies="none")
    rendered = pathlib.Path(done.outputs["rendered"])

    assert (done.code, done.commands) == (0, [])
    assert done.outputs == {"problems": "0", "warnings": "0", "rendered": str(rendered), "plan": ""}
    assert sorted(path.relative_to(rendered).as_posix() for path in rendered.rglob("*.yaml")) == [
        "campaigns/brev.yaml",
        "pipelines/demo-v1.yaml",
    ]
    assert done.summary.startswith("### no problems in 3 files\n")
    assert "- There is no base to compare with, so what changed was not checked." in done.summary


@pytest.mark.parametrize("name", BAD, ids=lambda name: name.replace(" ", "-"))
def test_a_bad_repo_fails_on_the_line_at_fault(workspace: Workspace, name: str) -> None:
    files, expected = BAD[name]
    for path, content in files.items():
        workspace.write(path, content)

    done = workspace.run(policies="none")

    assert (done.code, places(done), done.outputs["problems"], done.outputs["rendered"]) == (1, expected, "1", "")
    assert expected[0].partition(" ")[2] in done.summary


def test_a_warning_is_shown_and_fails_nothing(workspace: Workspace) -> None:
    workspace.write("campaigns/brev.yaml", "window: 500\n" + CAMPAIGN)

    done = workspace.run(policies="none")

    assert (done.code, places(done), places(done, "warning")) == (0, [], ["campaigns/brev.yaml:1:9 HTR312"])
    assert (done.outputs["problems"], done.outputs["warnings"]) == ("0", "1")
    assert "warning&#58; the window 500" in done.summary


def test_values_and_names_that_look_like_commands_start_none_and_are_shown_as_they_are(workspace: Workspace) -> None:
    names = ["räkenskaper, 50%.yaml", "::error file=x::y.yaml", "a%0A::warning::b.yaml", "##[error]c.yaml"]
    for name in names:
        workspace.write(
            f"campaigns/{name}", "pipeline: demo-v1\nvolumes:\n  - '100% ::error::x'\n  - \"a\\n::debug::b\"\n"
        )

    done = workspace.run(policies="none")

    assert done.code == 1
    assert {command.name for command in done.commands} == {"error", "group", "stop-commands", "endgroup"}
    assert {error.properties["file"] for error in done.annotations()} == {f"campaigns/{name}" for name in names}
    assert any('"100% ::error::x"' in error.data for error in done.annotations())
    assert done.outputs["problems"] == "12"


def test_a_file_name_with_a_line_break_or_no_text_at_all_is_said_in_one_line(workspace: Workspace) -> None:
    workspace.write("campaigns/a\n::error::b.yaml", CAMPAIGN)
    file = os.fsencode(workspace.repo) + b"/campaigns/\xff.yaml"
    pathlib.Path(os.fsdecode(file)).write_text(CAMPAIGN, encoding="utf-8")

    done = workspace.run(policies="none")

    assert [error.place for error in done.annotations()] == ["campaigns/?.yaml:1:1", "campaigns/a?::error::b.yaml:1:1"]
    assert done.code == 1


def test_of_more_than_ten_problems_the_tenth_annotation_tells_and_the_summary_has_all(workspace: Workspace) -> None:
    ids = "".join(f"  - SE/RA/{number}\n" for number in range(15))
    workspace.write("campaigns/brev.yaml", f"pipeline: demo-v1\nvolumes:\n{ids}")

    done = workspace.run(policies="none")

    assert len(done.annotations()) == 10
    assert done.annotations()[-1].data.endswith("\n\nThere are 5 more problems; the log lists all.")
    assert done.summary.count("HTR306") == done.printed.count("[HTR306]") == 15


def test_paths_are_from_the_top_of_the_checkout_when_the_repo_lies_below_it(tmp_path: pathlib.Path) -> None:
    workspace = Workspace(tmp_path, at="arkiv/Läsning 1")
    workspace.write("campaigns/brev.yaml", "pipeline: nope\nvolumes: [{id: a, images: ['https://example.org/1']}]\n")

    done = workspace.run(policies="none")

    assert places(done) == ["arkiv/Läsning 1/campaigns/brev.yaml:1:11 HTR304"]
    assert done.summary.startswith("## arkiv/Läsning 1\n")


def test_nothing_is_imported_from_the_checkout(workspace: Workspace) -> None:
    for name in ("yaml", "jsonschema", "json", "requests", "htrflow_campaigns", "htrflow_action", "sitecustomize"):
        workspace.write(f"{name}.py", "raise SystemExit('a module of the checkout was imported')\n")
    workspace.commit()

    done = workspace.run(workspace.pull_request(), policies="none")

    assert (done.code, "was imported" in done.printed) == (0, False)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"path": "../elsewhere"}, "path is '../elsewhere', which leaves the checkout"),
        ({"path": "nowhere"}, "path is 'nowhere', and there is no such folder in the checkout"),
        ({"plan": "yes"}, "plan is 'yes' — write true or false"),
        ({"policies": "nowhere", "kyverno": "/bin/true"}, "policies is 'nowhere', and there is no such folder"),
        ({"policies": ""}, "there is no Kyverno program"),
        ({"base": "--upload-pack=x"}, "base is '--upload-pack=x', which is no revision"),
        ({"allowed_repositories": "https://x/y"}, "allowed-repositories has 'https://x/y'"),
    ],
)
def test_an_input_that_makes_no_sense_is_said_in_one_sentence(
    workspace: Workspace, given: dict[str, str], said: str
) -> None:
    inputs: dict[str, t.Any] = {"policies": "none", **given}
    done = workspace.run(**inputs)
    (error,) = done.commands

    assert (done.code, error.name, done.outputs) == (2, "error", {})
    assert error.data.startswith(said)


def test_a_change_of_what_runs_is_refused_against_the_base_of_the_pull_request(workspace: Workspace) -> None:
    workspace.write("campaigns/brev.yaml", CAMPAIGN.replace("brev-1", "brev-2"))
    workspace.commit()

    assert places(workspace.run(workspace.pull_request(), policies="none")) == ["campaigns/brev.yaml:3:5 HTR501"]
    assert places(workspace.run(policies="none", base="main~1")) == ["campaigns/brev.yaml:3:5 HTR501"]
    assert workspace.run(policies="none").code == 0


def test_what_others_merged_meanwhile_is_no_change_of_the_pull_request(workspace: Workspace) -> None:
    workspace.git("checkout", "--quiet", "-b", "mine")
    workspace.write("campaigns/mitt.yaml", CAMPAIGN.replace("brev-1", "mitt-1"))
    head = workspace.commit()
    workspace.git("checkout", "--quiet", "main")
    workspace.write("campaigns/deras.yaml", CAMPAIGN.replace("brev-1", "deras-1"))
    workspace.commit()
    workspace.git("checkout", "--quiet", "--detach", "main")
    workspace.git("merge", "--quiet", "--no-ff", "--message", "merge", "mine")

    merged = workspace.run(workspace.pull_request(head=head), policies="none")
    workspace.git("checkout", "--quiet", "mine")
    alone = workspace.run(workspace.pull_request(base=workspace.git("rev-parse", "main")), policies="none")

    for done in (merged, alone):
        assert done.code == 0
        assert "mitt" in done.summary
        assert "deras" not in done.summary


def clone(workspace: Workspace, folder: pathlib.Path) -> Workspace:
    """A clone of one commit, as actions/checkout makes it."""
    copy = Workspace(folder)
    subprocess.run(["rm", "-rf", str(copy.path)], check=True)
    url = f"file://{workspace.path}"
    subprocess.run(["git", "clone", "--quiet", "--depth=1", url, str(copy.path)], check=True)
    copy.base = workspace.base
    return copy


def test_a_base_that_a_shallow_checkout_lacks_is_fetched(workspace: Workspace, tmp_path: pathlib.Path) -> None:
    workspace.write("campaigns/brev.yaml", CAMPAIGN.replace("brev-1", "brev-2"))
    workspace.commit()
    (tmp_path / "shallow").mkdir()
    shallow = clone(workspace, tmp_path / "shallow")

    done = shallow.run(shallow.pull_request(), policies="none")

    assert places(done) == ["campaigns/brev.yaml:3:5 HTR501"]


def test_a_base_that_cannot_be_had_is_a_problem_and_the_rest_is_still_checked(
    workspace: Workspace, tmp_path: pathlib.Path
) -> None:
    workspace.write("campaigns/brev.yaml", CAMPAIGN.replace("demo", "dmeo"))
    workspace.commit()
    (tmp_path / "shallow").mkdir()
    shallow = clone(workspace, tmp_path / "shallow")
    shallow.git("remote", "set-url", "origin", f"file://{tmp_path}/nowhere")

    done = shallow.run(shallow.pull_request(), policies="none")

    assert places(done) == ["campaigns/brev.yaml:1:11 HTR304", "converter.yaml:1:1 action"]
    assert "write fetch-depth: 0 for actions/checkout" in done.annotations()[1].data


def test_a_pull_request_has_a_plan_in_its_summary_and_in_a_file(workspace: Workspace) -> None:
    workspace.write("campaigns/dagbok.yaml", CAMPAIGN.replace("brev-1", "dagbok-1"))
    workspace.commit()

    done = workspace.run(workspace.pull_request(), policies="none")
    plan = pathlib.Path(done.outputs["plan"]).read_text(encoding="utf-8")

    assert done.code == 0
    assert "dagbok" in plan
    assert plan in done.summary
    assert workspace.run(workspace.pull_request(), policies="none", plan="false").outputs["plan"] == ""


def test_a_manifest_that_cannot_be_read_is_named_on_its_line(workspace: Workspace) -> None:
    manifest = "http://127.0.0.1:9/manifest.json"
    workspace.write("campaigns/ny.yaml", f"pipeline: demo-v1\nvolumes:\n  - id: a\n    manifest: {manifest}\n")
    workspace.commit()

    done = workspace.run(workspace.pull_request(), policies="none", fetch="true")

    assert (done.code, places(done, "warning")) == (0, ["campaigns/ny.yaml:4:15 HTR804"])


def test_the_runner_may_have_none_of_its_files(workspace: Workspace) -> None:
    nothing: t.Mapping[str, str] = {"GITHUB_OUTPUT": "", "GITHUB_STEP_SUMMARY": "", "GITHUB_EVENT_PATH": "/nowhere"}
    assert workspace.run(nothing, policies="none").code == 0
