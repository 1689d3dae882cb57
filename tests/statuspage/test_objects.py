"""Campaigns, volumes and attempts from objects of the cluster, also from odd ones."""

from __future__ import annotations

import ast
import json
import pathlib
import typing as t

import jsonschema
import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from htrflow_status.sources import indexes, pods, reasons, records
from htrflow_status.sources.cache import Cache
from htrflow_status.sources.intake import Intake
from htrflow_status.sources.volume_list import VolumeList
from tests.statuspage import object_cases

TOP = pathlib.Path(__file__).parents[2]
_KINDS = ("jobs", "workloads", "pods", "configmaps", "workloadpriorityclasses")


@pytest.mark.parametrize("file", object_cases.CASES, ids=lambda file: file.stem)
def test_objects_become_what_the_case_expects(file: pathlib.Path) -> None:
    case = yaml.safe_load(file.read_text(encoding="utf-8"))

    snapshot = object_cases.read(map(object_cases.filled, case["objects"])).snapshot()

    (campaign,) = snapshot.campaigns()
    found = object_cases.shown(snapshot, campaign)
    assert {key: found[key] for key in case["expected"]} == case["expected"]
    assert snapshot.campaign(campaign.namespace, campaign.name) is campaign


@pytest.mark.parametrize("file", object_cases.CASES, ids=lambda file: file.stem)
def test_objects_become_the_same_in_whatever_order_they_come(file: pathlib.Path) -> None:
    case = yaml.safe_load(file.read_text(encoding="utf-8"))
    # One object may be written twice to change it: only the order among different ones is free.
    last = {(one["kind"], one["metadata"]["name"]): one for one in map(object_cases.filled, case["objects"])}
    forth = object_cases.read(last.values()).snapshot()
    back = object_cases.read(reversed(last.values())).snapshot()

    shown = [object_cases.shown(snapshot, snapshot.campaigns()[0]) for snapshot in (forth, back)]

    assert shown[0] == shown[1]


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inside: (
        st.lists(inside, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                [
                    "metadata",
                    "name",
                    "labels",
                    "spec",
                    "status",
                    "conditions",
                    "type",
                    "state",
                    "data",
                    "volumes.txt",
                    "uid",
                ]
            ),
            inside,
            max_size=5,
        )
    ),
    max_leaves=30,
)


@settings(max_examples=300, deadline=None)
@given(kind=st.sampled_from(_KINDS), damage=_JSON, where=st.sampled_from(["metadata", "spec", "status", "data"]))
def test_no_object_is_so_odd_that_it_raises(kind: t.Any, damage: t.Any, where: str) -> None:
    kinds = {"jobs": "Job", "workloads": "Workload", "pods": "Pod", "configmaps": "ConfigMap"}
    thing = {**object_cases.base(kinds.get(kind, "Job")), where: damage}
    cache = Cache()
    intake = Intake(cache, object_cases.NAMESPACE)
    intake.put("jobs", object_cases.base("Job"))
    intake.put(kind, thing)
    snapshot = cache.snapshot()
    for campaign in snapshot.campaigns():
        object_cases.shown(snapshot, campaign)
    intake.drop(kind, thing)

    assert len(cache.snapshot().campaigns()) <= 2


@given(st.sets(st.integers(0, 400)), st.integers(1, 400))
def test_indexes_are_those_that_kubernetes_wrote(wanted: set[int], size: int) -> None:
    from htrflow_campaigns.local import indexes as written

    found, whole = indexes.read(written.write(wanted), size)

    assert set(found.all()) == {index for index in wanted if index < size}
    assert found.count == len(set(found.all()))
    assert whole == all(index < size for index in wanted)
    assert [index for index in range(size) if found.holds(index)] == sorted(found.all())


@pytest.mark.parametrize(
    ("text", "expected"),
    [("1,3-5,7…", [1, 3, 4, 5]), ("5-3", []), ("1,,2", [1, 2]), ("0-999999999", [0, 1, 2, 3, 4, 5, 6, 7]), ("-1", [])],
)
def test_of_indexes_that_are_odd_the_rest_is_read(text: str, expected: list[int]) -> None:
    found, whole = indexes.read(text, 8)

    assert list(found.all()) == expected
    assert not whole


