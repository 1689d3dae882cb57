"""A cluster in which Kyverno is asked before anything is stored."""

from __future__ import annotations

import pathlib
import secrets
import typing as t

import pytest
import yaml

from tests.testbed.plugin.api import ApiError, Object
from tests.testbed.plugin.cluster import Cluster

pytestmark = pytest.mark.slow

_POLICY = pathlib.Path(__file__).with_name("programs") / "policy.yaml"


@pytest.fixture
def guarded(guarded_cluster: Cluster) -> t.Iterator[str]:
    """A namespace in which no image floats."""
    api, name = guarded_cluster.api, f"test-{secrets.token_hex(4)}"
    api.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
    policy = yaml.safe_load(_POLICY.read_text(encoding="utf-8"))
    policy["metadata"]["name"] = name
    selector = {"matchLabels": {"kubernetes.io/metadata.name": name}}
    policy["spec"]["matchConstraints"]["namespaceSelector"] = selector
    api.create(policy)
    yield name
    api.delete(f"{policy['apiVersion']}/{policy['kind']}", name)
    api.delete("v1/Namespace", name)


def test_kyverno_refuses_a_floating_image_once_its_policy_is_there_and_lets_a_digest_pass(
    guarded_cluster: Cluster, guarded: str, generated: t.Callable[..., list[Object]]
) -> None:
    api = guarded_cluster.api
    (job,) = (item for item in generated(guarded) if item["metadata"]["name"] == "example")
    floating = {**job, "metadata": {**job["metadata"], "name": "floating"}}
    pod = {**job["spec"]["template"]["spec"], "containers": [{**job["spec"]["template"]["spec"]["containers"][0]}]}
    pod["containers"][0]["image"] = "registry.example.org/htrflow-batch:latest"
    floating["spec"] = {**job["spec"], "template": {**job["spec"]["template"], "spec": pod}}

    def refusal() -> str:
        try:
            api.create(floating, dry_run=True)
        except ApiError as error:
            return str(error)
        return ""

    said = api.wait_for(refusal, "the policy holds")

    assert said.endswith("images without a digest: registry.example.org/htrflow-batch:latest")
    assert ".kyverno.svc" in said
    api.create(job)
