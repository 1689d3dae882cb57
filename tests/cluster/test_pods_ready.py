"""``waitForPodsReady``, which Kueue has on by default, and a small campaign of which a volume has failed."""

from __future__ import annotations

import contextlib
import pathlib
import re
import secrets
import subprocess
import time
import typing as t

import pytest
import yaml

from tests.cluster import observed
from tests.cluster.repos import Repo
from tests.helm.chart import TOP
from tests.testbed.plugin import cluster as clusters
from tests.testbed.plugin.api import Object
from tests.testbed.plugin.cluster import Cluster
from tests.testbed.plugin.fake_nodes import FakeNodes, create_node
from tests.testbed.plugin.kubelet import Life, index_of
from tests.testbed.plugin.kueue import Kueue
from tests.testbed.plugin.namespace import Namespace
from tests.testbed.plugin.run import Run

_KEY = "waitForPodsReady:"
_YAML = re.compile(r"```yaml\n(.*?)```", re.DOTALL)
_PAGES = [TOP / "docs" / f"{name}.md" for name in ("install", "queueing", "troubleshooting")]

_SECONDS = 4
_SHORT = {"timeout": f"{_SECONDS}s", "requeuingStrategy": {"backoffBaseSeconds": 1}}


@pytest.fixture
def own(testbed_run: Run, cluster: Cluster, tmp_path: pathlib.Path) -> t.Iterator[tuple[Cluster, Kueue]]:
    """A cluster of the test's own, and its Kueue."""
    if not cluster.is_ours:
        pytest.skip("the Kueue of a cluster of others is not to be restarted")
    folder = tmp_path / "cluster"
    folder.mkdir()
    state, kueue = clusters.start_with_kueue(testbed_run, folder, {"waitForPodsReady": _SHORT})
    joined = clusters.join(testbed_run, state, tmp_path)
    create_node(joined.api)
    yield joined, kueue
    joined.close()
    kueue.close()


@pytest.mark.slow
def test_a_small_campaign_with_a_failed_volume_is_evicted_again_and_again_unless_kueue_does_not_wait(
    own: tuple[Cluster, Kueue], tmp_path: pathlib.Path
) -> None:
    cluster, kueue = own

    # All volumes are in the window, and one has failed: Kueue waits for a pod that will not come.
    with _campaign(cluster, tmp_path / "small", volumes=3, window=3) as (namespace, placed):
        _until_ready_then_fail(namespace)
        _evicted(namespace, "WaitForRecovery")
        namespace.wait_for(lambda: placed.count("0") >= 3, "its first volume has been begun three times", 90)
        assert placed.count("1") == 1
        assert namespace.job("letters")["status"]["failedIndexes"] == "1"

    # There are more volumes than the window has room for: another pod takes the place of the failed one.
    with _campaign(cluster, tmp_path / "large", volumes=9, window=3) as (namespace, placed):
        _until_ready_then_fail(namespace)
        namespace.wait_for(lambda: len(observed.running(namespace, "letters")) == 3, "another volume runs")
        time.sleep(2 * _SECONDS)
        assert observed.condition(namespace.workload("letters"), "Evicted") == {}
        assert placed.count("0") == 1

    # Without a limit for recovery a campaign that was ready once is left alone.
    kueue.restart({"waitForPodsReady": {**_SHORT, "recoveryTimeout": "0s"}})
    with _campaign(cluster, tmp_path / "recovering", volumes=3, window=3) as (namespace, placed):
        _until_ready_then_fail(namespace)
        time.sleep(2 * _SECONDS)
        assert observed.condition(namespace.workload("letters"), "Evicted") == {}
        assert placed.count("0") == 1
    # One whose volume fails before all are ready is not.
    with _campaign(cluster, tmp_path / "early", volumes=3, window=3, fails_at_once=True) as (namespace, _):
        _evicted(namespace, "WaitForStart")

    # What the documentation says.
    kueue.restart({"waitForPodsReady": {"timeout": "8760h", "recoveryTimeout": "0s"}})
    with _campaign(cluster, tmp_path / "patient", volumes=3, window=3, fails_at_once=True) as (namespace, placed):
        namespace.wait_for(lambda: len(observed.running(namespace, "letters")) == 2, "two volumes run")
        time.sleep(2 * _SECONDS)
        assert observed.condition(namespace.workload("letters"), "Evicted") == {}
        assert placed.count("0") == 1

    kueue.restart({"waitForPodsReady": _SHORT, "featureGates": {"DisableWaitForPodsReady": True}})
    with _campaign(cluster, tmp_path / "off", volumes=3, window=3, fails_at_once=True) as (namespace, placed):
        namespace.wait_for(lambda: len(observed.running(namespace, "letters")) == 2, "two volumes run")
        time.sleep(2 * _SECONDS)
        workload = namespace.workload("letters")
        assert observed.condition(workload, "Evicted") == {}
        assert observed.condition(workload, "PodsReady") == {}
        assert placed.count("0") == 1


