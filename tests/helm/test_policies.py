"""The policies, executed by Kyverno's command line on objects that they are to accept and to refuse."""

from __future__ import annotations

import collections
import json
import pathlib
import typing as t

import pytest
from syrupy.assertion import SnapshotAssertion

from tests.helm import kyverno_cli, policy_files
from tests.helm.kyverno_cli import Object, Operation, Row, Run

Tool = t.Callable[[str], pathlib.Path]

_KINDS = {"pods": "Pod", "jobs": "Job", "cronjobs": "CronJob", "configmaps": "ConfigMap"}

each_policy = pytest.mark.parametrize("name", policy_files.NAMES)


@each_policy
def test_a_policy_accepts_the_good_objects_and_refuses_the_bad_ones_in_these_words(
    tool: Tool, name: str, snapshot: SnapshotAssertion
) -> None:
    good, bad = policy_files.objects(name, "good"), policy_files.objects(name, "bad")

    rows = _run(tool("kyverno"), [*good, *bad], name)

    results = collections.Counter((row.name.split(".")[1], row.result) for row in rows)
    accepted, refused = results.pop(("good", "pass")), results.pop(("bad", "fail"))
    # A ConfigMap without a pipeline is nothing to those that read one, and a text that is not YAML stops them.
    left_alone = results.pop(("good", "skip"), 0) if name in policy_files.OF_PIPELINES else 0
    stopped = results.pop(("bad", "error"), 0) if name == "pipeline-form" else 0
    assert results == {}
    assert (accepted + left_alone, refused + stopped) == (len(good), len(bad))
    assert {f"{row.kind} {row.name.partition('.')[0]}": row.message for row in rows if ".bad." in row.name} == snapshot


def test_a_policy_refuses_to_change_a_configmap_into_a_bad_one(tool: Tool) -> None:
    names = ["configmap-text", "pipeline-key", *policy_files.OF_PIPELINES]
    objects = [policy_files.objects(name, "bad")[0] for name in names]

    rows = _run(tool("kyverno"), objects, *names, run=Run(operation="UPDATE"))

    refused = {(row.policy, row.name.rpartition(".")[2]) for row in rows if row.result == "fail"}
    assert refused >= {(f"htr-{name}", name) for name in names}


@each_policy
def test_there_is_a_good_and_a_bad_object_of_every_kind_that_a_policy_matches(name: str) -> None:
    (policy,) = policy_files.read(policy_files.FOLDER / f"{name}.yaml")
    rules = policy["spec"]["matchConstraints"]["resourceRules"]
    matched = {_KINDS[resource] for rule in rules for resource in rule["resources"] if "/" not in resource}

    for quality in t.get_args(policy_files.Quality):
        assert {item["kind"] for item in policy_files.objects(name, quality)} >= matched


def test_every_policy_has_objects_and_no_objects_are_of_no_policy() -> None:
    assert sorted(path.name for path in policy_files.CASES.iterdir() if path.is_dir()) == policy_files.NAMES


@pytest.mark.parametrize("way", ["render", "generate"])
def test_what_the_converter_makes_passes_every_policy(tool: Tool, tmp_path: pathlib.Path, way: str) -> None:
    objects = policy_files.example(tmp_path, way)

    rows = _run(tool("kyverno"), objects, *policy_files.NAMES, "apply-identity")

    assert policy_files.refusals(rows) == {}
    passed = {row.policy for row in rows if row.result == "pass"}
    assert passed == {f"htr-{name}" for name in policy_files.NAMES}


def test_without_its_settings_a_policy_refuses_and_does_not_let_everything_pass(
    tool: Tool, tmp_path: pathlib.Path
) -> None:
    policies, canaries = kyverno_cli.load(policy_files.FOLDER), policy_files.canaries()

    rows = kyverno_cli.apply(tool("kyverno"), policies, policy_files.example(tmp_path, "generate"), canaries)

    assert policy_files.refused_by(rows, "example") == ["image-repositories", "job-queue"]
    assert policy_files.refused_by(rows, "htr-warmup-demo-v1") == ["image-repositories", "job-queue"]
    assert {row.message.partition(" — ")[2] for row in rows if row.result == "fail"} == {
        "this policy allows no repository yet: fill in allowedRepositories",
        "use the namespace of a team, or fill in queues",
    }


