"""``converter.yaml``: its rules, and the settings it becomes."""

from __future__ import annotations

import itertools
import re
import typing as t

from htrflow_campaigns import limits, names, quantities, schemas, structure, urls
from htrflow_campaigns.document import Document, Mapping, Path, Sequence
from htrflow_campaigns.model import Converter, Size
from htrflow_campaigns.problems import Problem, Words, show
from htrflow_campaigns.rules import converter as rules
from htrflow_campaigns.rules.campaign import URL

_CONTROL_PLANE_TAINTS = ("node-role.kubernetes.io/control-plane", "node-role.kubernetes.io/master")
_QUANTITY_EXAMPLES = {
    "cpu": "a number of cores, such as 4",
    "memory": "an amount such as 16Gi",
    "workdir": "an amount such as 2Gi",
}


def check(document: Document) -> tuple[Converter | None, list[Problem]]:
    """The settings, or None when something is wrong with them, and the problems."""
    problems = structure.check(document, "converter")
    if isinstance(document.root, Mapping):
        for rule in (_names, _results_url, _source_template, _tolerations, _labels, _sizes):
            problems += rule(document, document.root)
    if problems:
        return None, problems
    return _converter(document.root), []


def _converter(root: t.Mapping[str, t.Any]) -> Converter:
    value = {key: root.get(key, schemas.default("converter", key)) for key in schemas.load("converter")["properties"]}
    value["priority_classes"] = tuple(value["priority_classes"])
    value["tolerations"] = tuple({**toleration} for toleration in value["tolerations"])
    value["node_selector"] = {**value["node_selector"]}
    value["flavors"] = {name: {**labels} for name, labels in value["flavors"].items()}
    value["sizes"] = {
        name: Size(
            name=name,
            gpu=size["gpu"],
            cpu=str(size["cpu"]),
            memory=str(size["memory"]),
            workdir=str(size.get("workdir", _default_workdir())),
            flavor=size.get("flavor"),
        )
        for name, size in value["sizes"].items()
    }
    return Converter(**value)


def _default_workdir() -> str:
    size = schemas.load("converter")["properties"]["sizes"]["additionalProperties"]
    return t.cast(str, size["properties"]["workdir"]["default"])


def _texts(root: Mapping, *keys: str) -> t.Iterator[tuple[Path, str]]:
    for key in keys:
        if isinstance(value := root.get(key), str):
            yield (key,), value


def _names(document: Document, root: Mapping) -> t.Iterator[Problem]:
    labels = [*_texts(root, "namespace", "queue")]
    classes = root.get("priority_classes")
    labels += (
        [(("priority_classes", i), c) for i, c in enumerate(classes) if isinstance(c, str)]
        if isinstance(classes, Sequence)
        else []
    )
    for kind in ("sizes", "flavors"):
        labels += [((kind, name), name) for name in root.get(kind, ())] if isinstance(root.get(kind), Mapping) else []
    for path, value in labels:
        if not names.is_dns_label(value):
            position = document.at(path, key=path[0] in ("sizes", "flavors"))
            key = Words(f"a name in {path[0]}") if path[0] in ("sizes", "flavors") else structure.label(path)
            yield rules.KUBERNETES_NAME.at(position, key=key, value=value, dots=Words(""), limit=limits.NAME_CHARACTERS)
    for path, value in _texts(root, "s3_secret", "hf_token_secret", "data_pvc", "runtime_class"):
        optional = path[0] in ("hf_token_secret", "runtime_class")
        if not names.is_subdomain(value) and not (optional and not value):
            position, key = document.at(path), structure.label(path)
            dots = Words(", with '.' between parts")
            yield rules.KUBERNETES_NAME.at(position, key=key, value=value, dots=dots, limit=limits.SUBDOMAIN_CHARACTERS)


def _results_url(document: Document, root: Mapping) -> t.Iterator[Problem]:
    for path, value in _texts(root, "results_url"):
        if not value:
            continue
        if fault := urls.fault(value):
            yield URL.at(document.at(path), key=Words("results_url"), **fault._asdict())
        elif not value.endswith("/results") or re.search("[?#]", value):
            yield rules.RESULTS_URL.at(document.at(path), value=value)


def _source_template(document: Document, root: Mapping) -> t.Iterator[Problem]:
    for path, value in _texts(root, "source_template"):
        reason = None
        fault = urls.fault(value.replace("{ref}", "R0001203"))
        if "{ref}" not in value:
            reason = "does not hold {ref}"
        elif value.count("{ref}") > 1:
            reason = f"holds {{ref}} {value.count('{ref}')} times"
        elif re.search("[{}]", value.replace("{ref}", "")):
            reason = "holds braces around something other than {ref}"
        elif fault:
            yield URL.at(document.at(path), key=Words("source_template"), **fault._asdict())
        elif "{ref}" in re.split("[/?#]", value.partition("://")[2])[0]:
            reason = "has {ref} in the part that names the host"
        elif "{ref}" in value.partition("#")[2]:
            reason = "has {ref} behind a '#', and that part of an address is never sent"
        if reason:
            yield rules.SOURCE_TEMPLATE.at(document.at(path), reason=Words(reason))


