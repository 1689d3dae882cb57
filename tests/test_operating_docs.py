"""What the pages for operators say and tell to run, held against the site's catalogue, a real API server and helm."""

from __future__ import annotations

import os
import pathlib
import re
import secrets
import subprocess
import sys
import typing as t

import pytest
import yaml

from htrflow_status import words
from tests import tools
from tests.testbed.plugin import skipping
from tests.testbed.plugin.cluster import Cluster
from tests.testbed.plugin.namespace import QUEUE, Namespace

TOP = pathlib.Path(__file__).parents[1]
_SAYS = re.compile(r"^\| the (?:card|login page) says \|.*\n\|[-|]+\n((?:\|.*\n)+)", re.MULTILINE)
_DIGEST = "sha256:" + "0" * 64
#: Needs a kubelet, or another program.
_NOT_HERE = (" logs ", "kueue-system")


def _page(name: str) -> str:
    return (TOP / "docs" / name).read_text(encoding="utf-8")


def _commands(name: str) -> list[str]:
    blocks = re.findall(r"```console\n(.*?)```", _page(name), re.DOTALL)
    return [line[2:] for block in blocks for line in block.splitlines() if line.startswith("$ kubectl ")]


def test_what_the_page_says_that_the_site_says_is_in_its_catalogue() -> None:
    catalogue = {texts["en"] for texts in words.catalogue().values() if isinstance(texts["en"], str)}
    quoted = [
        sentence
        for table in _SAYS.findall(_page("troubleshooting.md"))
        for row in table.splitlines()
        for sentence in re.findall("`([^`]+)`", row.split("|")[1])
    ]

    assert len(quoted) > 15
    assert [sentence for sentence in quoted if sentence not in catalogue] == []


def test_every_command_of_the_troubleshooting_page_works(
    cluster: Cluster, namespace: Namespace, generated: t.Callable[..., list[dict[str, t.Any]]], tmp_path: pathlib.Path
) -> None:
    skipping.require("kubectl")
    namespace.create_all(generated(namespace.name))
    namespace.wait_for(lambda: namespace.workload("example"), "Kueue has taken the Job up")
    variables = {"NAMESPACE": namespace.name, "RELEASE": namespace.name, "QUEUE": QUEUE, "CAMPAIGN": "example"}
    environ = {
        **variables,
        "PIPELINE": "demo-v1",
        "KUBECONFIG": str(cluster.admin),
        "HOME": str(tmp_path),
        "PATH": f"{tools.find('kubectl').parent}:{os.environ['PATH']}",
    }
    ran = 0
    for command in _commands("troubleshooting.md"):
        if any(part in command for part in _NOT_HERE) or "htrflow-results" in command:
            continue
        asked = (
            command.replace(f"{QUEUE}-cq", "")
            .replace('"$QUEUE-cq"', namespace.name)
            .replace("sha256:<digest>", _DIGEST)
        )
        if " run " in asked:
            # Nobody is there to talk to; that the pod would be taken, by Pod Security too, is what counts.
            asked = asked.replace("--rm --stdin --tty", "--dry-run=server")
        done = subprocess.run(
            ["bash", "-c", asked], env=environ, capture_output=True, text=True, timeout=60, check=False
        )
        assert done.returncode == 0, f"{asked}\n{done.stderr}"
        ran += 1
    assert ran >= 8


