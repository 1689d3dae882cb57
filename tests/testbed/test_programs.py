"""The programs that are commands and not servers, one proof each."""

from __future__ import annotations

import json
import pathlib
import subprocess
import typing as t

import pytest
import yaml

from tests.testbed.plugin.api import Object
from tests.testbed.plugin.cluster import Cluster
from tests.testbed.plugin.namespace import Namespace

Tool = t.Callable[[str], pathlib.Path]
Generated = t.Callable[..., list[Object]]
_Argument = str | pathlib.Path
_HERE = pathlib.Path(__file__).with_name("programs")


def test_helm_templates_a_chart_and_holds_its_values_to_the_schema(tool: Tool) -> None:
    command: list[_Argument] = ["template", "release", _HERE / "chart", "--namespace", "team-a"]

    (item,) = yaml.safe_load_all(_run(tool("helm"), *command, "--set", "queue=letters").stdout)
    assert item["metadata"] == {"name": "letters", "namespace": "team-a"}

    refused = _run(tool("helm"), *command, "--set", "qeue=letters")
    assert refused.returncode == 1
    assert "additional properties 'qeue' not allowed" in refused.stderr


def test_helm_installs_a_chart_into_the_cluster(tool: Tool, cluster: Cluster, namespace: Namespace) -> None:
    where: list[_Argument] = ["--namespace", namespace.name, "--kubeconfig", cluster.admin]

    done = _run(tool("helm"), "install", "release", _HERE / "chart", *where, "--set", "queue=letters")

    assert done.returncode == 0, done.stderr
    queue = cluster.api.get("kueue.x-k8s.io/v1beta2/LocalQueue", "letters", namespace.name)
    assert queue["metadata"]["labels"]["app.kubernetes.io/managed-by"] == "Helm"


def test_kyverno_passes_the_converters_job_and_fails_one_whose_image_floats(
    tool: Tool, generated: Generated, tmp_path: pathlib.Path
) -> None:
    jobs = [item for item in generated("team-a") if item["kind"] == "Job"]
    floating = json.loads(json.dumps(jobs[0]))
    floating["metadata"]["name"] = "floating"
    floating["spec"]["template"]["spec"]["containers"][0]["image"] = "registry.example.org/htrflow-batch:latest"

    good = _kyverno(tool, tmp_path, jobs)
    bad = _kyverno(tool, tmp_path, [*jobs, floating])

    assert good == (0, {job["metadata"]["name"]: ("pass", "success") for job in jobs})
    message = "images without a digest: registry.example.org/htrflow-batch:latest"
    assert bad[0] == 1
    assert bad[1] == {**good[1], "floating": ("fail", message)}


def test_act_runs_a_workflow_without_a_container(tool: Tool, tmp_path: pathlib.Path) -> None:
    # act sometimes drops what a step says as it ends.
    workflow = tmp_path / ".github/workflows/ci.yaml"
    workflow.parent.mkdir(parents=True)
    workflow.write_text(
        """\
on: push
jobs:
  check:
    runs-on: ubuntu-latest
    steps:
      - run: |
          echo '::error file=campaigns/letters.yaml,line=3,col=5::not a volume'
          sleep 1
          exit 1
"""
    )
    for command in (
        ["init", "-q"],
        ["add", "."],
        ["-c", "user.name=t", "-c", "user.email=t@example.org", "commit", "-qm", "c"],
    ):
        subprocess.run(["git", "-C", str(tmp_path), *command], check=True)

    done = _run(tool("act"), "push", "-P", "ubuntu-latest=-self-hosted", "--json", cwd=tmp_path)

    rows = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    (error,) = (row for row in rows if row.get("command") == "error")
    assert error["kvPairs"] == {"file": "campaigns/letters.yaml", "line": "3", "col": "5"}
    assert error["arg"] == "not a volume"
    assert done.returncode == 1


@pytest.mark.parametrize(
    ("name", "file", "content", "said"),
    [
        (
            "actionlint",
            ".github/workflows/ci.yaml",
            "on: psh\njobs: {a: {runs-on: ubuntu-latest, steps: [{run: 'true'}]}}\n",
            "psh",
        ),
        ("hadolint", "Dockerfile", "FROM debian\n", "DL3006"),
        ("shellcheck", "run.sh", "#!/bin/sh\necho $1\n", "SC2086"),
        (
            "zizmor",
            ".github/workflows/ci.yaml",
            "on: push\njobs: {a: {runs-on: ubuntu-latest, steps: [{uses: actions/checkout@v4}]}}\n",
            "unpinned-uses",
        ),
    ],
)
def test_a_linter_finds_the_fault(
    tool: Tool, tmp_path: pathlib.Path, name: str, file: str, content: str, said: str
) -> None:
    path = tmp_path / file
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content)

    done = _run(tool(name), *(["--offline"] if name == "zizmor" else []), path, cwd=tmp_path)

    assert done.returncode != 0
    assert said in done.stdout + done.stderr


def test_cel_js_evaluates_an_expression_of_a_policy(tool: Tool, tmp_path: pathlib.Path) -> None:
    policy = yaml.safe_load((_HERE / "policy.yaml").read_text())
    expression = policy["spec"]["variables"][0]["expression"]
    pod = {"containers": [{"image": "a"}], "initContainers": [{"image": "b"}]}
    given = json.dumps({"object": {"spec": {"template": {"spec": pod}}}})
    script = f"""\
import {{Environment}} from {json.dumps(str(tool("cel-js") / "lib/index.js"))}
const env = new Environment({{enableOptionalTypes: true}}).registerVariable('object', 'dyn')
console.log(JSON.stringify(env.evaluate({json.dumps(expression)}, {given})))
"""
    (tmp_path / "evaluate.mjs").write_text(script)

    assert json.loads(_run("node", tmp_path / "evaluate.mjs").stdout) == ["a", "b"]


def test_the_viewer_has_the_page_and_the_script_that_a_site_serves(tool: Tool) -> None:
    dist = tool("universalviewer") / "dist"

    assert (dist / "uv.html").is_file()
    assert (dist / "umd/UV.js").stat().st_size > 10_000
    assert json.loads((dist.parent / "package.json").read_text())["license"] == "MIT"


def _kyverno(tool: Tool, folder: pathlib.Path, objects: list[Object]) -> tuple[int, dict[str, tuple[str, str]]]:
    """The exit code, and of each object by name its result and the message."""
    file = folder / "objects.yaml"
    file.write_text(yaml.safe_dump_all(objects))
    command: list[_Argument] = ["apply", _HERE / "policy.yaml", "-r", file, "--policy-report", "--remove-color"]
    done = _run(tool("kyverno"), *command, "--output-format", "json")
    reports = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    assert reports, done.stdout + done.stderr
    rows = [row for report in reports for row in report["results"]]
    return done.returncode, {row["resources"][0]["name"]: (row["result"], row["message"]) for row in rows}


def _run(
    program: str | pathlib.Path, *arguments: str | pathlib.Path, cwd: pathlib.Path | None = None
) -> subprocess.CompletedProcess[str]:
    command = [str(program), *map(str, arguments)]
    return subprocess.run(command, cwd=cwd, capture_output=True, text=True, timeout=120, check=False)
