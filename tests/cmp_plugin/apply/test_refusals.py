"""What ``apply`` refuses, on a real API server: all of it, or one object and what depends on it."""

from __future__ import annotations

import pytest

from tests.cmp_plugin.apply.teams import Team
from tests.cmp_plugin.conftest import IMAGE, PIPELINE
from tests.testbed.plugin.api import Object
from tests.testbed.plugin.fake_nodes import FakeNodes
from tests.testbed.plugin.kubelet import Life

OTHER_IMAGE = IMAGE.replace("0123", "9999")
OTHER_STEPS = PIPELINE.replace("trocr-base-handwritten-hist-swe-2", "trocr-base-handwritten-hist-swe-3")
SIZES = {"sizes": {"small": {"gpu": 1, "cpu": "2", "memory": "8Gi"}, "large": {"gpu": 2, "cpu": "4", "memory": "9Gi"}}}


def _objects(team: Team) -> dict[str, Object]:
    found = {}
    for name in team.names():
        kind, _, plain = name.partition("/")
        item = team.job(plain) if kind == "Job" else team.config_map(plain)
        assert item is not None
        metadata = {key: item["metadata"].get(key) for key in ("uid", "labels", "annotations")}
        found[name] = {
            "metadata": metadata,
            "data": item.get("data"),
            "parallelism": item.get("spec", {}).get("parallelism"),
        }
    return found


def test_a_changed_volume_list_stops_everything(team: Team) -> None:
    team.campaign("letters", "R1", "R2")
    assert team.apply().code == 0
    before = _objects(team)
    team.campaign("maps", "R9")
    changes = {
        ("R1", "R2", "R3"): "added R3",
        ("R1",): "removed R2",
        ("R1", "R3"): "added R3, removed R2",
        ("R2", "R1"): "another order",
    }
    for volumes, change in changes.items():
        team.campaign("letters", *volumes)

        done = team.apply("--prune")

        assert (done.code, done.out) == (1, ""), done
        assert f"the volumes of the campaign letters have changed ({change})" in done.err
        assert "undo the change in campaigns/letters.yaml, and put new volumes into a new file in" in done.err
        assert done.err.endswith("nothing was sent\n")
        assert _objects(team) == before


@pytest.mark.slow
def test_a_list_without_its_config_map_is_held_against_the_job(team: Team) -> None:
    team.campaign("letters", "R1", "R2")
    assert team.apply().code == 0
    team.api.delete("v1/ConfigMap", "campaign-letters", team.namespace.name)
    team.campaign("letters", "R1", "R2", "R3")

    done = team.apply()

    assert done.code == 1
    assert "the campaign letters has another number of volumes" in done.err


@pytest.mark.slow
def test_volumes_that_move_to_another_address_stop_everything(team: Team) -> None:
    team.campaign("letters", "R1")
    assert team.apply().code == 0
    team.settings(source_template="https://elsewhere.example.org/{ref}/manifest")

    done = team.apply()

    assert done.code == 1
    assert "the volumes of the campaign letters have changed (another source)" in done.err


def test_another_pipeline_another_image_and_other_steps_stop_everything_and_all_are_said(team: Team) -> None:
    for name in ("letters", "maps", "deeds"):
        team.campaign(name, f"R-{name}", pipeline={"letters": "demo-v1", "maps": "b", "deeds": "c"}[name])
    for id_ in ("b", "c"):
        team.pipeline(id_)
    assert team.apply().code == 0
    before = _objects(team)
    team.campaign("letters", "R-letters", pipeline="b")
    team.pipeline("b", PIPELINE.replace(IMAGE, OTHER_IMAGE))
    team.pipeline("c", OTHER_STEPS)

    done = team.apply()

    assert (done.code, done.out) == (1, ""), done
    assert (
        "the campaign letters started with the pipeline demo-v1 and names b — write pipeline: demo-v1 again" in done.err
    )
    assert "the image of the pipeline b changed, and the Job maps has the one before" in done.err
    assert "the steps of the pipeline c changed, and the Jobs deeds, htr-warmup-c have not ended" in done.err
    assert _objects(team) == before


@pytest.mark.slow
def test_another_size_stops_everything_while_a_job_that_has_not_ended_mounts_the_pipeline(team: Team) -> None:
    team.settings(**SIZES)
    team.pipeline("demo-v1", PIPELINE + "size: small\n")
    team.campaign("letters", "R1")
    assert team.apply().code == 0
    team.pipeline("demo-v1", PIPELINE + "size: large\n")

    done = team.apply()

    assert done.code == 1
    assert (
        "the size of the pipeline demo-v1 changed, and the Jobs htr-warmup-demo-v1, letters have not ended" in done.err
    )


