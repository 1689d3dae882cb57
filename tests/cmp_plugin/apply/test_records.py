"""What remains of a campaign, and which campaigns run, run again or wait, on a real control plane."""

from __future__ import annotations

import json
import typing as t

import jsonschema
import pytest

from htrflow_campaigns import schemas
from tests.cmp_plugin.apply.teams import JOB_UID, Team
from tests.testbed.plugin.fake_nodes import FakeNodes
from tests.testbed.plugin.kubelet import Life, index_of

WARMUP = "htrflow-warmup"


def test_a_record_is_written_at_the_start_and_its_ending_before_the_ttl_takes_the_job(
    team: Team, fake_nodes: FakeNodes
) -> None:
    fake_nodes.play(lambda pod: Life(exit_code=13, container="wrapper") if index_of(pod) == "1" else Life())
    team.campaign("letters", "R1", "R2", priority="htr-bulk")
    assert team.apply().code == 0
    begun = _record(team, "letters")
    assert (begun["phase"], begun["uid"], begun["volumes"]) == ("", team.uid("letters"), 2)
    assert team.ended("letters") == "Failed"

    done = team.apply()

    assert done.code == 0, done
    assert done.lines[0] == "recorded Job/letters: it ended as Failed"
    record = _record(team, "letters")
    status = team.namespace.job("letters")["status"]
    assert record == {
        "version": 1,
        "job": "letters",
        "uid": begun["uid"],
        "phase": "Failed",
        "volumes": 2,
        "completedIndexes": "0",
        "failedIndexes": "1",
        "created": begun["created"],
        "started": status["startTime"],
        "finished": next(row["lastTransitionTime"] for row in status["conditions"] if row["type"] == "Failed"),
        "window": 2,
        "priority": "htr-bulk",
        "image": team.namespace.job("letters")["spec"]["template"]["spec"]["containers"][0]["image"],
        "results": f"https://htr.example.org/results/{team.namespace.name}/demo-v1",
    }
    found = team.config_map("campaign-letters-status")
    assert found is not None
    assert found["metadata"]["labels"] == {
        "htrflow.riksarkivet.se/campaign": "letters",
        "htrflow.riksarkivet.se/pipeline": "demo-v1",
    }


def test_a_finished_campaign_is_left_alone_when_its_job_is_gone_also_by_a_prune(
    team: Team, fake_nodes: FakeNodes
) -> None:
    _run_to_its_end(team, fake_nodes, "letters")
    team.gone("letters")

    done = team.apply("--prune")

    assert (done.code, done.err) == (0, ""), done
    assert "over Job/letters: it ended as Complete at " in done.out
    assert "as ConfigMap/campaign-letters-status says, and is left alone" in done.out
    assert team.job("letters") is None
    assert team.config_map("campaign-letters") is not None
    team.campaign("letters", "R1", "R2")
    assert "the volumes of the campaign letters have changed (added R2)" in team.apply().err


@pytest.mark.slow
def test_a_renamed_campaign_runs_again(team: Team, fake_nodes: FakeNodes) -> None:
    _run_to_its_end(team, fake_nodes, "letters")
    team.gone("letters")
    team.remove("campaigns/letters.yaml")
    team.campaign("letters-again", "R1")

    done = team.apply("--prune")

    assert done.code == 0, done
    assert "created Job/letters-again" in done.lines
    assert team.config_map("campaign-letters-status") is not None


@pytest.mark.slow
def test_a_finished_campaign_runs_again_when_its_config_map_is_deleted(team: Team, fake_nodes: FakeNodes) -> None:
    _run_to_its_end(team, fake_nodes, "letters")
    team.api.delete("batch/v1/Job", "letters", team.namespace.name)
    team.wait(lambda: team.job("letters") is None, "the Job is gone")
    assert "over Job/letters: " in team.apply().out
    team.api.delete("v1/ConfigMap", "campaign-letters", team.namespace.name)

    done = team.apply()

    assert "it is not believed, and the campaign runs" in done.err
    assert "created Job/letters" in done.lines


