"""What is generated of the Helm chart's values, from the comments of ``values.yaml`` and from ``values.schema.json``.

- ``files/defaults.json`` of the chart: the default values once more, since a template cannot read ``values.yaml``;
- the descriptions of the values in ``values.schema.json``, which editors show;
- the tables in ``docs/chart.md``.
"""

from __future__ import annotations

import json
import pathlib
import re
import sys
import typing as t

import yaml

TOP = pathlib.Path(__file__).parent.parent
CHART = TOP / "helm" / "htrflow-batch"
VALUES, SCHEMA, DEFAULTS = CHART / "values.yaml", CHART / "values.schema.json", CHART / "files" / "defaults.json"
PAGE = TOP / "docs" / "chart.md"

_MARKED = re.compile(r"(<!-- generated: ([a-z ]+) -->)(?:(?!<!-- generated).)*?(<!-- end -->)", re.DOTALL)

Node = dict[str, t.Any]


class Value(t.NamedTuple):
    """One value: its path with dots, its default, and the sentences above it."""

    path: str
    default: t.Any
    comment: str


def values() -> list[Value]:
    """Every value of ``values.yaml``, in its order.

    A mapping without a comment of its own is a group of values.
    """
    text = VALUES.read_text(encoding="utf-8")
    lines = text.splitlines()
    found = list[Value]()

    def walk(node: yaml.MappingNode, path: str) -> None:
        for key, value in node.value:
            name, comment = f"{path}{key.value}", _above(lines, key.start_mark.line)
            if isinstance(value, yaml.MappingNode) and not value.flow_style and not comment:
                walk(value, f"{name}.")
            else:
                found.append(Value(name, _plain(value), comment))

    root = yaml.compose(text, yaml.SafeLoader)
    assert isinstance(root, yaml.MappingNode)
    walk(root, "")
    return found


def _above(lines: t.Sequence[str], line: int) -> str:
    comment = list[str]()
    while line > 0 and lines[line - 1].lstrip().startswith("#"):
        line -= 1
        comment.insert(0, lines[line].strip().removeprefix("#").strip())
    return " ".join(comment)


def _plain(node: yaml.Node) -> t.Any:
    return yaml.safe_load(yaml.serialize(node))


def resolve(schema: Node, node: Node) -> Node:
    """``node``, and where it leads to a definition, that with what ``node`` itself says."""
    if "$ref" not in node:
        return node
    target: Node = schema["definitions"][node["$ref"].rpartition("/")[2]]
    return {**target, **{key: value for key, value in node.items() if key != "$ref"}}


def described_schema() -> str:
    """``values.schema.json`` with the sentences of ``values.yaml`` as descriptions."""
    schema: Node = json.loads(SCHEMA.read_text(encoding="utf-8"))
    for value in values():
        *groups, last = value.path.split(".")
        node = schema
        for group in groups:
            node = node["properties"][group]
        node["properties"][last] = {"description": value.comment, **_undescribed(node["properties"][last])}
    return json.dumps(schema, indent=2, ensure_ascii=False) + "\n"


def _undescribed(node: Node) -> Node:
    return {key: value for key, value in node.items() if key != "description"}


def defaults() -> str:
    return json.dumps(yaml.safe_load(VALUES.read_text(encoding="utf-8")), indent=2) + "\n"


def table() -> str:
    """The table of all values."""
    rows = [(f"`{row.path}`", _code(row.default), row.comment) for row in values()]
    return _table(("value", "default", "what it is"), rows)


def items_table(*path: str) -> str:
    """The table of the keys of an item: of the list, the mapping of names or the definition at ``path``."""
    schema: Node = json.loads(SCHEMA.read_text(encoding="utf-8"))
    node = schema
    for step in path:
        node = resolve(schema, node[step])
    required = node.get("required", [])
    rows = list[tuple[str, ...]]()

    def walk(node: Node, prefix: str, required: t.Collection[str]) -> None:
        for key, child in node["properties"].items():
            found = resolve(schema, child)
            rows.append((f"`{prefix}{key}`", "yes" if key in required else "no", found["description"]))
            if not prefix and found.get("properties"):
                walk(found, f"{key}.", found.get("required", []) if key in required else [])

    walk(node, "", required)
    return _table(("key", "required", "what it is"), rows)


def _code(value: t.Any) -> str:
    return f"`{json.dumps(value, ensure_ascii=False)}`" if value != "" else "none"


def _table(head: t.Sequence[str], rows: t.Iterable[t.Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "".join(f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in line)} |\n" for line in lines)


#: The generated parts of docs/chart.md.
PARTS: dict[str, t.Callable[[], str]] = {
    "values": table,
    "team": lambda: items_table("properties", "teams", "items"),
    "quota": lambda: items_table("definitions", "quota", "items"),
    "flavor": lambda: items_table("properties", "flavors", "items"),
    "size": lambda: items_table("definitions", "size"),
}


def page() -> str:
    """docs/chart.md with its generated parts written anew. Raises :class:`KeyError` for a part of an unknown name."""
    text = PAGE.read_text(encoding="utf-8")
    return _MARKED.sub(lambda match: f"{match[1]}\n\n{PARTS[match[2]]()}\n{match[3]}", text)


def main() -> int:
    """Writes what is generated; with ``--check`` writes nothing, and the exit code is 1 when it would."""
    check = "--check" in sys.argv[1:]
    stale = False
    for file, make in ((DEFAULTS, defaults), (SCHEMA, described_schema), (PAGE, page)):
        new = make()
        if not file.exists() or file.read_text(encoding="utf-8") != new:
            stale = True
            name = file.relative_to(TOP)
            print(f"{name} is out of step with values.yaml — run make docs" if check else f"wrote {name}")
            if not check:
                file.parent.mkdir(exist_ok=True)
                file.write_text(new, encoding="utf-8", newline="\n")
    return int(stale and check)


if __name__ == "__main__":
    sys.exit(main())
