"""Nodes without machines: the fixture ``fake_nodes``.

The scheduler puts pods on them as on any node. What a kubelet would then report of a pod, a :class:`Life` says.
"""

from __future__ import annotations

import contextlib
import dataclasses
import datetime
import heapq
import itertools
import threading
import time
import typing as t

import pytest

from tests.testbed.plugin.api import Api, ApiError, Object
from tests.testbed.plugin.cluster import Cluster
from tests.testbed.plugin.namespace import GPU, Namespace
from tests.testbed.plugin.run import Run

_CAPACITY = {"cpu": "10000", "memory": "100000Gi", "pods": "10000", "ephemeral-storage": "100000Gi", GPU: "1000"}
_KILLED = 137
_ENDED = ("Succeeded", "Failed")


@dataclasses.dataclass(frozen=True)
class Life:
    """What happens to a pod on its node. Times are in seconds."""

    #: From when the scheduler placed the pod to when its containers run; None: they never do.
    starting: float | None = 0.0
    #: Why they do not run yet: ``ImagePullBackOff`` is one reason that a kubelet gives.
    waiting: str = "ContainerCreating"
    #: From then to the end by itself; None: it never ends.
    running: float | None = 0.0
    #: 0 ends the pod well.
    exit_code: int = 0
    #: The container that ends so, by default the first; may be an init container, which fails before the others run.
    container: str = ""
    #: What the container left in its termination log.
    message: str = ""
    #: The kubelet's word for the end, by default ``Completed`` or ``Error``; ``OOMKilled`` is another.
    reason: str = ""
    #: How long it takes to end when it is asked to, and its exit code then.
    stopping: float = 0.0
    stopped_exit_code: int = 143
    stopped_message: str = ""


#: Never ends by itself.
FOREVER = Life(running=None)
#: Gives each pod its life. Called once for each pod, when the scheduler has placed it.
Script = t.Callable[[Object], Life]


