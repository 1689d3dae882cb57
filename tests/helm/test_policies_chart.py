"""The policies as the chart installs them, beside the files that a pull request is checked with."""

from __future__ import annotations

import functools
import json
import pathlib
import typing as t

import jsonschema
import pytest
import yaml

from tests import tools
from tests.helm import kyverno_cli, policy_files, schemas
from tests.helm.chart import Helm
from tests.helm.kyverno_cli import KyvernoError, Object

#: They take long together.
pytestmark = pytest.mark.slow

Tool = t.Callable[[str], pathlib.Path]

_QUOTA = {"flavor": "gpu", "nominal": {"cpu": 100, "memory": "400Gi", "gpu": 20}}
_KEY = "-----BEGIN PUBLIC KEY-----\nMFkw\n-----END PUBLIC KEY-----\n"
_KEYLESS = {"issuer": "https://issuer.example.org", "subject": "https://example.org/build"}
_SIGNED: dict[str, dict[str, t.Any]] = {
    "by-key": {"key": _KEY, "transparencyLog": False},
    "by-identity": {"keyless": _KEYLESS},
    "by-any-of-some-identities": {"keyless": {"issuer": "https://issuer.example.org", "subjectRegExp": "^build-.*$"}},
    "some-repositories": {"key": _KEY, "repositories": policy_files.REPOSITORIES},
}


def _policies(helm: Helm, **settings: t.Any) -> list[Object]:
    teams = [
        {"namespace": namespace, "queue": queue, "quota": [_QUOTA]} for namespace, queue in policy_files.QUEUES.items()
    ]
    values = {"enabled": True, "allowedRepositories": policy_files.REPOSITORIES, **settings}
    objects = helm.template(
        "two-teams", namespace="site", settings={"policies": values, "teams": teams, "argocd.enabled": False}
    )
    return [item for item in objects if item["apiVersion"] == "policies.kyverno.io/v1"]


def test_the_chart_installs_the_files_with_their_settings_for_the_namespaces_of_the_teams(helm: Helm) -> None:
    installed = {policy["metadata"]["name"]: policy for policy in _policies(helm)}

    scope = {
        "matchExpressions": [{"key": "kubernetes.io/metadata.name", "operator": "In", "values": ["team-a", "team-b"]}]
    }
    for policy in policy_files.filled():
        found = installed.pop(policy["metadata"]["name"])
        assert found["metadata"].pop("labels")["app.kubernetes.io/managed-by"] == "Helm"
        if policy["metadata"]["name"] != policy_files.ABOUT_USERS:
            assert found["spec"]["matchConstraints"].pop("namespaceSelector") == scope
        assert _with_settings_read(found) == _with_settings_read(policy)
    assert installed == {}


def test_no_policy_is_installed_unless_it_is_asked_for(helm: Helm) -> None:
    assert _policies(helm, enabled=False, signatures={"enabled": True, "key": _KEY}) == []
    assert [policy["kind"] for policy in _policies(helm)] == ["ValidatingPolicy"] * (len(policy_files.NAMES) + 1)


@pytest.mark.parametrize("action", ["Deny", "Warn", "Audit"])
def test_the_policies_do_with_what_they_refuse_what_the_values_say(helm: Helm, action: str) -> None:
    installed = _policies(helm, action=action, signatures={"enabled": True, "key": _KEY})

    assert [policy["spec"]["validationActions"] for policy in installed] == [[action]] * len(installed)
    assert len(installed) == len(policy_files.NAMES) + 2


@pytest.mark.parametrize("signed", _SIGNED)
def test_every_policy_is_valid_for_kyvernos_own_definitions(helm: Helm, signed: str) -> None:
    installed = _policies(helm, signatures={"enabled": True, **_SIGNED[signed]})

    assert len(installed) == len(policy_files.NAMES) + 2
    for policy in [*kyverno_cli.load(policy_files.FOLDER), *installed]:
        errors = _schema(policy["kind"]).iter_errors(policy)
        assert [f"{policy['metadata']['name']}: {error.message}" for error in errors] == []


def test_a_misspelt_field_of_a_policy_is_found() -> None:
    (policy,) = policy_files.read(policy_files.FOLDER / "job-queue.yaml")
    policy["spec"]["validationAction"] = ["Deny"]

    assert list(_schema(policy["kind"]).iter_errors(policy))


