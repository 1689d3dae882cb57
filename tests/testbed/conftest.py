"""Objects that the converter makes of a small campaigns repo."""

from __future__ import annotations

import json
import pathlib
import shutil
import subprocess
import sys
import typing as t

import pytest

from tests.testbed.plugin.api import Object

REPO = pathlib.Path(__file__).with_name("campaigns-repo")


@pytest.fixture
def generated(tmp_path: pathlib.Path) -> t.Callable[..., list[Object]]:
    """Makes the objects of the repo for a namespace; keywords are more lines of ``converter.yaml``."""

    def generate(namespace: str, **settings: t.Any) -> list[Object]:
        repo = shutil.copytree(REPO, tmp_path / "repo", dirs_exist_ok=True)
        with (repo / "converter.yaml").open("a") as stream:
            for key, value in {"namespace": namespace, **settings}.items():
                stream.write(f"{key}: {json.dumps(value)}\n")
        command = [sys.executable, "-m", "htrflow_campaigns", "generate", str(repo)]
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
        assert done.returncode == 0, done.stderr
        return [json.loads(line) for line in done.stdout.splitlines()]

    return generate
