"""Who runs when: what Kueue does with campaigns, seen in its own objects."""

from __future__ import annotations

import time
import typing as t

import pytest

from tests.cluster import observed
from tests.cluster.repos import Repo
from tests.testbed.plugin.api import ApiError, Object
from tests.testbed.plugin.fake_nodes import FakeNodes
from tests.testbed.plugin.kubelet import Life, index_of
from tests.testbed.plugin.namespace import Namespace

#: They take long together.
pytestmark = pytest.mark.slow

_JOB = "batch/v1/Job"
_PRIORITY = "kueue.x-k8s.io/priority-class"


def _start(namespace: Namespace, repo: Repo, name: str, pods: int) -> list[str]:
    """Creates a campaign that runs, and returns the uids of its pods."""
    namespace.create_all(repo.of(name))

    def found() -> list[str]:
        uids = observed.running(namespace, name)
        return uids if len(uids) == pods else []

    return t.cast(list[str], namespace.wait_for(found, f"{name} runs"))


def _queue(namespace: Namespace, repo: Repo, *names: str) -> None:
    """Creates campaigns that have to wait, one after the other."""
    for name in names:
        # Kueue tells who is older by times, which have whole seconds.
        time.sleep(1.1)
        namespace.create_all(repo.of(name))
        namespace.wait_for(lambda name=name: name in observed.waiting(namespace), f"{name} waits")  # type: ignore[misc]


def test_a_campaign_starts_when_there_is_quota_for_its_whole_window_and_a_smaller_one_may_pass_it(
    namespace: Namespace, fake_nodes: FakeNodes, repo: Repo
) -> None:
    namespace.quota(gpu=3)
    repo.campaign("first", 5, window=2)
    repo.campaign("second", 5, window=2)
    repo.campaign("small", 1, window=2)
    _start(namespace, repo, "first", 2)

    _queue(namespace, repo, "second")
    said = namespace.wait_for(
        lambda: observed.condition(namespace.workload("second"), "QuotaReserved"), "Kueue says why the second waits"
    )
    assert (said["status"], said["reason"]) == ("False", "Pending")
    assert "insufficient unused quota for nvidia.com/gpu in flavor testbed, 1 more needed" in said["message"]
    # Of a window, a campaign takes no more than it has volumes.
    _start(namespace, repo, "small", 1)

    assert observed.waiting(namespace) == ["second"]
    assert not observed.pods(namespace, "second")
    namespace.wait_for(lambda: observed.gpus(namespace) == 3, "all quota is in use")


@pytest.mark.slow
def test_campaigns_start_by_priority_and_then_by_age_and_none_is_stopped_for_another(
    namespace: Namespace, fake_nodes: FakeNodes, repo: Repo
) -> None:
    namespace.quota(gpu=1)
    repo.campaign("runs", 1, priority="htr-idle")
    repo.campaign("old-bulk", 1, priority="htr-bulk")
    repo.campaign("new-bulk", 1, priority="htr-bulk")
    repo.campaign("no-priority", 1)
    repo.campaign("urgent", 1, priority="htr-interactive")
    runs = _start(namespace, repo, "runs", 1)
    _queue(namespace, repo, "old-bulk", "no-priority", "new-bulk", "urgent")

    # Without a priority a campaign counts as one with the value 0, which is htr-bulk.
    assert observed.waiting(namespace) == ["urgent", "old-bulk", "no-priority", "new-bulk"]
    assert observed.running(namespace, "runs") == runs

    # The order follows a change. What is now as urgent as another is before it, since it is older.
    namespace.api.patch(_JOB, "new-bulk", {"metadata": {"labels": {_PRIORITY: "htr-interactive"}}}, namespace.name)
    order = ["new-bulk", "urgent", "old-bulk", "no-priority"]
    namespace.wait_for(lambda: observed.waiting(namespace) == order, "the order follows the priority")
    assert observed.running(namespace, "runs") == runs

    started: list[str] = []
    fake_nodes.play(lambda pod: started.append(pod["metadata"]["labels"]["job-name"]) or Life())  # type: ignore[func-returns-value]
    namespace.api.delete(_JOB, "runs", namespace.name)
    namespace.wait_for(lambda: len(started) == 4, "all have run")
    assert started == order


