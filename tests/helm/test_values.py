"""The chart's values: documented, described by a schema that refuses what it does not know, and checked."""

from __future__ import annotations

import copy
import json
import pathlib
import re
import subprocess
import sys
import typing as t

import pytest
import yaml
from cryptography.fernet import Fernet

from docs import chart_values
from docs.chart_values import Node
from htrflow_campaigns import quantities, schemas
from tests.helm import chart
from tests.helm.chart import Helm

_VALUES = yaml.safe_load((chart.CHART / "values.yaml").read_text(encoding="utf-8"))
_SCHEMA: Node = json.loads((chart.CHART / "values.schema.json").read_text(encoding="utf-8"))
_CONVERTER = schemas.load("converter")["properties"]
#: Values that are a mapping of fixed keys, and documented as a whole.
_WHOLE = {"web.resources", "results.resources"}


# Documented


def test_every_value_has_a_sentence_above_it() -> None:
    values = chart_values.values()

    assert len(values) > 50
    assert [row.path for row in values if not re.fullmatch(r"[A-Z].*\.", row.comment)] == []


def test_every_value_is_in_the_schema_and_nothing_else_is() -> None:
    described = {path for path, node in _described(_SCHEMA) if "properties" not in node or path in _WHOLE}

    assert described - {row.path for row in chart_values.values()} == {"global"}
    assert {row.path for row in chart_values.values()} - described == set()


def _described(schema: Node, prefix: str = "") -> t.Iterator[tuple[str, Node]]:
    for key, node in schema["properties"].items():
        yield f"{prefix}{key}", node
        if "properties" in node and f"{prefix}{key}" not in _WHOLE:
            yield from _described(node, f"{prefix}{key}.")


def test_every_key_of_an_item_has_a_description() -> None:
    missing = []

    def walk(node: t.Any, path: str) -> None:
        if isinstance(node, dict):
            for key, inner in node.get("properties", {}).items():
                if "description" not in inner and "properties" not in inner:
                    missing.append(f"{path}/{key}")
            for key, inner in node.items():
                walk(inner, f"{path}/{key}")
        elif isinstance(node, list):
            for inner in node:
                walk(inner, path)

    walk(_SCHEMA, "")
    assert missing == []


def test_what_is_generated_of_the_values_is_what_make_docs_would_write() -> None:
    command = [sys.executable, str(chart.TOP / "docs" / "chart_values.py"), "--check"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)

    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_the_tables_of_the_documentation_are_those_of_the_values() -> None:
    text = (chart.TOP / "docs" / "chart.md").read_text(encoding="utf-8")
    parts = {
        name: text.partition(f"<!-- generated: {name} -->\n\n")[2].partition("<!-- end -->")[0]
        for name in chart_values.PARTS
    }

    assert parts == {name: f"{make()}\n" for name, make in chart_values.PARTS.items()}


