"""A cluster with Kueue and without machines."""

from __future__ import annotations

import json
import pathlib
import subprocess
import typing as t

import pytest

from tests.testbed.plugin.api import Api, ApiError, Object
from tests.testbed.plugin.cluster import Cluster
from tests.testbed.plugin.fake_nodes import FakeNodes
from tests.testbed.plugin.kubelet import Life, index_of
from tests.testbed.plugin.namespace import PRIORITIES, Namespace

Generated = t.Callable[..., list[Object]]
_CAMPAIGN = "example"


@pytest.mark.parametrize("way", ["generated", "rendered"])
def test_the_converters_objects_pass_a_server_side_dry_run_and_are_created(
    namespace: Namespace, request: pytest.FixtureRequest, way: str
) -> None:
    objects = request.getfixturevalue(way)(namespace.name)

    namespace.create_all(objects, dry_run=True)
    assert not namespace.api.list("batch/v1/Job", namespace.name)
    namespace.create_all(objects)

    made = {(item["kind"], item["metadata"]["name"]) for item in objects}
    assert {("Job", _CAMPAIGN), ("ConfigMap", f"campaign-{_CAMPAIGN}")} <= made
    for kind, name in made:
        version = {"Job": "batch/v1"}.get(kind, "v1")
        assert namespace.api.get(f"{version}/{kind}", name, namespace.name)


def test_the_server_refuses_a_misspelt_field_and_a_pod_that_is_not_restricted(
    namespace: Namespace, generated: Generated
) -> None:
    (job,) = (item for item in generated(namespace.name) if item["metadata"]["name"] == _CAMPAIGN)
    job["spec"]["paralelism"] = 2
    with pytest.raises(ApiError, match=r'unknown field "spec\.paralelism"'):
        namespace.api.create(job, dry_run=True)

    container = {"name": "main", "image": "registry.example.org/none"}
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p", "namespace": namespace.name}}
    with pytest.raises(ApiError, match='violates PodSecurity "restricted'):
        namespace.api.create({**pod, "spec": {"containers": [container]}}, dry_run=True)


def test_kueue_suspends_a_campaign_and_admits_it_when_there_is_quota(
    namespace: Namespace, generated: Generated
) -> None:
    namespace.quota(gpu=0)
    objects = generated(namespace.name)
    created = {item["metadata"]["name"]: item for item in namespace.create_all(objects)}
    assert created[_CAMPAIGN]["spec"]["suspend"] is True

    def refused() -> Object | None:
        found = namespace.workload(_CAMPAIGN)
        conditions = found.get("status", {}).get("conditions", []) if found else []
        return next((row for row in conditions if row["type"] == "QuotaReserved" and row["status"] == "False"), None)

    said = namespace.wait_for(refused, "Kueue says why the campaign waits")
    assert "insufficient quota for nvidia.com/gpu" in said["message"]
    waiting = namespace.workload(_CAMPAIGN)
    assert waiting is not None
    assert waiting["spec"]["priority"] == PRIORITIES["htr-bulk"]
    assert namespace.job(_CAMPAIGN)["spec"]["suspend"] is True
    assert not [pod for pod in namespace.pods() if pod["metadata"]["labels"].get("job-name") == _CAMPAIGN]

    namespace.quota(gpu=10)

    namespace.wait_for(lambda: not namespace.job(_CAMPAIGN)["spec"]["suspend"], "Kueue lets the campaign run")
    namespace.wait_for(lambda: _pods(namespace), "the Job has pods")


def test_kueue_says_how_many_are_before_one_in_the_queue(
    cluster: Cluster, namespace: Namespace, generated: Generated
) -> None:
    namespace.quota(gpu=0)
    namespace.create_all(generated(namespace.name))

    path = f"/apis/visibility.kueue.x-k8s.io/v1beta2/namespaces/{namespace.name}/localqueues/htr-batch/pendingworkloads"

    def waiting() -> list[str]:
        return [row["metadata"]["ownerReferences"][0]["name"] for row in cluster.api.request("GET", path)["items"]]

    namespace.wait_for(lambda: _CAMPAIGN in waiting(), "the campaign is in the queue")


def test_kueue_converts_its_objects_to_its_old_version(cluster: Cluster, namespace: Namespace) -> None:
    old = cluster.api.get("kueue.x-k8s.io/v1beta1/ClusterQueue", namespace.name)

    assert old["apiVersion"] == "kueue.x-k8s.io/v1beta1"
    new = cluster.api.get("kueue.x-k8s.io/v1beta2/ClusterQueue", namespace.name)
    assert old["metadata"]["uid"] == new["metadata"]["uid"]


def test_kueues_webhook_refuses_to_move_a_running_campaign_to_another_queue(
    namespace: Namespace, generated: Generated
) -> None:
    namespace.create_all(generated(namespace.name))
    namespace.wait_for(lambda: not namespace.job(_CAMPAIGN)["spec"]["suspend"], "Kueue lets the campaign run")

    change = {"metadata": {"labels": {"kueue.x-k8s.io/queue-name": "other"}}}
    with pytest.raises(ApiError, match="field is immutable"):
        namespace.api.patch("batch/v1/Job", _CAMPAIGN, change, namespace.name)


