"""``apply`` is killed, and run again."""

from __future__ import annotations

import functools
import json
import pathlib
import secrets
import subprocess
import typing as t

import pytest

from tests.cmp_plugin.apply.api_proxy import Asked, Fault, Proxy
from tests.cmp_plugin.apply.teams import JOB_UID, LEASE, Team
from tests.testbed.plugin.api import Object
from tests.testbed.plugin.cluster import Cluster
from tests.testbed.plugin.fake_nodes import FOREVER, FakeNodes
from tests.testbed.plugin.kubelet import Life
from tests.testbed.plugin.namespace import Namespace

#: They take long together.
pytestmark = pytest.mark.slow

_LONG_AGO = "2001-01-01T00:00:00.000000Z"


@pytest.fixture(scope="module", autouse=True)
def _node(fake_node: None) -> None:
    pass


@pytest.fixture(scope="module")
def undisturbed(_node: None, cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Object]:
    """What there is after two runs that nobody killed."""
    folder = tmp_path_factory.mktemp("undisturbed")
    proxy = Proxy(cluster.admin, folder)
    try:
        return _run(cluster, folder, proxy, lambda asked: False)[0]
    finally:
        proxy.close()


@pytest.mark.parametrize(
    "what", ["PATCH jobs/letters", pytest.param("DELETE jobs/htr-warmup-demo-v1", marks=pytest.mark.slow)]
)
def test_a_run_that_is_killed_at_a_write_is_finished_by_the_next_one(
    cluster: Cluster, tmp_path: pathlib.Path, proxy: Proxy, undisturbed: dict[str, Object], what: str
) -> None:
    found, killed = _run(cluster, tmp_path, proxy, lambda asked: str(asked) == what)

    assert killed
    assert found == undisturbed


@pytest.mark.slow
def test_a_run_that_is_killed_at_any_write_is_finished_by_the_next_one(
    cluster: Cluster, tmp_path: pathlib.Path, proxy: Proxy, undisturbed: dict[str, Object]
) -> None:
    number, killed = 0, True
    while killed:
        number += 1
        at = functools.partial(_is_write, number)
        found, killed = _run(cluster, tmp_path, proxy, at)
        assert found == undisturbed, f"killed at write {number}, {proxy.writes[number - 1]}"
    assert number > 20


def _is_write(number: int, asked: Asked) -> bool:
    return asked.number == number


def _run(
    cluster: Cluster,
    folder: pathlib.Path,
    proxy: Proxy,
    at: t.Callable[[Asked], bool],
) -> tuple[dict[str, Object], bool]:
    """What there is after a run that was killed and a second one, and whether the first was killed."""
    namespace = Namespace(cluster.api, f"test-{secrets.token_hex(4)}")
    namespace.create()
    nodes = FakeNodes(cluster.api, namespace.name)
    nodes.start()
    try:
        return _in(Team(folder / namespace.name, namespace, cluster.admin), nodes, proxy, at)
    finally:
        nodes.stop()
        namespace.delete()


def _in(team: Team, nodes: FakeNodes, proxy: Proxy, at: t.Callable[[Asked], bool]) -> tuple[dict[str, Object], bool]:
    """A run with everything in it: a warm-up to replace, new campaigns, a pause, a resumption and a prune."""
    nodes.play(lambda pod: Life(exit_code=13) if pod["metadata"]["labels"]["app"] == "htrflow-warmup" else FOREVER)
    for name in ("old", "runs"):
        team.campaign(name, f"R-{name}")
    team.campaign("rests", "R-rests", suspend=True)
    assert team.apply().code == 0
    team.ended("htr-warmup-demo-v1")
    failed = team.uid("htr-warmup-demo-v1")
    nodes.play(FOREVER)
    team.remove("campaigns/old.yaml")
    team.campaign("runs", "R-runs", suspend=True)
    team.campaign("rests", "R-rests")
    team.campaign("letters", "R1", "R2")
    team.campaign("maps", "R3", suspend=True)

    started: list[subprocess.Popen[str]] = []

    def kill() -> None:
        started[0].kill()
        started[0].wait()

    proxy.forget()
    proxy.script = lambda asked: Fault(after=True, do=kill) if asked.number and at(asked) else None
    process = team.start("--prune", kubeconfig=proxy.kubeconfig)
    started.append(process)
    out, err = process.communicate(timeout=120)
    killed = process.returncode == -9
    assert killed or process.returncode == 0, out + err
    proxy.script = lambda asked: None
    if team.lease() is not None:
        change = {"spec": {"renewTime": _LONG_AGO}}
        team.api.patch("coordination.k8s.io/v1/Lease", LEASE, change, team.namespace.name)
    done = team.apply("--prune")
    assert done.code == 0, done
    assert team.uid("htr-warmup-demo-v1") != failed
    return _state(team), killed


def _state(team: Team) -> dict[str, Object]:
    """Everything that ``apply`` is responsible for, without what differs from one namespace to the next."""
    found: dict[str, Object] = {"Lease": {"there": team.lease() is not None}}
    for name in team.names():
        kind, _, plain = name.partition("/")
        item = team.job(plain) if kind == "Job" else team.config_map(plain)
        assert item is not None
        if not plain.endswith("-status"):
            metadata, spec = item["metadata"], item.get("spec", {})
            kept = {key: spec.get(key) for key in ("completions", "parallelism", "ttlSecondsAfterFinished")}
            # Kueue marks a Job that it is stopping.
            every = metadata.get("annotations") or {}
            annotations = {key: value for key, value in every.items() if not key.startswith("kueue.")}
            uid = annotations.pop(JOB_UID, "")
            assert uid == (team.uid(plain.removeprefix("campaign-")) if uid else "")
            found[name] = {"labels": metadata["labels"], "annotations": annotations, "data": item.get("data"), **kept}
            found[name]["has uid"] = bool(uid)
        else:
            record = json.loads(item["data"]["record.json"])
            job = team.job(record["job"])
            assert job is None or record["uid"] == job["metadata"]["uid"]
            found[name] = {"labels": item["metadata"].get("labels"), "phase": record["phase"], "job": record["job"]}
    for campaign in ("letters", "maps", "rests", "runs"):
        found[f"Workload of {campaign}"] = {"active": team.active(campaign)}
    return t.cast(dict[str, Object], json.loads(json.dumps(found).replace(team.namespace.name, "NAMESPACE")))