@pytest.mark.slow
def test_a_campaign_gives_quota_back_as_fewer_volumes_are_left_than_its_window_has_room_for(
    namespace: Namespace, fake_nodes: FakeNodes, repo: Repo
) -> None:
    namespace.quota(gpu=3)
    repo.campaign("first", 5, window=3)
    repo.campaign("next", 1)
    ended = {"0": Life(), "1": Life(exit_code=13)}
    fake_nodes.play(lambda pod: ended.get(index_of(pod), Life(running=None)))
    namespace.create_all(repo.of("first"))

    def ends() -> tuple[str, str]:
        status = namespace.job("first")["status"]
        return status.get("completedIndexes", ""), status.get("failedIndexes", "")

    # Two have ended and three are left, which is the window. At first three run as well, two of which are to end.
    namespace.wait_for(lambda: ends() == ("0", "1"), "two volumes have ended", 60)
    namespace.wait_for(lambda: len(observed.running(namespace, "first")) == 3, "three volumes are left", 60)
    assert observed.gpus(namespace) == 3
    assert observed.workload(namespace, "first")["status"].get("reclaimablePods") is None

    fake_nodes.play(lambda pod: Life())
    _end(namespace, fake_nodes, "first", "2")

    namespace.wait_for(lambda: observed.gpus(namespace) == 2, "one GPU is free", 60)
    assert observed.workload(namespace, "first")["status"]["reclaimablePods"] == [{"count": 1, "name": "main"}]
    assert observed.workload(namespace, "first")["spec"]["podSets"][0]["count"] == 3
    fake_nodes.play(Life(running=None))
    _start(namespace, repo, "next", 1)


def test_a_failed_volume_gives_its_quota_back_as_a_finished_one_does(
    namespace: Namespace, fake_nodes: FakeNodes, repo: Repo
) -> None:
    namespace.quota(gpu=3)
    repo.campaign("first", 3, window=3)
    fake_nodes.play(lambda pod: Life(exit_code=13) if index_of(pod) == "1" else Life(running=None))

    namespace.create_all(repo.of("first"))

    namespace.wait_for(lambda: namespace.job("first")["status"].get("failedIndexes") == "1", "a volume has failed")
    namespace.wait_for(lambda: observed.gpus(namespace) == 2, "its GPU is free")
    assert len(observed.running(namespace, "first")) == 2


def test_kueue_takes_all_quota_of_a_campaign_for_free_at_its_first_end_when_parallelism_exceeds_its_volumes(
    namespace: Namespace, fake_nodes: FakeNodes, repo: Repo
) -> None:
    namespace.quota(gpu=3)
    repo.campaign("first", 3)
    repo.campaign("next", 3, window=3)
    (job,) = (item for item in repo.of("first") if item["kind"] == "Job")
    job["spec"]["parallelism"] = 20
    fake_nodes.play(lambda pod: Life() if index_of(pod) == "1" else Life(running=None))

    namespace.create_all([job])

    namespace.wait_for(lambda: namespace.job("first")["status"].get("completedIndexes") == "1", "one volume is done")
    namespace.wait_for(lambda: observed.gpus(namespace) == 0, "Kueue counts nothing of it")
    assert len(observed.running(namespace, "first")) == 2
    # So more pods than there is quota for run at once.
    fake_nodes.play(Life(running=None))
    _start(namespace, repo, "next", 3)
    assert len(observed.running(namespace, "first")) == 2


def test_a_queue_and_a_class_that_do_not_exist_leave_these_traces_in_kueue(namespace: Namespace, repo: Repo) -> None:
    repo.campaign("odd-queue", 1)
    repo.campaign("odd-class", 1)
    repo.campaign("large", 200, window=20)
    namespace.quota(gpu=19)
    jobs = {item["metadata"]["name"]: item for item in repo.generated() if item["kind"] == "Job"}
    jobs["odd-queue"]["metadata"]["labels"]["kueue.x-k8s.io/queue-name"] = "nobodys"
    jobs["odd-class"]["metadata"]["labels"][_PRIORITY] = "nobodys"
    namespace.create_all(jobs[name] for name in ("odd-class", "odd-queue", "large"))

    def said(name: str) -> Object:
        found = namespace.wait_for(
            lambda: observed.condition(namespace.workload(name), "QuotaReserved"), f"Kueue says why {name} waits"
        )
        return t.cast(Object, found)

    assert said("odd-queue")["message"] == "LocalQueue nobodys doesn't exist"
    assert said("odd-queue")["reason"] == "Inadmissible"
    assert (
        "insufficient quota for nvidia.com/gpu in flavor testbed, previously considered podsets requests (0)"
        in (said("large")["message"])
    )
    assert namespace.workload("odd-class") is None
    events = namespace.api.list("v1/Event", namespace.name, fieldSelector="involvedObject.name=odd-class")
    assert {event["reason"] for event in events} <= {"Suspended"}
    assert {namespace.job(name)["spec"]["suspend"] for name in ("odd-queue", "odd-class", "large")} == {True}


