"""Strict schemas for kubeconform: Kubernetes' own kinds of a version, and the kinds of Kueue."""

from __future__ import annotations

import functools
import importlib.resources
import json
import pathlib
import re
import typing as t

from tests import tools
from tests.helm.chart import Object

_SCHEMAS = importlib.resources.files("kubernetes_validate") / "kubernetes-json-schema"
_ENDING = ".0-local-strict"
_DEFINITIONS = "/api/_definitions.json#"
_REFERENCE = re.compile(r'"#/\$defs/([^"]+)"')


def versions() -> list[str]:
    """The newest three versions of Kubernetes of which there are schemas, such as ``v1.37``."""
    found = [entry.name.removesuffix(_ENDING) for entry in _SCHEMAS.iterdir() if entry.name.endswith(_ENDING)]
    return sorted(found, key=lambda version: [int(number) for number in version[1:].split(".")])[-3:]


def write(folder: pathlib.Path, version: str, objects: t.Iterable[Object]) -> str:
    """Writes a file for each kind of the objects, and returns their location as kubeconform takes it.

    A kind of neither Kubernetes nor Kueue gets none. Nor does it need one of the other: a file holds what it leads to.
    """
    folder.mkdir()
    for api_version, kind in sorted({(item["apiVersion"], item["kind"]) for item in objects}):
        group, _, short = api_version.rpartition("/")
        name = "-".join(filter(None, (kind.lower(), group.partition(".")[0], short))) + ".json"
        text = _of_kueue(api_version, kind) if group.endswith(".x-k8s.io") else _of_kubernetes(version, name)
        if text:
            (folder / name).write_text(text, encoding="utf-8")
    return f"{folder}/{{{{.ResourceKind}}}}{{{{.KindSuffix}}}}.json"


@functools.cache
def _definitions(version: str) -> dict[str, t.Any]:
    text = (_SCHEMAS / f"{version}{_ENDING}" / "_definitions.json").read_text(encoding="utf-8")
    return t.cast(dict[str, t.Any], json.loads(text.replace(_DEFINITIONS, "#"))["$defs"])


def _of_kubernetes(version: str, name: str) -> str:
    file = _SCHEMAS / f"{version}{_ENDING}" / name
    if not file.is_file():
        return ""
    schema = json.loads(file.read_text(encoding="utf-8").replace(_DEFINITIONS, "#"))
    del schema["$id"]
    wanted, needed = set(_REFERENCE.findall(json.dumps(schema))), dict[str, t.Any]()
    while wanted:
        definition = wanted.pop()
        needed[definition] = _definitions(version)[definition]
        wanted |= set(_REFERENCE.findall(json.dumps(needed[definition]))) - needed.keys()
    return json.dumps({**schema, "$defs": needed})


def _of_kueue(api_version: str, kind: str) -> str:
    group, _, version = api_version.partition("/")
    for item in json.loads((tools.find("kueue").parents[1] / "share/manifests.json").read_text(encoding="utf-8")):
        if item["kind"] == "CustomResourceDefinition" and item["spec"]["group"] == group:
            for row in item["spec"]["versions"]:
                if (item["spec"]["names"]["kind"], row["name"]) == (kind, version):
                    return json.dumps(strict(row["schema"]["openAPIV3Schema"]))
    return ""


def strict(schema: t.Any, *, top: bool = True) -> t.Any:
    """A schema of a kind, which refuses every field that it does not name."""
    if isinstance(schema, list):
        return [strict(item, top=False) for item in schema]
    if not isinstance(schema, dict):
        return schema
    inner = {key: strict(value, top=False) for key, value in schema.items()}
    if isinstance(inner.get("properties"), dict) and "additionalProperties" not in inner:
        if not inner.get("x-kubernetes-preserve-unknown-fields"):
            inner["additionalProperties"] = False
        if top:
            inner["properties"]["metadata"] = {"type": "object"}
    return inner
