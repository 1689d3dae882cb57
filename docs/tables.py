"""``make docs``: writes the generated parts of the documentation anew, between their markers.

A generated part starts with ``<!-- generated: NAME -->`` and ends with ``<!-- end -->``; NAME is one of :data:`PARTS`.
With ``--check`` nothing is written, and the exit code is 1 when something would be.
"""

from __future__ import annotations

import argparse
import functools
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import typing as t
from unittest import mock

from htrflow_batch import config
from htrflow_batch.variables import Variables
from htrflow_campaigns import cli, schemas

TOP = pathlib.Path(__file__).parent.parent
FILES = ("docs/first-repo.md", "docs/campaign-yaml.md", "docs/cli.md", "docs/wrapper.md")

_MARKED = re.compile(r"(<!-- generated: ([a-z -]+) -->)(?:(?!<!-- generated).)*?(<!-- end -->)", re.DOTALL)

_TYPES = {
    "string": "text",
    "integer": "whole number",
    "number": "number",
    "boolean": "true or false",
    "array": "list",
    "object": "mapping",
}


def generate(text: str) -> str:
    """``text`` with every generated part written anew.

    Raises :class:`KeyError` for a part of an unknown name.
    """
    return _MARKED.sub(lambda match: f"{match[1]}\n\n{PARTS[match[2]]()}\n{match[3]}", text)


def _keys(kind: schemas.Kind, *steps: str) -> str:
    """The table of the keys of a schema, or of the part of it at ``steps``."""
    node = schemas.load(kind)
    for step in steps:
        node = node[step]
    required = node.get("required", ())
    rows = []
    for key, schema in node["properties"].items():
        default = "required" if key in required else _default(schema)
        rows.append((f"`{key}`", _type(schema), default, schema["description"], _code(schema["examples"][0])))
    return _table(("key", "value", "default", "what it is", "example"), rows)


def _type(schema: schemas.Schema) -> str:
    if "enum" in schema:
        return " or ".join(f"`{choice}`" for choice in schema["enum"])
    types = [schema["type"]] if isinstance(schema["type"], str) else schema["type"]
    return " or ".join(_TYPES[name] for name in types)


def _default(schema: schemas.Schema) -> str:
    return _code(schema["default"]) if "default" in schema else "none"


def _code(value: t.Any) -> str:
    """``value`` as it stands in a YAML file, on one line."""
    if isinstance(value, str) and value:
        return f"`{value}`"
    return f"`{json.dumps(value, ensure_ascii=False)}`"


def _table(head: t.Sequence[str], rows: t.Iterable[t.Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "".join(f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in line)} |\n" for line in lines)


def _commands() -> dict[str, argparse.ArgumentParser]:
    actions = cli.parser()._actions
    choices = next(action.choices for action in actions if isinstance(action, argparse._SubParsersAction))
    return t.cast(dict[str, argparse.ArgumentParser], choices)


def _options(command: str) -> str:
    """The table of what ``command`` takes."""
    rows = []
    for action in _commands()[command]._actions:
        if action.dest == "help":
            continue
        metavar = action.metavar if isinstance(action.metavar, str) else "|".join(map(str, action.choices or ()))
        shown = " ".join(filter(None, [*action.option_strings[-1:], metavar]))
        rows.append((f"`{shown}`", "yes" if action.required else "no", action.help or ""))
    return _table(("argument", "required", "what it is"), rows)


def _first_repo() -> str:
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, str(TOP / "docs" / "first_repo.py"), folder]
        shown = subprocess.run(command, stdout=subprocess.PIPE, text=True, encoding="utf-8", check=True).stdout
    return f"```console\n{shown.rstrip()}\n```\n"


class _Asked(dict[str, str]):
    """An environment that notes which variables it is asked for."""

    def __init__(self, **values: str) -> None:
        super().__init__(values)
        self.names: dict[str, None] = {}

    def get(self, name: str, default: t.Any = None) -> t.Any:
        self.names[name] = None
        return super().get(name, default)