def test_the_values_of_the_documentation_are_enough(helm: Helm, tmp_path: pathlib.Path) -> None:
    text = (chart.TOP / "docs" / "chart.md").read_text(encoding="utf-8")
    (example,) = re.findall(r"^```yaml\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)
    file = tmp_path / "values.yaml"
    file.write_text(example, encoding="utf-8")

    assert helm.template(str(file), settings={"results.sessionSecret": "htr-session"}) == helm.template("default")


def test_the_command_of_the_documentation_makes_a_key_for_sessions() -> None:
    text = (chart.TOP / "docs" / "chart.md").read_text(encoding="utf-8")
    (program,) = re.findall(r'^\$ python -c "(.*)" > keys$', text, re.MULTILINE)
    made = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout

    assert Fernet(made.strip()).decrypt(Fernet(made.strip()).encrypt(b"session")) == b"session"


# A schema that refuses


def test_every_mapping_of_the_schema_refuses_unknown_keys_or_says_what_its_keys_hold() -> None:
    open_ends = []

    def walk(node: t.Any, path: str) -> None:
        if isinstance(node, dict):
            if node.get("type") == "object" and "additionalProperties" not in node:
                open_ends.append(path)
            for key, inner in node.items():
                walk(inner, f"{path}/{key}")
        elif isinstance(node, list):
            for inner in node:
                walk(inner, path)

    walk(_SCHEMA, "")
    assert open_ends == ["/properties/global"]


@pytest.mark.parametrize(
    "path",
    [
        "resultUrl",
        *sorted({f"{row.path.rpartition('.')[0]}.unknown" for row in chart_values.values() if "." in row.path}),
        "web.resources.requets",
    ],
)
def test_an_unknown_value_is_refused_by_its_name(helm: Helm, path: str) -> None:
    said = helm.refusal("default", settings={path: "x"})

    assert f"additional properties '{path.rpartition('.')[2]}' not allowed" in said


@pytest.mark.parametrize(
    ("settings", "named"),
    [
        ({"window": 0}, "/window"),
        ({"window": "20"}, "/window"),
        ({"resultsUrl": "https://htr.example.org/results/"}, "/resultsUrl"),
        ({"resultsUrl": "https://htr.example.org/htr/results"}, "/resultsUrl"),
        ({"site.image": "registry.example.org/htrflow-status:latest"}, "/site/image"),
        ({"site.addresses": ["https://htr.example.org/"]}, "/site/addresses/0"),
        ({"network.s3Cidrs": ["s3.example.org"]}, "/network/s3Cidrs/0"),
        ({"network.s3Cidrs": ["192.0.2.1"]}, "/network/s3Cidrs/0"),
        ({"network.iiifPorts": []}, "/network/iiifPorts"),
        ({"network.webFrom": [{}]}, "/network/webFrom/0"),
        ({"network.webFrom": [{"podSelectors": {}}]}, "/network/webFrom/0"),
        ({"queue": "Transcription"}, "/queue"),
        ({"teams": [{"namespace": "maps"}]}, "/teams/0"),
        ({"quota": [{"flavor": "gpu", "nominal": {"cpu": 80, "memory": "160Gi"}}]}, "/quota/0/nominal"),
        (
            {"quota": [{"flavor": "gpu", "nominal": {"cpu": 80, "memory": "160 GB", "gpu": 1}}]},
            "/quota/0/nominal/memory",
        ),
        ({"sizes.small": {"gpu": 1, "cpu": 4, "memory": "16Gi", "mem": 1}}, "/sizes/small"),
    ],
)
def test_a_value_of_the_wrong_form_is_refused_at_its_place(helm: Helm, settings: dict[str, t.Any], named: str) -> None:
    assert f"at '{named}'" in helm.refusal("default", settings=settings)


# Sentences


def _quota(flavor: str = "gpu", **amounts: t.Any) -> list[t.Any]:
    return [{"flavor": flavor, "nominal": {"cpu": 80, "memory": "160Gi", "gpu": 20, **amounts}}]


_TEAM = {"namespace": "transcription", "quota": _quota()}
_SMALL = {"gpu": 1, "cpu": 4, "memory": "16Gi"}


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"resultsUrl": ""}, "resultsUrl is empty — set it to the address of the status site and /results"),
        ({"site.image": ""}, "site.image is empty — set it to the image of the status site with its digest"),
        ({"results.sessionSecret": ""}, "create a Secret whose key `keys` holds a Fernet key, and set results.session"),
        ({"network.s3Cidrs": []}, "network.s3Cidrs is empty, so no pod would reach the store — set it to"),
        (
            {"network.hubCidrs": []},
            "network.hubCidrs is empty, and a rule without addresses allows all of them — write",
        ),
        ({"network.apiServerCidrs": []}, "network.apiServerCidrs is empty, so the status site would not reach"),
        ({"argocd.enabled": True}, "the campaigns repo of htr-batch is not named — set argocd.repoURL"),
        (
            {"window": 21},
            "a campaign of htr-batch asks for 21 pods of a pipeline without a size at once, and its quota has room for "
            "20, so it would wait for ever — raise quota, or lower window here and in converter.yaml",
        ),
        ({"quota": _quota(gpu=19)}, "its quota has room for 19,"),
        ({"quota": _quota(cpu="79500m")}, "its quota has room for 19,"),
        ({"quota": _quota(memory="159Gi")}, "its quota has room for 19,"),
        (
            {"sizes.large": {"gpu": 21, "cpu": 4, "memory": "16Gi"}},
            "not one pod of the size large fits into the quota of htr-batch — raise the quota, or make the size",
        ),
        (
            {"sizes.small": _SMALL, "defaultSize": "small"},
            "asks for 20 pods of the size small at once, and its quota has room for 10,",
        ),
        ({"defaultSize": "small"}, "defaultSize of htr-batch is small, which is not one of sizes — add it there"),
        (
            {"sizes.small": {**_SMALL, "flavor": "l4"}},
            "the size small runs on the flavor l4, of which htr-batch has no quota — add a row for it to its quota",
        ),
        (
            {"quota": _quota("l4")},
            "the quota of htr-batch names the flavor l4, which is not one of flavors (gpu) — add",
        ),
        ({"quota": _quota() * 2}, "the quota of htr-batch names the flavor gpu twice — write one row for each flavor"),
        ({"teams": [_TEAM, _TEAM]}, "two teams have the namespace transcription — give each team its own"),
        (
            {"teams": [_TEAM, {**_TEAM, "namespace": "maps", "queue": "transcription"}]},
            "two teams have the queue transcription — give each team its own",
        ),
    ],
)
def test_values_that_cannot_work_are_refused_with_a_sentence(helm: Helm, settings: dict[str, t.Any], said: str) -> None:
    assert said in helm.refusal("default", settings=settings)


