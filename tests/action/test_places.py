"""From what a policy says of an object to the line that the user wrote, without Kyverno."""

from __future__ import annotations

import pathlib
import typing as t

import pytest
from hypothesis import given
from hypothesis import strategies as st

from htrflow_action import findings
from htrflow_action.made import Sources
from htrflow_action.places import Place, Places
from htrflow_action.policies import Policy
from htrflow_action.report import Identity, Row
from htrflow_campaigns import problems, rules, tree
from htrflow_campaigns.problems import Position, Problem

FILES = {
    "converter.yaml": "namespace: team-a\nqueue: letters-a\n",
    "pipelines/demo-v1.yaml": """\
image: docker.io/riksarkivet/htrflow-batch@sha256:abc
steps:
  - step: Segmentation
    settings: {model: yolo, model_settings: {model: Riksarkivet/regions, revision: main}, revision: main}
  - step: TextRecognition
    settings:
      model: TrOCR
      model_settings:
        model: Riksarkivet/reader
        processor: Riksarkivet/reader-processor
""",
    "campaigns/letters.yaml": """\
pipeline: demo-v1
priority: htr-bulk
volumes:
  - id: räkenskaper-1
    images: [x]
""",
}
#: A policy, what it says, and where that is; of a campaign's Job unless it speaks of a pipeline.
CASES: list[tuple[str, str, list[str]]] = [
    ("htr-image-digests", "images not pinned by digest: a:1 — write", ["pipelines/demo-v1.yaml:1:8"]),
    ("htr-image-repositories", "images from repositories that are not allowed: a", ["pipelines/demo-v1.yaml:1:8"]),
    ("htr-job-queue", "a Job in the queue letters-a — label it", ["converter.yaml:2:8"]),
    ("htr-apply-identity", "x writes only to the namespace b, and this is for a", ["converter.yaml:1:12"]),
    ("htr-apply-identity", "x writes only to the queue b, and this is for a", ["converter.yaml:2:8"]),
    (
        "htr-models-pinned",
        "models not pinned to a revision: Riksarkivet/regions, Riksarkivet/reader — add",
        ["pipelines/demo-v1.yaml:4:53", "pipelines/demo-v1.yaml:9:16"],
    ),
    (
        "htr-processors-pinned",
        "processors not pinned to a revision: Riksarkivet/reader-processor — add",
        ["pipelines/demo-v1.yaml:10:20"],
    ),
    (
        "htr-model-classes",
        "steps that run a model and do not say which: 1, 2 (counted from 1) — write",
        ["pipelines/demo-v1.yaml:3:5", "pipelines/demo-v1.yaml:5:5"],
    ),
    (
        "htr-pipeline-form",
        "steps that htrflow does not understand: 2 (counted from 1) — write step:",
        ["pipelines/demo-v1.yaml:5:5"],
    ),
    (
        "htr-model-settings",
        "settings beside model_settings, which htrflow lets override it: revision — move",
        ["pipelines/demo-v1.yaml:4:91"],
    ),
    ("own", "räkenskaper-1 is closed", ["campaigns/letters.yaml:4:9"]),
    ("own", "Riksarkivet/reader-processor is too large", ["pipelines/demo-v1.yaml:10:20"]),
    ("own", "xRiksarkivet/reader is a part of a longer name: see the image", ["pipelines/demo-v1.yaml:1:8"]),
    ("own", "too many GPUs", ["converter.yaml:1:1"]),
    ("own", "the priority is too high", ["campaigns/letters.yaml:2:11"]),
    ("own", "tolerations are not allowed", ["converter.yaml:1:1"]),
    ("own", "parallelism is too high", ["converter.yaml:1:1"]),
    ("own", "no", ["campaigns/letters.yaml:1:1"]),
    ("own", "", ["campaigns/letters.yaml:1:1"]),
]


@pytest.fixture(scope="module")
def repo(tmp_path_factory: pytest.TempPathFactory) -> tree.Tree:
    folder = tmp_path_factory.mktemp("repo")
    for name, text in FILES.items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(text, encoding="utf-8")
    return tree.from_folder(folder)


def sources(repo: tree.Tree) -> Sources:
    assert repo.converter is not None
    return Sources(repo.campaigns[0], repo.pipelines[0], repo.converter)


