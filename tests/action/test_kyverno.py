"""Runs with Kyverno itself: what the policies refuse, on the lines that the user wrote."""

from __future__ import annotations

import pathlib
import typing as t

import pytest
import yaml

from htrflow_action import findings, inputs
from htrflow_campaigns.rules import RULES
from tests.action.runner import ALLOWED, CAMPAIGN, COMMIT, DIGEST, Done, Workspace, pipeline
from tests.action.test_policies import policy, write

Tool = t.Callable[[str], pathlib.Path]

LLAVA = f"""\
image: {ALLOWED}/htrflow-batch{DIGEST}
steps:
  - step: Segmentation
    settings: {{model: yolo, model_settings: {{model: Riksarkivet/regions, revision: {COMMIT}}}}}
  - step: TextRecognition
    settings:
      model: LLavaNext
      model_settings:
        model: example/llava
"""


@pytest.fixture(scope="module")
def refused(tmp_path_factory: pytest.TempPathFactory) -> t.Callable[[pathlib.Path], Done]:
    """One run on a repo that breaks many policies."""
    runs: list[Done] = []

    def run(program: pathlib.Path) -> Done:
        if not runs:
            workspace = Workspace(tmp_path_factory.mktemp("refused"), at="läsning")
            workspace.write("pipelines/elsewhere.yaml", pipeline(f"ghcr.io/elsewhere/htrflow{DIGEST}"))
            workspace.write("campaigns/one.yaml", CAMPAIGN.replace("demo-v1", "elsewhere").replace("brev", "a"))
            workspace.write("campaigns/two.yaml", CAMPAIGN.replace("demo-v1", "elsewhere").replace("brev", "b"))
            workspace.write("pipelines/loose.yaml", pipeline(regions="main", reader="main", processor="main"))
            twice = pipeline(lines="main").replace("Riksarkivet/lines", "Riksarkivet/regions")
            workspace.write("pipelines/twice.yaml", twice)
            workspace.write("pipelines/llava.yaml", LLAVA)
            runs.append(workspace.run(kyverno=program))
        return runs[0]

    return run


def of(done: Done, file: str) -> list[tuple[str, str, str]]:
    """The annotations of a file: their kind with their place, title and text."""
    return [
        (f"{each.name} {each.properties['line']}:{each.properties['col']}", each.properties["title"], each.data)
        for each in done.commands
        if each.properties.get("file", "").endswith(file)
    ]


def test_an_image_is_refused_once_on_its_line_whatever_the_number_of_objects(
    refused: t.Callable[[pathlib.Path], Done], kyverno: pathlib.Path
) -> None:
    ((place, title, text),) = of(refused(kyverno), "läsning/pipelines/elsewhere.yaml")

    assert (place, title) == ("error 1:8", "htr-image-repositories (Kyverno)")
    assert text == (
        f"images from repositories that are not allowed: ghcr.io/elsewhere/htrflow{DIGEST}"
        f" (Job htr-warmup-elsewhere and 2 other objects) — use an image from {ALLOWED}"
    )


def test_what_validator_and_policy_both_find_is_said_once_and_is_a_problem(
    refused: t.Callable[[pathlib.Path], Done], kyverno: pathlib.Path
) -> None:
    found = of(refused(kyverno), "pipelines/loose.yaml")

    assert [each[:2] for each in found] == [
        ("error 7:16", "HTR409 model-not-pinned"),
        ("error 19:16", "HTR409 model-not-pinned"),
    ]
    assert "; the policy htr-models-pinned refuses it — " in found[0][2]
    assert "; the policies htr-models-pinned and htr-processors-pinned refuse it — " in found[1][2]


def test_of_two_steps_with_one_model_the_loose_one_is_named(
    refused: t.Callable[[pathlib.Path], Done], kyverno: pathlib.Path
) -> None:
    assert [each[:2] for each in of(refused(kyverno), "pipelines/twice.yaml")] == [
        ("error 13:16", "HTR409 model-not-pinned")
    ]


