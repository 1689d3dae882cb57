"""Campaigns as the data folder of ``htrflow-campaigns local`` has them: written by its own code, read by the site's."""

from __future__ import annotations

import asyncio
import json
import pathlib
import shutil
import subprocess
import sys
import time
import typing as t

import pytest

from htrflow_campaigns.local.data import Data
from htrflow_campaigns.local.job import Ended, Job, timestamp
from htrflow_status.model import Campaign
from htrflow_status.sources.folder import FolderSource

_CAMPAIGN, _NAMESPACE = "example", "htr-batch"


@pytest.fixture
def data(tmp_path: pathlib.Path) -> t.Iterator[Data]:
    """A folder with the campaign that ``init`` writes, in line for three slots."""
    command = [sys.executable, "-m", "htrflow_campaigns"]
    repo = str(tmp_path / "repo")
    subprocess.run([*command, "init", repo], check=True, capture_output=True)
    done = subprocess.run([*command, "generate", repo], check=True, capture_output=True, text=True)
    objects = [json.loads(line) for line in done.stdout.splitlines()]
    made = Data(tmp_path / "data")
    files = {one["metadata"]["name"]: one["data"] for one in objects if one["kind"] == "ConfigMap"}
    for one in objects:
        if one["kind"] == "Job":
            name = one["metadata"]["name"]
            one["metadata"] |= {"uid": f"uid-{name}", "creationTimestamp": timestamp(time.time())}
            mounted = [
                row["configMap"]["name"] for row in one["spec"]["template"]["spec"]["volumes"] if "configMap" in row
            ]
            made.keep_config_maps(name, _NAMESPACE, {key: files[key] for key in mounted})
            job = Job(one)
            if name == _CAMPAIGN:
                job.suspend(time.time())
            made.keep_job(job)
    yield made
    made.close()


@pytest.fixture
def source(data: Data) -> t.Iterator[FolderSource]:
    made = FolderSource(data.folder, slots=8, seconds=0.05)
    made.start()
    yield made
    made.close()


def test_a_campaign_in_line_says_how_many_slots_it_needs(data: Data, source: FolderSource) -> None:
    campaign = _campaign(source)

    assert campaign.state == "queued"
    assert next((row.code, row.facts) for row in campaign.waiting) == ("slots", {"needs": 3, "used": 0, "slots": 8})
    assert campaign.problems == ()
    assert campaign.pipeline.models
    assert [row.state for row in source.snapshot().volumes(campaign)] == ["waiting"] * 3


def test_a_campaign_that_needs_more_slots_than_there_are_never_starts(data: Data) -> None:
    source = FolderSource(data.folder, slots=2)
    source.look()

    first = _campaign(source).waiting[0]
    assert (first.code, first.facts) == ("slots-never", {"needs": 3, "slots": 2})


def test_what_the_runner_writes_is_seen_while_it_runs(data: Data, source: FolderSource) -> None:
    (job,) = (one for one in data.jobs() if one.name == _CAMPAIGN)
    job.resume(time.time())
    for index in range(3):
        job.started(index, time.time())
        _keep_pod(data, job, index, {"phase": "Running", "containerStatuses": []})
    data.keep_job(job)
    running = _until(source, lambda one: one.counts.running == 3)
    assert (running.state, running.waiting) == ("running", ())

    said = json.dumps({"stage": "load", "permanent": True, "error": "no such page"})
    for index, code in enumerate((0, 13, 0)):
        state = {"terminated": {"exitCode": code, "reason": "Error" if code else "Completed", "message": said}}
        phase = "Failed" if code else "Succeeded"
        _keep_pod(data, job, index, {"phase": phase, "containerStatuses": [{"name": "wrapper", "state": state}]})
        job.ended(index, Ended({"wrapper": code}, succeeded=not code), time.time())
    data.keep_job(job)

    ended = _until(source, lambda one: one.state == "partial volumes")
    assert (ended.counts.done, ended.counts.failed) == (2, 1)
    (attempt,) = source.snapshot().attempts(ended, 1)
    assert (attempt.state, attempt.exit_code, attempt.message) == ("failed", 13, "no such page")