@pytest.mark.slow
def test_a_job_deleted_by_hand_before_its_end_runs_again(team: Team) -> None:
    team.campaign("letters", "R1")
    assert team.apply().code == 0
    before = team.uid("letters")
    team.api.delete("batch/v1/Job", "letters", team.namespace.name)
    team.wait(lambda: team.job("letters") is None, "the Job is gone")

    done = team.apply()

    assert "created Job/letters" in done.lines
    record = _record(team, "letters")
    assert record["uid"] == team.uid("letters") != before
    found = team.config_map("campaign-letters")
    assert found is not None
    assert found["metadata"]["annotations"][JOB_UID] == record["uid"]


@pytest.mark.parametrize("way", ["another Job", pytest.param("never created", marks=pytest.mark.slow)])
def test_a_record_about_another_job_is_said_and_not_believed(team: Team, way: str) -> None:
    about = "another Job than the one that was created" if way == "another Job" else "a Job that apply did not create"
    team.campaign("letters", "R1")
    if way == "another Job":
        assert team.apply().code == 0
        team.api.delete("batch/v1/Job", "letters", team.namespace.name)
        team.wait(lambda: team.job("letters") is None, "the Job is gone")
        team.api.delete("v1/ConfigMap", "campaign-letters-status", team.namespace.name)
    _write_record(team, "letters", {"version": 1, "job": "letters", "uid": "1-2-3", "phase": "Complete", "volumes": 1})

    done = team.apply()

    assert done.code == 0, done
    assert f"ConfigMap/campaign-letters-status is about {about} for this campaign — it is not believed" in done.err
    assert "created Job/letters" in done.lines
    assert _record(team, "letters")["uid"] == team.uid("letters")


def test_a_record_of_an_unknown_form_leaves_its_campaign_and_is_not_written_over(team: Team) -> None:
    team.campaign("letters", "R1")
    team.campaign("maps", "R2")
    for text in ("no JSON", "[]", '{"version": 2}', None):
        _write_record(team, "letters", text)

        done = team.apply()

        assert done.code == 3, done
        assert "Job/letters: whether it is over cannot be known" in done.err
        assert team.job("letters") is None
        assert "Job/maps" in done.out
        found = team.config_map("campaign-letters-status")
        assert found is not None
        assert found.get("data", {}).get("record.json") == text


@pytest.mark.slow
def test_what_the_site_added_to_a_record_stays_and_so_do_keys_that_nobody_knows(
    team: Team, fake_nodes: FakeNodes
) -> None:
    team.campaign("letters", "R1")
    assert team.apply().code == 0
    words = {"0": {"message": "the page is not there"}}
    extra = {"failedVolumes": words, "pages": {"done": 3, "failed": 1}, "later": [1]}
    _write_record(team, "letters", {**_record(team, "letters", valid=False), **extra})
    fake_nodes.play(Life())
    team.ended("letters")

    assert team.apply().code == 0

    record = _record(team, "letters", valid=False)
    assert {key: record[key] for key in extra} == extra
    assert record["phase"] == "Complete"


@pytest.mark.slow
def test_an_ending_is_recorded_of_a_campaign_that_is_pruned(team: Team, fake_nodes: FakeNodes) -> None:
    fake_nodes.play(Life())
    team.campaign("letters", "R1")
    assert team.apply().code == 0
    team.ended("letters")
    team.remove("campaigns/letters.yaml")

    done = team.apply("--prune")

    assert {"recorded Job/letters: it ended as Complete", "pruned Job/letters"} <= {*done.lines}
    assert _record(team, "letters")["phase"] == "Complete"


