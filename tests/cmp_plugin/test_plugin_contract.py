"""The command of the shipped plugin.yaml, run as Argo CD's plugin server runs it."""

from __future__ import annotations

import json
import pathlib
import re
import shutil
import typing as t

import jsonschema
import pytest
import yaml

from tests.cmp_plugin.plugin_server import client, sandbox
from tests.cmp_plugin.plugin_server.contract import contents, generate, objects, plugin, refusal
from tests.cmp_plugin.rendered import FEATURES
from tests.testbed.plugin.skipping import give_up

if t.TYPE_CHECKING:
    from tests.cmp_plugin.conftest import Repo

SCHEMA = pathlib.Path(__file__).parent / "plugin_server" / "plugin.schema.json"
#: What an Application may not be able to decide.
SPOOFED = {
    "ARGOCD_ENV_HTRFLOW_CAMPAIGNS_NAMESPACES": "kube-system",
    "ARGOCD_ENV_HTRFLOW_CAMPAIGNS_ALLOW_EMPTY": "true",
    "ARGOCD_ENV_HTRFLOW_CAMPAIGNS_MAX_MIB": "1",
    "PARAM_HTRFLOW_CAMPAIGNS_NAMESPACES": "kube-system",
    "PARAM_NAMESPACE": "kube-system",
}


@pytest.fixture(params=["repo", "features"])
def good(request: pytest.FixtureRequest, repo: Repo) -> pathlib.Path:
    """Good campaigns repos: the small one, and one that uses every key."""
    return FEATURES if request.param == "features" else repo.path


# plugin.yaml


def test_plugin_yaml_has_no_key_that_argo_cd_would_ignore() -> None:
    schema = json.loads(SCHEMA.read_text("utf-8"))
    jsonschema.Draft202012Validator.check_schema(schema)
    jsonschema.validate(plugin(), schema, jsonschema.Draft202012Validator)


@pytest.mark.parametrize(
    ("where", "key", "value"),
    [
        ((), "metdata", {}),
        (("metadata",), "labels", {}),
        (("spec",), "version", "v1"),
        (("spec",), "discover", {"fileName": "converter.yaml"}),
        (("spec",), "preserveFileModes", True),
        (("spec",), "init", {"command": ["htrflow-campaigns", "validate"]}),
        (("spec", "generate"), "args", ["."]),
        (("spec", "generate"), "command", ["sh", "-c", "htrflow-campaigns generate"]),
        (("spec", "generate"), "command", []),
    ],
)
def test_a_misspelled_or_unwanted_key_in_plugin_yaml_fails(where: tuple[str, ...], key: str, value: t.Any) -> None:
    document = plugin()
    target = document
    for name in where:
        target = target[name]
    target[key] = value
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(document, json.loads(SCHEMA.read_text("utf-8")), jsonschema.Draft202012Validator)


def test_the_plugin_has_the_name_that_the_readiness_probe_looks_for() -> None:
    from htrflow_campaigns import probe

    assert plugin()["metadata"]["name"] == probe.PLUGIN


# Where it runs


def needs_root() -> None:
    if not sandbox.is_root():
        give_up("only root can start the plugin as another user: run these tests as root")


