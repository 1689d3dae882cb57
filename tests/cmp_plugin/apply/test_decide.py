"""What is decided from plain values, without a cluster."""

from __future__ import annotations

import json
import pathlib
import typing as t

import pytest

from htrflow_campaigns import load, names, tree
from htrflow_campaigns.apply import decide, live, records, wanted
from htrflow_campaigns.apply.live import Live
from htrflow_campaigns.apply.report import Report
from htrflow_campaigns.apply.wanted import Part, Wanted
from htrflow_campaigns.objects.pod import Object
from tests.cmp_plugin.conftest import PIPELINE, Repo

_ENDED = {"type": "Complete", "status": "True", "lastTransitionTime": "2026-01-05T10:00:00Z"}


@pytest.fixture
def repo_of(tmp_path: pathlib.Path) -> t.Callable[..., Wanted]:
    """What a repo with the pipelines ``p`` and ``q`` and these campaigns asks for."""

    def make(campaigns: t.Mapping[str, str]) -> Wanted:
        repo = Repo(tmp_path)
        repo.write("converter.yaml", "source_template: https://iiif.example.org/{ref}\n")
        for id_ in "pq":
            repo.write(f"pipelines/{id_}.yaml", PIPELINE)
        for name, text in campaigns.items():
            pipeline, *volumes = text.split()
            rows = "".join(f"  - {volume}\n" for volume in volumes)
            repo.write(f"campaigns/{name}.yaml", f"pipeline: {pipeline}\nvolumes:\n{rows}")
        loaded = load.load(tree.from_folder(tmp_path))
        found = wanted.read(loaded)
        assert found is not None, loaded.problems
        return found

    return make


def _live(asked: Wanted, running: t.Collection[str] = (), ended: t.Collection[str] = ()) -> Live:
    """A cluster in which of these campaigns there are Jobs."""
    jobs, config_maps = {}, {}
    for part in asked.parts:
        if part.name in (*running, *ended):
            status = {"conditions": [_ENDED]} if part.name in ended else {}
            metadata = {**part.job["metadata"], "uid": f"uid-{part.name}", "creationTimestamp": "2026-01-05T09:00:00Z"}
            jobs[part.name] = {**part.job, "metadata": metadata, "status": status}
            config_maps[part.config_map["metadata"]["name"]] = part.config_map
    return Live(jobs, config_maps)


@pytest.mark.parametrize(
    ("campaigns", "running", "ended", "held"),
    [
        ({"a": "p R1", "b": "p R1"}, ["a"], [], {"b": "a (R1)"}),
        ({"a": "p R1", "b": "p R1"}, ["b"], [], {"a": "b (R1)"}),
        ({"a": "p R1", "b": "q R1"}, ["a"], [], {}),
        ({"a": "p R1", "b": "p R1"}, [], ["a"], {}),
        ({"a": "p R1", "b": "p R1"}, [], [], {"b": "a (R1)"}),
        ({"a": "p R1", "b": "p R1 R2", "c": "p R2"}, ["a"], [], {"b": "a (R1)"}),
        ({"a": "p R1", "b": "p R2", "c": "p R2 R1"}, [], [], {"c": "b (R2) and a (R1)"}),
        ({"a": "p R1", "b": "p R1"}, ["a", "b"], [], {}),
        ({"a": "p R1 R2 R3 R4", "b": "p R1 R2 R3 R4"}, ["a"], [], {"b": "a (R1, R2, R3 and 1 more)"}),
    ],
)
def test_a_new_campaign_waits_for_others_with_its_volumes(
    repo_of: t.Callable[..., Wanted],
    campaigns: dict[str, str],
    running: list[str],
    ended: list[str],
    held: dict[str, str],
) -> None:
    asked = repo_of(campaigns)
    verdicts = {part.name: decide.SEND for part in asked.parts}

    found = decide.held(asked, _live(asked, running, ended), verdicts, ["p", "q"])

    assert {name: verdict.sentence for name, verdict in found.items()} == {
        name: f"Job/{name}: it waits, since {others} has not ended and writes the same results — run apply again then"
        for name, others in held.items()
    }


def test_a_campaign_that_is_refused_holds_back_no_other(repo_of: t.Callable[..., Wanted]) -> None:
    asked = repo_of({"a": "p R1", "b": "p R1"})
    verdicts = {"a": decide.Verdict("refuse", "Job/a: no"), "b": decide.SEND}

    assert decide.held(asked, Live(), verdicts, ["p", "q"]) == {}
    assert decide.held(asked, Live(), {"a": decide.SEND, "b": decide.SEND}, ["q"]) == {}


def test_a_campaign_in_parts_is_over_when_all_its_parts_are(repo_of: t.Callable[..., Wanted]) -> None:
    volumes = " ".join(f"R{number:05}" for number in range(10_001))
    asked = repo_of({"large": f"p {volumes}", "small": "p R00000"})
    verdicts = {part.name: decide.SEND for part in asked.parts}

    half = _live(asked, running=["large-part2"], ended=["large-part1"])
    whole = _live(asked, ended=["large-part1", "large-part2"])

    assert list(decide.held(asked, half, verdicts, ["p"])) == ["small"]
    assert decide.held(asked, whole, verdicts, ["p"]) == {}


