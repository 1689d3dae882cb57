"""Kyverno's own manifests for its admission controller, as JSON, as its chart makes them."""

from __future__ import annotations

import json
import pathlib
import shutil
import subprocess
import tempfile

#: The namespace that the objects are for.
NAMESPACE = "kyverno"
#: The controllers that decide nothing about a request.
_OTHERS = ("background", "cleanup", "reports")


def write_manifests(folder: pathlib.Path) -> None:
    """Writes ``share/manifests.json``: a list of the kinds and then of the objects of the admission controller."""
    import yaml

    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    kinds = [path.read_bytes() for path in sorted((folder / "share/crds").rglob("*.yaml"))]
    texts = [*kinds, _templates(folder / "share/chart")]
    objects = [item for text in texts for item in yaml.load_all(text, loader) if item]
    (folder / "share/manifests.json").write_text(json.dumps(objects), encoding="utf-8")


def _templates(chart: pathlib.Path) -> bytes:
    import yaml

    from tests.tools.cache import find

    with tempfile.TemporaryDirectory() as name:
        staged = pathlib.Path(shutil.copytree(chart, pathlib.Path(name, "kyverno")))
        described = yaml.safe_load((chart / "Chart.yaml").read_text(encoding="utf-8"))
        # Kyverno's module has no charts of other projects, and helm templates nothing while one is missing.
        there = {path.name for path in (chart / "charts").iterdir()}
        described["dependencies"] = [row for row in described["dependencies"] if row["name"] in there]
        (staged / "Chart.yaml").write_text(yaml.safe_dump(described), encoding="utf-8")
        settings = ["crds.install=false", *(f"{controller}Controller.enabled=false" for controller in _OTHERS)]
        command = [str(find("helm")), "template", "kyverno", str(staged), f"--namespace={NAMESPACE}", "--no-hooks"]
        command += [f"--set={setting}" for setting in settings]
        return subprocess.run(command, capture_output=True, check=True, stdin=subprocess.DEVNULL).stdout
