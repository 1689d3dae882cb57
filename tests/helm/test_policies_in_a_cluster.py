"""The policies in the hands of Kyverno's admission controller: objects, real changes and a subresource."""

from __future__ import annotations

import contextlib
import functools
import json
import pathlib
import subprocess
import typing as t

import pytest

from tests.helm import admission, kyverno_cli, policy_files, signing
from tests.helm.admission import Policies
from tests.helm.chart import Helm
from tests.helm.registry import Registry
from tests.testbed.plugin.api import ApiError, Object
from tests.testbed.plugin.cluster import Cluster

#: They take long together.
pytestmark = pytest.mark.slow

_FLOATING = "docker.io/riksarkivet/htrflow-batch:latest"
_JOB, _POD = "batch/v1/Job", "v1/Pod"
_TEAM = "team-a"

#: What of the cases never comes to Kyverno, by what the API server says first. Kueue is asked at the same time.
_REFUSED_BEFORE = {
    "a-pod-with-digests.good": "cannot be set on create",
    "a-pod-with-a-floating-debug-container.bad": "cannot be set on create",
    "a-pod-with-an-allowed-debug-container.good": "cannot be set on create",
    "a-pod-with-a-foreign-debug-container.bad": "cannot be set on create",
    "no-image-at-all.bad": "image: Required value",
    "an-empty-queue.bad": "RFC 1123 subdomain|a Job without a queue",
    "htr-warmup-with-a-part-of-a-gpu.bad": "Limit must be set for non overcommitable resources",
}
#: The API server gives a Job without labels those of its pods, and these Jobs are good then.
_LABELLED_BY_THE_SERVER = ("the-queue-on-the-pods-only.bad", "htr-warmup-without-its-label.bad")


@pytest.fixture
def policies(guarded_cluster: Cluster) -> t.Iterator[Policies]:
    made = Policies(guarded_cluster.api)
    made.create_namespaces()
    with contextlib.ExitStack() as stack:
        stack.callback(made.remove)
        yield made


@pytest.fixture
def warm_up(policies: Policies, tmp_path: pathlib.Path) -> Object:
    """The warm-up Job of the example, which needs no queue."""
    (found,) = (item for item in policy_files.example(tmp_path) if item["metadata"]["name"] == "htr-warmup-demo-v1")
    return policies.here(found)


@pytest.mark.parametrize("name", policy_files.NAMES)
def test_kyverno_says_to_the_api_server_of_every_object_what_its_command_says(
    policies: Policies, tool: t.Callable[[str], pathlib.Path], name: str
) -> None:
    cases = [
        (policy_files.changed(item, f"{item['metadata']['name']}.{quality}"), item)
        for quality in t.get_args(policy_files.Quality)
        for item in policy_files.read(policy_files.CASES / name / f"{quality}.yaml")
    ]
    (policy,) = (item for item in policy_files.filled() if item["metadata"]["name"] == f"htr-{name}")
    rows = kyverno_cli.apply(tool("kyverno"), [policy], [item for item, _ in cases], policy_files.canaries())
    expected = admission.verdicts(rows)
    policies.install(name)

    said = {}
    for case, item in cases:
        key = case["metadata"]["name"]
        before = _REFUSED_BEFORE.get(key)
        if before:
            with pytest.raises(ApiError, match=before):
                policies.api.create(policies.here(item), dry_run=True)
            del expected[key]
        else:
            said[key] = policies.creating(policies.here(item))

    assert said == expected | {key: "" for key in _LABELLED_BY_THE_SERVER if key in expected}
    assert {bool(message) for message in said.values()} == {True, False}


def _with_image(pod: Object, image: str) -> Object:
    return {**pod, "containers": [{**container, "image": image} for container in pod["containers"]]}


def _debugging(policies: Policies, pod: str, image: str) -> str:
    """What Kyverno says of a debug container in a pod that is there."""
    change = {"spec": {"ephemeralContainers": [{"name": "debug", "image": image}]}}
    where = policies.namespace(_TEAM)
    return policies.said(
        lambda: policies.api.patch(_POD, pod, change, where, subresource="ephemeralcontainers", way="strategic")
    )


