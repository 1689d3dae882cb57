"""Two teams in the cohort that the chart makes: what one borrows of the other, and when it comes back."""

from __future__ import annotations

import pathlib
import secrets
import typing as t

import pytest

from tests.cluster import observed
from tests.cluster.repos import Repo
from tests.helm.chart import Helm
from tests.testbed.plugin.cluster import Cluster
from tests.testbed.plugin.fake_nodes import FakeNodes
from tests.testbed.plugin.namespace import Namespace

_AMOUNTS = {"cpu": 100, "memory": "1000Gi"}


class Team:
    """A namespace with the queue that the chart makes for it, and a campaigns repo."""

    def __init__(self, cluster: Cluster, mark: str, folder: pathlib.Path) -> None:
        self.cluster = cluster
        self.namespace = Namespace(cluster.api, f"test-{mark}")
        self.namespace.create()
        self.queue = f"q-{mark}"
        self.repo = Repo(folder / mark, self.namespace.name, queue=self.queue)
        self.nodes = FakeNodes(cluster.api, self.namespace.name)
        self.nodes.start()

    def create(self, name: str, volumes: int) -> None:
        """Creates a campaign with all of its volumes in its window, of which each asks for one GPU."""
        self.repo.campaign(name, volumes, window=volumes)
        self.namespace.create_all(self.repo.of(name))

    def runs(self, name: str, pods: int) -> None:
        """Waits until a campaign runs."""
        self.namespace.wait_for(lambda: len(observed.running(self.namespace, name)) == pods, f"{name} runs")

    def waits(self, name: str) -> str:
        """Why a campaign waits, as soon as Kueue says so."""
        found = self.namespace.wait_for(
            lambda: observed.condition(self.namespace.workload(name), "QuotaReserved"), f"Kueue has looked at {name}"
        )
        assert found["status"] == "False"
        return t.cast(str, found["message"])

    def used(self) -> int:
        """How many GPUs the team's ClusterQueue has in use."""
        return observed.used(self.cluster.api.get(observed.CLUSTER_QUEUE, f"{self.queue}-cq"))

    def delete(self) -> None:
        self.nodes.stop()
        self.namespace.delete()
        self.cluster.api.delete(observed.CLUSTER_QUEUE, f"{self.queue}-cq")


@pytest.fixture
def teams(fake_node: None, cluster: Cluster, tmp_path: pathlib.Path) -> t.Iterator[tuple[Team, Team]]:
    """Two teams; the queues are not made yet."""
    made = tuple(Team(cluster, secrets.token_hex(4), tmp_path) for _ in range(2))
    yield made[0], made[1]
    for team in made:
        team.delete()


@pytest.mark.slow
@pytest.mark.parametrize(("lending", "borrowing"), [(1, 2), (2, 1)])
def test_a_team_borrows_what_another_lends_within_both_limits_and_keeps_it_to_the_end_of_its_campaign(
    lending: int, borrowing: int, helm: Helm, cluster: Cluster, teams: tuple[Team, Team]
) -> None:
    lender, borrower = teams
    quota = {"flavor": "testbed", "nominal": {**_AMOUNTS, "gpu": 2}}
    lent = {"quota": [{**quota, "lending": {**_AMOUNTS, "gpu": lending}}]}
    borrowed = {"quota": [{**quota, "borrowing": {**_AMOUNTS, "gpu": borrowing}}]}
    settings = {
        "shared.create": False,
        "flavors": [{"name": "testbed"}],
        "cohort": f"cohort-{lender.queue}",
        "teams": [
            {"namespace": team.namespace.name, "queue": team.queue, "window": 2, **rows}
            for team, rows in ((lender, lent), (borrower, borrowed))
        ],
    }
    for item in helm.template("default", settings=settings):
        if item["kind"] in ("ClusterQueue", "LocalQueue"):
            cluster.api.create(item)

    # Two of its own and one of the other's: the smaller of what one lends and the other may borrow.
    borrower.create("four", 4)
    assert "insufficient quota for nvidia.com/gpu in flavor testbed" in borrower.waits("four")
    borrower.create("three", 3)
    borrower.runs("three", 3)
    borrower.namespace.wait_for(lambda: borrower.used() == 3, "one GPU is borrowed")
    kept = observed.running(borrower.namespace, "three")

    # Of the lender's own two, one is lent. It waits for that: nothing is taken back.
    lender.create("two", 2)
    assert "insufficient unused quota for nvidia.com/gpu in flavor testbed, 1 more needed" in lender.waits("two")
    lender.create("one", 1)
    lender.runs("one", 1)
    assert observed.running(borrower.namespace, "three") == kept

    cluster.api.delete("batch/v1/Job", "one", lender.namespace.name)
    cluster.api.delete("batch/v1/Job", "three", borrower.namespace.name)
    lender.runs("two", 2)
