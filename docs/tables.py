"""``make docs``: writes the generated parts of the documentation anew, between their markers.

A generated part starts with ``<!-- generated: NAME -->`` and ends with ``<!-- end -->``; NAME is one of :data:`PARTS`.
With ``--check`` nothing is written, and the exit code is 1 when something would be.
"""

from __future__ import annotations

import argparse
import functools
import json
import pathlib
import re
import subprocess
import sys
import tempfile
import typing as t

from htrflow_campaigns import cli, schemas

TOP = pathlib.Path(__file__).parent.parent
FILES = ("README.md", "docs/campaign-yaml.md", "docs/cli.md")

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


def _demo() -> str:
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, str(TOP / "docs" / "demo.py"), folder]
        shown = subprocess.run(command, stdout=subprocess.PIPE, text=True, encoding="utf-8", check=True).stdout
    return f"```console\n{shown.rstrip()}\n```\n"


PARTS: dict[str, t.Callable[[], str]] = {
    "converter": functools.partial(_keys, "converter"),
    "size": functools.partial(_keys, "converter", "properties", "sizes", "additionalProperties"),
    "toleration": functools.partial(_keys, "converter", "properties", "tolerations", "items"),
    "campaign": functools.partial(_keys, "campaign"),
    "volume": functools.partial(_keys, "campaign", "properties", "volumes", "items", "then"),
    "pipeline": functools.partial(_keys, "pipeline"),
    "step": functools.partial(_keys, "pipeline", "properties", "steps", "items"),
    "demo": _demo,
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