def test_an_image_cannot_be_changed_or_added_to_a_pod_and_an_old_pod_can_be_released(
    policies: Policies, warm_up: Object
) -> None:
    api, here = policies.api, policies.namespace(_TEAM)
    template = warm_up["spec"]["template"]["spec"]
    pod: Object = {"apiVersion": "v1", "kind": "Pod", "spec": _with_image(template, _FLOATING)}
    del pod["spec"]["runtimeClassName"]
    api.create({**pod, "metadata": {"name": "old", "namespace": here, "finalizers": ["example.org/held"]}})
    policies.install("image-digests")
    pinned = template["containers"][0]["image"]
    foreign = pinned.replace("docker.io", "ghcr.io")
    policies.install("image-repositories")

    def replace(image: str) -> str:
        change = {"spec": {"containers": [{"name": "warmup", "image": image}]}}
        return policies.said(lambda: api.patch(_POD, "old", change, here, way="strategic"))

    debug = functools.partial(_debugging, policies, "old")

    assert "images not pinned by digest: docker.io/riksarkivet/other:1 — write" in replace(
        "docker.io/riksarkivet/other:1"
    )
    assert "not allowed: ghcr.io/riksarkivet/htrflow-batch@" in replace(foreign)
    assert "images not pinned by digest: docker.io/riksarkivet/tool:1 — write" in debug("docker.io/riksarkivet/tool:1")
    assert debug(pinned) == ""
    assert policies.said(lambda: api.patch(_POD, "old", {"metadata": {"finalizers": []}}, here)) == ""
    assert replace(pinned) == ""


def test_a_job_cannot_leave_its_queue_and_an_old_job_can_be_released(policies: Policies, warm_up: Object) -> None:
    api, here = policies.api, policies.namespace(_TEAM)
    old = policy_files.changed(warm_up, "old", finalizers=["example.org/held"])
    api.create(old)
    policies.install("job-queue")

    api.create(warm_up)
    queue = policy_files.QUEUES[_TEAM]
    queued = policy_files.changed(warm_up, "queued", labels={"kueue.x-k8s.io/queue-name": queue})
    api.create(queued)
    elsewhere = policy_files.changed(warm_up, "elsewhere", labels={"kueue.x-k8s.io/queue-name": "other"})
    assert "a Job in the queue other — label it" in policies.said(lambda: api.create(elsewhere))
    assert "a Job without a queue — label it" in policies.said(
        lambda: api.patch(_JOB, "old", {"spec": {"parallelism": 2}}, here)
    )
    assert "a Job without a queue — label it" in policies.said(
        lambda: api.patch(_JOB, warm_up["metadata"]["name"], {"metadata": {"labels": {"app": None}}}, here)
    )
    assert policies.said(lambda: api.patch(_JOB, "old", {"metadata": {"finalizers": []}}, here)) == ""


@pytest.mark.parametrize("action", ["Audit", "Warn"])
def test_a_policy_that_is_told_not_to_refuse_lets_pass_and_one_that_warns_says_why(
    policies: Policies, guarded_cluster: Cluster, tool: t.Callable[[str], pathlib.Path], action: str
) -> None:
    policies.install("configmap-text", action=action)
    # Another policy holds, so the API server asks Kyverno.
    policies.install("pipeline-key")
    (item, *_) = policy_files.read(policy_files.CASES / "configmap-text" / "bad.yaml")
    command = [str(tool("kubectl")), f"--kubeconfig={guarded_cluster.admin}", "create", "--filename=-"]

    done = subprocess.run(
        command, input=json.dumps(policies.here(item)), capture_output=True, text=True, check=False, timeout=60
    )

    assert done.returncode == 0, done.stderr
    assert ("binaryData in a ConfigMap, which no policy can read" in done.stderr) == (action == "Warn")


def test_an_image_needs_a_signature_at_admission_and_in_a_pod_that_runs(policies: Policies, helm: Helm) -> None:
    with contextlib.closing(Registry()) as registry:
        key = signing.new_key()
        signed, unsigned = registry.image("htr/signed", key), registry.image("htr/unsigned")
        name = policies.add(signing.policy(helm, registry, key))

        def pod(name: str, image: str) -> Object:
            spec = {"containers": [{"name": "wrapper", "image": image}]}
            metadata = {"name": name, "namespace": policies.namespace(_TEAM)}
            return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}

        debug = functools.partial(_debugging, policies, "signed")

        policies.wait(name, [pod("canary", unsigned)])

        refused = f"{signing.UNSIGNED}{unsigned}{signing.INSTEAD}"
        assert policies.said(lambda: policies.api.create(pod("signed", signed))) == ""
        assert policies.said(lambda: policies.api.create(pod("unsigned", unsigned))) == refused
        assert debug(unsigned) == refused
        assert debug(signed) == ""


def test_the_exception_of_the_documentation_lets_one_pipeline_pass(policies: Policies) -> None:
    (exception,) = policy_files.exceptions()
    name = policies.install("models-pinned")
    exception["spec"]["policyRefs"][0]["name"] = name
    exception["metadata"]["name"] = name
    policies.create(exception)
    other, old = policy_files.read(policy_files.CASES / "models-pinned" / "bad.yaml")[:2]
    old["metadata"]["name"] = "htr-pipeline-old-v1"

    policies.api.wait_for(lambda: policies.creating(policies.here(old)) == "", "the exception holds")
    assert "models not pinned to a revision" in policies.creating(policies.here(other))
