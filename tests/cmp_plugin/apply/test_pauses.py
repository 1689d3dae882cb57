"""Pauses, as Kueue's own objects show them."""

from __future__ import annotations

import typing as t

import pytest

from tests.cmp_plugin.apply.api_proxy import Asked, Fault, Proxy
from tests.cmp_plugin.apply.teams import Team
from tests.testbed.plugin.api import Object
from tests.testbed.plugin.fake_nodes import FakeNodes
from tests.testbed.plugin.kubelet import Life, index_of

_KUEUE = "kueue.x-k8s.io/v1beta2"


def test_a_campaign_that_runs_gives_its_quota_back_keeps_what_is_finished_and_goes_on_from_there(
    team: Team, fake_nodes: FakeNodes
) -> None:
    fake_nodes.play(lambda pod: Life() if index_of(pod) == "0" else Life(running=None))
    team.campaign("letters", "R1", "R2", "R3")
    assert team.apply().code == 0
    team.wait(lambda: team.namespace.job("letters")["status"].get("completedIndexes") == "0", "a volume is done")
    team.wait(lambda: _used(team) == 2, "Kueue counts two GPUs")
    workload = _workload(team, "letters")

    team.campaign("letters", "R1", "R2", "R3", suspend=True)
    paused = team.apply()

    assert (paused.code, paused.lines[-1]) == (0, "paused Job/letters"), paused
    team.stopped("letters")
    team.wait(lambda: _used(team) == 0, "the quota is back")
    team.wait(lambda: not _pods(team, "letters"), "the pods are gone")
    assert team.namespace.job("letters")["status"]["completedIndexes"] == "0"
    again = team.apply()
    assert (again.code, {line.split()[0] for line in again.lines}) == (0, {"unchanged"})

    fake_nodes.play(Life())
    team.campaign("letters", "R1", "R2", "R3")
    resumed = team.apply()
    assert (resumed.code, resumed.lines[-1]) == (0, "resumed Job/letters")
    assert team.ended("letters") == "Complete"
    assert team.namespace.job("letters")["status"]["completedIndexes"] == "0-2"
    assert _workload(team, "letters")["metadata"]["uid"] == workload["metadata"]["uid"]
    assert not team.namespace.job("letters")["status"].get("failed")


def test_a_queued_campaign_leaves_the_queue_and_comes_back_to_its_place(team: Team) -> None:
    team.namespace.quota(gpu=0)
    team.campaign("a", "R1")
    assert team.apply().code == 0
    team.wait(lambda: _queue(team) == ["a"], "the first campaign is queued")
    team.campaign("b", "R2")
    # Kueue orders by the second in which a Workload was made.
    created = _workload(team, "a")["metadata"]["creationTimestamp"]
    team.wait(lambda: _later(team, created), "a second has passed")
    assert team.apply().code == 0
    team.wait(lambda: _queue(team) == ["a", "b"], "both are queued")

    team.campaign("a", "R1", suspend=True)
    assert team.apply().code == 0
    team.wait(lambda: _queue(team) == ["b"], "the paused one has left the queue")

    team.campaign("a", "R1")
    assert team.apply().code == 0
    team.wait(lambda: _queue(team) == ["a", "b"], "it is back in its place, before the other")


@pytest.mark.slow
def test_a_new_campaign_that_pauses_is_created_and_its_workload_is_inactive(team: Team) -> None:
    team.campaign("letters", "R1", suspend=True)

    done = team.apply()

    assert done.code == 0, done
    assert done.lines[-2:] == ["created Job/letters", "paused Job/letters"]
    assert not team.active("letters")
    team.stopped("letters")
    team.wait(lambda: not _pods(team, "letters"), "it has no pods")


