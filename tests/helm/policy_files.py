"""The policies of the chart, and the objects that they are tried on."""

from __future__ import annotations

import collections
import json
import pathlib
import re
import subprocess
import sys
import typing as t

import yaml

from tests.helm import kyverno_cli
from tests.helm.chart import CHART, TOP
from tests.helm.kyverno_cli import Object, Row

Quality = t.Literal["good", "bad"]

FOLDER = CHART / "policies"
CASES = pathlib.Path(__file__).with_name("policies")
#: What the settings of the policies are in tests.
QUEUES = {"team-a": "letters-a", "team-b": "letters-b"}
REPOSITORIES = ["docker.io/riksarkivet", "registry.example.org/htr", "localhost:5000/tool"]
#: The policies whose verdict does not depend on who asks, by the name of their file.
NAMES = sorted(path.stem for path in FOLDER.glob("*.yaml") if path.stem != "apply-identity")
ABOUT_USERS = "htr-apply-identity"
#: The policies that read a pipeline, and say nothing of a ConfigMap without one.
OF_PIPELINES = ("model-classes", "model-settings", "models-pinned", "pipeline-form", "processors-pinned")

_EXCEPTION = re.compile(r"```yaml\n(apiVersion: policies[.]kyverno[.]io/v1\n.*?)```", re.DOTALL)


def filled() -> list[Object]:
    """The policies with all their settings filled in."""
    return kyverno_cli.fill_in(kyverno_cli.load(FOLDER), queues=QUEUES, allowedRepositories=REPOSITORIES)


def objects(name: str, quality: Quality) -> list[Object]:
    """The objects that a policy is to accept or to refuse. Their names are those of the file, and then the policy's."""
    found = read(CASES / name / f"{quality}.yaml")
    return [changed(item, f"{item['metadata']['name']}.{quality}.{name}") for item in found]


def canaries() -> list[Object]:
    return read(CASES / "canaries.yaml")


def exceptions() -> list[Object]:
    """The exceptions in the documentation of the policies."""
    page = (TOP / "docs" / "policies.md").read_text(encoding="utf-8")
    return [yaml.safe_load(text) for text in _EXCEPTION.findall(page)]


def read(path: pathlib.Path) -> list[Object]:
    return list(yaml.safe_load_all(path.read_text(encoding="utf-8")))


def changed(item: Object, name: str, **metadata: t.Any) -> Object:
    """A copy of an object with another name, and with other metadata."""
    copied: Object = json.loads(json.dumps(item))
    copied["metadata"] = {**copied["metadata"], "name": name, **metadata}
    return copied


def refusals(rows: t.Iterable[Row]) -> dict[str, list[str]]:
    """Of each object that is refused, what is said of it."""
    found = collections.defaultdict(list)
    for row in rows:
        if row.result not in ("pass", "skip"):
            found[f"{row.kind} {row.name}"].append(f"{row.policy}: {row.message}")
    return dict(found)


def refused_by(rows: t.Iterable[Row], name: str) -> list[str]:
    """The policies that refuse the objects of a name, without their prefix."""
    found = {row.policy for row in rows if row.name == name and row.result not in ("pass", "skip")}
    return sorted(re.sub("^htr-", "", policy) for policy in found)


def example(folder: pathlib.Path, way: str = "generate") -> list[Object]:
    """The objects of the repo that ``htrflow-campaigns init`` writes, for a team; ``way`` is the command."""
    repo, out = folder / "repo", folder / "rendered"
    _converter("init", str(repo))
    settings = repo / "converter.yaml"
    text = settings.read_text(encoding="utf-8")
    for key, value in (("namespace", "team-a"), ("queue", QUEUES["team-a"])):
        text, found = re.subn(f"^{key}: .*$", f"{key}: {value}", text, flags=re.MULTILINE)
        assert found == 1
    settings.write_text(text, encoding="utf-8")
    if way == "generate":
        return [json.loads(line) for line in _converter("generate", str(repo)).splitlines()]
    _converter("render", str(repo), "--out", str(out))
    return [item for path in sorted(out.rglob("*.yaml")) for item in read(path)]


def _converter(*arguments: str) -> str:
    command = [sys.executable, "-m", "htrflow_campaigns", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 0, done.stderr
    return done.stdout
