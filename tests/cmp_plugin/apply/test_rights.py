"""The rights that ``apply`` needs are those of the chart's Role, and no more."""

from __future__ import annotations

import pathlib
import typing as t

import pytest
import yaml

from tests.cmp_plugin.apply.teams import LEASE, Team
from tests.helm import chart
from tests.helm.chart import Helm
from tests.testbed.plugin.api import Api, ApiError, Object
from tests.testbed.plugin.cluster import Cluster
from tests.testbed.plugin.fake_nodes import FOREVER, FakeNodes
from tests.testbed.plugin.kubelet import Life

#: They take long together.
pytestmark = pytest.mark.slow


@pytest.fixture
def account(cluster: Cluster, team: Team, tool: t.Callable[[str], pathlib.Path]) -> pathlib.Path:
    """A kubeconfig of the account that the chart makes for ``apply``, with its token."""
    objects = Helm(tool("helm")).template("apply", namespace=team.namespace.name)
    for kind in ("ServiceAccount", "Role", "RoleBinding"):
        cluster.api.create(chart.one(objects, kind, "htrflow-apply", team.namespace.name))
    return cluster.service_account(team.namespace.name, "htrflow-apply")


def test_the_charts_account_can_do_everything_that_apply_does(
    team: Team, fake_nodes: FakeNodes, account: pathlib.Path
) -> None:
    # Pods of a campaign may start before it is paused.
    fake_nodes.play(lambda pod: FOREVER if pod["metadata"]["labels"].get("job-name") == "maps" else Life(exit_code=13))
    team.campaign("letters", "R1")
    team.campaign("maps", "R2", suspend=True)
    first = team.apply("--prune", kubeconfig=account)
    assert (first.code, first.err) == (0, ""), first
    assert "paused Job/maps" in first.lines
    team.ended("htr-warmup-demo-v1")
    team.ended("letters")
    team.remove("campaigns/letters.yaml")
    team.campaign("maps", "R2")

    second = team.apply("--prune", kubeconfig=account)

    assert (second.code, second.err) == (0, ""), second
    said = [
        "recorded Job/letters: it ended as Failed", "replaced Job/htr-warmup-demo-v1", "resumed Job/maps",
        "pruned Job/letters",
    ]  # fmt: skip
    assert {*said} <= {*second.lines}
    assert team.lease() is None
    team.take_lease(renewed="2001-01-01T00:00:00.000000Z")
    assert team.apply(kubeconfig=account).code == 0


def test_the_account_of_another_namespace_can_do_nothing_here(
    team: Team, cluster: Cluster, account: pathlib.Path
) -> None:
    team.settings(namespace="default")
    team.campaign("letters", "R1")

    done = team.apply(kubeconfig=account)

    assert (done.code, done.out) == (1, "")
    assert "the Lease of the namespace default cannot be had: " in done.err
    assert 'cannot get resource "leases"' in done.err
    assert cluster.api.find("coordination.k8s.io/v1/Lease", LEASE, "default") is None


@pytest.mark.slow
def test_the_account_may_neither_make_queues_nor_read_secrets(team: Team, account: pathlib.Path) -> None:
    client = Api(account)
    spec = {"clusterQueue": team.namespace.name}
    metadata = {"name": "mine", "namespace": team.namespace.name}
    queue: Object = {"apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "LocalQueue", "metadata": metadata, "spec": spec}
    with pytest.raises(ApiError, match="forbidden"):
        client.create(queue)
    with pytest.raises(ApiError, match="forbidden"):
        client.list("v1/Secret", team.namespace.name)
    client.close()


@pytest.mark.slow
def test_no_token_is_said(team: Team, account: pathlib.Path, tmp_path: pathlib.Path) -> None:
    config = yaml.safe_load(account.read_text(encoding="utf-8"))
    config["users"][0]["user"] = {"token": "expired"}
    file = tmp_path / "expired.kubeconfig"
    file.write_text(yaml.safe_dump(config), encoding="utf-8")

    done = team.apply(kubeconfig=file)

    assert (done.code, done.out) == (1, "")
    assert "Unauthorized" in done.err
