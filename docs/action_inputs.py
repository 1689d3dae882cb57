"""``make docs``: the tables of ``docs/action.md``, from ``action.yml``. With ``--check`` nothing is written."""

from __future__ import annotations

import pathlib
import re
import sys
import typing as t

import yaml

TOP = pathlib.Path(__file__).parent.parent
ACTION, PAGE = TOP / "action.yml", TOP / "docs" / "action.md"

_MARKED = re.compile(r"(<!-- generated: ([a-z]+) -->)(?:(?!<!-- generated).)*?(<!-- end -->)", re.DOTALL)


def table(kind: str) -> str:
    """The table of the ``inputs`` or ``outputs``."""
    items: dict[str, dict[str, t.Any]] = yaml.safe_load(ACTION.read_text(encoding="utf-8"))[kind]
    head = ("input", "default", "what it is") if kind == "inputs" else ("output", "what it is")
    rows = [
        (f"`{name}`", *([_default(item)] if kind == "inputs" else []), item["description"])
        for name, item in items.items()
    ]
    return "".join(f"| {' | '.join(row)} |\n" for row in (head, ["---"] * len(head), *rows))


def _default(item: t.Mapping[str, t.Any]) -> str:
    default = item.get("default", "")
    return f"`{default}`" if default else "empty"


def main() -> int:
    check = "--check" in sys.argv[1:]
    old = PAGE.read_text(encoding="utf-8")
    new = _MARKED.sub(lambda match: f"{match[1]}\n\n{table(match[2])}\n{match[3]}", old)
    if new == old:
        return 0
    print("docs/action.md is out of step with action.yml — run make docs" if check else "wrote docs/action.md")
    if not check:
        PAGE.write_text(new, encoding="utf-8", newline="\n")
    return int(check)


if __name__ == "__main__":
    sys.exit(main())