_ID = st.from_regex(r"[A-Za-z0-9](?:[A-Za-z0-9._-]{0,6}[A-Za-z0-9])?", fullmatch=True)


@given(st.lists(_ID, unique=True, max_size=30), st.text("aB0.-", min_size=1, max_size=2))
def test_a_list_of_volumes_finds_what_a_search_through_all_ids_finds(ids: list[str], text: str) -> None:
    listed = VolumeList("".join(f"{id_}\thttps://example.org/{id_}\n" for id_ in ids))

    assert [listed.id(index) for index in range(len(listed))] == ids
    assert [listed.index(id_) for id_ in ids] == list(range(len(ids)))
    assert listed.index("no such id") is None
    assert listed.find(text.casefold(), 1000) == [id_ for id_ in ids if text.casefold() in id_.casefold()]


def test_the_last_words_of_a_container_have_no_secret_and_one_line() -> None:
    said = pods.last_words("Traceback\n\nOSError: https://user:secret@example.org/a?token=1\n")

    assert said == ("", "OSError: https://…@example.org/a?…")
    assert pods.last_words("") == ("", "")
    assert pods.last_words('["no object"]') == ("", '["no object"]')


def test_the_documented_record_fits_its_schema_and_is_read_whole() -> None:
    schema = json.loads((TOP / "schemas/record.schema.json").read_text(encoding="utf-8"))
    record = {
        "version": 1,
        "job": "letters-part2",
        "uid": "job-1",
        "phase": "Failed",
        "volumes": 3,
        "completedIndexes": "0,2",
        "failedIndexes": "1",
        "created": "2026-01-05T10:00:00Z",
        "started": "2026-01-05T10:01:00Z",
        "finished": "2026-01-05T12:00:00Z",
        "pages": {"done": 681, "failed": 1},
        "window": 20,
        "priority": "htr-bulk",
        "image": "registry.example.org/htrflow@sha256:0",
        "results": "https://htr.example.org/results/htr-batch/demo-v1",
        "failedVolumes": {"1": {"exitCode": 13, "stage": "load", "reason": "", "message": "no such page"}},
    }
    jsonschema.validate(record, schema)
    assert set(record) == set(schema["properties"]), "the example has every key"
    metadata = {
        "name": records.config_map_of_job("letters-part2"),
        "namespace": "htr-batch",
        "labels": {
            "htrflow.riksarkivet.se/campaign": "letters",
            "htrflow.riksarkivet.se/part": "2",
            "htrflow.riksarkivet.se/pipeline": "demo-v1",
        },
    }

    found = records.read({"metadata": metadata, "data": {records.KEY: json.dumps(record)}})

    assert (found.name, found.campaign, found.part, found.pipeline) == ("letters-part2", "letters", 2, "demo-v1")
    assert (found.done.count, list(found.failed.all()), found.problems) == (2, [1], ())
    assert found.pages is not None
    assert (found.pages.done, found.pages.failed, found.pages.total) == (681, 1, 682)
    assert (found.window, found.priority, found.results) == (20, "htr-bulk", record["results"])
    assert found.words[1].message == "no such page"


def test_every_code_of_the_sources_is_in_the_catalogue() -> None:
    """Codes that are put together of parts are in the cases."""
    known = {*reasons.WAITING, *reasons.WARMUP, *reasons.PROBLEMS, *reasons.TROUBLES}
    folder = TOP / "statuspage/htrflow_status/sources"
    written = set()
    for file in folder.glob("*.py"):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "Reason":
                code = node.args[0]
                if isinstance(code, ast.Constant):
                    written.add(code.value)
    for file in object_cases.CASES:
        case = yaml.safe_load(file.read_text(encoding="utf-8"))["expected"]
        written |= {row.split()[0] for key in ("waiting", "problems") for row in case.get(key, ())}

    assert len(written) > 30
    assert written <= known