# Room in the quota


def test_a_campaign_fits_into_the_default_quota(generated: t.Callable[..., list[chart.Object]]) -> None:
    job = chart.one(generated("htr-batch"), "Job", "example")["spec"]
    pod = job["template"]["spec"]
    wanted = pod["containers"][0]["resources"]["requests"]
    (row,) = _VALUES["quota"]
    room = {"cpu": row["nominal"]["cpu"], "memory": row["nominal"]["memory"], "nvidia.com/gpu": row["nominal"]["gpu"]}

    assert len(pod["containers"]) == 1
    assert job["parallelism"] == _CONVERTER["window"]["default"]
    assert wanted.keys() == room.keys()
    for name, amount in wanted.items():
        assert job["parallelism"] * _amount(amount) <= _amount(room[name]), name
    for waiting in pod["initContainers"]:
        assert all(
            _amount(amount) <= _amount(wanted[name]) for name, amount in waiting["resources"]["requests"].items()
        )


def _amount(value: t.Any) -> t.Any:
    amount = quantities.parse(str(value))
    assert amount is not None
    return amount


def test_what_others_lend_counts_as_far_as_a_team_may_borrow(helm: Helm) -> None:
    teams = yaml.safe_load((chart.VALUES / "two-teams.yaml").read_text(encoding="utf-8"))["teams"]

    def fits(window: int, **changes: t.Any) -> bool:
        mine = {**copy.deepcopy(teams[1]), "window": window}
        mine["quota"][0].update(changes)
        settings = {"teams": [teams[0], mine]}
        done = helm.run("template", "htr", str(helm.chart), *helm.arguments(["two-teams"], settings))
        assert done.returncode == 0 or "its quota has room for" in done.stderr
        return done.returncode == 0

    # 4 of its own; 10 are lent.
    assert (fits(14), fits(15)) == (True, False)
    few = {"borrowing": {"cpu": 40, "memory": "80Gi", "gpu": 3}}
    assert (fits(7, **few), fits(8, **few)) == (True, False)
    assert (fits(4, borrowing={}), fits(5, borrowing={})) == (True, False)


def test_the_notes_say_with_which_window_a_large_size_waits_for_ever(helm: Helm) -> None:
    settings = {"sizes.large": {"gpu": 4, "cpu": 8, "memory": "32Gi"}}
    command = ["install", "htr", str(chart.CHART), "--dry-run=client", "--namespace=htr-batch"]
    done = helm.run(*command, *helm.arguments(["default"], settings))

    assert "Note: 5 pods of the size large fit into the quota of htr-batch, and the window is 20." in done.stdout


