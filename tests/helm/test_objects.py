"""What the chart makes, in each of the ways to install it that are in ``values/``."""

from __future__ import annotations

import collections
import copy
import json
import os
import pathlib
import re
import subprocess
import typing as t

import pytest
import yaml
from syrupy.assertion import SnapshotAssertion

from tests.helm import chart, schemas
from tests.helm.chart import Helm, Object

#: Other tests run them.
_POLICIES = ("ValidatingPolicy", "ImageValidatingPolicy")
#: Argo CD's kinds are compared with files of which other tests say that Argo CD takes them.
_NEITHER_KUBERNETES_NOR_KUEUE = ("AppProject", "Application", *_POLICIES)
#: Nobody listens there: whoever asks for a schema elsewhere gets none.
_NOWHERE = "http://127.0.0.1:9"
_DUMPER = getattr(yaml, "CSafeDumper", yaml.SafeDumper)
_COMMON_LABELS = ("app.kubernetes.io/", "helm.sh/")


def test_helms_own_checks_pass_with_the_defaults(helm: Helm) -> None:
    done = helm.run("lint", "--strict", str(chart.CHART))

    assert (done.returncode, "1 chart(s) linted, 0 chart(s) failed" in done.stdout) == (0, True), done.stdout


@chart.each_way
def test_helms_own_checks_pass_and_say_nothing(helm: Helm, way: str) -> None:
    done = helm.run("lint", "--strict", str(chart.CHART), *helm.arguments([way], {}))

    assert (done.returncode, done.stderr) == (0, "")
    assert re.findall(r"\[(?:WARNING|ERROR)\].*", done.stdout) == []


@chart.each_way
def test_the_objects_are_these(helm: Helm, way: str, snapshot: SnapshotAssertion) -> None:
    """Of each way but the default, those that are not as by default, and the names of those that are not there."""
    objects, usual = _by_key(helm.template(way)), _by_key(helm.template("default"))
    missing = [" ".join(key) for key in usual if key not in objects]
    if way == "default":
        usual = {}
    shown = [_shown(item) for key, item in sorted(objects.items()) if usual.get(key) != item]

    assert "---\n".join([*shown, *(f"# without {key}\n" for key in sorted(missing))]) == snapshot


def _by_key(objects: t.Iterable[Object]) -> dict[tuple[str, str, str], Object]:
    return {chart.key(item): item for item in objects if item["kind"] not in _POLICIES}


@chart.each_way
def test_no_object_is_there_twice(helm: Helm, way: str) -> None:
    counted = collections.Counter(map(chart.key, helm.template(way)))

    assert counted
    assert [found for found, number in counted.items() if number > 1] == []


@chart.each_way
def test_every_object_says_which_release_it_is_of(helm: Helm, way: str) -> None:
    for item in helm.template(way):
        assert item["metadata"]["labels"]["app.kubernetes.io/instance"] == "htr", chart.key(item)


@pytest.mark.parametrize("version", schemas.versions())
def test_every_object_is_strictly_valid(
    helm: Helm, tool: t.Callable[[str], pathlib.Path], version: str, tmp_path: pathlib.Path
) -> None:
    tool("kueue")
    ways = {way: helm.template(way) for way in chart.WAYS}
    everything = [item for objects in ways.values() for item in objects]
    location = schemas.write(tmp_path / "schemas", version, everything)
    misspelt = copy.deepcopy(chart.one(ways["default"], "ClusterQueue", "htr-batch-cq"))
    misspelt["spec"]["resourceGroups"][0]["flavors"][0]["resources"][0]["nominalQuotas"] = 1

    for objects in ways.values():
        assert _kubeconform(tool("kubeconform"), location, objects) == []
    assert [name for name, _ in _kubeconform(tool("kubeconform"), location, [misspelt])] == ["htr-batch-cq"]


def test_schemas_are_of_three_versions_that_follow_one_another() -> None:
    minors = [int(version.removeprefix("v1.")) for version in schemas.versions()]

    assert minors == [minors[-1] - 2, minors[-1] - 1, minors[-1]]


@chart.each_way
def test_every_image_has_a_digest(helm: Helm, way: str) -> None:
    images = [
        container["image"]
        for item in helm.template(way)
        if item["kind"] == "Deployment"
        for container in item["spec"]["template"]["spec"]["containers"]
    ]

    assert len(images) == (0 if way == "no-site" else 2)
    assert [image for image in images if not re.fullmatch(r"[^@]+@sha256:[0-9a-f]{64}", image)] == []


def test_only_the_status_site_has_a_token_of_the_api_server(helm: Helm) -> None:
    objects = helm.template("full")
    pods = {
        item["metadata"]["name"]: item["spec"]["template"]["spec"] for item in objects if item["kind"] == "Deployment"
    }

    assert {name: pod["automountServiceAccountToken"] for name, pod in pods.items()} == {
        "htrflow-web": True,
        "htrflow-results": False,
    }
    accounts = [item for item in objects if item["kind"] == "ServiceAccount"]
    assert {item["metadata"]["name"]: item["automountServiceAccountToken"] for item in accounts} == {
        "htrflow-web": False,
        "htrflow-results": False,
        "htrflow-apply": False,
    }