def test_an_index_whose_pod_exits_0_is_complete_and_one_that_exits_13_fails_at_once(
    namespace: Namespace, fake_nodes: FakeNodes, generated: Generated
) -> None:
    said = '{"stage": "load", "permanent": true, "error": "no such page"}'
    bad = Life(exit_code=13, container="wrapper", message=said)
    fake_nodes.play(lambda pod: bad if index_of(pod) == "1" else Life())

    namespace.create_all(generated(namespace.name))
    status = _finished(namespace)

    assert (status["completedIndexes"], status["failedIndexes"]) == ("0,2", "1")
    assert status["failed"] == 1, "a pod that exits 13 is not tried again"
    assert {row["type"] for row in status["conditions"] if row["status"] == "True"} >= {"Failed"}
    (pod,) = (pod for pod in _pods(namespace) if index_of(pod) == "1")
    assert pod["status"]["containerStatuses"][0]["state"]["terminated"]["message"] == said


@pytest.mark.slow
def test_a_pod_that_is_evicted_is_replaced_without_a_retry_charged(
    namespace: Namespace, fake_nodes: FakeNodes, generated: Generated
) -> None:
    namespace.create_all(generated(namespace.name))
    namespace.wait_for(lambda: len(_running(namespace)) == 3, "three pods run")
    drained, pressed, left = _running(namespace)
    fake_nodes.play(Life())

    fake_nodes.evict(drained["metadata"]["name"])
    fake_nodes.evict_under_pressure(pressed["metadata"]["name"])

    namespace.wait_for(
        lambda: namespace.job(_CAMPAIGN)["status"].get("succeeded") == 2, "the replacements have run to their end"
    )
    job = namespace.job(_CAMPAIGN)
    assert "failedIndexes" not in job["status"] or job["status"]["failedIndexes"] == ""
    assert [pod["metadata"]["name"] for pod in _running(namespace)] == [left["metadata"]["name"]]
    replacements = [pod for pod in _pods(namespace) if pod["status"]["phase"] == "Succeeded"]
    counts = {pod["metadata"]["annotations"]["batch.kubernetes.io/job-index-failure-count"] for pod in replacements}
    assert counts == {"0"}


@pytest.mark.slow
def test_a_pod_that_exits_1_is_tried_again_with_a_retry_charged(
    namespace: Namespace, fake_nodes: FakeNodes, generated: Generated
) -> None:
    attempts: list[str] = []

    def script(pod: Object) -> Life:
        count = pod["metadata"]["annotations"]["batch.kubernetes.io/job-index-failure-count"]
        attempts.append(count)
        return Life(exit_code=1) if count == "0" else Life()

    fake_nodes.play(lambda pod: script(pod) if index_of(pod) == "0" else Life())
    namespace.create_all(generated(namespace.name))

    status = _finished(namespace)
    assert status["succeeded"] == 3
    assert attempts[:2] == ["0", "1"]


def test_a_pod_over_its_deadline_fails(namespace: Namespace, fake_nodes: FakeNodes, generated: Generated) -> None:
    namespace.create_all(generated(namespace.name, max_seconds=60))
    (pod, *_) = namespace.wait_for(lambda: _running(namespace), "a pod runs")
    # The shortest deadline that a campaign can have is longer than a test should be.
    change = {"spec": {"activeDeadlineSeconds": 1}}
    namespace.api.patch("v1/Pod", pod["metadata"]["name"], change, namespace.name)

    def failed() -> bool:
        found = namespace.api.find("v1/Pod", pod["metadata"]["name"], namespace.name)
        return found is not None and found["status"].get("reason") == "DeadlineExceeded"

    namespace.wait_for(failed, "the pod fails with the reason DeadlineExceeded")


def test_a_pod_that_is_not_started_yet_says_why_and_runs_later(
    namespace: Namespace, fake_nodes: FakeNodes, generated: Generated
) -> None:
    fake_nodes.play(Life(starting=3, waiting="ImagePullBackOff", running=None))
    namespace.create_all(generated(namespace.name))

    def states() -> set[str]:
        rows = [row for pod in _pods(namespace) for row in pod["status"].get("containerStatuses", ())]
        return {row["state"].get("waiting", {}).get("reason", "running") for row in rows}

    namespace.wait_for(lambda: states() == {"ImagePullBackOff"}, "the pods wait for their image")
    assert {pod["status"]["phase"] for pod in _pods(namespace)} == {"Pending"}
    namespace.wait_for(lambda: len(_running(namespace)) == 3, "three pods run")
    assert states() == {"running"}


