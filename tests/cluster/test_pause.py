"""``suspend: true`` in a campaign's file and without it again, in the delivery of Argo CD, seen in Kueue's objects."""

from __future__ import annotations

import time

import pytest

from tests.cluster import observed
from tests.cluster.argocd import ArgoCD
from tests.cluster.repos import Repo
from tests.testbed.plugin.api import Object
from tests.testbed.plugin.fake_nodes import FakeNodes
from tests.testbed.plugin.kubelet import Life, index_of
from tests.testbed.plugin.namespace import Namespace

#: They take long together.
pytestmark = pytest.mark.slow


def _idle(namespace: Namespace, name: str) -> bool:
    """Whether Kueue has admitted a campaign with no pods, which is how a paused one looks."""
    workload = namespace.workload(name)
    count = workload["spec"]["podSets"][0]["count"] if workload else None
    admitted = observed.condition(workload, "Admitted").get("status")
    return (count, admitted, observed.runs(namespace, name)) == (0, "True", True)


@pytest.mark.slow
def test_a_pause_of_a_running_campaign_frees_its_quota_and_afterwards_it_is_the_last_in_the_queue(
    namespace: Namespace, fake_nodes: FakeNodes, repo: Repo, argocd: ArgoCD
) -> None:
    namespace.quota(gpu=2)
    placed: list[str] = []

    def script(pod: Object) -> Life:
        placed.append(f"{pod['metadata']['labels']['job-name']} {index_of(pod)}")
        return Life() if placed[-1] == "letters 0" else Life(running=None)

    fake_nodes.play(script)
    repo.campaign("letters", 5, window=2)
    argocd.sync(repo.generated())
    namespace.wait_for(lambda: namespace.job("letters")["status"].get("completedIndexes") == "0", "a volume is done")
    namespace.wait_for(lambda: len(observed.running(namespace, "letters")) == 2, "two volumes run")
    before = observed.workload(namespace, "letters")["metadata"]["uid"]

    repo.campaign("letters", 5, window=2, suspend=True)
    assert argocd.sync(repo.generated()) == ["Job letters"]

    namespace.wait_for(lambda: _idle(namespace, "letters"), "Kueue has admitted it with no pods")
    namespace.wait_for(lambda: not observed.running(namespace, "letters"), "its pods are gone")
    namespace.wait_for(lambda: observed.gpus(namespace) == 0, "its quota is free")
    status = namespace.job("letters")["status"]
    assert (status["completedIndexes"], status.get("failed", 0)) == ("0", 0)
    assert observed.workload(namespace, "letters")["metadata"]["uid"] != before
    repo.campaign("maps", 2, window=2)
    repo.campaign("seals", 2, window=2)
    for name in ("maps", "seals"):
        # Kueue tells who is older by times, which have whole seconds.
        time.sleep(1.1)
        namespace.create_all(repo.of(name))
        namespace.wait_for(lambda: namespace.workload(name), f"Kueue has taken up {name}")  # noqa: B023
    namespace.wait_for(lambda: len(observed.running(namespace, "maps")) == 2, "another campaign has its quota")

    time.sleep(1.1)
    repo.campaign("letters", 5, window=2)
    argocd.sync(repo.generated())

    namespace.wait_for(lambda: observed.waiting(namespace) == ["seals", "letters"], "it is the last in the queue")
    for name in ("maps", "seals"):
        namespace.api.delete("batch/v1/Job", name, namespace.name)
    namespace.wait_for(lambda: len(observed.running(namespace, "letters")) == 2, "it runs again")
    assert placed.count("letters 0") == 1, "what was done is not run again"
    # The Job controller may be quicker than Kueue: it has the Job's window before Kueue suspends the Job.
    assert placed.count("letters 1") >= 2, "what ran starts again"


def _marks(namespace: Namespace, name: str) -> list[str]:
    """What Kueue has added to the metadata of a campaign's pods."""
    metadata = namespace.job(name)["spec"]["template"]["metadata"]
    keys = [*metadata.get("labels", ()), *metadata.get("annotations", ())]
    return [key for key in keys if key.startswith("kueue.x-k8s.io/")]


