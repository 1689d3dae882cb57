"""What Kyverno's command line cannot show: real changes, a subresource and real users.

The policies that need nothing of Kyverno's own are given to a real API server as its own kind of policy, which has the
same fields and evaluates the same expressions.
"""

from __future__ import annotations

import contextlib
import pathlib
import secrets
import typing as t

import pytest

from tests.helm import kyverno_cli, policy_files
from tests.testbed.plugin.api import Api, ApiError, Object
from tests.testbed.plugin.cluster import Cluster
from tests.testbed.plugin.namespace import QUEUE, Namespace

_GROUP = "admissionregistration.k8s.io/v1"
_POLICY, _BINDING = f"{_GROUP}/ValidatingAdmissionPolicy", f"{_GROUP}/ValidatingAdmissionPolicyBinding"
_SHARED_FIELDS = ("failurePolicy", "matchConstraints", "matchConditions", "variables", "validations")
_FLOATING = "docker.io/riksarkivet/htrflow-batch:latest"
_JOB, _POD = "batch/v1/Job", "v1/Pod"


class _Policies:
    """Policies in one namespace of a cluster."""

    def __init__(self, api: Api, namespace: str, queues: t.Mapping[str, str]) -> None:
        self.api, self._namespace = api, namespace
        loaded = kyverno_cli.load(policy_files.FOLDER)
        filled = kyverno_cli.fill_in(loaded, queues=queues, allowedRepositories=["docker.io/riksarkivet"])
        self._policies = {policy["metadata"]["name"]: policy for policy in filled}
        self._made: list[tuple[str, str]] = []

    def install(self, name: str, canary: Object, api: Api | None = None) -> None:
        """Installs a policy, and waits until it refuses the canary."""
        spec = {key: value for key, value in self._policies[f"htr-{name}"]["spec"].items() if key in _SHARED_FIELDS}
        unique = f"{name}-{secrets.token_hex(4)}"
        here = {"matchLabels": {"kubernetes.io/metadata.name": self._namespace}}
        binding = {"policyName": unique, "validationActions": ["Deny"], "matchResources": {"namespaceSelector": here}}
        for kind, content in ((_POLICY, spec), (_BINDING, binding)):
            version, _, short = kind.rpartition("/")
            self.api.create({"apiVersion": version, "kind": short, "metadata": {"name": unique}, "spec": content})
            self._made.append((kind, unique))
        self.api.wait_for(lambda: refusal(lambda: (api or self.api).create(canary, dry_run=True)), f"{name} holds")

    def remove(self) -> None:
        for kind, name in reversed(self._made):
            self.api.delete(kind, name)


def refusal(attempt: t.Callable[[], object]) -> str:
    """What a policy says of an attempt, or nothing when it may be."""
    try:
        attempt()
    except ApiError as error:
        if "ValidatingAdmissionPolicy" not in str(error):
            raise
        return str(error).partition("denied request: ")[2]
    return ""


@pytest.fixture
def policies(cluster: Cluster, namespace: Namespace) -> t.Iterator[_Policies]:
    made = _Policies(cluster.api, namespace.name, {namespace.name: QUEUE})
    with contextlib.ExitStack() as stack:
        stack.callback(made.remove)
        yield made


@pytest.fixture
def warm_up(tmp_path: pathlib.Path, namespace: Namespace) -> Object:
    """The warm-up Job of the example, which needs no queue."""
    (found,) = (item for item in policy_files.example(tmp_path) if item["metadata"]["name"] == "htr-warmup-demo-v1")
    found["metadata"]["namespace"] = namespace.name
    return found


def _with_image(pod: Object, image: str) -> Object:
    return {**pod, "containers": [{**container, "image": image} for container in pod["containers"]]}


def test_an_image_cannot_be_changed_or_added_to_a_pod_and_an_old_pod_can_be_released(
    policies: _Policies, namespace: Namespace, warm_up: Object
) -> None:
    api, here = policies.api, namespace.name
    template = warm_up["spec"]["template"]["spec"]
    pod = {"apiVersion": "v1", "kind": "Pod", "spec": _with_image(template, _FLOATING)}
    api.create({**pod, "metadata": {"name": "old", "namespace": here, "finalizers": ["example.org/held"]}})
    canary = {**pod, "metadata": {"name": "new", "namespace": here}}
    policies.install("image-digests", canary)
    pinned = template["containers"][0]["image"]
    foreign = pinned.replace("docker.io", "ghcr.io")
    policies.install("image-repositories", {**canary, "spec": _with_image(template, foreign)})

    def replace(image: str) -> str:
        change = {"spec": {"containers": [{"name": "warmup", "image": image}]}}
        return refusal(lambda: api.patch(_POD, "old", change, here, way="strategic"))

    def debug(image: str) -> str:
        security = template["containers"][0]["securityContext"]
        change = {"spec": {"ephemeralContainers": [{"name": "debug", "image": image, "securityContext": security}]}}
        return refusal(lambda: api.patch(_POD, "old", change, here, subresource="ephemeralcontainers", way="strategic"))

    assert "images not pinned by digest: docker.io/riksarkivet/other:1 — write" in replace(
        "docker.io/riksarkivet/other:1"
    )
    assert "not allowed: ghcr.io/riksarkivet/htrflow-batch@" in replace(foreign)
    assert "images not pinned by digest: docker.io/riksarkivet/tool:1 — write" in debug("docker.io/riksarkivet/tool:1")
    assert debug(pinned) == ""
    assert refusal(lambda: api.patch(_POD, "old", {"metadata": {"finalizers": []}}, here)) == ""
    assert replace(pinned) == ""


def test_a_job_cannot_leave_its_queue_and_an_old_job_can_be_released(
    policies: _Policies, namespace: Namespace, warm_up: Object, tmp_path: pathlib.Path
) -> None:
    api, here = policies.api, namespace.name
    old = policy_files.changed(warm_up, "old", finalizers=["example.org/held"])
    api.create(old)
    policies.install("job-queue", policy_files.changed(warm_up, "canary"))

    api.create(warm_up)
    queued = policy_files.changed(warm_up, "queued", labels={"kueue.x-k8s.io/queue-name": QUEUE})
    api.create(queued)
    elsewhere = policy_files.changed(warm_up, "elsewhere", labels={"kueue.x-k8s.io/queue-name": "other"})
    assert "a Job in the queue other — label it" in refusal(lambda: api.create(elsewhere))
    assert "a Job without a queue — label it" in refusal(
        lambda: api.patch(_JOB, "old", {"spec": {"parallelism": 2}}, here)
    )
    assert "a Job without a queue — label it" in refusal(
        lambda: api.patch(_JOB, warm_up["metadata"]["name"], {"metadata": {"labels": {"app": None}}}, here)
    )
    assert refusal(lambda: api.patch(_JOB, "old", {"metadata": {"finalizers": []}}, here)) == ""


def test_an_apply_identity_is_told_that_it_is_in_anothers_namespace(
    policies: _Policies, namespace: Namespace, cluster: Cluster
) -> None:
    def api(home: str) -> Api:
        return Api(cluster.kubeconfig(f"system:serviceaccount:{home}:htrflow-apply", ["system:masters"]))

    item = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "namespace": namespace.name}, "data": {}}
    with contextlib.closing(api(namespace.name)) as own, contextlib.closing(api("elsewhere")) as other:
        policies.install("apply-identity", item, other)

        own.create(item)
        assert "htrflow-apply is the apply identity of no team — name its namespace in queues" in refusal(
            lambda: other.delete("v1/ConfigMap", "a", namespace.name)
        )
        own.delete("v1/ConfigMap", "a", namespace.name)