@pytest.mark.slow
def test_the_commands_of_the_installation_lead_to_a_campaign_in_the_queue(
    cluster: Cluster, tmp_path: pathlib.Path
) -> None:
    skipping.require("kubectl")
    name = f"install-{secrets.token_hex(4)}"
    environ = {
        "KUBECONFIG": str(cluster.admin),
        "HOME": str(tmp_path),
        "PATH": f"{pathlib.Path(sys.executable).parent}:{tools.find('kubectl').parent}:{os.environ['PATH']}",
        "ACCESS_KEY": "team-key",
        "SECRET_KEY": "0123456789",
    }
    page = _page("install.md")
    (values,) = re.findall(r"<!-- values -->\n```yaml\n(.*?)```", page, re.DOTALL)
    (tmp_path / "values.yaml").write_text(values, encoding="utf-8")
    ran = []
    try:
        for block in re.findall(r"```console\n(.*?)```", page, re.DOTALL):
            for line in block.splitlines():
                program = line.removeprefix("$ ").split(" ")[0]
                if program not in ("kubectl", "printf", "htrflow-campaigns"):
                    continue
                if "validate" in line:
                    # Here the page says to write into converter.yaml what the notes of the chart said.
                    _settle(tmp_path / "my-campaigns/converter.yaml", values, name)
                command = line.removeprefix("$ ").replace("namespace htr-batch", f"namespace {name}")
                done = subprocess.run(
                    ["bash", "-c", command],
                    cwd=tmp_path,
                    env=environ,
                    capture_output=True,
                    text=True,
                    timeout=60,
                    check=False,
                )
                assert done.returncode == 0, f"{command}\n{done.stdout}{done.stderr}"
                ran.append(program)
        assert set(ran) == {"kubectl", "printf", "htrflow-campaigns"}
        assert cluster.api.get("batch/v1/Job", "example", name)["spec"]["suspend"] is True
        secret = cluster.api.get("v1/Secret", "htr-batch-s3", name)
        assert set(secret["data"]) == {"S3_BUCKET", "S3_ENDPOINT", "credentials"}
    finally:
        cluster.api.delete("v1/Namespace", name)


def _settle(converter: pathlib.Path, values: str, namespace: str) -> None:
    """Sets what ``docs/install.md`` says to set, to what the values of its example are."""
    text = converter.read_text(encoding="utf-8")
    chosen = {"namespace": namespace, "window": 4, "results_url": yaml.safe_load(values)["resultsUrl"]}
    for key, value in chosen.items():
        text, found = re.subn(rf"^#?{key}:.*$", f"{key}: {value}", text, count=1, flags=re.MULTILINE)
        assert found, key
    converter.write_text(text, encoding="utf-8")


def test_the_values_of_the_installation_make_a_release(tmp_path: pathlib.Path) -> None:
    skipping.require("helm")
    page = _page("install.md")
    block = re.search(r"<!-- values -->\n```yaml\n(.*?)```", page, re.DOTALL)
    assert block is not None
    file = tmp_path / "values.yaml"
    file.write_text(block[1], encoding="utf-8")
    upgraded = re.search(r"^\$ helm upgrade .*--reuse-values (--set .*)$", page, re.MULTILINE)
    assert upgraded is not None
    for more in ("", upgraded[1]):
        chart = TOP / "helm/htrflow-batch"
        command = f"'{tools.find('helm')}' template htrflow '{chart}' --namespace htr-batch --values '{file}' {more}"
        # It cannot look for the session key that it would make in a cluster.
        done = subprocess.run(
            ["bash", "-c", f"{command} --set results.sessionSecret=htrflow-session"],
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        kinds = {document["kind"] for document in yaml.safe_load_all(done.stdout) if document}
        assert {"ClusterQueue", "LocalQueue", "Deployment", "Ingress", "NetworkPolicy"} <= kinds
        assert ("ValidatingPolicy" in kinds) == bool(more)


@pytest.mark.parametrize("name", ["security.md", "troubleshooting.md"])
def test_every_value_of_the_chart_that_a_page_names_is_there(name: str) -> None:
    values = yaml.safe_load((TOP / "helm/htrflow-batch/values.yaml").read_text(encoding="utf-8"))
    tops = "|".join(key for key, value in values.items() if isinstance(value, dict))
    named = set(re.findall(rf"`((?:{tops})\.[A-Za-z.]+)`", _page(name)))

    assert named
    for path in named:
        found: t.Any = values
        for step in path.split("."):
            assert step in found, path
            found = found[step]