def test_the_installed_policies_accept_a_teams_objects_and_look_at_no_other_namespace(
    helm: Helm, tool: Tool, tmp_path: pathlib.Path
) -> None:
    canaries = [policy_files.changed(item, "canary", namespace="team-b") for item in policy_files.canaries()]
    example = policy_files.example(tmp_path)
    elsewhere = [
        policy_files.changed(item, f"{item['metadata']['name']}.elsewhere", namespace="elsewhere")
        for item in policy_files.objects("image-digests", "bad")[:3]
    ]

    rows = kyverno_cli.apply(tool("kyverno"), _policies(helm), [*example, *elsewhere], canaries)

    assert policy_files.refusals(rows) == {}
    assert {row.policy for row in rows if row.namespace == "team-a" and row.result == "pass"} == {
        f"htr-{name}" for name in policy_files.NAMES
    }
    assert {row.policy for row in rows if row.namespace == "elsewhere"} <= {policy_files.ABOUT_USERS}
    with pytest.raises(KyvernoError, match="no canary was refused"):
        kyverno_cli.apply(tool("kyverno"), _policies(helm), example, policy_files.canaries())


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"allowedRepositories": []}, "policies.allowedRepositories is empty — name where images may come from"),
        ({"allowedRepositories": ["riksarkivet"]}, "allowedRepositories"),
        ({"allowedRepositories": ["registry.example.org/htr/"]}, "allowedRepositories"),
        ({"allowedRepositories": ["https://registry.example.org"]}, "allowedRepositories"),
        ({"allowedRepositories": ["registry.example.org/htr:1"]}, "allowedRepositories"),
        ({"allowedRepositories": ["index.docker.io/riksarkivet"]}, "allowedRepositories"),
        ({"signatures": {"enabled": True}}, "neither a key nor keyless.issuer — set one of them"),
        ({"signatures": {"enabled": True, "key": _KEY, "keyless": _KEYLESS}}, "both a key and keyless.issuer"),
        ({"signatures": {"enabled": True, "keyless": {"issuer": "a"}}}, "an issuer and no subject"),
        ({"signatures": {"enabled": True, "key": "cosign.pub"}}, "key"),
    ],
)
def test_settings_under_which_a_policy_would_let_everything_pass_or_nothing_are_refused(
    helm: Helm, settings: dict[str, t.Any], said: str
) -> None:
    values = {"enabled": True, "allowedRepositories": policy_files.REPOSITORIES, **settings}

    assert said in helm.refusal("two-teams", settings={"policies": values})


def test_an_image_of_the_site_that_its_own_policies_would_refuse_is_refused_at_once(helm: Helm) -> None:
    values = {"policies": {"enabled": True, "allowedRepositories": ["docker.io/riksarkivet"]}}

    assert "which policies.allowedRepositories does not allow in the namespace htr-batch" in helm.refusal(
        "full", settings=values
    )


def test_the_pods_of_the_site_pass_the_policies_of_the_namespace_that_they_are_in(helm: Helm, tool: Tool) -> None:
    values = {"policies": {"enabled": True, "allowedRepositories": ["registry.example.org"]}}
    objects = helm.template("full", settings=values)
    policies = [item for item in objects if item["apiVersion"] == "policies.kyverno.io/v1"]
    pods = [
        {"apiVersion": "v1", "kind": "Pod", **item["spec"]["template"]}
        for item in objects
        if item["kind"] == "Deployment"
    ]
    for number, pod in enumerate(pods):
        pod["metadata"] = {**pod["metadata"], "name": f"site-{number}", "namespace": "htr-batch"}
    maps = [
        {**item, "metadata": {**item["metadata"], "namespace": "htr-batch"}}
        for item in objects
        if item["kind"] == "ConfigMap"
    ]
    canaries = [policy_files.changed(item, "canary", namespace="htr-batch") for item in policy_files.canaries()]

    rows = kyverno_cli.apply(tool("kyverno"), policies, [*pods, *maps], canaries)

    assert policy_files.refusals(rows) == {}
    passed = {row.policy for row in rows if row.kind == "Pod" and row.result == "pass"}
    assert (len(pods), passed) == (2, {"htr-image-digests", "htr-image-repositories"})


def _with_settings_read(policy: Object) -> Object:
    variables = policy["spec"].get("variables", [])
    read = [
        {**item, "expression": json.loads(item["expression"])}
        if item["name"] in ("queues", "allowedRepositories")
        else item
        for item in variables
    ]
    return {**policy, "spec": {**policy["spec"], "variables": read}}


@functools.cache
def _schema(kind: str) -> t.Any:
    folder = tools.find("kyverno").parents[1] / "share" / "crds" / "policies.kyverno.io"
    definition = yaml.safe_load(
        (folder / f"policies.kyverno.io_{kind[:-1].lower()}ies.yaml").read_text(encoding="utf-8")
    )
    (version,) = (row for row in definition["spec"]["versions"] if row["name"] == "v1")
    return jsonschema.Draft202012Validator(schemas.strict(version["schema"]["openAPIV3Schema"]))