def test_a_new_campaign_waits_for_one_that_runs_and_shares_a_volume_and_runs_when_that_has_ended(
    team: Team, fake_nodes: FakeNodes
) -> None:
    fake_nodes.play(lambda pod: Life() if pod["metadata"]["labels"]["app"] == WARMUP else Life(running=None))
    team.campaign("letters", "R1", "R2")
    assert team.apply().code == 0
    team.pipeline("other-v1")
    team.campaign("again", "R2", "R3")
    team.campaign("elsewhere", "R1", "R2", pipeline="other-v1")

    done = team.apply()

    assert done.code == 3, done
    assert "Job/again: it waits, since letters (R2) has not ended and writes the same results" in done.err
    assert team.job("again") is None
    assert team.config_map("campaign-again") is None
    assert "created Job/elsewhere" in done.lines

    team.api.delete("batch/v1/Job", "elsewhere", team.namespace.name)
    team.remove("campaigns/elsewhere.yaml")
    fake_nodes.play(Life())
    for suspend in (True, False):
        team.campaign("letters", "R1", "R2", suspend=suspend)
        assert team.apply().code == 3
        (team.stopped if suspend else team.admitted)("letters")
    assert team.ended("letters") == "Complete"

    after = team.apply()
    assert after.code == 0, after
    assert "created Job/again" in after.lines


@pytest.mark.slow
def test_a_campaign_renamed_while_it_runs_is_pruned_by_one_run_and_created_by_the_next(team: Team) -> None:
    team.campaign("letters", "R1")
    assert team.apply().code == 0
    team.remove("campaigns/letters.yaml")
    team.campaign("renamed", "R1")

    first = team.apply("--prune")

    assert first.code == 3, first
    assert "Job/renamed: it waits, since letters (R1) has not ended" in first.err
    assert "pruned Job/letters" in first.lines
    second = team.apply("--prune")
    assert second.code == 0, second
    assert "created Job/renamed" in second.lines


@pytest.mark.slow
def test_of_two_new_campaigns_that_share_a_volume_the_first_runs(team: Team) -> None:
    team.campaign("b", "R1", "R2", "R3", "R4", "R5")
    team.campaign("c", "R5", "R4", "R3", "R2", "R6")
    team.campaign("d", "R6")

    done = team.apply()

    assert done.code == 3, done
    assert "Job/c: it waits, since b (R5, R4, R3 and 1 more) has not ended" in done.err
    assert {"Job/b", "Job/d"} <= team.names()
    assert "Job/c" not in team.names()


def test_a_campaign_is_not_created_a_second_time_when_a_ttl_takes_its_job_during_the_run(
    team: Team, fake_nodes: FakeNodes, proxy: t.Any
) -> None:
    _run_to_its_end(team, fake_nodes, "letters")

    def take(asked: t.Any) -> None:
        if asked.what == "configmaps/htr-pipeline-demo-v1" and asked.method == "PATCH":
            team.gone("letters")

    proxy.script = take
    done = team.apply(kubeconfig=proxy.kubeconfig)

    assert done.code == 3, done
    assert "Job/letters: " in done.err
    assert team.job("letters") is None
    assert team.apply().code == 0
    assert team.job("letters") is None


def _run_to_its_end(team: Team, fake_nodes: FakeNodes, name: str) -> None:
    fake_nodes.play(Life())
    team.campaign(name, "R1")
    assert team.apply().code == 0
    assert team.ended(name) == "Complete"
    assert team.apply().code == 0
    assert _record(team, name)["phase"] == "Complete"


def _record(team: Team, job: str, *, valid: bool = True) -> dict[str, t.Any]:
    record = team.record(job)
    assert record is not None
    if valid:
        assert list(jsonschema.Draft202012Validator(schemas.load("record")).iter_errors(record)) == []
    return record


def _write_record(team: Team, job: str, content: dict[str, t.Any] | str | None) -> None:
    text = content if isinstance(content, str | None) else json.dumps(content)
    metadata = {"name": f"campaign-{job}-status", "namespace": team.namespace.name}
    data = {} if text is None else {"record.json": text}
    team.api.apply({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data})
