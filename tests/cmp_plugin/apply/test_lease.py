"""One apply at a time: the Lease, on a real API server."""

from __future__ import annotations

import datetime
import signal
import subprocess
import typing as t

import pytest

from htrflow_campaigns.apply import cluster as clusters
from htrflow_campaigns.apply.cluster import Cluster as Client
from htrflow_campaigns.apply.lease import Lease, TakenError
from tests.cmp_plugin.apply.api_proxy import Asked, Fault, Proxy
from tests.cmp_plugin.apply.teams import LEASE, Team

#: They take long together.
pytestmark = pytest.mark.slow


@pytest.fixture
def client(team: Team) -> t.Iterator[Client]:
    api = clusters.configured(team.kubeconfig)
    yield Client(api, team.namespace.name)
    api.close()  # type: ignore[no-untyped-call]


def test_the_lease_is_there_for_the_whole_run_and_gone_afterwards(team: Team, proxy: Proxy) -> None:
    team.campaign("letters", "R1")
    seen: list[t.Any] = []

    def look(asked: Asked) -> None:
        if asked.what == "jobs/letters" and not asked.is_dry_run:
            seen.append(team.lease())

    proxy.script = look
    assert team.apply(kubeconfig=proxy.kubeconfig).code == 0

    (lease,) = seen
    assert lease["spec"]["leaseDurationSeconds"] == 600
    assert "(process " in lease["spec"]["holderIdentity"]
    assert team.lease() is None


def test_a_second_apply_names_the_holder_sends_nothing_and_leaves_the_lease(team: Team) -> None:
    team.campaign("letters", "R1")
    team.take_lease("anna@laptop (process 4711, 1a2b3c4d)", _minutes_ago(9))

    done = team.apply("--prune")

    assert (done.code, done.out) == (1, "")
    assert "another apply is running in the namespace" in done.err
    assert "anna@laptop (process 4711, 1a2b3c4d)" in done.err
    assert team.names() == set()
    lease = team.lease()
    assert lease is not None
    assert lease["spec"]["holderIdentity"].startswith("anna@laptop")


@pytest.mark.parametrize(
    "time", ["renewed", *(pytest.param(one, marks=pytest.mark.slow) for one in ("acquired", "created"))]
)
def test_a_lease_that_was_not_renewed_for_ten_minutes_is_taken_over(team: Team, client: Client, time: str) -> None:
    old = _minutes_ago(11)
    lease = team.take_lease(renewed=old)
    if time != "renewed":
        change = {"spec": {"renewTime": None, "acquireTime": old if time == "acquired" else None}}
        lease = team.api.patch("coordination.k8s.io/v1/Lease", LEASE, change, team.namespace.name)
    ours = Lease(client, "we")
    if time == "created":
        # It was made a moment ago, and says nothing else.
        with pytest.raises(TakenError, match="anna@laptop"):
            ours.acquire()
        return

    ours.acquire()

    taken = team.lease()
    assert taken is not None
    assert (taken["spec"]["holderIdentity"], taken["spec"]["leaseTransitions"]) == ("we", 1)
    assert taken["metadata"]["uid"] == lease["metadata"]["uid"]
    ours.release()
    assert team.lease() is None


def test_the_servers_clock_counts_and_not_the_local_one(team: Team, proxy: Proxy) -> None:
    """The proxy's Date is the server's, as this run sees it: eleven minutes after the Lease was renewed."""
    team.campaign("letters", "R1")
    team.take_lease(renewed=_minutes_ago(2))
    assert team.apply(kubeconfig=proxy.kubeconfig).code == 1

    proxy.minutes_ahead = 9
    assert team.apply(kubeconfig=proxy.kubeconfig).code == 0

    team.take_lease(renewed=_minutes_ago(30))
    proxy.minutes_ahead = -25
    assert team.apply(kubeconfig=proxy.kubeconfig).code == 1


@pytest.mark.slow
def test_a_lease_without_a_holder_is_free(team: Team, client: Client) -> None:
    team.take_lease(holder="")
    Lease(client, "we").acquire()