def test_a_new_paused_campaign_of_which_kueue_makes_no_workload_is_1_and_an_unpaused_one_is_not(team: Team) -> None:
    """A priority class that is in the repo's list and not in the cluster: Kueue makes no Workload."""
    team.settings(priority_classes=["none-such"])
    team.campaign("letters", "R1", priority="none-such")
    assert team.apply("--pause-wait=0.1").code == 0
    team.campaign("letters", "R1", priority="none-such", suspend=True)

    done = team.apply("--pause-wait=0.5")

    assert done.code == 1, done
    assert "Job/letters: the pause is not enforced: Kueue has made no Workload of it in 0.5 seconds" in done.err
    assert done.err.splitlines()[-1] == "not paused: Job/letters"


@pytest.mark.slow
def test_a_campaign_that_somebody_paused_by_hand_is_resumed(team: Team) -> None:
    team.campaign("letters", "R1")
    assert team.apply().code == 0
    name = _workload(team, "letters")["metadata"]["name"]
    team.api.patch(f"{_KUEUE}/Workload", name, {"spec": {"active": False}}, team.namespace.name)
    team.stopped("letters")

    assert team.apply().lines[-1] == "resumed Job/letters"

    team.admitted("letters")


def test_a_job_that_was_refused_is_paused_all_the_same(team: Team) -> None:
    team.campaign("letters", "R1")
    assert team.apply().code == 0
    team.admitted("letters")
    team.settings(manifest_max_bytes=1_000_000)
    team.campaign("letters", "R1", suspend=True)

    done = team.apply()

    assert done.code == 3, done
    assert "Job/letters: " in done.err
    assert done.lines[-1] == "paused Job/letters"
    assert not team.active("letters")


def test_a_pause_that_is_refused_is_1_and_what_was_refused_beside_it_is_said_too(team: Team, proxy: Proxy) -> None:
    for name in ("letters", "maps"):
        team.campaign(name, f"R-{name}")
    assert team.apply().code == 0
    team.active("letters")
    team.campaign("letters", "R-letters", suspend=True)
    team.settings(max_seconds=3600)
    proxy.script = lambda asked: Fault(403) if asked.method == "PATCH" and asked.what.startswith("workloads/") else None

    done = team.apply(kubeconfig=proxy.kubeconfig)

    assert done.code == 1, done
    assert "Job/letters: the pause is not enforced: the proxy says 403" in done.err
    assert "left as they were: " in done.err
    assert team.active("letters")


@pytest.mark.slow
def test_workloads_that_may_not_be_read_are_1_with_a_pause_and_3_without(team: Team, proxy: Proxy) -> None:
    def refuse(asked: Asked) -> Fault | None:
        return Fault(403) if asked.what.startswith("workloads") else None

    proxy.script = refuse
    team.campaign("letters", "R1")
    done = team.apply(kubeconfig=proxy.kubeconfig)
    assert done.code == 3, done
    assert "Job/letters: whether it is paused cannot be known or changed: the proxy says 403" in done.err

    team.campaign("letters", "R1", suspend=True)
    assert team.apply(kubeconfig=proxy.kubeconfig).code == 1


@pytest.mark.slow
def test_a_campaign_that_has_ended_needs_no_pause(team: Team, fake_nodes: FakeNodes, proxy: Proxy) -> None:
    fake_nodes.play(Life())
    team.campaign("letters", "R1")
    assert team.apply().code == 0
    team.ended("letters")
    team.campaign("letters", "R1", suspend=True)
    proxy.script = lambda asked: Fault(403) if asked.what.startswith("workloads/") else None

    assert team.apply(kubeconfig=proxy.kubeconfig).code == 0