def test_kueue_takes_the_settings_of_the_documentation_and_none_that_it_does_not_have(
    tool: t.Callable[[str], pathlib.Path], tmp_path: pathlib.Path
) -> None:
    def said(settings: Object) -> str:
        config = {"apiVersion": "config.kueue.x-k8s.io/v1beta2", "kind": "Configuration", **settings}
        (tmp_path / "kueue.yaml").write_text(yaml.safe_dump(config), encoding="utf-8")
        command = [str(tool("kueue")), f"--config={tmp_path / 'kueue.yaml'}", f"--kubeconfig={tmp_path / 'none'}"]
        done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
        assert done.returncode != 0
        return done.stdout + done.stderr

    assert "strict decoding error: unknown field" in said({"waitForPodsReady": {"enable": False}})
    shown = [block for page in _PAGES for block in _YAML.findall(page.read_text("utf-8")) if _KEY in block]
    assert len(shown) == len(_PAGES)
    for block in shown:
        assert "Configuration loaded" in said(yaml.safe_load(block))


@contextlib.contextmanager
def _campaign(
    cluster: Cluster, folder: pathlib.Path, *, volumes: int, window: int, fails_at_once: bool = False
) -> t.Iterator[tuple[Namespace, list[str]]]:
    """A campaign that runs in a namespace of its own, and the index of each pod that was placed."""
    namespace = Namespace(cluster.api, f"test-{secrets.token_hex(4)}")
    namespace.create()
    nodes = FakeNodes(cluster.api, namespace.name)
    nodes.start()
    placed: list[str] = []

    def script(pod: Object) -> Life:
        placed.append(index_of(pod))
        if index_of(pod) != "1":
            return Life(running=None)
        return Life(exit_code=13) if fails_at_once else Life(running=1.5, exit_code=13)

    nodes.play(script)
    try:
        repo = Repo(folder, namespace.name)
        repo.campaign("letters", volumes, window=window)
        namespace.create_all(repo.of("letters"))
        yield namespace, placed
    finally:
        nodes.stop()
        namespace.delete()


def _until_ready_then_fail(namespace: Namespace) -> None:
    namespace.wait_for(
        lambda: observed.condition(namespace.workload("letters"), "PodsReady").get("status") == "True", "all are ready"
    )
    namespace.wait_for(lambda: namespace.job("letters")["status"].get("failedIndexes") == "1", "a volume has failed")


def _evicted(namespace: Namespace, waiting_for: str) -> None:
    """Waits until Kueue has evicted the campaign for what it waits for."""
    reasons: set[str] = set()

    def evicted() -> bool:
        workload = namespace.workload("letters")
        reasons.add(observed.condition(workload, "PodsReady").get("reason", ""))
        return observed.condition(workload, "Evicted").get("reason") == "PodsReadyTimeout"

    namespace.wait_for(evicted, "Kueue evicts it")
    assert waiting_for in reasons