def test_a_priority_may_be_added_while_a_campaign_waits_changed_at_any_time_and_never_removed(
    namespace: Namespace, repo: Repo
) -> None:
    repo.campaign("plain", 1)
    repo.campaign("bulk", 1, priority="htr-bulk")
    repo.campaign("waits", 1)
    namespace.create_all(repo.of("plain", "bulk"))
    namespace.wait_for(lambda: observed.runs(namespace, "plain") and observed.runs(namespace, "bulk"), "both run")
    namespace.quota(gpu=0)
    namespace.create_all(repo.of("waits"))
    namespace.wait_for(lambda: observed.waiting(namespace) == ["waits"], "the third waits")

    def set_priority(name: str, value: str | None) -> None:
        namespace.api.patch(_JOB, name, {"metadata": {"labels": {_PRIORITY: value}}}, namespace.name)

    set_priority("bulk", "htr-interactive")
    set_priority("waits", "htr-idle")
    with pytest.raises(ApiError, match="WorkloadPriorityClass cannot be added to a non-suspended workload"):
        set_priority("plain", "htr-bulk")
    for name in ("bulk", "waits"):
        with pytest.raises(ApiError, match="WorkloadPriorityClass cannot be removed from a workload"):
            set_priority(name, None)
    namespace.wait_for(lambda: observed.workload(namespace, "bulk")["spec"]["priority"] == 1000, "Kueue has noted it")


def test_a_changed_window_stops_every_pod_of_a_running_campaign_and_queues_it_again(
    namespace: Namespace, fake_nodes: FakeNodes, repo: Repo
) -> None:
    namespace.quota(gpu=3)
    repo.campaign("first", 5, window=2)
    fake_nodes.play(lambda pod: Life() if index_of(pod) == "0" else Life(running=None))
    namespace.create_all(repo.of("first"))
    namespace.wait_for(lambda: namespace.job("first")["status"].get("completedIndexes") == "0", "one volume is done")
    namespace.wait_for(lambda: len(observed.running(namespace, "first")) == 2, "two volumes run")
    before, workload = observed.running(namespace, "first"), observed.workload(namespace, "first")

    namespace.api.patch(_JOB, "first", {"spec": {"parallelism": 3}}, namespace.name)

    def others_run() -> bool:
        now = observed.running(namespace, "first")
        return len(now) == 3 and not {*before} & {*now}

    namespace.wait_for(others_run, "three volumes run, each in a new pod")
    assert observed.workload(namespace, "first")["metadata"]["uid"] != workload["metadata"]["uid"]
    status = namespace.job("first")["status"]
    assert (status["completedIndexes"], status.get("failed", 0)) == ("0", 0)


def test_a_campaign_that_somebody_resumes_or_suspends_by_hand_is_put_back_by_kueue(
    namespace: Namespace, fake_nodes: FakeNodes, repo: Repo
) -> None:
    namespace.quota(gpu=1)
    repo.campaign("runs", 1)
    repo.campaign("waits", 1)
    _start(namespace, repo, "runs", 1)
    namespace.create_all(repo.of("waits"))
    namespace.wait_for(lambda: observed.waiting(namespace) == ["waits"], "the second waits")

    def generation(name: str) -> int:
        return t.cast(int, namespace.job(name)["metadata"]["generation"])

    for name, suspend in (("waits", False), ("runs", True)):
        before = generation(name)
        namespace.api.patch(_JOB, name, {"spec": {"suspend": suspend}}, namespace.name)
        # Once by hand, and once by Kueue.
        namespace.wait_for(lambda: generation(name) >= before + 2, f"Kueue has put {name} back")  # noqa: B023
        namespace.wait_for(lambda: namespace.job(name)["spec"]["suspend"] is not suspend, "it is as before")  # noqa: B023
    namespace.wait_for(lambda: len(observed.running(namespace, "runs")) == 1, "the first runs again")
    assert observed.waiting(namespace) == ["waits"]


def test_a_local_queue_called_default_queues_warm_ups_too(namespace: Namespace, repo: Repo) -> None:
    warmup = next(item for item in repo.generated() if item["kind"] == "Job")
    assert (
        "suspend" not in namespace.api.create(warmup, dry_run=True)["spec"]
        or not (namespace.api.create(warmup, dry_run=True)["spec"]["suspend"])
    )
    queue = {"apiVersion": observed.KUEUE, "kind": "LocalQueue", "spec": {"clusterQueue": namespace.name}}
    namespace.api.create({**queue, "metadata": {"name": "default", "namespace": namespace.name}})

    namespace.wait_for(
        lambda: namespace.api.create(warmup, dry_run=True)["spec"].get("suspend"), "Kueue would suspend a warm-up"
    )


def _end(namespace: Namespace, nodes: FakeNodes, job: str, index: str) -> None:
    """Takes the pod of an index away; the next one ends at once."""
    (pod,) = (pod for pod in observed.pods(namespace, job) if index_of(pod) == index)
    nodes.evict(pod["metadata"]["name"])
