"""kubeconform, with schemas of this machine."""

from __future__ import annotations

import importlib.resources
import json
import os
import pathlib
import subprocess
import typing as t

from tests.testbed.plugin.api import Object
from tests.tools.cache import owner

_VERSION = "v1.36.0"
_FILES = ("job-batch-v1.json", "configmap-v1.json")
_DEFINITIONS = "/api/_definitions.json#"
#: Nobody listens there: whoever asks for a schema elsewhere gets none.
_NOWHERE = "http://127.0.0.1:9"


def test_kubeconform_passes_the_converters_objects_and_fails_a_misspelt_field(
    tool: t.Callable[[str], pathlib.Path], generated: t.Callable[..., list[Object]], tmp_path: pathlib.Path
) -> None:
    program, objects = tool("kubeconform"), generated("team-a")
    schemas = _schemas(tmp_path / "schemas")
    (job,) = (item for item in objects if item["metadata"]["name"] == "example")
    misspelt = json.loads(json.dumps(job))
    misspelt["metadata"]["name"] = "misspelt"
    misspelt["spec"]["template"]["spec"]["containers"][0]["volumeMount"] = []
    unknown = {"apiVersion": "batch/v1", "kind": "Jop", "metadata": {"name": "unknown"}}

    good = _kubeconform(program, schemas, objects)
    bad = _kubeconform(program, schemas, [*objects, misspelt, unknown])

    assert {item["kind"] for item in objects} == {"Job", "ConfigMap"}
    assert good == (0, {item["metadata"]["name"]: ("statusValid", "") for item in objects})
    assert bad[0] == 1
    (misspelt_status, said), (unknown_status, _) = bad[1].pop("misspelt"), bad[1].pop("unknown")
    assert (misspelt_status, unknown_status) == ("statusInvalid", "statusError")
    assert "at '/spec/template/spec/containers/0': additional properties 'volumeMount' not allowed" in said
    assert bad[1] == good[1]


def test_kubeconform_says_its_version(tool: t.Callable[[str], pathlib.Path]) -> None:
    said = subprocess.run([tool("kubeconform"), "-v"], capture_output=True, text=True, check=True, timeout=60)

    assert said.stdout == f"v{owner('kubeconform').version}\n"


def _schemas(folder: pathlib.Path) -> str:
    """Writes one file a kind that needs no other, and returns their location as kubeconform takes it.

    Those of kubernetes-validate lead to a file of definitions at an address of which there is only the path.
    """
    strict = importlib.resources.files("kubernetes_validate") / f"kubernetes-json-schema/{_VERSION}-local-strict"
    definitions = json.loads((strict / "_definitions.json").read_text(encoding="utf-8"))["$defs"]
    folder.mkdir()
    for name in _FILES:
        schema = json.loads((strict / name).read_text(encoding="utf-8"))
        del schema["$id"]
        # The definitions come along whole, so that one may lead to itself.
        text = json.dumps({**schema, "$defs": definitions}).replace(_DEFINITIONS, "#")
        (folder / name).write_text(text, encoding="utf-8")
    return f"{folder}/{{{{.ResourceKind}}}}{{{{.KindSuffix}}}}.json"


def _kubeconform(program: pathlib.Path, schemas: str, objects: list[Object]) -> tuple[int, dict[str, tuple[str, str]]]:
    """The exit code, and of each object by name its status and the message."""
    command = [str(program), "-strict", "-verbose", "-output", "json", "-schema-location", schemas, "-"]
    done = subprocess.run(
        command,
        input="\n---\n".join(map(json.dumps, objects)),
        env={**os.environ, "HTTP_PROXY": _NOWHERE, "HTTPS_PROXY": _NOWHERE},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    rows = json.loads(done.stdout)["resources"]
    return done.returncode, {row["name"]: (row["status"], row.get("msg", "")) for row in rows}