def test_a_campaign_that_the_runner_forgets_is_gone_and_its_pipeline_stays(data: Data, source: FolderSource) -> None:
    _campaign(source)
    (other,) = (one for one in data.jobs() if one.name == _CAMPAIGN)
    other.object["metadata"] |= {"name": "other", "uid": "uid-other"}
    kept = data.config_maps(_CAMPAIGN)
    data.keep_config_maps("other", _NAMESPACE, {key.replace(_CAMPAIGN, "other"): kept[key] for key in kept})
    data.keep_job(other)
    _until(source, lambda one: not one.problems, "other")

    data.forget(_CAMPAIGN)

    _wait(lambda: source.snapshot().campaign(_NAMESPACE, _CAMPAIGN) is None)
    assert _campaign(source, "other").problems == ()


def test_a_file_that_cannot_be_read_is_said_and_what_was_known_stays(data: Data, source: FolderSource) -> None:
    before = _campaign(source)
    file = data.folder / "jobs" / f"{_CAMPAIGN}.json"
    content = file.read_text(encoding="utf-8")

    file.write_text(content[: len(content) // 2], encoding="utf-8")

    _wait(lambda: source.troubles() != ())
    assert [(row.what, row.reason.code) for row in source.troubles()] == [(f"jobs/{_CAMPAIGN}.json", "file-unreadable")]
    assert _campaign(source).state == before.state
    file.write_text(content, encoding="utf-8")
    _wait(lambda: source.troubles() == ())


def test_a_folder_that_is_not_there_is_said_and_taken_up_when_it_comes(tmp_path: pathlib.Path, data: Data) -> None:
    late = tmp_path / "late"
    source = FolderSource(late)
    source.look()
    assert [(row.what, row.reason.code) for row in source.troubles()] == [("folder", "folder-unreadable")]

    shutil.copytree(data.folder, late)
    source.look()

    assert source.troubles() == ()
    assert _campaign(source).state == "queued"


def test_a_pause_that_the_runner_notes_is_shown(data: Data, source: FolderSource) -> None:
    file = data.folder / "jobs" / f"{_CAMPAIGN}.json"
    kept = json.loads(file.read_text(encoding="utf-8"))
    file.write_text(json.dumps({**kept, "paused": True}), encoding="utf-8")

    paused = _until(source, lambda one: one.state == "paused")

    assert [row.code for row in paused.waiting] == ["paused"]


def test_whoever_waits_is_woken_by_a_change_and_by_nothing_else(data: Data, source: FolderSource) -> None:
    async def wait() -> tuple[bool, bool]:
        version = source.snapshot().version
        quiet = await source.changed(version, 0.4) == version
        (job,) = (one for one in data.jobs() if one.name == _CAMPAIGN)
        data.keep_job(job)  # another file with the same content
        quiet &= await source.changed(version, 0.4) == version
        job.resume(time.time())
        data.keep_job(job)
        return quiet, await source.changed(version, 20) != version

    assert asyncio.run(wait()) == (True, True)


def _keep_pod(data: Data, job: Job, index: int, status: dict[str, t.Any]) -> None:
    name = f"{job.name}-{index}-abcdef"
    data.pod_folder(name)
    metadata = {
        "name": name,
        "namespace": _NAMESPACE,
        "labels": {
            **job.object["spec"]["template"]["metadata"]["labels"],
            "batch.kubernetes.io/job-name": job.name,
            "batch.kubernetes.io/job-completion-index": str(index),
        },
        "annotations": {"batch.kubernetes.io/job-completion-index": str(index)},
        "creationTimestamp": timestamp(time.time()),
    }
    data.keep_pod({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "status": status})


def _campaign(source: FolderSource, name: str = _CAMPAIGN) -> Campaign:
    found = source.snapshot().campaign(_NAMESPACE, name)
    assert found is not None
    return found


def _until(source: FolderSource, condition: t.Callable[[Campaign], bool], name: str = _CAMPAIGN) -> Campaign:
    def holds() -> bool:
        found = source.snapshot().campaign(_NAMESPACE, name)
        return found is not None and condition(found)

    _wait(holds)
    return _campaign(source, name)


def _wait(condition: t.Callable[[], bool], seconds: float = 20) -> None:
    limit = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < limit, "still not so"
        time.sleep(0.02)
