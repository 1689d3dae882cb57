"""What a kubelet reports of a pod, as its :class:`Life` says."""

from __future__ import annotations

import dataclasses
import datetime
import typing as t

from tests.testbed.plugin.api import Object


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


def index_of(pod: Object) -> str:
    """The index of a pod of an Indexed Job, and nothing for another one."""
    return str(pod["metadata"].get("annotations", {}).get("batch.kubernetes.io/job-completion-index", ""))


def stopped(life: Life) -> Life:
    """How a pod ends that is asked to."""
    return Life(exit_code=life.stopped_exit_code, message=life.stopped_message)


def names(pod: Object, key: str) -> list[str]:
    """The names of a pod's ``containers`` or ``initContainers``."""
    return [row["name"] for row in pod["spec"].get(key, ())]


def containers(pod: Object, life: Life, *, ended: bool) -> Object:
    """The status of the containers: all run, or the one that the life names has ended so and the others well."""
    at_fault = life.container or names(pod, "containers")[0]
    failed_early = at_fault in names(pod, "initContainers")

    def state(name: str, init: bool) -> Object:
        if name == at_fault and ended:
            return _terminated(life.exit_code, life.message, life.reason)
        if init:
            return _terminated(0)
        if not ended:
            return {"running": {"startedAt": _now()}}
        return {"waiting": {"reason": "PodInitializing"}} if failed_early else _terminated(0)

    return rows_of(pod, state)


def rows_of(pod: Object, state: t.Callable[[str, bool], Object]) -> Object:
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


def condition(kind: str, holds: bool, reason: str = "", message: str = "") -> Object:
    """One condition of a pod or a node, since now."""
    facts = {"type": kind, "status": str(holds), "lastTransitionTime": _now()}
    return {**facts, **({"reason": reason} if reason else {}), **({"message": message} if message else {})}


def _now() -> str:
    return datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