def _tolerations(document: Document, root: Mapping) -> t.Iterator[Problem]:
    tolerations = root.get("tolerations")
    for index, toleration in enumerate(tolerations) if isinstance(tolerations, Sequence) else ():
        if not isinstance(toleration, Mapping):
            continue
        position, key = document.at(("tolerations", index)), toleration.get("key")
        shape: tuple[str, str] | None = None
        if not key:
            yield rules.TOLERATION_KEY.at(position)
        elif key in _CONTROL_PLANE_TAINTS:
            yield rules.TOLERATION_CONTROL_PLANE.at(document.at(("tolerations", index, "key")))
        elif isinstance(key, str) and not names.is_label_key(key):
            yield rules.NODE_LABEL.at(document.at(("tolerations", index, "key")), value=key, part=Words("key"))
        elif toleration.get("operator") == "Exists" and toleration.get("value"):
            reason = "this toleration has a value although its operator is Exists"
            shape = reason, "delete value, or write operator: Equal"
        elif "tolerationSeconds" in toleration and toleration.get("effect") != "NoExecute":
            shape = "tolerationSeconds goes only with the effect NoExecute", "delete tolerationSeconds"
        elif isinstance(value := toleration.get("value", ""), str) and not names.is_label_value(value):
            yield rules.NODE_LABEL.at(document.at(("tolerations", index, "value")), value=value, part=Words("value"))
        if shape:
            yield rules.TOLERATION_SHAPE.at(position, reason=Words(shape[0]), instead=Words(shape[1]))


def _labels(document: Document, root: Mapping) -> t.Iterator[Problem]:
    flavors = root.get("flavors")
    paths: list[Path] = [("node_selector",)]
    paths += [("flavors", name) for name in flavors] if isinstance(flavors, Mapping) else []
    for path in paths:
        labels: t.Any = root
        for step in path:
            labels = labels.get(step, {})
        for key, value in labels.items() if isinstance(labels, Mapping) else ():
            if not names.is_label_key(key):
                yield rules.NODE_LABEL.at(document.at((*path, key), key=True), value=key, part=Words("key"))
            if isinstance(value, str) and not names.is_label_value(value):
                yield rules.NODE_LABEL.at(document.at((*path, key)), value=value, part=Words("value"))


def _sizes(document: Document, root: Mapping) -> t.Iterator[Problem]:
    sizes, flavors = root.get("sizes", {}), root.get("flavors", {})
    if not isinstance(sizes, dict) or not isinstance(flavors, dict):
        return
    for name, size in sizes.items():
        if isinstance(size, Mapping):
            yield from _size(document, name, size, flavors)
    default = root.get("default_size", "")
    if isinstance(default, str) and default and default not in sizes:
        instead = structure.suggest(default, sizes, _choices("the sizes are", sizes))
        yield rules.DEFAULT_SIZE.at(document.at(("default_size",)), value=default, instead=instead)


def _size(document: Document, name: str, size: Mapping, flavors: t.Mapping[str, object]) -> t.Iterator[Problem]:
    flavor = size.get("flavor")
    if isinstance(flavor, str) and flavor not in flavors:
        instead = structure.suggest(flavor, flavors, _choices("the flavors are", flavors))
        position = document.at(("sizes", name, "flavor"))
        yield rules.FLAVOR_UNKNOWN.at(position, size=name, flavor=flavor, instead=instead)
    amounts = {}
    for key, example in _QUANTITY_EXAMPLES.items():
        value = size.get(key, _default_workdir() if key == "workdir" else None)
        if not isinstance(value, str | int | float) or isinstance(value, bool):
            continue
        amount = amounts[key] = quantities.parse(str(value))
        reason = None
        if amount is None or (str(value).endswith("m") and key != "cpu"):
            reason = "is not an amount that Kubernetes takes"
        elif key != "cpu" and amount < limits.MIB:
            reason = "is less than 1 MiB, since an amount without a unit counts bytes"
        if reason:
            position, shown = document.at(("sizes", name, key)), value if isinstance(value, str) else str(value)
            yield rules.QUANTITY.at(position, key=Words(key), value=shown, reason=Words(reason), example=Words(example))
            amounts[key] = None
    memory, workdir = amounts.get("memory"), amounts.get("workdir")
    if memory and workdir and workdir > memory / 2:
        sizes = {"workdir": Words(size.get("workdir", _default_workdir())), "memory": Words(size["memory"])}
        position = document.at(("sizes", name, "workdir" if "workdir" in size else "memory"))
        yield rules.WORKDIR_MEMORY.at(position, size=name, **sizes)


def _choices(start: str, names_: t.Iterable[str]) -> str:
    shown = [show(name)[1:-1] for name in itertools.islice(names_, 11)]
    if not shown:
        return "there are none in converter.yaml: add one, or delete the line"
    return f"{start} {', '.join(shown[:10])}{' and others' if len(shown) > 10 else ''}"