def test_the_plugin_runs_as_uid_999_without_groups_capabilities_or_home(tmp_path: pathlib.Path) -> None:
    needs_root()
    folder = sandbox.checkout(tmp_path)
    status = sandbox.run(["cat", "/proc/self/status"], folder, {}).stdout.decode()
    fields = dict(line.split(":\t", 1) for line in status.splitlines() if ":\t" in line)
    assert fields["Uid"].split() == ["999"] * 4
    assert fields["Gid"].split() == ["999"] * 4
    assert fields["Groups"].split() in ([], ["999"])
    assert {fields[name] for name in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb")} == {"0" * 16}
    assert fields["NoNewPrivs"] == "1"
    names = {line.partition(b"=")[0] for line in sandbox.run(["env"], folder, {}).stdout.splitlines()}
    assert not names & {b"HOME", b"USER", b"LANG", b"LC_ALL", b"PYTHONPATH", b"VIRTUAL_ENV"}


def test_the_plugin_can_write_nothing_of_the_repo(repo: Repo) -> None:
    needs_root()
    folder = sandbox.checkout(repo.path)
    for target in ("converter.yaml", "campaigns/new.yaml", "new.yaml"):
        assert sandbox.run(["sh", "-c", f"echo x >> {target}"], folder, {}).returncode != 0
    assert contents(folder) == contents(sandbox.checkout(repo.path))


def test_the_plugin_has_no_network_where_the_machine_allows_to_take_it_away(tmp_path: pathlib.Path) -> None:
    routes = sandbox.run(["cat", "/proc/net/route"], sandbox.checkout(tmp_path), {}).stdout.splitlines()
    assert bool(sandbox.walls()) == (len(routes) <= 1)


# Good repos


def test_a_good_repo_is_one_json_object_a_line_and_nothing_else(good: pathlib.Path) -> None:
    result = generate(good)
    found = objects(result)
    assert found
    assert result.stderr == b""
    assert result.stdout.endswith(b"}\n")
    assert result.stdout.count(b"\n") == len(found)
    assert all(line.startswith(b'{"apiVersion":') for line in result.stdout.splitlines())
    assert not re.search(rb"^---", result.stdout, re.MULTILINE)


def test_every_campaign_and_pipeline_is_there(good: pathlib.Path) -> None:
    names = {(found["kind"], found["metadata"]["name"]) for found in objects(generate(good))}
    for file in (good / "campaigns").iterdir():
        assert {("ConfigMap", f"campaign-{file.stem}"), ("Job", file.stem)} <= names
    for file in (good / "pipelines").iterdir():
        assert {("ConfigMap", f"htr-pipeline-{file.stem}"), ("Job", f"htr-warmup-{file.stem}")} <= names


def test_the_app_may_be_a_folder_of_a_larger_repo(good: pathlib.Path, tmp_path: pathlib.Path) -> None:
    larger = tmp_path / "larger"
    shutil.copytree(good, larger / "archive" / "campaigns repo")
    # What lies above belongs to somebody else, and may be anything.
    (larger / "converter.yaml").write_text("not: [ours")
    (larger / "campaigns").mkdir()
    (larger / "campaigns" / "broken.yaml").write_text("pipeline: [")
    assert generate(larger, "archive/campaigns repo").stdout == generate(good).stdout != b""


def test_only_config_maps_and_jobs_in_the_namespace_of_converter_yaml(good: pathlib.Path) -> None:
    namespace = (yaml.safe_load((good / "converter.yaml").read_text("utf-8")) or {}).get("namespace", "htr-batch")
    for found in objects(generate(good)):
        assert (found["apiVersion"], found["kind"]) in {("v1", "ConfigMap"), ("batch/v1", "Job")}
        assert found["metadata"]["namespace"] == namespace


def test_labels_and_annotations_are_text(good: pathlib.Path) -> None:
    for found in objects(generate(good)):
        metas = [found["metadata"]]
        if found["kind"] == "Job":
            metas.append(found["spec"]["template"]["metadata"])
        for meta in metas:
            for field in ("labels", "annotations"):
                assert all(isinstance(value, str) for value in meta.get(field, {}).values())


def test_no_object_is_there_twice(good: pathlib.Path) -> None:
    names = [
        (found["kind"], found["metadata"]["namespace"], found["metadata"]["name"]) for found in objects(generate(good))
    ]
    assert len({*names}) == len(names)


def test_nothing_is_rendered_that_kueue_or_argo_cd_would_trip_over(good: pathlib.Path) -> None:
    for found in objects(generate(good)):
        assert not {"status"} & found.keys()
        assert not {"generateName", "ownerReferences", "finalizers"} & found["metadata"].keys()
        assert not {"suspend", "ttlSecondsAfterFinished", "selector", "managedBy"} & found.get("spec", {}).keys()
        annotations = found["metadata"].get("annotations", {})
        assert annotations.get("argocd.argoproj.io/hook", "Skip") == "Skip"
        assert not {"argocd.argoproj.io/sync-wave", "argocd.argoproj.io/hook-delete-policy"} & annotations.keys()
        assert "app.kubernetes.io/instance" not in found["metadata"].get("labels", {})


def test_the_render_depends_on_the_files_alone(good: pathlib.Path) -> None:
    first = generate(good)
    assert objects(first)
    others = [
        client.variables(revision="0" * 40),
        client.variables(revision="streamed", kube_version="1.37.0"),
        *(client.variables(parameters=parameters) for parameters in client.PARAMETERS),
        client.variables(parameters='[{"name":"namespace","string":"kube-system"}]', extra=SPOOFED),
        {},
        {"HOME": "/root", "LC_ALL": "C", "TZ": "Asia/Tokyo", "PYTHONHASHSEED": "7", "PYTHONUTF8": "0"},
    ]
    for variables in others:
        result = generate(good, variables=variables)
        assert (result.returncode, result.stdout, result.stderr) == (0, first.stdout, b"")


def test_no_input_at_all_is_fine(repo: Repo) -> None:
    command = ["sh", "-c", 'exec "$@" <&-', "sh", *plugin()["spec"]["generate"]["command"]]
    result = sandbox.run(command, sandbox.checkout(repo.path), client.variables())
    assert result.stdout == generate(repo.path).stdout != b""


def test_a_folder_of_git_and_the_files_of_ci_change_nothing(repo: Repo) -> None:
    before = generate(repo.path).stdout
    repo.write(".git/HEAD", "ref: refs/heads/main\n")
    repo.write(".github/workflows/validate.yml", "on: pull_request\n")
    repo.write("README.md", "# Campaigns\n")
    repo.write(".argocd-source.yaml", "plugin: {env: [{name: HTRFLOW_CAMPAIGNS_NAMESPACES, value: kube-system}]}\n")
    assert generate(repo.path).stdout == before != b""


# The settings of the platform team


def test_a_namespace_that_is_not_allowed_is_refused_with_those_that_are(repo: Repo) -> None:
    repo.write("converter.yaml", "source_template: https://iiif.example.org/{ref}\nnamespace: kube-system\n")
    text = refusal(generate(repo.path, settings={"HTRFLOW_CAMPAIGNS_NAMESPACES": "htr-batch, htr-test"}))
    assert "(1) converter.yaml:2:12: " in text
    assert "htr-batch, htr-test" in text
    assert "HTR602" in text


@pytest.mark.parametrize("value", ["htr-batch", " htr-test , htr-batch ", "htr-batch,", "", ","])
def test_a_namespace_that_is_allowed_is_rendered(repo: Repo, value: str) -> None:
    assert objects(generate(repo.path, settings={"HTRFLOW_CAMPAIGNS_NAMESPACES": value}))


def test_nothing_that_an_application_sets_widens_the_namespaces(repo: Repo) -> None:
    repo.write("converter.yaml", "source_template: https://iiif.example.org/{ref}\nnamespace: kube-system\n")
    parameters = '[{"name":"htrflow-campaigns-namespaces","string":"kube-system"}]'
    variables = client.variables(parameters=parameters, extra=SPOOFED)
    assert "HTR602" in refusal(generate(repo.path, ".", variables, {"HTRFLOW_CAMPAIGNS_NAMESPACES": "htr-batch"}))


def test_an_empty_repo_renders_nothing_only_where_the_platform_team_allows_it(empty_repo: Repo) -> None:
    empty_repo.write("converter.yaml", "")
    allowed = generate(empty_repo.path, settings={"HTRFLOW_CAMPAIGNS_ALLOW_EMPTY": "true"})
    assert (allowed.returncode, allowed.stdout, allowed.stderr) == (0, b"", b"")
    assert "HTR601" in refusal(generate(empty_repo.path, settings={"HTRFLOW_CAMPAIGNS_ALLOW_EMPTY": "false"}))
    assert "HTR601" in refusal(generate(empty_repo.path, variables=client.variables(extra=SPOOFED)))


def test_more_than_the_allowed_size_prints_nothing(repo: Repo) -> None:
    for part in range(3):
        volumes = "".join(f"  - R{part}{number:07}\n" for number in range(8000))
        repo.write(f"campaigns/large-{part}.yaml", f"pipeline: demo-v1\nvolumes:\n{volumes}")
    text = refusal(generate(repo.path, settings={"HTRFLOW_CAMPAIGNS_MAX_MIB": "1"}))
    assert "HTR603" in text
    assert objects(generate(repo.path, settings={"HTRFLOW_CAMPAIGNS_MAX_MIB": "100"}))


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("HTRFLOW_CAMPAIGNS_ALLOW_EMPTY", "yes"),
        ("HTRFLOW_CAMPAIGNS_ALLOW_EMPTY", "1"),
        ("HTRFLOW_CAMPAIGNS_MAX_MIB", "0"),
        ("HTRFLOW_CAMPAIGNS_MAX_MIB", "-1"),
        ("HTRFLOW_CAMPAIGNS_MAX_MIB", "lots"),
        ("HTRFLOW_CAMPAIGNS_MAX_MIB", "1.5"),
        ("HTRFLOW_CAMPAIGNS_MAX_MIB", "9" * 400),
    ],
)
def test_a_setting_that_makes_no_sense_stops_the_plugin_with_its_name(repo: Repo, name: str, value: str) -> None:
    text = refusal(generate(repo.path, settings={name: value}))
    assert name in text
    assert " — write " in text