@pytest.mark.slow
def test_steps_that_are_only_written_in_another_way_are_the_same_steps(team: Team) -> None:
    team.campaign("letters", "R1")
    assert team.apply().code == 0
    found = team.config_map("htr-pipeline-demo-v1")
    assert found is not None
    text = "# The same\n" + found["data"]["pipeline.yaml"]
    team.api.patch("v1/ConfigMap", "htr-pipeline-demo-v1", {"data": {"pipeline.yaml": text}}, team.namespace.name)

    done = team.apply()

    assert done.code == 0, done
    assert "updated ConfigMap/htr-pipeline-demo-v1" in done.lines


def test_a_pipeline_whose_jobs_have_ended_may_get_other_steps_and_its_warmup_is_replaced(
    team: Team, fake_nodes: FakeNodes
) -> None:
    fake_nodes.play(Life())
    assert team.apply().code == 0
    assert team.ended("htr-warmup-demo-v1") == "Complete"
    before = team.uid("htr-warmup-demo-v1")
    assert "unchanged Job/htr-warmup-demo-v1" in team.apply().lines
    team.pipeline("demo-v1", OTHER_STEPS)

    done = team.apply()

    assert done.code == 0, done
    assert done.lines == ["updated ConfigMap/htr-pipeline-demo-v1", "replaced Job/htr-warmup-demo-v1"]
    assert team.uid("htr-warmup-demo-v1") != before


@pytest.mark.slow
def test_a_warmup_that_failed_is_replaced_though_nothing_changed(team: Team, fake_nodes: FakeNodes) -> None:
    fake_nodes.play(Life(exit_code=13))
    assert team.apply().code == 0
    assert team.ended("htr-warmup-demo-v1") == "Failed"
    before = team.uid("htr-warmup-demo-v1")

    done = team.apply()

    assert done.code == 0, done
    assert "replaced Job/htr-warmup-demo-v1" in done.lines
    assert team.uid("htr-warmup-demo-v1") != before


def test_a_warmup_that_runs_is_never_replaced_and_its_new_campaigns_wait(team: Team) -> None:
    assert team.apply().code == 0
    before = team.uid("htr-warmup-demo-v1")
    team.settings(node_selector={"example.org/pool": "gpu"})
    team.campaign("letters", "R1")

    done = team.apply()

    assert done.code == 3, done
    assert "Job/htr-warmup-demo-v1: its template changed, and it is running, so it is not replaced" in done.err
    assert "Job/letters: it needs the pipeline demo-v1, which was refused" in done.err
    assert "left as they were: Job/htr-warmup-demo-v1, Job/letters" in done.err
    assert team.uid("htr-warmup-demo-v1") == before
    assert team.job("letters") is None


def test_a_campaign_job_whose_template_changed_is_never_replaced_and_the_rest_goes_on(
    team: Team, fake_nodes: FakeNodes
) -> None:
    fake_nodes.play(lambda pod: Life() if pod["metadata"]["labels"]["app"] == "htrflow-warmup" else Life(running=None))
    team.campaign("letters", "R1")
    assert team.apply().code == 0
    assert team.ended("htr-warmup-demo-v1") == "Complete"
    before = _objects(team)
    team.settings(max_seconds=3600)
    team.campaign("maps", "R2")

    done = team.apply()

    assert done.code == 3, done
    said = 'Job/letters: Job.batch "letters" is invalid: spec.template: field is immutable — a campaign\'s Job is never'
    assert f"{said} replaced: let it end as it is, or undo the change\n" in done.err
    assert "left as they were: Job/letters\n" in done.err
    assert "created Job/maps" in done.lines
    after = _objects(team)
    for name in ("Job/letters", "ConfigMap/campaign-letters"):
        assert after[name] == before[name]


def test_a_campaign_job_that_has_ended_is_left_alone_whatever_its_template_would_be_now(
    team: Team, fake_nodes: FakeNodes
) -> None:
    fake_nodes.play(Life())
    team.campaign("letters", "R1")
    assert team.apply().code == 0
    assert team.ended("letters") == "Complete"
    assert team.apply().code == 0
    before = _objects(team)
    team.settings(max_seconds=3600)

    done = team.apply()

    assert (done.code, done.err) == (0, ""), done
    assert "over Job/letters: it ended as Complete, and is left alone; what changed since then cannot change it" in (
        done.lines
    )
    after = _objects(team)
    for name in ("Job/letters", "ConfigMap/campaign-letters"):
        assert after[name] == before[name]


