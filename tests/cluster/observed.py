"""What Kueue and the Job controller say of campaigns, for tests."""

from __future__ import annotations

import typing as t

from tests.testbed.plugin.api import Object
from tests.testbed.plugin.namespace import GPU, QUEUE, Namespace

KUEUE = "kueue.x-k8s.io/v1beta2"
WORKLOAD, LOCAL_QUEUE, CLUSTER_QUEUE = f"{KUEUE}/Workload", f"{KUEUE}/LocalQueue", f"{KUEUE}/ClusterQueue"


def condition(item: Object | None, kind: str) -> Object:
    """One condition of a Job or a Workload; empty when it has none."""
    rows = (item or {}).get("status", {}).get("conditions", [])
    return next((t.cast(Object, row) for row in rows if row["type"] == kind), {})


def runs(namespace: Namespace, job: str) -> bool:
    """Whether Kueue lets a campaign run."""
    return not namespace.job(job)["spec"]["suspend"]


def pods(namespace: Namespace, job: str) -> list[Object]:
    """The pods of a campaign that are not on their way out."""
    found = [pod for pod in namespace.pods() if pod["metadata"]["labels"].get("job-name") == job]
    return [pod for pod in found if not pod["metadata"].get("deletionTimestamp")]


def running(namespace: Namespace, job: str) -> list[str]:
    """The uids of the pods of a campaign that run."""
    return [pod["metadata"]["uid"] for pod in pods(namespace, job) if pod["status"].get("phase") == "Running"]


def gpus(namespace: Namespace) -> int:
    """How much of the namespace's quota is in use."""
    return used(namespace.api.get(CLUSTER_QUEUE, namespace.name))


def used(cluster_queue: Object) -> int:
    """How many GPUs a ClusterQueue says are in use, over all flavors."""
    flavors = cluster_queue.get("status", {}).get("flavorsUsage", [])
    return sum(int(row["total"]) for flavor in flavors for row in flavor["resources"] if row["name"] == GPU)


def waiting(namespace: Namespace) -> list[str]:
    """The campaigns in the queue, the first of them first."""
    path = f"/apis/visibility.{KUEUE}/namespaces/{namespace.name}/localqueues/{QUEUE}/pendingworkloads"
    return [row["metadata"]["ownerReferences"][0]["name"] for row in namespace.api.request("GET", path)["items"]]


def workload(namespace: Namespace, job: str) -> Object:
    """The Workload of a Job, as soon as there is one."""
    return t.cast(Object, namespace.wait_for(lambda: namespace.workload(job), f"Kueue has taken up {job}"))
