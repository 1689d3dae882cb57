"""The two deliveries: the objects of each, and everything in which they differ."""

from __future__ import annotations

import json
import pathlib
import typing as t

import pytest
import yaml
from syrupy.assertion import SnapshotAssertion

from htrflow_campaigns import delivery, load, render, tree
from tests.cmp_plugin.rendered import EXAMPLE, FEATURES, REPOS, Object, applied, generated

_HOOK = ".metadata.annotations.argocd.argoproj.io/hook"
_OPTIONS = ".metadata.annotations.argocd.argoproj.io/sync-options"
_QUIET = ".metadata.annotations.argocd.argoproj.io/ignore-resource-updates"
_QUIET_PODS = f".spec.template{_QUIET}"
_TTL = ".spec.ttlSecondsAfterFinished"

#: Each difference, as path → (what apply has, what argocd has); None is nothing. This is the table in
#: docs/rendered-objects.md.
CONFIG_MAP = {_HOOK: ("Skip", None), ".immutable": (None, True)}
LARGE_CONFIG_MAP = {**CONFIG_MAP, _OPTIONS: (None, "ServerSideApply=true")}
CAMPAIGN = {_HOOK: ("Skip", None), _TTL: (86_400, None), _QUIET: (None, "true"), _QUIET_PODS: (None, "true")}
FINISHED_CAMPAIGN = {path: values for path, values in CAMPAIGN.items() if path != _HOOK}
PAUSED_CAMPAIGN = {**CAMPAIGN, _TTL: (60, None), ".spec.parallelism": (8, 0)}
WARM_UP = {_HOOK: ("Skip", None), _OPTIONS: (None, "Force=true,Replace=true")}

Difference = tuple[t.Any, t.Any]


def _fields(value: t.Any, path: str = "") -> dict[str, t.Any]:
    """Every value that is no map or list by its path, and the maps and lists that are empty."""
    if isinstance(value, dict | list) and value:
        items = value.items() if isinstance(value, dict) else ((f"[{i}]", item) for i, item in enumerate(value))
        return {deep: found for key, item in items for deep, found in _fields(item, f"{path}.{key}").items()}
    return {path: value}


def _differences(repo: pathlib.Path) -> dict[str, dict[str, Difference]]:
    """For each object, by its kind and name, where the two deliveries differ and how."""
    by_name = [
        {f"{found['kind']} {found['metadata']['name']}": _fields(found) for found in deliver(repo)}
        for deliver in (applied, generated)
    ]
    assert by_name[0].keys() == by_name[1].keys()
    return {
        name: {
            path: (ours.get(path), other.get(path))
            for path in sorted(ours.keys() | other.keys())
            if ours.get(path) != other.get(path)
        }
        for name, ours in by_name[0].items()
        for other in [by_name[1][name]]
    }


def test_the_deliveries_differ_in_what_the_table_says_and_in_nothing_else() -> None:
    assert _differences(FEATURES) == {
        "ConfigMap campaign-done": CONFIG_MAP,
        "ConfigMap campaign-letters": CONFIG_MAP,
        "ConfigMap campaign-paused": CONFIG_MAP,
        "ConfigMap htr-pipeline-default-size": CONFIG_MAP,
        "ConfigMap htr-pipeline-on-cpu": CONFIG_MAP,
        "ConfigMap htr-pipeline-swedish-v1.2": CONFIG_MAP,
        "Job done": FINISHED_CAMPAIGN,
        "Job letters": CAMPAIGN,
        "Job paused": PAUSED_CAMPAIGN,
        "Job htr-warmup-default-size": WARM_UP,
        "Job htr-warmup-on-cpu": WARM_UP,
        "Job htr-warmup-swedish-v1.2": WARM_UP,
    }


def test_a_large_config_map_is_applied_on_the_servers_side_by_argocd(tmp_path: pathlib.Path) -> None:
    differences = _differences(REPOS["over-900-kib"](tmp_path / "repo"))
    assert differences["ConfigMap campaign-c-part1"] == LARGE_CONFIG_MAP
    assert differences["ConfigMap htr-pipeline-demo-v1"] == CONFIG_MAP


def test_the_difference_of_the_documented_example_is_the_same() -> None:
    assert _differences(EXAMPLE) == {
        "ConfigMap campaign-example": CONFIG_MAP,
        "ConfigMap htr-pipeline-demo-v1": CONFIG_MAP,
        "Job example": {**CAMPAIGN, _TTL: (604_800, None)},
        "Job htr-warmup-demo-v1": WARM_UP,
    }


def _rendered_files() -> dict[str, str]:
    loaded = load.load(tree.from_folder(FEATURES))
    return dict(render.files(loaded, delivery.Apply()))


def _generated_objects() -> dict[str, Object]:
    return {f"{found['kind']} {found['metadata']['name']}": found for found in generated(FEATURES)}


@pytest.mark.parametrize("path", _rendered_files())
def test_render_writes_these_files(path: str, snapshot: SnapshotAssertion) -> None:
    assert _rendered_files()[path] == snapshot