def test_neither_part_of_the_site_gets_the_credentials_of_the_store(helm: Helm) -> None:
    objects = helm.template("full")
    for name in ("htrflow-web", "htrflow-results"):
        pod = chart.one(objects, "Deployment", name)["spec"]["template"]["spec"]
        (container,) = pod["containers"]
        keys = [row["valueFrom"]["secretKeyRef"]["key"] for row in container["env"] if "valueFrom" in row]
        mounted = [row["secret"] for row in pod.get("volumes", [])]
        assert "envFrom" not in container
        assert set(keys) <= {"S3_BUCKET", "S3_ENDPOINT", "S3_REGION", "S3_VERIFY_TLS"}
        assert {secret["secretName"]: [item["key"] for item in secret["items"]] for secret in mounted} == (
            {"htr-session": ["keys"], "store": ["ca.crt"]} if name == "htrflow-results" else {}
        )


def test_a_budget_for_disruptions_is_there_for_several_pods_alone(helm: Helm) -> None:
    assert {name for kind, _, name in map(chart.key, helm.template("full")) if kind == "PodDisruptionBudget"} == {
        "htrflow-web",
        "htrflow-results",
    }
    assert [item for item in helm.template("default") if item["kind"] == "PodDisruptionBudget"] == []


def test_what_holds_data_is_kept_when_the_release_goes(helm: Helm) -> None:
    kept = [
        chart.key(item)[::2]
        for item in helm.template("two-teams")
        if item["metadata"].get("annotations", {}).get("helm.sh/resource-policy") == "keep"
    ]

    assert sorted(kept) == [
        ("Namespace", "maps"),
        ("Namespace", "transcription"),
        ("PersistentVolumeClaim", "htr-test-data"),
        ("PersistentVolumeClaim", "models"),
    ]


def test_each_cluster_queue_admits_its_own_team_alone(helm: Helm) -> None:
    objects = helm.template("two-teams")
    queues = {item["spec"]["clusterQueue"]: item for item in objects if item["kind"] == "LocalQueue"}
    pools = {item["metadata"]["name"]: item["spec"] for item in objects if item["kind"] == "ClusterQueue"}

    assert queues.keys() == pools.keys() == {"transcription-cq", "maps-gpu-cq"}
    for name, pool in pools.items():
        assert name == f"{queues[name]['metadata']['name']}-cq"
        assert pool["namespaceSelector"] == {
            "matchLabels": {"kubernetes.io/metadata.name": queues[name]["metadata"]["namespace"]}
        }
        assert pool["cohortName"] == "htrflow"


def test_a_release_without_teams_lends_nothing(helm: Helm) -> None:
    (pool,) = (item["spec"] for item in helm.template("default") if item["kind"] == "ClusterQueue")

    assert "cohortName" not in pool
    assert "borrowingLimit" not in json.dumps(pool)


def test_the_notes_name_what_was_installed(helm: Helm, snapshot: SnapshotAssertion) -> None:
    arguments = ["--dry-run=client", "--namespace=htr-batch"]
    for way in ("default", "two-teams", "full"):
        done = helm.run("install", "htr", str(chart.CHART), *arguments, *helm.arguments([way], {}))
        assert done.returncode == 0, done.stderr
        assert done.stdout.partition("NOTES:\n")[2] == snapshot(name=way)


def _shown(item: Object) -> str:
    return yaml.dump(_without_common_labels(item), Dumper=_DUMPER, width=120)


def _without_common_labels(item: Object) -> Object:
    item = copy.deepcopy(item)
    for metadata in (item["metadata"], item["spec"]["template"]["metadata"] if item["kind"] == "Deployment" else {}):
        labels = {key: text for key, text in metadata.get("labels", {}).items() if not key.startswith(_COMMON_LABELS)}
        metadata.pop("labels", None)
        if labels:
            metadata["labels"] = labels
    return item


def _kubeconform(program: pathlib.Path, location: str, objects: list[Object]) -> list[tuple[str, str]]:
    """Of each object that is not valid its name and what is wrong with it."""
    checked = [item for item in objects if item["kind"] not in _NEITHER_KUBERNETES_NOR_KUEUE]
    done = subprocess.run(
        [str(program), "-strict", "-verbose", "-output", "json", "-schema-location", location, "-"],
        input="\n---\n".join(map(json.dumps, checked)),
        env={**os.environ, "HTTP_PROXY": _NOWHERE, "HTTPS_PROXY": _NOWHERE},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    rows = json.loads(done.stdout)["resources"]
    assert len(rows) == len(checked) > 0
    return [(row["name"], row.get("msg", "")) for row in rows if row["status"] != "statusValid"]