#: Of each variable that the wrapper reads: who sets it, what it is, and its default where the code has none to show.
_JOB, _OPERATOR, _SECRET = "the Job", "", "the Secret"
_VARIABLES: dict[str, tuple[str, str] | tuple[str, str, str]] = {
    "VOLUME_REF": (_JOB, "the volume's id, from its line of `volumes.txt`"),
    "IIIF_MANIFEST_URL": (_JOB, "the address of the volume's manifest; this or `IMAGES`"),
    "IMAGES": (_JOB, "the addresses of the volume's images, with a space between them"),
    "CAMPAIGN": (_JOB, "the campaign's name, for provenance"),
    "PIPELINE_ID": (_JOB, "the pipeline's id"),
    "PIPELINE_PATH": (_JOB, "the steps"),
    "IMAGE_DIGEST": (_JOB, "the image that runs, with its digest: a part of the recipe"),
    "S3_PREFIX": (_JOB, "what every key begins with, such as `htr-batch/`"),
    "S3_BUCKET": (_SECRET, "the bucket"),
    "S3_ENDPOINT": (_SECRET, "the store's address", "Amazon's"),
    "AWS_SHARED_CREDENTIALS_FILE": (_JOB, "the file with the store's keys", "`/secrets/s3/credentials`"),
    "S3_VERIFY_TLS": (_SECRET, "`false` trusts any certificate of the store", "`true`"),
    "RESULTS_URL": (_JOB, "where browsers read results, without a slash at its end", "the bucket's own address"),
    "RESULTS_FOLDER": (
        _OPERATOR,
        "a folder in place of a bucket; all `S3_` variables but `S3_PREFIX` are then not read",
    ),
    "WORKDIR_PATH": (_JOB, "the work directory"),
    "INDEX_FAILURE_COUNT": (_JOB, "how many attempts at this volume have failed"),
    "BACKOFF_LIMIT_PER_INDEX": (_JOB, "how many may fail before the last one"),
    "MANIFEST_MAX_BYTES": (_JOB, "the largest manifest that is read"),
    "FETCH_MAX_BYTES": (_JOB, "the largest image that is read, in bytes"),
    "FETCH_CONTACT": (
        _SECRET,
        "where an archive finds who asks: an address of mail or of a page, for the `User-Agent`",
    ),
    "FETCH_HEADERS": (_SECRET, "headers for single servers, as JSON"),
    "FETCH_CONNECTIONS": (_OPERATOR, "how many connections one server gets at a time"),
    "MAX_IMAGE_WIDTH": (_OPERATOR, "the width in pixels that images are asked for, and made smaller to"),
    "MAX_IMAGE_PIXELS": (_OPERATOR, "width times height of the largest image that is decoded"),
    "LOOKAHEAD_PAGES": (_OPERATOR, "how many pages may be in flight"),
    "LOOKAHEAD_BYTES": (_JOB, "how many bytes their images may take in the work directory"),
    "GROUP_PAGES": (_OPERATOR, "how many pages the model gets at once, at most"),
    "PAGE_SECONDS": (_OPERATOR, "what a page may take in the model before the process is ended"),
    "LOAD_SECONDS": (_OPERATOR, "what loading the models may take"),
    "LOW_CONFIDENCE": (_OPERATOR, "below which mean confidence a page counts as `low confidence`"),
    "ENGINE": (_OPERATOR, "the module that knows the library", f"`{config.ENGINE}`"),
    "TERMINATION_MESSAGE_PATH": (_OPERATOR, "the file for the pod's last words", f"`{config.TERMINATION_LOG}`"),
}


def _variables() -> str:
    """The table of the wrapper's environment: what :mod:`htrflow_batch.config` asks for, and takes without it."""
    defaults = dict[str, str]()
    asked = _Asked(
        VOLUME_REF="R0001203",
        IIIF_MANIFEST_URL="https://iiif.example.org/R0001203/manifest",
        PIPELINE_ID="demo-v1",
        PIPELINE_PATH=os.devnull,
        S3_PREFIX="htr-batch/",
        S3_BUCKET="results",
    )

    class Reader(Variables):
        def text(self, name: str, default: str | None = None) -> str:
            defaults[name] = "required" if default is None else f"`{default}`"
            return super().text(name, default)

        def whole(self, name: str, default: int, least: int = 1, most: int = 2**53) -> int:
            defaults[name] = (
                f"{default // config.MIB} MiB" if default >= config.MIB and name[-5:] == "BYTES" else f"{default}"
            )
            return super().whole(name, default, least, most)

        def number(self, name: str, default: float, least: float, most: float) -> float:
            defaults[name] = f"{default:g}"
            return super().number(name, default, least, most)

    with mock.patch.object(config, "Variables", Reader):
        config.read(asked)
        config.termination_log(asked)
    if missing := asked.names.keys() ^ _VARIABLES.keys():
        raise KeyError(f"docs/tables.py and htrflow_batch.config do not name the same variables: {sorted(missing)}")
    rows = []
    for name, (setter, about, *shown) in _VARIABLES.items():
        rows.append((f"`{name}`", setter, shown[0] if shown else defaults.get(name, "none"), about))
    return _table(("variable", "set by", "default", "what it is"), rows)


PARTS: dict[str, t.Callable[[], str]] = {
    "converter": functools.partial(_keys, "converter"),
    "size": functools.partial(_keys, "converter", "properties", "sizes", "additionalProperties"),
    "toleration": functools.partial(_keys, "converter", "properties", "tolerations", "items"),
    "campaign": functools.partial(_keys, "campaign"),
    "volume": functools.partial(_keys, "campaign", "properties", "volumes", "items", "then"),
    "pipeline": functools.partial(_keys, "pipeline"),
    "step": functools.partial(_keys, "pipeline", "properties", "steps", "items"),
    "first repo": _first_repo,
    "variables": _variables,
    **{f"command {name}": functools.partial(_options, name) for name in _commands()},
}


def main() -> int:
    check = "--check" in sys.argv[1:]
    stale = False
    for name in FILES:
        file = TOP / name
        old = file.read_text(encoding="utf-8")
        new = generate(old)
        if new != old:
            stale = True
            print(f"{name} is out of step with what it describes — run make docs" if check else f"wrote {name}")
            if not check:
                file.write_text(new, encoding="utf-8", newline="\n")
    return int(stale and check)


if __name__ == "__main__":
    sys.exit(main())