def test_a_job_that_would_be_refused_keeps_its_config_map_as_it_was(team: Team) -> None:
    """The quota on objects refuses one more Job; the API server says so in the dry run."""
    assert team.apply().code == 0
    spec = {"hard": {"count/jobs.batch": "1"}}
    quota = {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "few"}, "spec": spec}
    quota["metadata"] = {"name": "few", "namespace": team.namespace.name}
    team.api.create(quota)
    team.wait(lambda: team.api.get("v1/ResourceQuota", "few", team.namespace.name).get("status"), "the quota holds")
    team.campaign("letters", "R1")

    done = team.apply()

    assert done.code == 3, done
    assert "Job/letters: " in done.err
    assert "exceeded quota" in done.err
    assert team.config_map("campaign-letters") is None


@pytest.mark.parametrize(
    ("kind", "name", "left"),
    [
        (
            "ConfigMap", "htr-pipeline-demo-v1",
            {"ConfigMap/htr-pipeline-demo-v1", "Job/htr-warmup-demo-v1", "Job/letters"},
        ),
        pytest.param(
            "ConfigMap", "campaign-letters", {"ConfigMap/campaign-letters", "Job/letters"}, marks=pytest.mark.slow
        ),
        pytest.param("Job", "letters", {"Job/letters"}, marks=pytest.mark.slow),
        pytest.param(
            "Job", "htr-warmup-demo-v1",
            {"Job/htr-warmup-demo-v1", "ConfigMap/htr-pipeline-demo-v1", "Job/letters"},
            marks=pytest.mark.slow,
        ),
    ],
)  # fmt: skip
def test_an_object_without_our_label_is_never_written_over_and_what_depends_on_it_is_left(
    team: Team, kind: str, name: str, left: set[str]
) -> None:
    team.pipeline("other-v1")
    team.campaign("letters", "R1")
    team.campaign("maps", "R2", pipeline="other-v1")
    foreign = _foreign(team, kind, name)

    done = team.apply("--prune")

    assert done.code == 3, done
    assert f"{kind}/{name}: it is there without the label htrflow.riksarkivet.se/managed-by: converter" in done.err
    summary = done.err.splitlines()[-1]
    assert summary.startswith("left as they were: ")
    assert {*summary.removeprefix("left as they were: ").split(", ")} == left
    after = team.job(name) if kind == "Job" else team.config_map(name)
    assert after is not None
    assert after["metadata"]["uid"] == foreign["metadata"]["uid"]
    assert after["metadata"].get("labels") == foreign["metadata"].get("labels")
    assert "created Job/maps" in done.lines


@pytest.mark.slow
def test_a_job_that_is_being_deleted_is_left(team: Team) -> None:
    team.campaign("letters", "R1")
    assert team.apply().code == 0
    job = {"metadata": {"finalizers": ["example.org/wait"]}}
    team.api.patch("batch/v1/Job", "letters", job, team.namespace.name)
    team.api.delete("batch/v1/Job", "letters", team.namespace.name)

    done = team.apply()

    assert done.code == 3, done
    assert "Job/letters: it is being deleted — run apply again when it is gone" in done.err
    team.api.patch("batch/v1/Job", "letters", {"metadata": {"finalizers": []}}, team.namespace.name)


def _foreign(team: Team, kind: str, name: str) -> Object:
    metadata = {"name": name, "namespace": team.namespace.name}
    if kind == "ConfigMap":
        return team.api.create({"apiVersion": "v1", "kind": kind, "metadata": metadata, "data": {"volumes.txt": "x"}})
    security = {
        "allowPrivilegeEscalation": False, "runAsNonRoot": True, "capabilities": {"drop": ["ALL"]},
        "seccompProfile": {"type": "RuntimeDefault"},
    }  # fmt: skip
    container = {"name": "main", "image": "registry.example.org/none", "securityContext": security}
    pod = {"restartPolicy": "Never", "containers": [container]}
    return team.api.create(
        {"apiVersion": "batch/v1", "kind": kind, "metadata": metadata, "spec": {"template": {"spec": pod}}}
    )