# Names that converter.yaml has too


def _camel(key: str) -> str:
    first, *rest = key.split("_")
    return first + "".join(map(str.capitalize, rest))


def test_a_value_that_converter_yaml_has_too_has_the_same_default() -> None:
    shared = {key for key in _CONVERTER if _camel(key) in _VALUES}

    assert shared == {
        "queue",
        "window",
        "priority_classes",
        "s3_secret",
        "data_pvc",
        "results_url",
        "flavors",
        "sizes",
        "default_size",
    }
    for key in shared - {"flavors", "priority_classes"}:
        assert _VALUES[_camel(key)] == _CONVERTER[key]["default"], key
    assert [row["name"] for row in _VALUES["priorityClasses"]] == _CONVERTER["priority_classes"]["default"]


def test_priority_classes_are_the_most_urgent_first_and_bulk_is_what_a_job_without_one_gets() -> None:
    values = {row["name"]: row["value"] for row in _VALUES["priorityClasses"]}

    assert list(values.values()) == sorted(values.values(), reverse=True)
    assert values["htr-bulk"] == 0


def test_sizes_and_tolerations_have_the_keys_of_converter_yaml() -> None:
    theirs = {"size": _CONVERTER["sizes"]["additionalProperties"], "toleration": _CONVERTER["tolerations"]["items"]}
    for name, definition in theirs.items():
        assert _SCHEMA["definitions"][name]["properties"].keys() == definition["properties"].keys(), name
        assert _SCHEMA["definitions"][name].get("required") == definition.get("required"), name


def test_a_team_names_what_its_converter_yaml_names() -> None:
    keys = _SCHEMA["properties"]["teams"]["items"]["properties"].keys()

    assert keys - {_camel(key) for key in _CONVERTER} == {"quota", "cache", "argocd"}


def test_the_names_of_a_release_are_those_that_the_converter_renders(
    helm: Helm, generated: t.Callable[..., list[chart.Object]]
) -> None:
    objects = helm.template("full")
    queue = chart.one(objects, "LocalQueue", "transcription")
    cache = chart.one(objects, "PersistentVolumeClaim", "models")
    classes = {item["metadata"]["name"] for item in objects if item["kind"] == "WorkloadPriorityClass"}
    settings = {"queue": "transcription", "data_pvc": "models", "s3_secret": "store"}
    job = chart.one(generated("htr-batch", **settings), "Job", "example")
    pod = job["spec"]["template"]["spec"]
    volumes = {row["name"]: row for row in pod["volumes"]}

    assert job["metadata"]["namespace"] == queue["metadata"]["namespace"] == cache["metadata"]["namespace"]
    assert job["metadata"]["labels"]["kueue.x-k8s.io/queue-name"] == queue["metadata"]["name"]
    assert job["metadata"]["labels"]["kueue.x-k8s.io/priority-class"] in classes
    assert volumes["data"]["persistentVolumeClaim"]["claimName"] == cache["metadata"]["name"]
    results = chart.one(objects, "Deployment", "htrflow-results")["spec"]["template"]["spec"]["containers"][0]
    secrets = {
        row["name"]: row["valueFrom"]["secretKeyRef"]["name"]
        for container in (results, pod["containers"][0])
        for row in container["env"]
        if "secretKeyRef" in row.get("valueFrom", {})
    }
    assert set(secrets.values()) == {volumes["s3"]["secret"]["secretName"]} == {"store"}


def test_a_pod_of_a_pipeline_without_a_size_asks_for_what_the_chart_reckons_with(
    generated: t.Callable[..., list[chart.Object]],
) -> None:
    text = (chart.CHART / "templates" / "_quota.tpl").read_text(encoding="utf-8")
    job = chart.one(generated("htr-batch"), "Job", "example")
    wanted = job["spec"]["template"]["spec"]["containers"][0]["resources"]["requests"]

    assert f'dict "cpu" {wanted["cpu"]} "memory" "{wanted["memory"]}" "gpu" {wanted["nvidia.com/gpu"]}' in text