@pytest.mark.parametrize("name", _generated_objects())
def test_generate_prints_these_objects(name: str, snapshot: SnapshotAssertion) -> None:
    assert json.dumps(_generated_objects()[name], ensure_ascii=False, indent=1) == snapshot


def test_both_deliveries_give_their_objects_in_the_same_order() -> None:
    names = [
        [(found["kind"], found["metadata"]["name"]) for found in deliver(FEATURES)] for deliver in (applied, generated)
    ]
    assert names[0] == names[1]
    assert names[0] == [
        *((kind, f"{prefix}{id_}") for id_ in ("default-size", "on-cpu", "swedish-v1.2") for kind, prefix in (
            ("ConfigMap", "htr-pipeline-"), ("Job", "htr-warmup-"))),
        *((kind, f"{prefix}{name}") for name in ("done", "letters", "paused") for kind, prefix in (
            ("ConfigMap", "campaign-"), ("Job", ""))),
    ]  # fmt: skip


def test_parts_of_a_large_campaign_share_its_labels_and_are_counted(tmp_path: pathlib.Path) -> None:
    objects = applied(REPOS["10001-volumes"](tmp_path / "repo"))
    parts = [found for found in objects if found["metadata"]["labels"].get("htrflow.riksarkivet.se/part")]
    assert [
        (found["kind"], found["metadata"]["name"], found["metadata"]["labels"]["htrflow.riksarkivet.se/part"])
        for found in parts
    ] == [
        ("ConfigMap", "campaign-c-part1", "1"),
        ("Job", "c-part1", "1"),
        ("ConfigMap", "campaign-c-part2", "2"),
        ("Job", "c-part2", "2"),
    ]
    assert {found["metadata"]["labels"]["htrflow.riksarkivet.se/campaign"] for found in parts} == {"c"}
    lines = [found["data"]["volumes.txt"].splitlines() for found in parts if found["kind"] == "ConfigMap"]
    assert [len(piece) for piece in lines] == [10_000, 1]
    assert [line.partition("\t")[0] for piece in lines for line in piece] == [f"R{n:07}" for n in range(10_001)]
    jobs = [found["spec"] for found in parts if found["kind"] == "Job"]
    assert [(job["completions"], job["maxFailedIndexes"]) for job in jobs] == [(10_000, 10_000), (1, 1)]


def _job(objects: list[Object], name: str) -> Object:
    (job,) = (found for found in objects if found["kind"] == "Job" and found["metadata"]["name"] == name)
    return t.cast(Object, job["spec"]["template"]["spec"])


@pytest.mark.parametrize(
    ("campaign", "requests", "limits", "workdir", "lookahead", "selector"),
    [
        (
            "letters",
            {"cpu": "4", "memory": "16Gi", "nvidia.com/gpu": "1"},
            {"cpu": "4", "memory": "16Gi", "nvidia.com/gpu": "1"},
            "2Gi",
            2**30,
            {"zone": "2", "nvidia.com/gpu.product": "NVIDIA-L4"},
        ),
        (
            "paused",
            {"cpu": "15500m", "memory": "128Gi", "nvidia.com/gpu": "2"},
            {"cpu": "15500m", "memory": "128Gi", "nvidia.com/gpu": "2"},
            "32Gi",
            2**34,
            {"zone": "1", "nvidia.com/gpu.product": "NVIDIA-H100"},
        ),
        (
            "done",
            {"cpu": "0.5", "memory": "4G"},
            {"cpu": "0.5", "memory": "4G"},
            "500M",
            250_000_000,
            {"zone": "2"},
        ),
    ],
)
def test_a_size_gives_its_resources_work_folder_and_nodes(
    campaign: str, requests: Object, limits: Object, workdir: str, lookahead: int, selector: Object
) -> None:
    objects = applied(FEATURES)
    pod = _job(objects, campaign)
    (container,) = pod["containers"]
    assert container["resources"] == {"requests": requests, "limits": limits}
    (work,) = (volume for volume in pod["volumes"] if volume["name"] == "work")
    assert work["emptyDir"] == {"medium": "Memory", "sizeLimit": workdir}
    assert {"name": "LOOKAHEAD_BYTES", "value": str(lookahead)} in container["env"]
    assert pod["nodeSelector"] == {"nvidia.com/gpu.present": "true", **selector}


def test_a_warm_up_runs_where_its_campaigns_do() -> None:
    objects = applied(FEATURES)
    for campaign, pipeline in {"letters": "default-size", "paused": "swedish-v1.2", "done": "on-cpu"}.items():
        pods = _job(objects, campaign), _job(objects, f"htr-warmup-{pipeline}")
        for key in ("runtimeClassName", "nodeSelector", "tolerations"):
            assert pods[0][key] == pods[1][key]


def test_a_pipeline_without_any_size_has_no_size_annotation_and_no_lookahead() -> None:
    text = yaml.safe_dump_all(applied(EXAMPLE))
    assert "htrflow.riksarkivet.se/size" not in text
    assert "LOOKAHEAD_BYTES" not in text
