"""Objects that the converter makes of the repo that ``htrflow-campaigns init`` writes."""

from __future__ import annotations

import json
import pathlib
import re
import subprocess
import sys
import typing as t

import pytest
import yaml

from tests.testbed.plugin.api import Object


@pytest.fixture
def generated(tmp_path: pathlib.Path) -> t.Callable[..., list[Object]]:
    """Makes the objects of the repo for a namespace; keywords are other settings of ``converter.yaml``.

    Its campaign ``example`` has three volumes and the priority ``htr-bulk``.
    """

    def generate(namespace: str, **settings: t.Any) -> list[Object]:
        repo = _example(tmp_path, namespace, settings)
        return [json.loads(line) for line in _run("generate", repo).splitlines()]

    return generate


@pytest.fixture
def rendered(tmp_path: pathlib.Path) -> t.Callable[..., list[Object]]:
    """As ``generated``, but the objects that ``render`` writes into files."""

    def render(namespace: str, **settings: t.Any) -> list[Object]:
        out = tmp_path / "rendered"
        _run("render", _example(tmp_path, namespace, settings), "--out", str(out))
        return [item for file in sorted(out.rglob("*.yaml")) for item in yaml.safe_load_all(file.read_bytes())]

    return render


def _example(folder: pathlib.Path, namespace: str, settings: t.Mapping[str, t.Any]) -> str:
    repo = folder / "repo"
    _run("init", str(repo))
    _set(repo / "converter.yaml", namespace=namespace, **settings)
    _set(repo / "campaigns/example.yaml", priority="htr-bulk")
    return str(repo)


def _run(*arguments: str) -> str:
    command = [sys.executable, "-m", "htrflow_campaigns", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 0, done.stderr
    return done.stdout


def _set(file: pathlib.Path, **settings: t.Any) -> None:
    text = file.read_text(encoding="utf-8")
    for key, value in settings.items():
        text, found = re.subn(rf"^#?{key}:.*$", f"{key}: {json.dumps(value)}", text, count=1, flags=re.MULTILINE)
        assert found, f"{file.name} does not mention {key}"
    file.write_text(text, encoding="utf-8")