def test_a_run_that_finds_its_lease_taken_stops_and_leaves_it(team: Team, proxy: Proxy) -> None:
    team.campaign("letters", "R1")

    def steal(asked: Asked) -> None:
        if asked.what == "jobs/letters" and asked.is_dry_run:
            team.take_lease("berit@server")

    proxy.script = steal
    done = team.apply(kubeconfig=proxy.kubeconfig)

    assert done.code == 1
    assert f"the Lease {LEASE} was taken by berit@server while this ran" in done.err
    assert "stopped at Job/letters — run apply again, and it goes on from there" in done.err
    assert team.names() == set()
    lease = team.lease()
    assert lease is not None
    assert lease["spec"]["holderIdentity"] == "berit@server"


@pytest.mark.parametrize(
    ("status", "said"),
    [(403, "cannot be renewed"), pytest.param(404, "was deleted while this ran", marks=pytest.mark.slow)],
)
def test_a_run_that_cannot_renew_stops(team: Team, proxy: Proxy, status: int, said: str) -> None:
    team.campaign("letters", "R1")

    def refuse(asked: Asked) -> Fault | None:
        if asked.method != "PUT":
            return None
        if status == 404:
            team.api.delete("coordination.k8s.io/v1/Lease", LEASE, team.namespace.name)
            return None
        return Fault(status)

    proxy.script = refuse
    done = team.apply(kubeconfig=proxy.kubeconfig)

    assert done.code == 1
    assert said in done.err
    assert team.names() == set()
    assert team.lease() is None


def test_a_lease_is_renewed_when_that_is_due_and_not_before(team: Team, client: Client) -> None:
    def version() -> str:
        lease = team.lease()
        assert lease is not None
        return t.cast(str, lease["metadata"]["resourceVersion"])

    patient, eager = Lease(client, "we"), Lease(client, "we", renew_after=0)
    patient.acquire()
    first = version()
    patient.keep()
    assert version() == first
    eager.acquire()
    eager.keep()
    eager.keep()
    assert version() != first
    # Somebody wrote a label: the Lease is still ours.
    label = {"metadata": {"labels": {"a": "b"}}}
    team.api.patch("coordination.k8s.io/v1/Lease", LEASE, label, team.namespace.name)
    eager.keep()
    eager.release()
    assert team.lease() is None


@pytest.mark.slow
def test_of_two_that_begin_at_once_one_has_the_lease(team: Team, client: Client) -> None:
    first, second = Lease(client, "first"), Lease(client, "second")
    first.acquire()
    with pytest.raises(TakenError, match="first"):
        second.acquire()
    second.release()
    assert team.lease() is not None


@pytest.mark.slow
def test_two_applies_at_once_are_one_after_the_other_or_one_alone(team: Team) -> None:
    team.campaign("letters", "R1", "R2")
    team.campaign("maps", "R3")

    started = [team.start() for _ in range(2)]
    ends = [(process.communicate(timeout=60), process.returncode) for process in started]

    codes = sorted(code for _, code in ends)
    assert codes in ([0, 0], [0, 1]), ends
    for (_, err), code in ends:
        assert code == 0 or "another apply is running" in err or "changes all the time" in err
    assert {"Job/letters", "Job/maps"} <= team.names()
    assert team.lease() is None


@pytest.mark.parametrize(
    "number",
    [signal.SIGTERM, *(pytest.param(one, marks=pytest.mark.slow) for one in (signal.SIGHUP, signal.SIGINT))],
    ids=lambda number: number.name,
)
def test_a_signal_ends_a_run_gives_the_lease_back_and_says_where(
    team: Team, proxy: Proxy, number: signal.Signals
) -> None:
    team.campaign("letters", "R1")
    process: list[subprocess.Popen[str]] = []

    def stop(asked: Asked) -> Fault | None:
        if asked.what == "jobs/letters" and not asked.is_dry_run:
            process[0].send_signal(number)
        return None

    proxy.script = stop
    process.append(team.start(kubeconfig=proxy.kubeconfig))
    _, err = process[0].communicate(timeout=60)

    assert process[0].returncode == (130 if number == signal.SIGINT else 1), err
    assert "stopped at Job/letters — run apply again, and it goes on from there" in err
    assert "Traceback" not in err
    assert team.lease() is None
    assert team.apply().code == 0


def _minutes_ago(minutes: float) -> str:
    then = datetime.datetime.now(datetime.UTC) - datetime.timedelta(minutes=minutes)
    return then.strftime("%Y-%m-%dT%H:%M:%S.%fZ")
