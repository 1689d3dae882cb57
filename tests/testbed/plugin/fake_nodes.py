"""Nodes without machines.

The scheduler puts pods on them as on any node. What a kubelet would then report of a pod, a :class:`Life` says.
"""

from __future__ import annotations

import contextlib
import dataclasses
import heapq
import http
import itertools
import threading
import time
import typing as t

from tests.testbed.plugin import kubelet
from tests.testbed.plugin.api import Api, ApiError, Object
from tests.testbed.plugin.kubelet import Life
from tests.testbed.plugin.namespace import GPU

_CAPACITY = {"cpu": "10000", "memory": "100000Gi", "pods": "10000", "ephemeral-storage": "100000Gi", GPU: "1000"}
_KILLED = 137
#: The label of nodes without a machine.
FAKE = "testbed.invalid/fake-node"
_ENDED = ("Succeeded", "Failed")

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
        #: What went wrong in a thread.
        self._failure: BaseException | None = None

    def play(self, script: Script | Life) -> None:
        """Sets what happens to the pods that are placed from here on. Before, they run for ever."""
        self._script = script if callable(script) else lambda pod: script

    def add(self, name: str, labels: t.Mapping[str, str], taints: t.Sequence[Object] = ()) -> None:
        """Adds a node for this test, which other tests see as well: taint it, or give it labels that none asks for."""
        create_node(self._api, name, labels, taints)
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
        with self._changed:
            known = self._pods.get(found["metadata"]["uid"])
            if known:
                known.ended = True
        message = "The node was low on resource: memory."
        condition = kubelet.condition("DisruptionTarget", True, "TerminationByKubelet", message)
        ending = {"phase": "Failed", "reason": "Evicted", "message": message}
        killed = kubelet.containers(found, Life(exit_code=_KILLED), ended=True)
        self._report(self._api, found, {**ending, **killed}, condition)

    def end(self, pod: str, life: Life | None = None) -> None:
        """Ends a pod that runs for ever, as its life would: by default well."""
        found = self._api.get("v1/Pod", pod, self._namespace)
        with self._changed:
            known = self._pods[found["metadata"]["uid"]]
            known.life = life or Life()
            self._later(0, lambda: self._end(found["metadata"]["uid"]))
            self._changed.notify()

    def start(self) -> None:
        """Begins to act on pods."""
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        """Ends the threads, and raises what went wrong in one of them."""
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
        if self._failure:
            raise self._failure

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
            rows = kubelet.rows_of(known.pod, lambda name, init: {"waiting": {"reason": known.life.waiting}})
            self._report(self._acting, known.pod, {"phase": "Pending", **rows}, kubelet.condition("Ready", False))

    def _run(self, uid: str) -> None:
        known = self._pods.get(uid)
        if not known or known.stopping or known.ended:
            return
        if known.life.container in kubelet.names(known.pod, "initContainers"):
            self._end(uid)
            return
        started = {"phase": "Running", **kubelet.containers(known.pod, known.life, ended=False)}
        self._report(
            self._acting,
            known.pod,
            started,
            kubelet.condition("Ready", True),
            kubelet.condition("ContainersReady", True),
        )
        if known.life.running is not None:
            with self._changed:
                self._later(known.life.running, lambda: self._end(uid))

    def _end(self, uid: str) -> None:
        known = self._pods.get(uid)
        if not known or known.stopping or known.ended:
            return
        known.ended = True
        phase = "Failed" if known.life.exit_code else "Succeeded"
        ending = {"phase": phase, **kubelet.containers(known.pod, known.life, ended=True)}
        reason = "PodFailed" if known.life.exit_code else "PodCompleted"
        self._report(self._acting, known.pod, ending, kubelet.condition("Ready", False, reason))

    def _exceed(self, uid: str, limit: int) -> None:
        known = self._pods.get(uid)
        if not known or known.stopping or known.ended or known.deadline != limit:
            return
        known.ended = True
        message = "Pod was active on the node longer than the specified deadline"
        ending = {"phase": "Failed", "reason": "DeadlineExceeded", "message": message}
        killed = kubelet.stopped(known.life)
        self._report(
            self._acting,
            known.pod,
            {**ending, **kubelet.containers(known.pod, killed, ended=True)},
            kubelet.condition("Ready", False),
        )

    def _remove(self, uid: str) -> None:
        known = self._pods.get(uid)
        if not known:
            return
        if not known.ended:
            life = kubelet.stopped(known.life)
            phase = "Failed" if life.exit_code else "Succeeded"
            self._report(self._acting, known.pod, {"phase": phase, **kubelet.containers(known.pod, life, ended=True)})
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
            self._failure = error


@dataclasses.dataclass
class _Pod:
    pod: Object
    life: Life
    placed: float = dataclasses.field(default_factory=time.monotonic)
    deadline: int | None = None
    stopping: bool = False
    ended: bool = False


def create_node(
    api: Api, name: str = "fake-node", labels: t.Mapping[str, str] | None = None, taints: t.Sequence[Object] = ()
) -> dict[str, t.Any]:
    """Adds a node that is ready and has room for every pod, unless it is there, and returns its name."""
    usual = {"kubernetes.io/hostname": name, "kubernetes.io/os": "linux", FAKE: ""}
    metadata = {"name": name, "labels": {**usual, **(labels or {})}}
    try:
        api.create({"apiVersion": "v1", "kind": "Node", "metadata": metadata})
    except ApiError as error:
        if error.status != http.HTTPStatus.CONFLICT:
            raise
    # Every node is made with the taint "not ready", which a controller takes away that does not run here.
    api.patch("v1/Node", name, {"spec": {"taints": list(taints)}})
    ready = kubelet.condition("Ready", True, "KubeletReady")
    status = {"capacity": _CAPACITY, "allocatable": _CAPACITY, "conditions": [ready]}
    api.patch("v1/Node", name, {"status": status}, subresource="status")
    return {"name": name}