@pytest.mark.parametrize(
    ("annotation", "record", "action"),
    [
        ("uid-1", {"uid": "uid-1", "phase": "Complete"}, "over"),
        ("uid-1", {"uid": "uid-1", "phase": "Failed"}, "over"),
        ("uid-1", {"uid": "uid-1", "phase": ""}, "send"),
        ("uid-1", {"uid": "uid-2", "phase": "Complete"}, "send"),
        ("", {"uid": "uid-1", "phase": "Complete"}, "send"),
        ("", {"uid": "", "phase": "Complete"}, "send"),
        ("uid-1", {"uid": "uid-1", "phase": "Complete", "version": 2}, "refuse"),
        ("uid-1", None, "send"),
    ],
)
def test_a_record_that_says_the_end_of_the_job_that_was_created_is_believed(
    repo_of: t.Callable[..., Wanted], annotation: str, record: dict[str, t.Any] | None, action: str
) -> None:
    asked = repo_of({"a": "p R1"})
    (part,) = asked.parts
    config_maps = {"campaign-a": decide.with_job(part.config_map, annotation)}
    if record is not None:
        text = json.dumps({"version": 1, **record})
        config_maps["campaign-a-status"] = {"metadata": {"name": "campaign-a-status"}, "data": {"record.json": text}}

    verdicts, _ = decide.parts(asked, Live({}, config_maps))

    assert verdicts["a"].action == action


@pytest.mark.parametrize(
    ("phase", "fits", "deed"),
    [
        (None, False, "apply"),
        ("", True, "apply"),
        ("", False, "refuse"),
        ("Complete", True, "apply"),
        ("Complete", False, "replace"),
        ("Failed", True, "replace"),
        ("Failed", False, "replace"),
    ],
)
def test_a_warmup_is_replaced_when_it_has_ended_and_has_to_run_again(phase: str | None, fits: bool, deed: str) -> None:
    conditions = [{"type": phase, "status": "True"}] if phase else []
    job = None if phase is None else {"status": {"conditions": conditions}}

    assert decide.warmup(job, fits) == deed


@pytest.mark.parametrize(
    ("ours", "theirs", "sent"),
    [
        (None, ["a"], None),
        (["a"], ["a", "b"], ["a", "b"]),
        (["a"], ["a"], ["a"]),
        (["a", "c"], ["a", "b"], ["a", "c"]),
        (["a"], None, ["a"]),
    ],
)
def test_tolerations_that_kueue_added_are_sent_with_ours(
    ours: list[str] | None, theirs: list[str] | None, sent: list[str] | None
) -> None:
    def job(keys: list[str] | None) -> Object:
        rows = {} if keys is None else {"tolerations": [{"key": key} for key in keys]}
        return {"metadata": {"name": "a", "uid": "1"}, "spec": {"template": {"spec": rows}}}

    found = decide.adopted(job(ours), job(theirs))["spec"]["template"]["spec"].get("tolerations")

    assert found == (None if sent is None else [{"key": key} for key in sent])


def test_nothing_stops_a_repo_that_the_cluster_has_already(repo_of: t.Callable[..., Wanted]) -> None:
    asked = repo_of({"a": "p R1 R2", "b": "q R1"})

    assert decide.stops(asked, _live(asked, running=["a"], ended=["b"])) == []
    assert decide.stops(asked, Live()) == []


def test_a_record_is_that_of_its_job_and_keeps_what_others_wrote_about_the_same_one(
    repo_of: t.Callable[..., Wanted],
) -> None:
    asked = repo_of({"a": "p R1 R2"})
    job = _live(asked, ended=["a"]).jobs["a"]
    known = {"uid": "uid-a", "pages": {"done": 1, "failed": 0}, "finished": "2000-01-01T00:00:00Z", "phase": ""}

    record = records.of_job(job, known)

    assert (record["phase"], record["finished"]) == ("Complete", "2026-01-05T10:00:00Z")
    assert record["pages"] == {"done": 1, "failed": 0}
    assert "pages" not in records.of_job(job, {**known, "uid": "another"})
    assert records.of_job(job, record) == record
    assert records.name("a") == "campaign-a-status"


def test_the_record_names_the_results_also_with_a_dollar_sign() -> None:
    values = [("RESULTS_URL", "https://htr.example.org/$$a/results"), ("S3_PREFIX", "ns/")]
    env = [{"name": name, "value": value} for name, value in values] + [{"name": "X", "valueFrom": {}}]
    metadata = {"name": "a", "uid": "1", "creationTimestamp": "t", "labels": {names.PIPELINE_LABEL: "p"}}
    pod = {"containers": [{"image": "i", "env": env}]}
    job: Object = {"metadata": metadata, "spec": {"template": {"spec": pod}}}

    assert records.of_job(job, None)["results"] == "https://htr.example.org/$a/results/ns/p"
    env[0]["value"] = ""
    assert records.of_job(job, None)["results"] == ""


@pytest.mark.parametrize(
    ("done", "left", "unenforced", "code"),
    [
        (False, False, False, 0),
        (True, False, False, 0),
        (True, True, False, 3),
        (False, True, False, 1),
        (True, False, True, 1),
        (True, True, True, 1),
    ],
)
def test_the_exit_code_is_that_of_the_worst(done: bool, left: bool, unenforced: bool, code: int) -> None:
    report = Report()
    if done:
        report.done("created", "Job/a")
    if left:
        report.left("Job/b", "Job/b: no")
    if unenforced:
        report.unenforced("Job/c", "Job/c: no")

    assert report.end() == code


def test_pods_mounts_and_volumes_are_read_from_objects(repo_of: t.Callable[..., Wanted]) -> None:
    (part,) = repo_of({"a": "p R1 R2"}).parts
    assert isinstance(part, Part)
    assert live.pods(part.job) == 2
    assert live.mounts(part.job, "htr-pipeline-p")
    assert not live.mounts(part.job, "htr-pipeline-q")
    assert live.volumes(part.config_map) == ["R1", "R2"]
    assert live.volumes({"metadata": {}}) == []