@pytest.mark.slow
def test_a_pause_of_a_queued_campaign_takes_it_out_of_the_queue_and_it_comes_back_as_the_last(
    namespace: Namespace, fake_nodes: FakeNodes, repo: Repo, argocd: ArgoCD
) -> None:
    namespace.quota(gpu=1)
    repo.campaign("runs", 1)
    argocd.sync(repo.generated())
    namespace.wait_for(lambda: len(observed.running(namespace, "runs")) == 1, "one campaign runs")
    for name in ("letters", "maps"):
        time.sleep(1.1)
        repo.campaign(name, 1)
        argocd.sync(repo.generated())
    namespace.wait_for(lambda: observed.waiting(namespace) == ["letters", "maps"], "two campaigns wait")

    repo.campaign("letters", 1, suspend=True)
    argocd.sync(repo.generated())
    namespace.wait_for(lambda: observed.waiting(namespace) == ["maps"], "the paused one does not wait")
    # Kueue admits a campaign without pods even when no quota is left.
    namespace.wait_for(lambda: _idle(namespace, "letters"), "Kueue has admitted it with no pods")
    assert observed.pods(namespace, "letters") == []
    time.sleep(1.1)

    repo.campaign("letters", 1)
    argocd.sync(repo.generated())
    namespace.wait_for(lambda: observed.waiting(namespace) == ["maps", "letters"], "it is the last")


@pytest.mark.slow
def test_a_campaign_that_is_created_paused_gets_no_pods_until_the_line_is_removed(
    namespace: Namespace, fake_nodes: FakeNodes, repo: Repo, argocd: ArgoCD
) -> None:
    namespace.quota(gpu=2)
    repo.campaign("letters", 2, suspend=True)
    argocd.sync(repo.generated())
    namespace.wait_for(lambda: _idle(namespace, "letters"), "Kueue has admitted it with no pods")
    assert argocd.out_of_sync(repo.generated()) == []
    assert observed.pods(namespace, "letters") == []
    assert observed.gpus(namespace) == 0

    repo.campaign("letters", 2)
    argocd.sync(repo.generated())
    namespace.wait_for(lambda: len(observed.running(namespace, "letters")) == 2, "it runs")
    assert argocd.out_of_sync(repo.generated()) == []


def test_a_workload_that_is_made_inactive_frees_its_quota_and_keeps_its_place(
    namespace: Namespace, fake_nodes: FakeNodes, repo: Repo
) -> None:
    namespace.quota(gpu=1)
    for name in ("letters", "maps", "seals"):
        repo.campaign(name, 1)
        namespace.create_all(repo.of(name))
        namespace.wait_for(lambda: namespace.workload(name), f"Kueue has taken up {name}")  # noqa: B023
        time.sleep(1.1)
    namespace.wait_for(lambda: len(observed.running(namespace, "letters")) == 1, "the first runs")
    namespace.wait_for(lambda: observed.waiting(namespace) == ["maps", "seals"], "two wait")
    assert _marks(namespace, "letters")
    before = {name: observed.workload(namespace, name)["metadata"] for name in ("letters", "maps")}

    def set_active(name: str, *, active: bool) -> None:
        change = {"spec": {"active": active}}
        namespace.api.patch(observed.WORKLOAD, before[name]["name"], change, namespace.name)

    set_active("maps", active=False)
    namespace.wait_for(lambda: observed.waiting(namespace) == ["seals"], "a queued one is out of the queue")
    set_active("letters", active=False)
    namespace.wait_for(lambda: len(observed.running(namespace, "seals")) == 1, "another has the quota of the first")
    assert observed.condition(namespace.workload("letters"), "Evicted")["reason"] == "Deactivated"
    namespace.wait_for(lambda: not _marks(namespace, "letters"), "Kueue takes away what it added to the pods")
    set_active("maps", active=True)
    set_active("letters", active=True)

    namespace.wait_for(lambda: observed.waiting(namespace) == ["letters", "maps"], "both have their old places")
    after = {name: observed.workload(namespace, name)["metadata"]["uid"] for name in before}
    assert after == {name: metadata["uid"] for name, metadata in before.items()}