def test_a_model_that_nothing_pins_is_a_problem_since_the_policy_refuses_it(
    refused: t.Callable[[pathlib.Path], Done], kyverno: pathlib.Path
) -> None:
    ((place, title, text),) = of(refused(kyverno), "pipelines/llava.yaml")

    assert (place, title) == ("error 7:14", "HTR414 model-cannot-be-pinned")
    assert "; the policy htr-models-pinned refuses it — " in text


def test_the_counts_the_table_and_the_exit_code_include_what_the_policies_refuse(
    refused: t.Callable[[pathlib.Path], Done], kyverno: pathlib.Path
) -> None:
    done = refused(kyverno)

    assert (done.code, done.outputs["problems"], done.outputs["warnings"]) == (1, "5", "0")
    assert done.summary.count("\n| läsning/pipelines/") == 5
    assert "- Kyverno held 16 objects to 11 policies.\n" in done.summary


def test_a_repo_that_the_policies_accept_passes_and_says_how_many_there_were(
    workspace: Workspace, kyverno: pathlib.Path
) -> None:
    done = workspace.run(kyverno=kyverno, allowed_repositories="")

    assert (done.code, done.commands) == (0, [])
    assert "- Kyverno held 4 objects to 10 policies." in done.summary
    assert (
        "- The policy htr-image-repositories was not checked&#58; the input allowed-repositories is empty."
        in done.summary
    )


def test_every_policy_of_the_chart_is_one_that_is_known_here() -> None:
    names = {
        yaml.safe_load(path.read_text(encoding="utf-8"))["metadata"]["name"] for path in inputs.CHART_POLICIES.iterdir()
    }

    assert findings.SAME.keys() <= names
    assert set().union(*findings.SAME.values()) <= RULES.keys()


def test_policies_of_the_repositorys_own_are_held_to_it_with_their_exceptions(
    workspace: Workspace, kyverno: pathlib.Path
) -> None:
    workspace.write("campaigns/dagbok.yaml", "priority: htr-bulk\n" + CAMPAIGN.replace("brev-1", "dagbok-1"))
    workspace.write("campaigns/undantag.yaml", "priority: htr-bulk\n" + CAMPAIGN.replace("brev-1", "c"))
    excepted = {
        "apiVersion": "policies.kyverno.io/v1",
        "kind": "PolicyException",
        "metadata": {"name": "undantag", "namespace": "kyverno"},
        "spec": {
            "policyRefs": [{"name": "no-bulk", "kind": "ValidatingPolicy"}],
            "matchConditions": [{"name": "one", "expression": "object.metadata.name == 'undantag'"}],
        },
    }
    label = "kueue.x-k8s.io/priority-class"
    no_bulk = policy("no-bulk", f"object.metadata.?labels[?'{label}'].orValue('') != 'htr-bulk'")
    no_bulk["spec"]["validations"][0]["message"] = "the priority htr-bulk is for the platform team — write another"
    write(
        workspace.path / "policies",
        bulk=[no_bulk, excepted],
        canaries={
            "apiVersion": "batch/v1",
            "kind": "Job",
            "metadata": {"name": "bulk", "labels": {label: "htr-bulk"}},
            "spec": {"template": {"spec": {"restartPolicy": "Never", "containers": [{"name": "a", "image": "b"}]}}},
        },
        ttl=policy("short", "!has(object.spec.ttlSecondsAfterFinished) && has(object.metadata.labels)",
                   message="ttlSecondsAfterFinished is ours", actions=["Warn"]),
        never=policy("never", "true"),
        odd=policy("odd", "object.spec.nope == 'x'"),
        queue=policy("queue", "object.metadata.namespace == 'nowhere'", kind="NamespacedValidatingPolicy",
                     namespace="team-a", message="a queue is missing — ask for one"),
    )  # fmt: skip

    done = workspace.run(kyverno=kyverno, policies="policies")

    titles = {each.properties["title"].partition(" (")[0]: each for each in done.commands if "title" in each.properties}
    assert titles["no-bulk"].place == "campaigns/dagbok.yaml:1:11"
    assert titles["no-bulk"].data == ("the priority htr-bulk is for the platform team (Job dagbok) — write another")
    assert "no-bulk (Kyverno)" not in {title for _, title, _ in of(done, "campaigns/undantag.yaml")}
    assert (titles["short"].name, titles["short"].place) == ("warning", "converter.yaml:1:1")
    assert titles["short"].data.endswith("— see the policy short")
    assert titles["team-a/queue"].place == "converter.yaml:2:8"
    unproven = of(done, "policies/never.yaml") + of(done, "policies/odd.yaml")
    assert ["refuses none of the canaries" in text for _, _, text in unproven] == [True, True]
    assert "no such key: nope" in unproven[1][2]
    assert "the policy could not be evaluated: error: no such key: nope" in done.printed
    assert done.code == 1


