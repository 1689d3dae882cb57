"""A campaigns repo for one namespace of a cluster, and what the real command makes of it."""

from __future__ import annotations

import json
import pathlib
import subprocess
import sys
import typing as t

import yaml

from tests.cmp_plugin.conftest import CONVERTER, PIPELINE
from tests.testbed.plugin.api import Object


class Repo:
    """Campaigns of one pipeline, ``demo-v1``; each pod asks for one GPU."""

    def __init__(self, folder: pathlib.Path, namespace: str, **settings: t.Any) -> None:
        self.path = folder
        for name in ("campaigns", "pipelines"):
            (folder / name).mkdir(parents=True, exist_ok=True)
        given = {"namespace": namespace, "window": 20, **settings}
        (folder / "converter.yaml").write_text(CONVERTER + yaml.safe_dump(given), encoding="utf-8")
        (folder / "pipelines/demo-v1.yaml").write_text(PIPELINE, encoding="utf-8")

    def campaign(self, name: str, volumes: int | t.Sequence[str] = 3, **keys: t.Any) -> None:
        """Writes a campaign's file; ``keys`` are its other keys, such as ``priority`` and ``suspend``."""
        ids = [f"V{number:04}" for number in range(volumes)] if isinstance(volumes, int) else volumes
        content = {"pipeline": "demo-v1", "volumes": [*ids], **keys}
        (self.path / f"campaigns/{name}.yaml").write_text(yaml.safe_dump(content), encoding="utf-8")

    def remove(self, name: str) -> None:
        """Deletes a campaign's file."""
        (self.path / f"campaigns/{name}.yaml").unlink()

    def generated(self) -> list[Object]:
        """What ``generate`` prints."""
        return [json.loads(line) for line in self._run("generate").splitlines()]

    def of(self, *campaigns: str) -> list[Object]:
        """What ``generate`` prints of some campaigns, and of no pipeline."""
        names = {name for campaign in campaigns for name in (campaign, f"campaign-{campaign}")}
        return [item for item in self.generated() if item["metadata"]["name"] in names]

    def rendered(self) -> list[Object]:
        """What ``render`` writes."""
        out = self.path.with_name(f"{self.path.name}-rendered")
        self._run("render", "--out", str(out))
        return [item for file in sorted(out.rglob("*.yaml")) for item in yaml.safe_load_all(file.read_bytes())]

    def _run(self, command: str, *arguments: str) -> str:
        whole = [sys.executable, "-m", "htrflow_campaigns", command, str(self.path), *arguments]
        done = subprocess.run(whole, capture_output=True, text=True, check=False, timeout=60)
        assert done.returncode == 0, done.stderr
        return done.stdout