class FakeNodes:
    """The kubelets of one namespace. What they reported of each pod is in the API, and nowhere else."""

    def __init__(self, api: Api, namespace: str) -> None:
        self._api, self._namespace = api, namespace
        self._script: Script = lambda pod: FOREVER
        self._pods: dict[str, _Pod] = {}
        self._added: list[str] = []
        self._agenda: list[tuple[float, int, t.Callable[[], None]]] = []
        self._numbers = itertools.count()
        self._changed = threading.Condition()
        self._stopped = False
        # A client is for one thread.
        self._acting, self._watch = api.again(), api.again()
        self._changes = self._watch.watch("v1/Pod", namespace)
        self._threads = [threading.Thread(target=self._look), threading.Thread(target=self._act)]
        #: What went wrong in a thread; the fixture raises it at the end of the test.
        self.failure: BaseException | None = None

    def play(self, script: Script | Life) -> None:
        """Sets what happens to the pods that are placed from here on. Before, they run for ever."""
        self._script = script if callable(script) else lambda pod: script

    def add(self, name: str, labels: t.Mapping[str, str], taints: t.Sequence[Object] = ()) -> None:
        """Adds a node for this test, which other tests see as well: taint it, or give it labels that none asks for."""
        _create_node(self._api, name, labels, taints)
        self._added.append(name)

    def evict(self, pod: str) -> None:
        """Drains a pod through the eviction API, as ``kubectl drain`` does."""
        path = self._api.path("v1/Pod", self._namespace, pod, "eviction")
        metadata = {"name": pod, "namespace": self._namespace}
        body = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": metadata}
        self._api.request("POST", path, json=body)

    def evict_under_pressure(self, pod: str) -> None:
        """Ends a pod as a kubelet does whose node runs out of memory."""
        found = self._api.get("v1/Pod", pod, self._namespace)
        message = "The node was low on resource: memory."
        condition = _condition("DisruptionTarget", True, "TerminationByKubelet", message)
        ending = {"phase": "Failed", "reason": "Evicted", "message": message}
        self._report(self._api, found, {**ending, **_containers(found, Life(exit_code=_KILLED), ended=True)}, condition)

    def start(self) -> None:
        """Begins to act on pods."""
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        """Ends the threads."""
        with self._changed:
            self._stopped = True
            self._changed.notify()
        self._changes.close()
        for thread in self._threads:
            thread.join()
        for name in self._added:
            self._api.delete("v1/Node", name)
        self._acting.close()
        self._watch.close()

    def _look(self) -> None:
        with self._noted_failure():
            for change, pod in self._changes:
                with self._changed:
                    self._see(change, pod)
                    self._changed.notify()

    def _see(self, change: str, pod: Object) -> None:
        uid = pod["metadata"]["uid"]
        if change == "DELETED":
            self._pods.pop(uid, None)
            return
        known = self._pods.get(uid)
        if not known and pod["spec"].get("nodeName") and pod["status"].get("phase") not in _ENDED:
            life = self._script(pod)
            known = self._pods[uid] = _Pod(pod, life)
            self._later(0, lambda: self._wait(uid))
            if life.starting is not None:
                self._later(life.starting, lambda: self._run(uid))
        # A deadline may be brought forward while the pod runs.
        limit = pod["spec"].get("activeDeadlineSeconds")
        if known and limit != known.deadline:
            known.deadline = limit
            self._later(known.placed + limit - time.monotonic(), lambda: self._exceed(uid, limit))
        if known and pod["metadata"].get("deletionTimestamp") and not known.stopping:
            known.stopping = True
            self._later(known.life.stopping, lambda: self._remove(uid))

    def _act(self) -> None:
        with self._noted_failure():
            while True:
                with self._changed:
                    now = time.monotonic()
                    due = self._agenda[0][0] - now if self._agenda else None
                    if self._stopped:
                        return
                    if due is None or due > 0:
                        self._changed.wait(due)
                        continue
                    action = heapq.heappop(self._agenda)[2]
                action()

    def _later(self, seconds: float, action: t.Callable[[], None]) -> None:
        heapq.heappush(self._agenda, (time.monotonic() + seconds, next(self._numbers), action))

    def _wait(self, uid: str) -> None:
        known = self._pods.get(uid)
        if known and known.life.starting != 0 and not known.stopping:
            rows = _rows(known.pod, lambda name, init: {"waiting": {"reason": known.life.waiting}})
            self._report(self._acting, known.pod, {"phase": "Pending", **rows}, _condition("Ready", False))

    def _run(self, uid: str) -> None:
        known = self._pods.get(uid)
        if not known or known.stopping or known.ended:
            return
        if known.life.container in _names(known.pod, "initContainers"):
            self._end(uid)
            return
        started = {"phase": "Running", **_containers(known.pod, known.life, ended=False)}
        self._report(self._acting, known.pod, started, _condition("Ready", True), _condition("ContainersReady", True))
        if known.life.running is not None:
            with self._changed:
                self._later(known.life.running, lambda: self._end(uid))

    def _end(self, uid: str) -> None:
        known = self._pods.get(uid)
        if not known or known.stopping or known.ended:
            return
        known.ended = True
        phase = "Failed" if known.life.exit_code else "Succeeded"
        ending = {"phase": phase, **_containers(known.pod, known.life, ended=True)}
        reason = "PodFailed" if known.life.exit_code else "PodCompleted"
        self._report(self._acting, known.pod, ending, _condition("Ready", False, reason))

    def _exceed(self, uid: str, limit: int) -> None:
        known = self._pods.get(uid)
        if not known or known.stopping or known.ended or known.deadline != limit:
            return
        known.ended = True
        message = "Pod was active on the node longer than the specified deadline"
        ending = {"phase": "Failed", "reason": "DeadlineExceeded", "message": message}
        killed = _stopped(known.life)
        self._report(
            self._acting,
            known.pod,
            {**ending, **_containers(known.pod, killed, ended=True)},
            _condition("Ready", False),
        )

    def _remove(self, uid: str) -> None:
        known = self._pods.get(uid)
        if not known:
            return
        if not known.ended:
            life = _stopped(known.life)
            phase = "Failed" if life.exit_code else "Succeeded"
            self._report(self._acting, known.pod, {"phase": phase, **_containers(known.pod, life, ended=True)})
        options = {"gracePeriodSeconds": 0, "preconditions": {"uid": uid}}
        with contextlib.suppress(ApiError):
            self._acting.delete("v1/Pod", known.pod["metadata"]["name"], self._namespace, **options)

    def _report(self, api: Api, pod: Object, status: Object, *conditions: Object) -> None:
        change = {
            "metadata": {"uid": pod["metadata"]["uid"]},
            "status": {"podIP": "127.0.0.1", "hostIP": "127.0.0.1", **status, "conditions": list(conditions)},
        }
        name = pod["metadata"]["name"]
        # The pod may be gone: a kubelet is told so, too, and forgets it.
        with contextlib.suppress(ApiError):
            api.patch("v1/Pod", name, change, self._namespace, subresource="status", way="strategic")

    @contextlib.contextmanager
    def _noted_failure(self) -> t.Iterator[None]:
        try:
            yield
        except BaseException as error:
            self.failure = error