def test_an_exception_of_kyvernos_lets_one_pipeline_pass(tool: Tool, tmp_path: pathlib.Path) -> None:
    (exception,) = policy_files.exceptions()
    file = tmp_path / "exception.yaml"
    file.write_text(json.dumps(exception), encoding="utf-8")
    other, old = policy_files.objects("models-pinned", "bad")[:2]
    old["metadata"]["name"] = "htr-pipeline-old-v1"

    rows = _run(tool("kyverno"), [old, other], "models-pinned", run=Run(options=("--exception", str(file))))

    assert {row.name: row.result for row in rows} == {"htr-pipeline-old-v1": "skip", other["metadata"]["name"]: "fail"}


_OWN = "system:serviceaccount:team-a:htrflow-apply"
_OTHER = "system:serviceaccount:team-b:htrflow-apply"
_NO_TEAM = "system:serviceaccount:elsewhere:htrflow-apply"
_OUTSIDE = (
    f"{_OTHER} writes only to the namespace team-b, and this is for team-a — write namespace: team-b in converter.yaml"
)


@pytest.mark.parametrize(
    ("user", "operation", "verdict"),
    [
        (_OWN, "CREATE", ("pass", "success")),
        (_OWN, "DELETE", ("pass", "success")),
        (_OTHER, "CREATE", ("fail", _OUTSIDE)),
        (_OTHER, "DELETE", ("fail", _OUTSIDE)),
        (_NO_TEAM, "CREATE", ("fail", f"{_NO_TEAM} is the apply identity of no team — name its namespace in queues")),
        ("system:serviceaccount:team-b:another", "CREATE", ("skip", "skip")),
        ("", "CREATE", ("skip", "skip")),
    ],
)
def test_an_apply_identity_writes_only_to_its_own_namespace(
    tool: Tool, user: str, operation: Operation, verdict: tuple[str, str]
) -> None:
    rows = _run(
        tool("kyverno"), [_config_map(), _job("letters-a")], "apply-identity", run=Run(user=user, operation=operation)
    )

    assert {(row.kind, row.result, row.message) for row in rows} == {("ConfigMap", *verdict), ("Job", *verdict)}


def test_an_apply_identity_writes_only_to_its_own_queue(tool: Tool) -> None:
    night = {"apiVersion": "batch/v1", "kind": "CronJob", "metadata": {"name": "night", "namespace": "team-a"}}
    night["spec"] = {"schedule": "0 3 * * *", "jobTemplate": _job("letters-b")}

    rows = _run(tool("kyverno"), [_config_map(), _job("letters-b"), night], "apply-identity", run=Run(user=_OWN))

    message = f"{_OWN} writes only to the queue letters-a, and this is for letters-b — write queue: letters-a in"
    assert {row.kind: (row.result, row.message) for row in rows} == {
        "ConfigMap": ("pass", "success"),
        "Job": ("fail", f"{message} converter.yaml"),
        "CronJob": ("fail", f"{message} converter.yaml"),
    }


def _run(program: pathlib.Path, objects: t.Iterable[Object], *names: str, run: Run | None = None) -> list[Row]:
    """What policies say, by the names of their files. Kyverno compiles each of them anew for each object."""
    wanted = {f"htr-{name}" for name in names}
    policies = [policy for policy in policy_files.filled() if policy["metadata"]["name"] in wanted]
    return kyverno_cli.apply(program, policies, objects, policy_files.canaries(), run)


def _config_map() -> Object:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "example", "namespace": "team-a"}, "data": {}}


def _job(queue: str) -> Object:
    metadata = {"name": "example", "namespace": "team-a", "labels": {"kueue.x-k8s.io/queue-name": queue}}
    pod = {"restartPolicy": "Never", "containers": [{"name": "wrapper", "image": "registry.example.org/htr/a"}]}
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": metadata, "spec": {"template": {"spec": pod}}}
