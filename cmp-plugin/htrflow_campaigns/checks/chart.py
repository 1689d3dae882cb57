"""Holds ``converter.yaml`` against the values of the chart that the cluster was installed with."""

from __future__ import annotations

import decimal
import typing as t

from htrflow_campaigns import quantities, structure
from htrflow_campaigns.chart_values import Values
from htrflow_campaigns.document import Document, Path
from htrflow_campaigns.model import Converter, Size
from htrflow_campaigns.problems import Problem, Words
from htrflow_campaigns.rules import chart as rules

#: Keys that the two call differently, or the same, and that one value each.
_ALIKE = {"queue": "queue", "window": "window", "data_pvc": "dataPvc", "default_size": "defaultSize"}
_OF_ALL_TEAMS = {"s3_secret": "s3Secret", "results_url": "resultsUrl"}
#: How a size is written in both.
_AMOUNTS = ("gpu", "cpu", "memory")


def check(document: Document, converter: Converter, values: Values) -> t.Iterator[Problem]:
    """All differences, each at its key in ``converter.yaml``."""
    team = _team(converter, values)
    if team is None:
        names = [one.get("namespace") for one in _rows(values, "teams")]
        known = [name for name in names if isinstance(name, str)]
        instead = structure.suggest(converter.namespace, known, f"the teams' namespaces are {', '.join(known)}")
        yield rules.TEAM.at(document.at(("namespace",)), value=converter.namespace, instead=Words(instead))
        return
    for key, other in _ALIKE.items():
        yield from _same(document, (key,), getattr(converter, key), other, team.get(other, values.get(other)))
    for key, other in _OF_ALL_TEAMS.items():
        yield from _same(document, (key,), getattr(converter, key), other, values.get(other))
    installed = [one.get("name") for one in _rows(values, "priorityClasses")]
    for index, name in enumerate(converter.priority_classes):
        if name not in installed:
            yield _unknown(document, ("priority_classes", index), name, "priorityClasses", installed)
    yield from _flavors(document, converter, values)
    yield from _sizes(document, converter, _mapping(team.get("sizes", values.get("sizes"))))


def _team(converter: Converter, values: Values) -> Values | None:
    """The team with this namespace. Where there are no teams, the release is one, wherever it was installed."""
    teams = _rows(values, "teams")
    if not teams:
        return {}
    found = next((team for team in teams if team.get("namespace") == converter.namespace), None)
    # A team's queue has the name of its namespace unless it says another.
    return None if found is None else {"queue": converter.namespace, **found}


def _flavors(document: Document, converter: Converter, values: Values) -> t.Iterator[Problem]:
    installed = {str(one.get("name")): _mapping(one.get("nodeLabels")) for one in _rows(values, "flavors")}
    for name, labels in converter.flavors.items():
        if name not in installed:
            yield _unknown(document, ("flavors", name), name, "flavors", installed)
        elif labels != installed[name]:
            shown = (
                ", ".join(f"{key}={value}" for key, value in sorted(one.items())) or "empty"
                for one in (labels, installed[name])
            )
            here, there = shown
            position = document.at(("flavors", name), key=True)
            key, other = Words(f"the flavor {name}"), Words(f"nodeLabels of {name} in flavors")
            yield rules.DIFFERENT.at(position, key=key, value=here, other=other, installed=there)


def _sizes(document: Document, converter: Converter, installed: Values) -> t.Iterator[Problem]:
    for name, size in converter.sizes.items():
        other = installed.get(name)
        if not isinstance(other, dict):
            yield _unknown(document, ("sizes", name), name, "sizes", installed)
            continue
        for key in _AMOUNTS:
            if _amount(getattr(size, key)) != _amount(other.get(key)):
                yield from _differs(document, ("sizes", name, key), size, f"{key} of {name} in sizes", other.get(key))
        if (size.flavor or "") != (other.get("flavor") or ""):
            yield from _differs(
                document, ("sizes", name, "flavor"), size, f"flavor of {name} in sizes", other.get("flavor")
            )


def _differs(document: Document, path: Path, size: Size, other: str, installed: t.Any) -> t.Iterator[Problem]:
    key, value = str(path[-1]), getattr(size, str(path[-1]))
    label = Words(f"{key} of the size {size.name}")
    yield rules.DIFFERENT.at(
        document.at(path), key=label, value=_shown(value), other=Words(other), installed=_shown(installed)
    )


def _same(document: Document, path: Path, value: t.Any, other: str, installed: t.Any) -> t.Iterator[Problem]:
    if _normal(value) != _normal(installed):
        key = Words(str(path[0]))
        yield rules.DIFFERENT.at(
            document.at(path), key=key, value=_shown(value), other=Words(other), installed=_shown(installed)
        )


def _unknown(document: Document, path: Path, name: str, other: str, installed: t.Iterable[t.Any]) -> Problem:
    known = [one for one in installed if isinstance(one, str)]
    start = f"it has {', '.join(known[:10])}" if known else "it has none"
    instead = structure.suggest(name, known, f"{start}: add it to the chart's values, or take it out here")
    position = document.at(path, key=path[0] != "priority_classes")
    return rules.UNKNOWN.at(position, key=Words(str(path[0])), value=name, other=Words(other), instead=Words(instead))


def _normal(value: t.Any) -> t.Any:
    return value.rstrip("/") if isinstance(value, str) else value


def _amount(value: t.Any) -> decimal.Decimal | str:
    text = str(value)
    # No quantity is zero but that of GPUs.
    return decimal.Decimal(0) if text == "0" else quantities.parse(text) or text


def _shown(value: t.Any) -> str | Words:
    if value is None or value == "":
        return Words("empty")
    return value if isinstance(value, str) else Words(str(value))


def _rows(values: Values, key: str) -> list[Values]:
    found = values.get(key)
    return [row for row in found if isinstance(row, dict)] if isinstance(found, list) else []


def _mapping(value: t.Any) -> Values:
    return value if isinstance(value, dict) else {}
