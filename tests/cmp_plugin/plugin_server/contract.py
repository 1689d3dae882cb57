"""The command of the shipped plugin.yaml, run on a campaigns repo as Argo CD's plugin server runs it."""

from __future__ import annotations

import json
import pathlib
import shutil
import subprocess
import typing as t

import yaml

from tests.cmp_plugin.plugin_server import client, sandbox

PLUGIN = sandbox.TOP / "cmp-plugin" / "plugin.yaml"
STDERR_BYTES = 6 * 1024

Result = subprocess.CompletedProcess[bytes]


def plugin() -> dict[str, t.Any]:
    return t.cast(dict[str, t.Any], yaml.safe_load(PLUGIN.read_text("utf-8")))


def generate(
    repo: pathlib.Path,
    path: str = ".",
    variables: t.Mapping[str, str] | None = None,
    settings: t.Mapping[str, str] | None = None,
) -> Result:
    """Runs the plugin on a fresh copy of ``repo``, in the folder ``path`` of it, and leaves nothing of it behind."""
    copy = sandbox.checkout(repo)
    command = plugin()["spec"]["generate"]["command"]
    try:
        before = contents(copy)
        result = sandbox.run(
            command, copy / path, client.variables(path=path) if variables is None else variables, settings
        )
        assert contents(copy) == before
    finally:
        shutil.rmtree(copy)
    return result


def contents(top: pathlib.Path) -> dict[str, tuple[int, bytes]]:
    return {
        path.relative_to(top).as_posix(): (path.lstat().st_mode, path.read_bytes() if path.is_file() else b"")
        for path in top.rglob("*")
    }


def objects(result: Result) -> list[t.Any]:
    assert result.returncode == 0, result.stderr.decode()
    return [json.loads(line) for line in result.stdout.splitlines()]


def refusal(result: Result) -> str:
    """The error text of a run that failed as a plugin must fail: nothing on stdout, one short paragraph on stderr."""
    assert result.stdout == b""
    assert result.returncode not in (0, None)
    assert 0 < len(result.stderr) <= STDERR_BYTES
    text = result.stderr.decode()
    assert "Traceback" not in text
    assert all(character == "\n" or character.isprintable() for character in text)
    assert "\n\n" not in text
    return text
