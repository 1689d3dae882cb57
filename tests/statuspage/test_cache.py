"""Snapshots and versions: what an event changes, and what it leaves as it was."""

from __future__ import annotations

import copy
import typing as t

from htrflow_status.sources.intake import Intake
from tests.statuspage import object_cases

Object = dict[str, t.Any]


def test_an_event_changes_the_version_of_its_campaign_and_of_no_other() -> None:
    cache = object_cases.read([_named("Job", "letters"), _named("Job", "diaries")])
    before = cache.snapshot()

    Intake(cache, object_cases.NAMESPACE).put("pods", object_cases.base("Pod"))

    after = cache.snapshot()
    assert after.version != before.version
    assert _version(after, "letters") != _version(before, "letters")
    assert after.campaign("htr-batch", "diaries") is before.campaign("htr-batch", "diaries")


def test_a_snapshot_stays_as_it_was() -> None:
    cache = object_cases.read([_named("Job", "letters"), object_cases.base("Pod")])
    before = cache.snapshot()
    intake = Intake(cache, object_cases.NAMESPACE)

    intake.drop("pods", object_cases.base("Pod"))
    intake.drop("jobs", _named("Job", "letters"))

    (campaign,) = before.campaigns()
    assert campaign.counts.running == 1
    assert len(before.attempts(campaign, 0)) == 1
    assert cache.snapshot().campaigns() == ()


def test_an_event_that_says_nothing_new_makes_no_version() -> None:
    cache = object_cases.read([_named("Job", "letters"), object_cases.base("Pod"), object_cases.base("Workload")])
    version = cache.snapshot().version
    intake = Intake(cache, object_cases.NAMESPACE)

    for kind, thing in (("jobs", "Job"), ("pods", "Pod"), ("workloads", "Workload")):
        again = copy.deepcopy(object_cases.base(thing))
        again["metadata"]["resourceVersion"] = "another"
        intake.put(t.cast(t.Any, kind), again)

    assert cache.snapshot().version == version


def test_a_new_list_forgets_what_is_not_in_it_and_is_one_change() -> None:
    cache = object_cases.read([_named("Job", "letters"), _named("Job", "diaries"), object_cases.base("Pod")])
    other = _named("Job", "letters")
    other["metadata"]["namespace"] = "elsewhere"
    Intake(cache, "elsewhere").put("jobs", other)
    intake = Intake(cache, object_cases.NAMESPACE)

    intake.replace("jobs", [_named("Job", "diaries")])
    intake.replace("pods", [])

    assert {campaign.key for campaign in cache.snapshot().campaigns()} == {"htr-batch/diaries", "elsewhere/letters"}
    assert all(len(facts.pods) == 0 for facts in cache.facts())


def test_the_volumes_that_hold_a_text_are_found_in_any_case_and_no_more_than_asked_for() -> None:
    listed = {"volumes.txt": "".join(f"R{number:04}\thttps://example.org/{number}\n" for number in range(200))}
    cache = object_cases.read(
        [_named("Job", "letters"), {**object_cases.base("ConfigMap"), "kind": "ConfigMap", "data": listed}]
    )

    found = cache.snapshot()

    assert found.find("r00", most=3) == {"htr-batch/letters": ["R0000", "R0001", "R0002"]}
    assert found.find("R0199") == {"htr-batch/letters": ["R0199"]}
    assert found.find("https") == {}
    assert found.find(" ") == {}


def _named(kind: str, name: str) -> Object:
    thing = object_cases.base(kind)
    thing["metadata"] |= {"name": name, "uid": "job-1" if name == "letters" else f"uid-{name}"}
    return thing


def _version(snapshot: t.Any, name: str) -> str:
    return t.cast(str, snapshot.campaign("htr-batch", name).version)