def test_a_policy_that_is_not_one_leaves_nothing_checked_and_so_fails(
    workspace: Workspace, kyverno: pathlib.Path
) -> None:
    write(workspace.path / "policies", broken=policy("broken", "object.("), good=policy("good"))

    done = workspace.run(kyverno=kyverno, policies="policies")

    ((place, title, text),) = of(done, "converter.yaml")
    assert (done.code, place, title) == (1, "error 1:1", "action kyverno-failed")
    assert "failed to compile policy broken" in text


PROGRAMS: dict[str, tuple[str, str]] = {
    "prints nothing": ("exit 0", "Kyverno ended with 0, and it printed no report: not a word"),
    "is killed": ("kill -9 $$", "Kyverno ended with -9, and it printed no report: not a word"),
    "prints half a report": (
        """printf '{"kind":"ClusterReport","results":[{"policy"'""",
        "Kyverno ended with 0, and its report on line 1 of what it printed is cut off, or no JSON",
    ),
    "reports no object": ("""echo '{"kind":"ClusterReport","results":[]}'""", "refuses none of the canaries"),
    "cannot be run": ("", "cannot be run (permission denied)"),
}


@pytest.mark.parametrize("name", PROGRAMS, ids=lambda name: name.replace(" ", "-"))
def test_a_program_that_checks_nothing_fails_the_run(workspace: Workspace, name: str) -> None:
    script, said = PROGRAMS[name]
    program = workspace.temp / "kyverno"
    program.write_text(f"#!/bin/sh\n{script}\n", encoding="utf-8")
    program.chmod(0o755 if script else 0o644)

    done = workspace.run(kyverno=program)

    assert done.code == 1
    assert any(said in each.data for each in done.annotations())


def test_settings_with_problems_leave_the_policies_unchecked_and_say_so(workspace: Workspace) -> None:
    workspace.write("converter.yaml", "namespace: A\n")

    done = workspace.run(kyverno="/nowhere/kyverno")

    assert done.code == 1
    assert "- Nothing was held to the policies, since converter.yaml has problems." in done.summary


@pytest.mark.slow
def test_the_objects_of_a_large_repo_are_all_held_to_the_policies_in_runs_of_which_each_is_proven(
    workspace: Workspace, kyverno: pathlib.Path
) -> None:
    for number in range(30):
        workspace.write(f"campaigns/c{number}.yaml", CAMPAIGN.replace("brev-1", f"c{number}"))
    workspace.write("pipelines/elsewhere.yaml", pipeline(f"ghcr.io/elsewhere/htrflow{DIGEST}"))
    workspace.write("campaigns/sist.yaml", CAMPAIGN.replace("demo-v1", "elsewhere").replace("brev-1", "sist"))

    done = workspace.run(kyverno=kyverno)

    assert "- Kyverno held 68 objects to 11 policies." in done.summary
    assert [each.place for each in done.annotations()] == ["pipelines/elsewhere.yaml:1:8"]
    assert len([*workspace.temp.rglob("objects-*.yaml")]) == 2
