"""Folders of policies: what is taken from them, and what is said of the rest."""

from __future__ import annotations

import json
import pathlib
import typing as t

import pytest
import yaml

from htrflow_action import inputs, policies
from htrflow_action.policies import Policies

VERSION = "policies.kyverno.io/v1"
QUEUES = {"team-a": "letters-a"}


def policy(
    name: str,
    expression: str = "false",
    *,
    kind: str = "ValidatingPolicy",
    actions: t.Sequence[str] = ("Deny",),
    message: str = "",
    resources: t.Sequence[str] = ("jobs",),
    **metadata: t.Any,
) -> dict[str, t.Any]:
    """A policy about Jobs, or about other ``resources``."""
    group = "batch" if resources[0] == "jobs" else ""
    rule = {"apiGroups": [group], "apiVersions": ["v1"], "operations": ["CREATE", "UPDATE"], "resources": [*resources]}
    return {
        "apiVersion": VERSION,
        "kind": kind,
        "metadata": {"name": name, **metadata},
        "spec": {
            "validationActions": [*actions],
            "autogen": {"podControllers": {"controllers": []}},
            "matchConstraints": {"resourceRules": [rule]},
            "validations": [{"expression": expression, "message": message or f"{name} says no — write yes"}],
        },
    }


def write(folder: pathlib.Path, **files: t.Any) -> pathlib.Path:
    """Writes each file: one document, a list of them, or text."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in files.items():
        text = (
            content
            if isinstance(content, str)
            else yaml.safe_dump_all(content if isinstance(content, list) else [content])
        )
        (folder / f"{name}.yaml").write_text(text, encoding="utf-8")
    return folder


def read(folder: pathlib.Path, *repositories: str) -> Policies:
    return policies.read(folder, folder.parent, QUEUES, repositories)


def said(found: Policies) -> list[str]:
    return [f"{':'.join(map(str, each.position))} {each.rule.name}: {each.what}" for each in found.problems]


def test_the_policies_of_the_chart_are_taken_with_their_settings() -> None:
    found = read(inputs.CHART_POLICIES, "docker.io/riksarkivet")

    assert len(found.policies) == len([*inputs.CHART_POLICIES.glob("*.yaml")])
    assert (found.problems, found.left_out, found.exceptions) == ([], [], [])
    settings = {
        variable["name"]: json.loads(variable["expression"])
        for each in found.policies
        for variable in each.object["spec"].get("variables", ())
        if variable["name"] in ("queues", "allowedRepositories")
    }
    assert settings == {"queues": QUEUES, "allowedRepositories": ["docker.io/riksarkivet"]}


def test_without_repositories_the_policy_about_them_is_left_out_and_named() -> None:
    found = read(inputs.CHART_POLICIES)

    assert found.left_out == ["htr-image-repositories"]
    assert "htr-image-repositories" not in {each.name for each in found.policies}


def test_a_setting_that_is_filled_in_stays(tmp_path: pathlib.Path) -> None:
    own = policy("own")
    own["spec"]["variables"] = [{"name": "allowedRepositories", "expression": '["ghcr.io/own"]'}]

    (found,) = read(write(tmp_path / "policies", own=own), "docker.io/other").policies

    assert found.object == own


def test_what_is_no_policy_is_named_by_its_file_and_the_policies_beside_it_are_taken(tmp_path: pathlib.Path) -> None:
    folder = write(
        tmp_path / "policies",
        bad="a: [\n",
        cluster={"apiVersion": "kyverno.io/v1", "kind": "ClusterPolicy", "metadata": {"name": "old"}},
        good=[policy("one"), policy("two")],
        images=policy("signed", kind="ImageValidatingPolicy"),
        map={"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}},
        nameless={"apiVersion": VERSION, "kind": "ValidatingPolicy"},
        twice=policy("one"),
        empty="# nothing\n",
    )
    (folder / "kustomization.txt").write_text("no YAML: [", encoding="utf-8")
    (folder / "link.yaml").symlink_to("/etc/passwd")

    found = read(folder)

    assert [each.name for each in found.policies] == ["one", "two"]
    assert said(found) == [
        "policies/bad.yaml:1:1 policy-unread: while parsing a flow node",
        'policies/cluster.yaml:1:1 policy-unread: "kyverno.io/v1 ClusterPolicy" is nothing that is checked here',
        "policies/images.yaml:1:1 policy-not-checked: the ImageValidatingPolicy signed is not checked here: it asks"
        " the images' registry",
        "policies/link.yaml:1:1 policy-unread: this is a link or no file, and only files are read",
        'policies/map.yaml:1:1 policy-unread: "v1 ConfigMap" is nothing that is checked here',
        "policies/nameless.yaml:1:1 policy-unread: this is no object of Kubernetes with a kind and a name",
        'policies/twice.yaml:1:1 policy-unread: there are two policies "one"',
    ]


def test_a_folder_without_policies_is_a_problem(tmp_path: pathlib.Path) -> None:
    assert said(read(write(tmp_path / "policies"))) == [
        "policies:1:1 policies-missing: there is no policy in this folder, so nothing would be checked"
    ]


def test_a_namespaced_policy_is_called_as_in_reports(tmp_path: pathlib.Path) -> None:
    own = policy("own", kind="NamespacedValidatingPolicy", namespace="team-a")

    assert [each.name for each in read(write(tmp_path / "policies", own=own)).policies] == ["team-a/own"]


def test_a_policy_that_only_warns_does_not_deny(tmp_path: pathlib.Path) -> None:
    folder = write(tmp_path / "policies", a=policy("a", actions=["Warn", "Audit"]), b=policy("b", actions=["Deny"]))

    assert {each.name: each.denies for each in read(folder).policies} == {"a": False, "b": True}


def test_objects_for_policies_of_ones_own_to_refuse_stand_beside_them(tmp_path: pathlib.Path) -> None:
    canary = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "mine"}}
    folder = write(tmp_path / "policies", a=policy("a"), canaries=canary)

    assert read(folder).canaries == [canary]


def test_what_is_no_single_object_among_the_canaries_is_said(tmp_path: pathlib.Path) -> None:
    folder = write(tmp_path / "policies", a=policy("a"), canaries=[{"kind": "JobList", "metadata": {"name": "a"}}, "b"])

    assert (
        said(read(folder))
        == ["policies/canaries.yaml:1:1 policy-unread: a canary is one object of Kubernetes, with a kind and a name"]
        * 2
    )


@pytest.mark.parametrize(
    "expression",
    [
        "http.Get('http://169.254.169.254/').ok",
        "[http].all(h, h.Get('x').ok)",
        "resource.Get('v1', 'secrets', 'a', 'b') != null",
        "globalContext.Get('a', '') == 1",
        "image.GetMetadata('a').ok",
    ],
)
def test_a_policy_that_asks_others_is_left_to_the_cluster(tmp_path: pathlib.Path, expression: str) -> None:
    folder = write(tmp_path / "policies", asks=policy("asks", expression), good=policy("good", "a == 'http://b'"))

    assert [each.name for each in read(folder).policies] == ["good"]
    what = "the ValidatingPolicy asks is not checked here: it asks other servers"
    assert said(read(folder)) == [f"policies/asks.yaml:1:1 policy-not-checked: {what}"]
