"""An API server that is busy, broken, gone, or refuses one kind of object."""

from __future__ import annotations

import pathlib
import time

import pytest

from tests.cmp_plugin.apply.api_proxy import CUT, Asked, Fault, Proxy
from tests.cmp_plugin.apply.teams import LEASE, Team

#: They take long together.
pytestmark = pytest.mark.slow


class _Times:
    """A fault for the first so many requests of which ``what`` is a part."""

    def __init__(self, fault: Fault, what: str, times: int) -> None:
        self._fault, self._what, self._left = fault, what, times
        self.at: list[float] = []

    def __call__(self, asked: Asked) -> Fault | None:
        text = str(asked)
        if self._what not in text or (self._what.startswith("GET") and self._what != text):
            return None
        self.at.append(time.monotonic())
        self._left -= 1
        return self._fault if self._left >= 0 else None


@pytest.mark.parametrize("fault", [Fault(429), Fault(500), Fault(503), CUT, Fault(after=True)], ids=str)
@pytest.mark.parametrize(
    "what",
    [
        "POST leases", "GET jobs", "GET configmaps", "PATCH jobs/letters (dry run)", "PUT leases",
        "PATCH configmaps/htr-pipeline-demo-v1", "PATCH jobs/letters", "POST configmaps", "PATCH workloads",
        "DELETE jobs/maps", "DELETE leases",
    ],
)  # fmt: skip
@pytest.mark.slow
def test_a_request_that_fails_once_is_tried_again_and_nobody_notices(
    team: Team, proxy: Proxy, what: str, fault: Fault
) -> None:
    _nobody_notices(team, proxy, what, fault)


@pytest.mark.parametrize(
    ("what", "fault"),
    [("POST leases", Fault(after=True)), ("PATCH jobs/letters", Fault(503))],
)
def test_a_write_that_fails_once_is_tried_again_and_nobody_notices(
    team: Team, proxy: Proxy, what: str, fault: Fault
) -> None:
    _nobody_notices(team, proxy, what, fault)


def _nobody_notices(team: Team, proxy: Proxy, what: str, fault: Fault) -> None:
    team.campaign("maps", "R9")
    assert team.apply().code == 0
    team.remove("campaigns/maps.yaml")
    team.campaign("letters", "R1", suspend=True)
    proxy.script = _Times(fault, what, 1)

    done = team.apply("--prune", kubeconfig=proxy.kubeconfig)

    assert (done.code, done.err) == (0, ""), done
    assert done.lines == [
        "unchanged ConfigMap/htr-pipeline-demo-v1",
        "unchanged Job/htr-warmup-demo-v1",
        "created ConfigMap/campaign-letters",
        "created Job/letters",
        "paused Job/letters",
        "pruned Job/maps",
        "pruned ConfigMap/campaign-maps",
    ]
    assert not team.active("letters")
    assert team.record("letters") is not None
    assert team.lease() is None


@pytest.mark.slow
def test_a_request_is_tried_four_times_after_1_2_and_4_seconds(team: Team, proxy: Proxy) -> None:
    team.campaign("letters", "R1")
    script = proxy.script = _Times(Fault(500), "PATCH jobs/letters (dry run)", 99)

    done = team.apply(kubeconfig=proxy.kubeconfig)

    assert done.code == 3, done
    assert "Job/letters: the proxy says 500" in done.err
    waits = [later - earlier for earlier, later in zip(script.at, script.at[1:], strict=False)]
    assert [round(wait) for wait in waits] == [1, 2, 4]


@pytest.mark.slow
def test_what_failed_four_times_is_tried_but_once_for_the_next_object(team: Team, proxy: Proxy) -> None:
    """A webhook that is down fails for each Job: hundreds of them would take hours."""
    for number in range(5):
        team.campaign(f"letters-{number}", f"R{number}")
    script = proxy.script = _Times(Fault(500), "(dry run)", 99)

    done = team.apply(kubeconfig=proxy.kubeconfig)

    assert done.code == 3, done
    assert len(script.at) == 4 + 4


@pytest.mark.slow
def test_retry_after_is_waited_for(team: Team, proxy: Proxy) -> None:
    team.campaign("letters", "R1")
    script = proxy.script = _Times(Fault(429, headers={"Retry-After": "2"}), "PATCH jobs/letters (dry run)", 1)

    assert team.apply(kubeconfig=proxy.kubeconfig).code == 0

    assert 2 <= script.at[1] - script.at[0] < 4


@pytest.mark.slow
def test_any_other_status_is_an_answer_and_not_asked_for_again(team: Team, proxy: Proxy) -> None:
    team.campaign("letters", "R1")
    for status in (400, 401, 403, 409, 413, 422):
        script = proxy.script = _Times(Fault(status), "PATCH jobs/letters (dry run)", 99)

        done = team.apply(kubeconfig=proxy.kubeconfig)

        assert done.code == 3, done
        assert len(script.at) == 1
        assert f"Job/letters: the proxy says {status}" in done.err