def test_what_kueue_writes_into_a_job_is_left_alone(team: Team) -> None:
    """A flavor with a taint: Kueue adds its toleration to the template, where the repo has one already."""
    ours = {"key": "example.org/team", "operator": "Exists", "effect": "NoSchedule"}
    theirs = {"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"}
    flavor = f"flavor-{team.namespace.name}"
    labels = {"example.org/pool": "gpu"}
    spec = {"tolerations": [theirs], "nodeLabels": labels}
    team.api.create({"apiVersion": _KUEUE, "kind": "ResourceFlavor", "metadata": {"name": flavor}, "spec": spec})
    group = team.api.get(f"{_KUEUE}/ClusterQueue", team.namespace.name)["spec"]["resourceGroups"]
    group[0]["flavors"][0]["name"] = flavor
    team.api.patch(f"{_KUEUE}/ClusterQueue", team.namespace.name, {"spec": {"resourceGroups": group}})
    try:
        team.settings(tolerations=[ours])
        team.campaign("letters", "R1")
        assert team.apply().code == 0
        team.admitted("letters")
        before = team.namespace.job("letters")
        assert _tolerations(team) == [ours, theirs]

        done = team.apply()

        assert done.code == 0, done
        assert "unchanged Job/letters" in done.lines
        after = team.namespace.job("letters")
        assert after["metadata"]["generation"] == before["metadata"]["generation"]
        assert after["spec"]["template"]["spec"]["nodeSelector"] == labels

        team.campaign("letters", "R1", suspend=True)
        assert team.apply().code == 0
        team.stopped("letters")
        team.wait(lambda: _tolerations(team) == [ours], "Kueue takes its toleration back")
        team.campaign("letters", "R1")
        assert team.apply().code == 0
        team.admitted("letters")
    finally:
        team.api.patch(f"{_KUEUE}/ClusterQueue", team.namespace.name, {"spec": {"stopPolicy": "HoldAndDrain"}})
        team.api.delete(f"{_KUEUE}/ResourceFlavor", flavor)


@pytest.mark.slow
def test_suspend_stays_kueues_while_a_campaign_is_queued_runs_and_pauses(team: Team) -> None:
    team.namespace.quota(gpu=0)
    team.campaign("letters", "R1")
    assert team.apply().code == 0
    generation = team.namespace.job("letters")["metadata"]["generation"]
    assert team.apply().code == 0
    assert team.namespace.job("letters")["spec"]["suspend"] is True
    assert team.namespace.job("letters")["metadata"]["generation"] == generation

    team.namespace.quota(gpu=10)
    team.admitted("letters")
    generation = team.namespace.job("letters")["metadata"]["generation"]
    assert team.apply().code == 0
    running = team.namespace.job("letters")
    assert (running["spec"]["suspend"], running["metadata"]["generation"]) == (False, generation)
    managers = {
        row["manager"]: "f:suspend" in row["fieldsV1"].get("f:spec", {}) for row in running["metadata"]["managedFields"]
    }
    assert managers["htrflow-campaigns"] is False


def _tolerations(team: Team) -> list[Object]:
    return t.cast(list[Object], team.namespace.job("letters")["spec"]["template"]["spec"]["tolerations"])


def _workload(team: Team, job: str) -> Object:
    return t.cast(Object, team.wait(lambda: team.namespace.workload(job), f"Kueue has made a Workload of {job}"))


def _used(team: Team) -> int:
    """The GPUs that Kueue counts as used."""
    queue = team.api.get(f"{_KUEUE}/ClusterQueue", team.namespace.name)
    rows = queue.get("status", {}).get("flavorsReservation") or []
    return sum(int(one["total"]) for row in rows for one in row["resources"] if one["name"] == "nvidia.com/gpu")


def _queue(team: Team) -> list[str]:
    path = f"/apis/visibility.kueue.x-k8s.io/v1beta2/namespaces/{team.namespace.name}/localqueues/htr-batch"
    rows = team.api.request("GET", f"{path}/pendingworkloads")["items"]
    rows.sort(key=lambda row: row["positionInLocalQueue"])
    return [row["metadata"]["ownerReferences"][0]["name"] for row in rows]


def _pods(team: Team, job: str) -> list[Object]:
    pods = [pod for pod in team.namespace.pods() if pod["metadata"]["labels"].get("job-name") == job]
    alive = [pod for pod in pods if "deletionTimestamp" not in pod["metadata"]]
    return [pod for pod in alive if pod["status"].get("phase") in ("Pending", "Running")]


def _later(team: Team, moment: str) -> bool:
    """Whether the API server's clock is in another second than ``moment``."""
    probe = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "now", "namespace": team.namespace.name}}
    return t.cast(str, team.api.create(probe, dry_run=True)["metadata"]["creationTimestamp"]) > moment