def test_the_scheduler_puts_a_pod_only_on_a_node_with_the_labels_that_it_asks_for(
    namespace: Namespace, fake_nodes: FakeNodes, generated: Generated
) -> None:
    wanted = {"example.org/pool": namespace.name}
    fake_nodes.play(Life())
    namespace.create_all(generated(namespace.name, node_selector=wanted))

    def said() -> bool:
        conditions = [row for pod in _pods(namespace) for row in pod["status"].get("conditions", ())]
        return any("node affinity/selector" in row.get("message", "") for row in conditions)

    namespace.wait_for(said, "the scheduler says that no node fits")
    fake_nodes.add(f"node-{namespace.name}", wanted)

    assert _finished(namespace)["succeeded"] == 3
    assert {pod["spec"]["nodeName"] for pod in _pods(namespace)} == {f"node-{namespace.name}"}


def test_a_failing_init_container_fails_the_index(
    namespace: Namespace, fake_nodes: FakeNodes, generated: Generated
) -> None:
    fake_nodes.play(lambda pod: Life(exit_code=13, container="warmup-wait") if index_of(pod) else Life())
    namespace.create_all(generated(namespace.name))

    assert _finished(namespace)["failedIndexes"] == "0-2"


def test_a_kubeconfig_of_any_identity_has_its_rights_and_no_more(cluster: Cluster, namespace: Namespace) -> None:
    stranger = Api(cluster.kubeconfig("stranger"))
    with pytest.raises(ApiError, match='User "stranger" cannot list resource "jobs"') as refusal:
        stranger.list("batch/v1/Job", namespace.name)
    assert refusal.value.status == 403
    stranger.close()

    rules = [{"apiGroups": ["batch"], "resources": ["jobs"], "verbs": ["list"]}]
    role = {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role"}
    metadata = {"name": "lists-jobs", "namespace": namespace.name}
    cluster.api.create({**role, "metadata": metadata, "rules": rules})
    subject = {"kind": "ServiceAccount", "name": "default", "namespace": namespace.name}
    reference = {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "lists-jobs"}
    binding = {**role, "kind": "RoleBinding", "metadata": metadata, "subjects": [subject], "roleRef": reference}
    cluster.api.create(binding)

    account = cluster.service_account(namespace.name, "default")
    assert cluster.kubectl("auth", "can-i", "list", "jobs", f"-n={namespace.name}", kubeconfig=account) == "yes\n"
    client = Api(account)
    assert client.list("batch/v1/Job", namespace.name) == []
    with pytest.raises(ApiError, match="forbidden"):
        client.list("v1/Pod", namespace.name)
    client.close()


def test_kubectl_applies_what_the_converter_renders(
    cluster: Cluster, namespace: Namespace, generated: Generated
) -> None:
    objects = "\n---\n".join(json.dumps(item) for item in generated(namespace.name))

    said = cluster.kubectl("apply", "--server-side", "-f", "-", stdin=objects)

    assert f"job.batch/{_CAMPAIGN} serverside-applied" in said
    assert "unchanged" not in said


def test_two_tests_do_not_see_each_others_objects(cluster: Cluster, namespace: Namespace) -> None:
    other = Namespace(cluster.api, f"{namespace.name}-b")
    other.create()
    try:
        other.quota(gpu=0)
        quota = cluster.api.get("kueue.x-k8s.io/v1beta2/ClusterQueue", namespace.name)
        resources = quota["spec"]["resourceGroups"][0]["flavors"][0]["resources"]
        assert {row["name"]: row["nominalQuota"] for row in resources}["nvidia.com/gpu"] == "100"
    finally:
        other.delete()


@pytest.mark.slow
def test_the_tests_run_on_the_cluster_of_a_kubeconfig(cluster: Cluster, tmp_path: pathlib.Path) -> None:
    if not cluster.is_ours:
        pytest.skip("it runs so already")
    here = pathlib.Path(__file__)
    test = f"{here}::{test_kueue_suspends_a_campaign_and_admits_it_when_there_is_quota.__name__}"
    done = _pytest(test, "--cluster-of-kubeconfig", KUBECONFIG=str(cluster.admin))

    assert "1 passed" in done.stdout, done.stdout + done.stderr
    assert "tests against real programs: the cluster of KUBECONFIG v1." in done.stdout
    assert done.returncode == 0


def _pytest(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    import os
    import sys

    command = [sys.executable, "-m", "pytest", "-q", *arguments]
    root = pathlib.Path(__file__).parents[2]
    variables = {**os.environ, **environment}
    return subprocess.run(command, cwd=root, env=variables, capture_output=True, text=True, timeout=120, check=False)


def _pods(namespace: Namespace) -> list[Object]:
    return [pod for pod in namespace.pods() if pod["metadata"]["labels"].get("job-name") == _CAMPAIGN]


def _running(namespace: Namespace) -> list[Object]:
    alive = [pod for pod in _pods(namespace) if not pod["metadata"].get("deletionTimestamp")]
    return [pod for pod in alive if pod["status"].get("phase") == "Running"]


def _finished(namespace: Namespace) -> Object:
    def status() -> Object | None:
        found: Object = namespace.job(_CAMPAIGN)["status"]
        ended = [row for row in found.get("conditions", ()) if row["type"] in ("Complete", "Failed")]
        return found if ended else None

    return t.cast(Object, namespace.wait_for(status, "the campaign's Job has ended", 60))