@pytest.mark.parametrize(
    ("what", "left"),
    [
        ("PATCH configmaps", {"ConfigMap/htr-pipeline-demo-v1", "Job/htr-warmup-demo-v1", "Job/letters"}),
        ("PATCH jobs", {"Job/htr-warmup-demo-v1", "Job/letters"}),
        ("POST configmaps", {"ConfigMap/campaign-letters-status"}),
        ("DELETE jobs", {"Job/maps"}),
        ("DELETE configmaps", {"ConfigMap/campaign-maps"}),
    ],
)
@pytest.mark.slow
def test_one_kind_of_object_that_is_refused_is_left_and_the_rest_goes_on(
    team: Team, proxy: Proxy, what: str, left: set[str]
) -> None:
    team.campaign("maps", "R9")
    assert team.apply().code == 0
    team.remove("campaigns/maps.yaml")
    team.campaign("letters", "R1")
    proxy.script = _Times(Fault(403), what, 999)

    done = team.apply("--prune", kubeconfig=proxy.kubeconfig)

    assert done.code == 3, done
    summary = done.err.splitlines()[-1]
    # Whether the record of maps has to be written depends on how far Kueue is.
    assert {*summary.removeprefix("left as they were: ").split(", ")} - {"ConfigMap/campaign-maps-status"} == left
    assert done.out
    assert team.lease() is None


def test_what_may_not_be_read_stops_everything_and_is_named(team: Team, proxy: Proxy) -> None:
    team.campaign("maps", "R9")
    assert team.apply().code == 0
    before = team.names()
    team.campaign("letters", "R1")
    things = {
        "configmaps/htr-pipeline-demo-v1": "ConfigMap/htr-pipeline-demo-v1",
        "configmaps/campaign-maps": "ConfigMap/campaign-maps",
        "configmaps/campaign-maps-status": "ConfigMap/campaign-maps-status",
        "configmaps": "the ConfigMaps",
        "jobs": "the Jobs",
    }
    for what, thing in things.items():
        proxy.script = _Times(Fault(403), f"GET {what}", 1)

        done = team.apply("--prune", kubeconfig=proxy.kubeconfig)

        assert (done.code, done.out) == (1, "")
        assert f"{thing} cannot be read: the proxy says 403" in done.err
        assert done.err.endswith("nothing was sent\n")
        assert team.names() == before


def test_nothing_that_reached_the_cluster_is_1(team: Team, proxy: Proxy) -> None:
    team.campaign("letters", "R1")
    proxy.script = lambda asked: Fault(403) if asked.method == "PATCH" else None

    done = team.apply(kubeconfig=proxy.kubeconfig)

    assert (done.code, done.out) == (1, ""), done
    assert done.err.endswith("nothing reached the cluster\n")


@pytest.mark.slow
def test_what_cannot_be_listed_is_not_pruned(team: Team, proxy: Proxy) -> None:
    team.campaign("maps", "R9")
    assert team.apply().code == 0
    team.remove("campaigns/maps.yaml")
    proxy.script = lambda asked: Fault(403) if "labelSelector" in asked.query and asked.what == "jobs" else None

    done = team.apply("--prune", kubeconfig=proxy.kubeconfig)

    assert done.code == 3, done
    assert "the Jobs to prune cannot be read: the proxy says 403" in done.err
    assert "pruned ConfigMap/campaign-maps" in done.lines
    assert team.job("maps") is not None


@pytest.mark.slow
def test_a_cluster_that_is_gone_part_way_is_1_names_the_object_and_a_rerun_finishes(team: Team, proxy: Proxy) -> None:
    team.campaign("letters", "R1")
    gone = False

    def cut(asked: Asked) -> Fault | None:
        nonlocal gone
        gone = gone or (asked.what == "jobs/letters" and not asked.is_dry_run)
        return CUT if gone else None

    proxy.script = cut
    done = team.apply(kubeconfig=proxy.kubeconfig)

    assert done.code == 1, done
    assert "does not answer as it should: " in done.err
    assert "stopped at Job/letters — run apply again, and it goes on from there" in done.err
    assert "the Lease could not be given back, and is free in ten minutes" in done.err
    assert team.job("letters") is None
    team.api.delete("coordination.k8s.io/v1/Lease", LEASE, team.namespace.name)
    assert team.apply().code == 0
    assert team.job("letters") is not None


@pytest.mark.slow
def test_a_cluster_that_cannot_be_reached_is_said_and_nothing_was_sent(team: Team, proxy: Proxy) -> None:
    proxy.close()
    done = team.apply(kubeconfig=proxy.kubeconfig)

    assert (done.code, done.out) == (1, "")
    assert "Connection refused" in done.err
    assert done.err.endswith("nothing was sent\n")


def test_a_certificate_of_an_unknown_authority_is_said_at_once(team: Team, tmp_path: pathlib.Path) -> None:
    text = team.kubeconfig.read_text(encoding="utf-8").replace("certificate-authority:", "was-authority:")
    file = tmp_path / "no-authority.kubeconfig"
    file.write_text(text, encoding="utf-8")
    started = time.monotonic()

    done = team.apply(kubeconfig=file)

    assert done.code == 1, done
    assert "certificate verify failed" in done.err
    assert time.monotonic() - started < 3
