"""What the chart brings to a cluster and to each namespace of it, for tests."""

from __future__ import annotations

import contextlib
import typing as t

from tests.testbed.plugin.api import Api, ApiError, Object

#: The names that ``converter.yaml`` has when it says nothing.
QUEUE, CACHE, RUNTIME_CLASS, SECRET = "htr-batch", "htr-test-data", "nvidia", "htr-batch-s3"
PRIORITIES = {"htr-interactive": 1000, "htr-bulk": 0, "htr-idle": -1000}
GPU = "nvidia.com/gpu"
_FLAVOR = "testbed"
_KUEUE = "kueue.x-k8s.io/v1beta2"


def furnish(api: Api) -> None:
    """Brings a cluster what all namespaces share: a flavor, priority classes and a runtime class."""
    api.apply({"apiVersion": _KUEUE, "kind": "ResourceFlavor", "metadata": {"name": _FLAVOR}, "spec": {}})
    for name, value in PRIORITIES.items():
        api.apply({"apiVersion": _KUEUE, "kind": "WorkloadPriorityClass", "metadata": {"name": name}, "value": value})
    if not api.find("node.k8s.io/v1/RuntimeClass", RUNTIME_CLASS):
        api.create(
            {
                "apiVersion": "node.k8s.io/v1",
                "kind": "RuntimeClass",
                "metadata": {"name": RUNTIME_CLASS},
                "handler": RUNTIME_CLASS,
            }
        )


def provide_cache(api: Api, namespace: str, claim: Object) -> None:
    """Makes the volume, called as its namespace, that the claim of a model cache asks for in its ``spec``."""
    volume = {
        "capacity": claim["resources"]["requests"],
        "accessModes": claim["accessModes"],
        "storageClassName": claim.get("storageClassName", ""),
        "nfs": {"server": "nfs.example.org", "path": "/"},
        "claimRef": {"namespace": namespace, "name": CACHE},
    }
    api.create({"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": namespace}, "spec": volume})


class Namespace:
    """A namespace with a queue, a quota of its own, a model cache and a Secret for the store."""

    def __init__(self, api: Api, name: str) -> None:
        self.api = api
        self.name = name

    def create(self) -> None:
        """Makes the namespace; Kueue knows of its queue a moment later."""
        labels = {"pod-security.kubernetes.io/enforce": "restricted"}
        self._create("v1", "Namespace", self.name, labels=labels)
        self.quota()
        self._create(_KUEUE, "LocalQueue", QUEUE, spec={"clusterQueue": self.name})
        size = {"storage": "1Gi"}
        modes = ["ReadWriteMany"]
        claim = {
            "accessModes": modes,
            "storageClassName": "",
            "volumeName": self.name,
            "resources": {"requests": size},
        }
        provide_cache(self.api, self.name, claim)
        self._create("v1", "PersistentVolumeClaim", CACHE, spec=claim)
        keys = {"S3_BUCKET": "htr", "S3_ENDPOINT": "https://s3.example.org", "credentials": "[default]\n"}
        self._create("v1", "Secret", SECRET, stringData=keys)
        account = "default"
        # Made by a controller, and a pod is refused before.
        self.api.wait_for(lambda: self.api.find("v1/ServiceAccount", account, self.name), f"service account {account}")

    def quota(self, *, gpu: int = 100, cpu: int = 1000, memory: str = "4000Gi", flavor: str = _FLAVOR) -> None:
        """Sets how much the Jobs of the namespace may use at once, and of which flavor."""
        resources = [
            {"name": name, "nominalQuota": str(limit)} for name, limit in (("cpu", cpu), ("memory", memory), (GPU, gpu))
        ]
        group = {
            "coveredResources": [row["name"] for row in resources],
            "flavors": [{"name": flavor, "resources": resources}],
        }
        selector = {"matchLabels": {"kubernetes.io/metadata.name": self.name}}
        self.api.apply(
            {
                "apiVersion": _KUEUE,
                "kind": "ClusterQueue",
                "metadata": {"name": self.name},
                "spec": {"namespaceSelector": selector, "resourceGroups": [group]},
            }
        )

    def create_all(self, objects: t.Iterable[Object], *, dry_run: bool = False) -> list[Object]:
        """Creates objects of this namespace, and returns them as the server has them."""
        return [self.api.create(item, dry_run=dry_run) for item in objects]

    def pods(self) -> list[Object]:
        """The pods of the namespace, the oldest first."""
        found = self.api.list("v1/Pod", self.name)
        return sorted(found, key=lambda pod: (pod["metadata"]["creationTimestamp"], pod["metadata"]["name"]))

    def job(self, name: str) -> Object:
        """One Job."""
        return self.api.get("batch/v1/Job", name, self.name)

    def workload(self, job: str) -> Object | None:
        """The Workload that Kueue made of a Job, if it did."""
        uid = self.job(job)["metadata"]["uid"]
        found = self.api.list(f"{_KUEUE}/Workload", self.name, labelSelector=f"kueue.x-k8s.io/job-uid={uid}")
        return found[0] if found else None

    def wait_for(self, condition: t.Callable[[], t.Any], what: str, seconds: float = 30) -> t.Any:
        """What ``condition`` returns, as soon as it is true."""
        return self.api.wait_for(condition, what, seconds)

    def delete(self) -> None:
        """Begins to delete the namespace and its quota; controllers finish that."""
        for kind, name in (("v1/Namespace", self.name), (f"{_KUEUE}/ClusterQueue", self.name)):
            with contextlib.suppress(ApiError):
                self.api.delete(kind, name)
        self.api.delete("v1/PersistentVolume", self.name)

    def _create(
        self, version: str, kind: str, name: str, *, labels: t.Mapping[str, str] | None = None, **body: t.Any
    ) -> None:
        metadata: Object = {"name": name, "namespace": self.name, "labels": dict(labels or {})}
        if kind == "Namespace":
            del metadata["namespace"]
        self.api.create({"apiVersion": version, "kind": kind, "metadata": metadata, **body})
