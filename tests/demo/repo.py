"""The campaigns repo of the demo."""

from __future__ import annotations

import pathlib
import typing as t

import yaml

from tests.demo.archive import VOLUMES, Archive
from tests.models import pipeline
from tests.wrapper.hub_server import HubServer

_IMAGE = f"registry.example.org/htrflow-batch@sha256:{'0' * 64}"
_CONVERTER = """\
# The defaults are right for this machine; a cluster needs more.
namespace: demo
"""


def write(folder: pathlib.Path, archive: Archive, hub: HubServer, volumes: t.Collection[str] = tuple(VOLUMES)) -> None:
    """Writes the campaigns repo: one campaign with these volumes, one pipeline with the small models."""
    for name in ("campaigns", "pipelines"):
        (folder / name).mkdir(parents=True, exist_ok=True)
    (folder / "converter.yaml").write_text(_CONVERTER, encoding="utf-8")
    recipe = {"image": _IMAGE, **pipeline.steps(hub.revisions)}
    (folder / "pipelines/demo-v1.yaml").write_text(yaml.safe_dump(recipe, sort_keys=False), encoding="utf-8")
    listed = [{"id": name, "manifest": archive.manifest(name)} for name in volumes]
    campaign = {"pipeline": "demo-v1", "window": 1, "volumes": listed}
    (folder / "campaigns/demo.yaml").write_text(yaml.safe_dump(campaign, sort_keys=False), encoding="utf-8")
