"""The JSON Schemas of the files a user writes: the one source of their structure, their patterns and their defaults."""

from __future__ import annotations

import functools
import json
import pathlib
import re
import typing as t

Schema = dict[str, t.Any]
Kind = t.Literal["converter", "campaign", "pipeline"]

#: Installed beside this module; in a checkout at the top.
FOLDERS = (
    pathlib.Path(__file__).parent / "schema_files",
    pathlib.Path(__file__).parent.parent.parent / "schemas",
)


def path(name: str) -> pathlib.Path:
    """Where the schema ``name`` lies (``campaign``, ``problems``, …)."""
    return next(file for folder in FOLDERS if (file := folder / f"{name}.schema.json").is_file())


@functools.cache
def load(name: str) -> Schema:
    """The schema ``name`` with every ``$ref`` replaced by what it names."""
    schema = json.loads(path(name).read_text(encoding="utf-8"))
    return t.cast(Schema, _inline(schema, schema.get("$defs", {})))


def _inline(node: t.Any, definitions: Schema) -> t.Any:
    if isinstance(node, list):
        return [_inline(item, definitions) for item in node]
    if not isinstance(node, dict):
        return node
    if "$ref" in node:
        target = definitions[node["$ref"].removeprefix("#/$defs/")]
        node = {**target, **{key: value for key, value in node.items() if key != "$ref"}}
    return {key: _inline(value, definitions) for key, value in node.items() if key != "$defs"}


def default(kind: Kind, key: str) -> t.Any:
    """The value of a key that is not written."""
    return load(kind)["properties"][key].get("default")


@functools.cache
def pattern(kind: Kind, *steps: str) -> re.Pattern[str]:
    """The pattern of a value, by the steps to it in the schema. Use with ``fullmatch``: in JSON Schema ``$`` is the
    end of the text, in Python also the place before a last line break."""
    node = load(kind)
    for step in steps:
        node = node[step]
    return re.compile(node["pattern"].removeprefix("^").removesuffix("$"))
