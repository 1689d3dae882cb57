"""The config management plugin: a campaigns repo as one JSON object a line, all of it or nothing."""

from __future__ import annotations

import json
import typing as t

from htrflow_campaigns import limits, settings
from htrflow_campaigns.delivery import Delivery
from htrflow_campaigns.load import Loaded
from htrflow_campaigns.problems import Position, Problem, Words
from htrflow_campaigns.rules import delivery as rules
from htrflow_campaigns.settings import Settings


def generate(loaded: Loaded, delivery: Delivery, plugin: Settings) -> list[bytes]:
    """The lines to print, in a fixed order. Print none of them when ``loaded`` has problems afterwards.

    JSON and not YAML: Go's reader takes unquoted texts such as ``1e3`` for numbers, and JSON has no such texts.
    """
    loaded.problems += _allowed(loaded, plugin)
    if not loaded.is_good():
        # The campaigns are read all the same, so that everything wrong is said at once.
        for _ in loaded.campaigns():
            pass
        return []
    lines: list[bytes] = []
    size = 0
    makers: dict[tuple[str, str], str] = {}
    for path, object_ in ((source, made) for source, _, objects in delivery.everything(loaded) for made in objects):
        name = (object_["kind"], object_["metadata"]["name"])
        other = makers.setdefault(name, path)
        if other != path:
            thing = Words(" ".join(name))
            loaded.problems.append(rules.SAME_OBJECT.at(Position(path), object=thing, other=Words(other)))
        line = json.dumps(object_, ensure_ascii=False, separators=(",", ":"), sort_keys=True).encode() + b"\n"
        size += len(line)
        if size <= plugin.max_bytes:
            lines.append(line)
    if size > plugin.max_bytes:
        mib = Words(f"{size / limits.MIB:.1f}"), Words(f"{plugin.max_bytes / limits.MIB:.0f}")
        position, variable = Position("campaigns"), Words(settings.MAX_MIB)
        loaded.problems.append(rules.TOO_MUCH.at(position, size=mib[0], limit=mib[1], variable=variable))
    return lines


def _allowed(loaded: Loaded, plugin: Settings) -> t.Iterator[Problem]:
    if not loaded.tree.campaigns and not loaded.tree.pipelines and not plugin.allow_empty:
        yield rules.NOTHING.at(Position("campaigns"), variable=Words(settings.ALLOW_EMPTY))
    namespaces, converter = plugin.namespaces, loaded.converter
    if converter and loaded.tree.converter and namespaces is not None and converter.namespace not in namespaces:
        position = loaded.documents[loaded.tree.converter.path].at(("namespace",))
        allowed, variable = Words(", ".join(sorted(namespaces))), Words(settings.NAMESPACES)
        namespace = converter.namespace
        yield rules.NAMESPACE_REFUSED.at(position, namespace=namespace, allowed=allowed, variable=variable)


def paragraph(problems: t.Sequence[Problem]) -> str:
    """``problems`` as one paragraph of at most 6 KiB for the Argo CD page, which folds line breaks into spaces."""
    end = "; and {} more."
    room = limits.STDERR_BYTES - len(end.format(len(problems)).encode())
    count = f"{len(problems)} problem{'s' if len(problems) > 1 else ''} in the campaigns repo: "
    said: list[str] = []
    for number, problem in enumerate(problems, 1):
        path, line, column = problem.position
        sentence = f"({number}) {path}:{line}:{column}: {problem.message} [{problem.rule.id}]"
        room -= len(f"{'' if said else count};\n{sentence}".encode())
        if said and room < 0:
            return count + ";\n".join(said) + end.format(len(problems) - len(said))
        said.append(sentence)
    return count + ";\n".join(said) + "."
