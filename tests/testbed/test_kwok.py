"""kwok: many nodes, whose pods run and end by the Stages that come with it."""

from __future__ import annotations

import contextlib
import pathlib
import subprocess
import typing as t

from tests import tools
from tests.testbed.plugin import processes
from tests.testbed.plugin.api import Api, Object
from tests.testbed.plugin.cluster import Cluster
from tests.testbed.plugin.fake_nodes import FAKE
from tests.testbed.plugin.namespace import Namespace
from tests.testbed.plugin.run import Run
from tests.tools.cache import owner

_NODES = 20
_STAGES = (
    "node/fast/node-initialize",
    "node/heartbeat/node-heartbeat",
    "pod/fast/pod-ready",
    "pod/fast/pod-complete",
    "pod/fast/pod-delete",
)
#: Of nodes of a test: a label and a taint that no other pod asks for, and the annotation by which kwok knows them.
_OWNED = "testbed.invalid/kwok"


def test_kwok_makes_nodes_ready_and_runs_the_pods_that_the_scheduler_puts_there(
    tool: t.Callable[[str], pathlib.Path],
    testbed_run: Run,
    namespace: Namespace,
    cluster: Cluster,
    tmp_path: pathlib.Path,
) -> None:
    cluster.require_no_machines()
    program, api, mark = tool("kwok"), cluster.api, namespace.name
    names = {f"{mark}-{number}" for number in range(_NODES)}

    with contextlib.ExitStack() as stack:
        for name in sorted(names):
            stack.callback(api.delete, "v1/Node", name)
            _create_node(api, name, mark)
        assert not _ready(api, mark), "nodes are ready that nobody keeps"
        process = _start(program, testbed_run, cluster, mark, tmp_path / "kwok")
        stack.callback(process.stop)

        process.wait_until(lambda: _ready(api, mark) == names, 60)
        namespace.create_all([*(_lasting(mark, number) for number in range(_NODES)), _job(mark)])

        api.wait_for(lambda: namespace.job("ending")["status"].get("succeeded") == _NODES, "all pods of the Job end")
        api.wait_for(lambda: len(_on_nodes(namespace, "Running")) == _NODES, "all other pods run")
        ended, running = _on_nodes(namespace, "Succeeded"), _on_nodes(namespace, "Running")
        assert [_state(pod)["terminated"]["exitCode"] for pod in ended] == [0] * _NODES
        assert {pod["spec"]["nodeName"] for pod in ended} <= names
        assert [list(_state(pod)) for pod in running] == [["running"]] * _NODES
        assert {pod["spec"]["nodeName"] for pod in running} == names

        # A pod that runs is there until its node says that it has ended.
        for pod in running:
            api.delete("v1/Pod", pod["metadata"]["name"], mark)
        api.wait_for(lambda: not _on_nodes(namespace, "Running"), "the pods are gone")

    assert not process.alive()
    assert not api.list("v1/Node", labelSelector=f"{_OWNED}={mark}")


def test_kwok_says_its_version(tool: t.Callable[[str], pathlib.Path]) -> None:
    said = subprocess.run([tool("kwok"), "--version"], capture_output=True, text=True, check=True, timeout=60)

    assert said.stdout.startswith(f"kwok version v{owner('kwok').version} ")


def _start(program: pathlib.Path, run: Run, cluster: Cluster, mark: str, folder: pathlib.Path) -> processes.Process:
    stages = tools.find("kwok").parents[1] / "share/stages"
    command: list[str | pathlib.Path] = [
        program,
        f"--kubeconfig={cluster.admin}",
        f"--manage-nodes-with-annotation-selector={_OWNED}={mark}",
        *(f"--config={stages / stage}.yaml" for stage in _STAGES),
    ]
    # It reads settings from there, too.
    return run.started(processes.start("kwok", command, folder, run.owner, {"HOME": str(folder)}))


def _create_node(api: Api, name: str, mark: str) -> None:
    marks = {_OWNED: mark}
    labels = {**marks, "kubernetes.io/hostname": name, FAKE: ""}
    api.create({"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": labels, "annotations": marks}})
    # In place of the taint "not ready", which a controller takes away that does not run here.
    api.patch("v1/Node", name, {"spec": {"taints": [{"key": _OWNED, "value": mark, "effect": "NoSchedule"}]}})


def _ready(api: Api, mark: str) -> set[str]:
    return {
        node["metadata"]["name"]
        for node in api.list("v1/Node", labelSelector=f"{_OWNED}={mark}")
        for row in node["status"].get("conditions", ())
        if (row["type"], row["status"]) == ("Ready", "True")
    }


def _on_nodes(namespace: Namespace, phase: str) -> list[Object]:
    return [pod for pod in namespace.pods() if pod["status"]["phase"] == phase]


def _job(mark: str) -> Object:
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": "ending", "namespace": mark},
        "spec": {"completions": _NODES, "parallelism": _NODES, "template": {"spec": _spec(mark)}},
    }


def _lasting(mark: str, number: int) -> Object:
    """A pod that shares its node with no other of its kind."""
    labels = {"app": "lasting"}
    apart = {"labelSelector": {"matchLabels": labels}, "topologyKey": "kubernetes.io/hostname"}
    affinity = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [apart]}}
    metadata = {"name": f"lasting-{number}", "namespace": mark, "labels": labels}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": {**_spec(mark), "affinity": affinity}}


def _spec(mark: str) -> Object:
    container = {
        "name": "main",
        "image": "registry.example.org/none",
        "securityContext": {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}},
    }
    return {
        "restartPolicy": "Never",
        "nodeSelector": {_OWNED: mark},
        "tolerations": [{"key": _OWNED, "value": mark, "effect": "NoSchedule"}],
        "securityContext": {"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}},
        "containers": [container],
    }


def _state(pod: Object) -> Object:
    (row,) = pod["status"]["containerStatuses"]
    return t.cast(Object, row["state"])
