"""A campaigns repo to write, and the real command to run on it."""

from __future__ import annotations

import os
import pathlib
import subprocess
import sys
import typing as t

import pytest

IMAGE = "registry.example.org/htrflow-batch@sha256:" + "0123456789abcdef" * 4
CONVERTER = """\
results_url: https://htr.example.org/results
source_template: https://iiif.example.org/{ref}/manifest
"""
PIPELINE = f"""\
image: {IMAGE}
steps:
  - step: Segmentation
    settings:
      model: yolo
      model_settings:
        model: Riksarkivet/yolov9-regions-1
        revision: 0123456789abcdef0123456789abcdef01234567
  - step: Segmentation
    settings:
      model: yolo
      model_settings:
        model: Riksarkivet/yolov9-lines-within-regions-1
        revision: 0123456789abcdef0123456789abcdef01234567
  - step: TextRecognition
    settings:
      model: TrOCR
      model_settings:
        model: Riksarkivet/trocr-base-handwritten-hist-swe-2
        model_kwargs: {{revision: 0123456789abcdef0123456789abcdef01234567}}
        processor_kwargs: {{revision: 0123456789abcdef0123456789abcdef01234567}}
"""
CAMPAIGN = """\
pipeline: demo-v1
volumes:
  - R0001203
  - id: letters-1
    manifest: https://iiif.example.org/letters-1/manifest.json
  - id: loose-scans
    images:
      - https://example.org/scan-0001.jpg
      - https://example.org/scan-0002.jpg
"""


class Repo:
    """A campaigns repo in a folder of its own."""

    def __init__(self, path: pathlib.Path) -> None:
        self.path = path

    def write(self, name: str, content: str | bytes) -> pathlib.Path:
        """Writes one file, its path relative to the top of the repo."""
        file = self.path / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content.encode() if isinstance(content, str) else content)
        return file

    def run(
        self, command: str, *arguments: str, environment: t.Mapping[str, str] | None = None
    ) -> subprocess.CompletedProcess[str]:
        """Runs ``htrflow-campaigns COMMAND REPO ARGUMENTS`` from another folder."""
        return subprocess.run(
            [sys.executable, "-m", "htrflow_campaigns", command, str(self.path), *arguments],
            cwd=self.path.parent,
            env={**os.environ, **(environment or {})},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            encoding="utf-8",
            timeout=60,
            check=False,
        )


@pytest.fixture
def empty_repo(tmp_path: pathlib.Path) -> Repo:
    """A folder with nothing in it."""
    repo = Repo(tmp_path / "repo")
    repo.path.mkdir()
    return repo


@pytest.fixture
def repo(empty_repo: Repo) -> Repo:
    """A good campaigns repo: one campaign ``letters`` with all three forms of a volume, one pipeline ``demo-v1``."""
    empty_repo.write("converter.yaml", CONVERTER)
    empty_repo.write("pipelines/demo-v1.yaml", PIPELINE)
    empty_repo.write("campaigns/letters.yaml", CAMPAIGN)
    return empty_repo
