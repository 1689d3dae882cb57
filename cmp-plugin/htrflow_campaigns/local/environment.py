"""What a container of a rendered pod gets to see: its variables, and where its mounts are on this machine."""

from __future__ import annotations

import re
import typing as t

Object = dict[str, t.Any]

_REFERENCE = re.compile(r"\$(?:\$|\(([A-Za-z_][A-Za-z0-9_.-]*)\))")
_ANNOTATION = re.compile(r"metadata\.annotations\['([^']+)'\]")


class MissingError(Exception):
    """A variable's source is not there. The message is one sentence."""


def variables(container: Object, annotations: t.Mapping[str, str], secrets: t.Mapping[str, Object]) -> dict[str, str]:
    """The container's environment, resolved as a kubelet does. Raises :class:`MissingError`."""
    found: dict[str, str] = {}
    for entry in container.get("env", []):
        value = _value(entry, annotations, secrets)
        if value is not None:
            found[entry["name"]] = expanded(value, found)
    return found


def expanded(text: str, known: t.Mapping[str, str]) -> str:
    """``text`` as a kubelet hands it over: ``$(NAME)`` is the variable, if there is one, and ``$$`` is ``$``."""
    return _REFERENCE.sub(lambda match: "$" if match[1] is None else known.get(match[1], match[0]), text)


def placed(text: str, mounts: t.Mapping[str, str], *, whole: bool) -> str:
    """``text`` with the paths of mounts in it replaced by the folders that they are.

    ``whole`` says that the text is one value, and a path only where it begins with one.
    """
    if not mounts:
        return text
    paths = "|".join(sorted(map(re.escape, mounts), key=len, reverse=True))
    start = r"\A" if whole else r"(?<![A-Za-z0-9_./-])"
    return re.sub(f"{start}({paths})(?![A-Za-z0-9_.-])", lambda match: mounts[match[1]], text)


def _value(entry: Object, annotations: t.Mapping[str, str], secrets: t.Mapping[str, Object]) -> str | None:
    source = entry.get("valueFrom")
    if source is None:
        return str(entry.get("value", ""))
    if reference := source.get("fieldRef"):
        match = _ANNOTATION.fullmatch(reference["fieldPath"])
        return annotations.get(match[1], "") if match else ""
    reference = source["secretKeyRef"]
    value = secrets.get(reference["name"], {}).get(reference["key"])
    if value is None and not reference.get("optional"):
        raise MissingError(f"the Secret {reference['name']} has no key {reference['key']}")
    return None if value is None else str(value)
