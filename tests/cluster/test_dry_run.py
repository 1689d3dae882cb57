"""The API server, with Kueue's webhooks, takes every object that the converter makes, at every limit."""

from __future__ import annotations

import pathlib
import typing as t

import pytest

from htrflow_campaigns import limits
from tests.cluster.repos import Repo
from tests.cmp_plugin import rendered, rule_cases
from tests.cmp_plugin.conftest import CAMPAIGN, CONVERTER, PIPELINE
from tests.testbed.plugin.api import Object
from tests.testbed.plugin.fake_nodes import FakeNodes
from tests.testbed.plugin.kubelet import Life
from tests.testbed.plugin.namespace import Namespace

#: Of an empty repo nothing is made.
GOOD = [case for case in rule_cases.GOOD_CASES if case != "no-pipelines-and-no-campaigns"]

Make = t.Callable[[pathlib.Path], pathlib.Path]


def _here(objects: t.Iterable[Object], namespace: Namespace) -> list[Object]:
    """The objects in the test's own namespace."""
    return [{**item, "metadata": {**item["metadata"], "namespace": namespace.name}} for item in objects]


@pytest.mark.parametrize("deliver", rendered.DELIVERIES.values(), ids=rendered.DELIVERIES)
@pytest.mark.parametrize("make", rendered.REPOS.values(), ids=rendered.REPOS)
def test_the_server_takes_every_object(
    make: Make, deliver: rendered.Deliver, place: Namespace, tmp_path: pathlib.Path
) -> None:
    objects = _here(deliver(make(tmp_path / "repo")), place)

    taken = place.create_all(objects, dry_run=True)

    assert len(taken) >= 4
    assert {item["spec"]["suspend"] for item in taken if "completionMode" in item.get("spec", {})} >= {True}
    assert not place.api.list("batch/v1/Job", place.name)


@pytest.mark.parametrize("case", GOOD)
def test_the_server_takes_the_objects_of_every_good_repo(case: str, place: Namespace, tmp_path: pathlib.Path) -> None:
    for name, content in (("converter", CONVERTER), ("pipelines/demo-v1", PIPELINE), ("campaigns/letters", CAMPAIGN)):
        file = tmp_path / f"{name}.yaml"
        file.parent.mkdir(exist_ok=True)
        file.write_text(content, encoding="utf-8")
    rule_cases.lay_over(rule_cases.GOOD / case, tmp_path)

    for deliver in rendered.DELIVERIES.values():
        objects = _here(deliver(tmp_path), place)
        assert len(place.create_all(objects, dry_run=True)) == len(objects)


@pytest.mark.slow
def test_a_campaign_whose_pods_have_the_longest_names_runs(
    namespace: Namespace, fake_nodes: FakeNodes, tmp_path: pathlib.Path
) -> None:
    repo = Repo(tmp_path / "repo", namespace.name)
    name = "c" * 61
    repo.campaign(name, 10)
    fake_nodes.play(Life())

    namespace.create_all(repo.generated())

    namespace.wait_for(lambda: namespace.job(name)["status"].get("succeeded") == 10, "the campaign has ended", 60)
    pods = [pod for pod in namespace.pods() if pod["metadata"]["labels"].get("job-name") == name]
    hostnames = {pod["spec"]["hostname"] for pod in pods}
    assert hostnames == {f"{name}-{index}" for index in range(10)}
    assert {len(hostname) for hostname in hostnames} == {limits.NAME_CHARACTERS}


def test_the_largest_config_map_is_stored(namespace: Namespace, tmp_path: pathlib.Path) -> None:
    objects = _here(rendered.generated(rendered.REPOS["over-900-kib"](tmp_path / "repo")), namespace)
    largest = max(
        (item for item in objects if "data" in item), key=lambda item: len(item["data"].get("volumes.txt", ""))
    )
    assert limits.PART_BYTES - limits.VOLUME_LINE_BYTES < len(largest["data"]["volumes.txt"]) <= limits.PART_BYTES

    namespace.api.apply(largest)

    found = namespace.api.get("v1/ConfigMap", largest["metadata"]["name"], namespace.name)
    assert found["data"] == largest["data"]


def test_a_job_without_volumes_would_be_complete_at_once(namespace: Namespace, tmp_path: pathlib.Path) -> None:
    repo = Repo(tmp_path / "repo", namespace.name)
    repo.campaign("empty", 1)
    (job,) = (item for item in repo.of("empty") if item["kind"] == "Job")
    job["spec"] |= {"completions": 0, "maxFailedIndexes": 0}

    namespace.create_all([job])

    def complete() -> bool:
        rows = namespace.job("empty")["status"].get("conditions", ())
        return any((row["type"], row["status"]) == ("Complete", "True") for row in rows)

    # That is why a campaign without volumes is refused: its name would be used up.
    namespace.wait_for(complete, "the Job is complete")