@dataclasses.dataclass
class _Pod:
    pod: Object
    life: Life
    placed: float = dataclasses.field(default_factory=time.monotonic)
    deadline: int | None = None
    stopping: bool = False
    ended: bool = False


@pytest.fixture
def fake_nodes(testbed_run: Run, cluster: Cluster, namespace: Namespace) -> t.Iterator[FakeNodes]:
    """Nodes that have room for every pod of the test's namespace, each pod running for ever until told otherwise."""
    if not cluster.is_ours:
        pytest.skip("a cluster with real nodes has kubelets of its own")
    testbed_run.once("nodes", lambda folder: _create_node(cluster.api))
    nodes = FakeNodes(cluster.api, namespace.name)
    nodes.start()
    yield nodes
    nodes.stop()
    if nodes.failure:
        raise nodes.failure


def _create_node(
    api: Api, name: str = "fake-node", labels: t.Mapping[str, str] | None = None, taints: t.Sequence[Object] = ()
) -> dict[str, t.Any]:
    usual = {"kubernetes.io/hostname": name, "kubernetes.io/os": "linux"}
    metadata = {"name": name, "labels": {**usual, **(labels or {})}}
    api.create({"apiVersion": "v1", "kind": "Node", "metadata": metadata})
    # Every node is made with the taint "not ready", which a controller takes away that does not run here.
    api.patch("v1/Node", name, {"spec": {"taints": list(taints)}})
    ready = _condition("Ready", True, "KubeletReady")
    status = {"capacity": _CAPACITY, "allocatable": _CAPACITY, "conditions": [ready]}
    api.patch("v1/Node", name, {"status": status}, subresource="status")
    return {"name": name}


def _stopped(life: Life) -> Life:
    return Life(exit_code=life.stopped_exit_code, message=life.stopped_message)


def _names(pod: Object, key: str) -> list[str]:
    return [row["name"] for row in pod["spec"].get(key, ())]


def _containers(pod: Object, life: Life, *, ended: bool) -> Object:
    """The status of the containers: all run, or the one that the life names has ended so and the others well."""
    at_fault = life.container or _names(pod, "containers")[0]
    failed_early = at_fault in _names(pod, "initContainers")

    def state(name: str, init: bool) -> Object:
        if name == at_fault and ended:
            return _terminated(life.exit_code, life.message, life.reason)
        if init:
            return _terminated(0)
        if not ended:
            return {"running": {"startedAt": _now()}}
        return {"waiting": {"reason": "PodInitializing"}} if failed_early else _terminated(0)

    return _rows(pod, state)


def _rows(pod: Object, state: t.Callable[[str, bool], Object]) -> Object:
    """The status of all containers; ``state`` gets a container's name and whether it is an init container."""

    def rows(key: str, init: bool) -> list[Object]:
        found = []
        for row in pod["spec"].get(key, ()):
            current = state(row["name"], init)
            facts = {"name": row["name"], "image": row["image"], "imageID": row["image"], "restartCount": 0}
            runs = "running" in current
            found.append({**facts, "ready": runs, "started": runs, "state": current})
        return found

    return {
        "startTime": _now(),
        "initContainerStatuses": rows("initContainers", True),
        "containerStatuses": rows("containers", False),
    }


def _terminated(exit_code: int, message: str = "", reason: str = "") -> Object:
    now = _now()
    reason = reason or ("Error" if exit_code else "Completed")
    facts = {"exitCode": exit_code, "reason": reason, "startedAt": now, "finishedAt": now}
    return {"terminated": {**facts, **({"message": message} if message else {})}}


def _condition(kind: str, holds: bool, reason: str = "", message: str = "") -> Object:
    facts = {"type": kind, "status": str(holds), "lastTransitionTime": _now()}
    return {**facts, **({"reason": reason} if reason else {}), **({"message": message} if message else {})}


def _now() -> str:
    return datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