def shown(place: Place) -> str:
    return ":".join(map(str, place.position))


@pytest.mark.parametrize(("policy", "message", "expected"), CASES)
def test_a_message_leads_to_what_it_speaks_of(repo: tree.Tree, policy: str, message: str, expected: list[str]) -> None:
    assert [shown(place) for place in Places(repo).find(policy, sources(repo), message)] == expected


@given(policy=st.sampled_from(["own", *findings.SAME, "htr-pipeline-form"]), message=st.text())
def test_any_message_leads_somewhere_in_the_files(repo: tree.Tree, policy: str, message: str) -> None:
    found = Places(repo).find(policy, sources(repo), message)
    assert found
    for place in found:
        assert place.position.line <= len(FILES[place.position.path].splitlines())


def test_a_step_is_found_again_by_any_place_in_it(repo: tree.Tree) -> None:
    places = Places(repo)
    places.find("htr-models-pinned", sources(repo), "Riksarkivet/regions")
    path = "pipelines/demo-v1.yaml"
    assert [places.step_at(Position(path, line, 9)) for line in (1, 3, 4, 5, 9)] == [None, 0, 0, 1, 1]


JOBS = [Identity("Job", "team-a", name) for name in ("letters", "letters-part2")]


def merge(repo: tree.Tree, found: t.Sequence[Problem], *rows: Row, denies: bool = True) -> list[Problem]:
    policies = [Policy(row.policy, {}, Position("policies"), denies) for row in rows]
    return findings.merged(found, rows, policies, dict.fromkeys(JOBS, sources(repo)), Places(repo))


def row(policy: str, result: t.Any, message: str = "", of: Identity = JOBS[0]) -> Row:
    return Row(policy, of, result, message)


def test_passes_and_skips_are_nothing_to_say(repo: tree.Tree) -> None:
    assert merge(repo, [], row("a", "pass"), row("b", "skip")) == []


@pytest.mark.parametrize(
    ("result", "denies", "level"),
    [("fail", True, "problem"), ("fail", False, "warning"), ("warn", True, "warning"), ("error", True, "problem")],
)
def test_only_what_the_cluster_would_refuse_is_a_problem(
    repo: tree.Tree, result: str, denies: bool, level: problems.Level
) -> None:
    (found,) = merge(repo, [], row("own", result, "no priority — write one"), denies=denies)
    assert (found.rule.level, found.rule.id, found.instead) == (level, "own", "write one")


def test_many_objects_with_one_cause_are_one_finding(repo: tree.Tree) -> None:
    (found,) = merge(repo, [], *(row("own", "fail", "no image", of) for of in JOBS))
    assert found.what == "no image (Job letters and 1 other object)"


def test_a_policy_that_only_warns_leaves_a_warning_of_the_validator_as_it_is(repo: tree.Tree) -> None:
    warning = rules.RULES["HTR409"].at(Position("pipelines/demo-v1.yaml", 9, 16), model="a", where="b")
    said = row("htr-models-pinned", "warn", "Riksarkivet/reader")
    assert merge(repo, [warning], said) == [warning]


def test_a_warning_about_another_step_stays_beside_what_a_policy_refuses(repo: tree.Tree) -> None:
    warning = rules.RULES["HTR409"].at(Position("pipelines/demo-v1.yaml", 9, 16), model="a", where="b")
    found = merge(repo, [warning], row("htr-models-pinned", "fail", "Riksarkivet/regions"))
    assert [(each.rule.id, each.rule.level) for each in found] == [
        ("HTR409", "warning"),
        ("htr-models-pinned", "problem"),
    ]


@given(st.text())
def test_what_a_policy_says_is_one_printable_line(message: str) -> None:
    row = Row("own", JOBS[0], "fail", message)
    repo = tree.arrange(FILES, lambda path: FILES[path].encode())
    for found in merge(repo, [], row):
        assert found.message.isprintable()


def test_the_files_of_the_cases_lie_where_a_repo_has_them(repo: tree.Tree) -> None:
    assert not repo.problems
    assert all(pathlib.PurePath(name).suffix == ".yaml" for name in FILES)
