"""Reads fields of Kubernetes objects, whatever is in them: what is not there or of another type is as nothing."""

from __future__ import annotations

import datetime
import typing as t

Object: t.TypeAlias = t.Mapping[str, t.Any]

_LARGEST = 2**31 - 1


def at(thing: t.Any, *path: str) -> t.Any:
    """What is at a path of keys, or None."""
    for key in path:
        if not isinstance(thing, t.Mapping):
            return None
        thing = thing.get(key)
    return thing


def text(thing: t.Any, *path: str) -> str:
    found = at(thing, *path)
    return found if isinstance(found, str) else ""


def number(thing: t.Any, *path: str) -> int | None:
    """A whole number that is not negative and fits into 32 bits, as all of Kubernetes' counts are."""
    found = at(thing, *path)
    return found if type(found) is int and 0 <= found <= _LARGEST else None


def digits(written: str) -> int | None:
    """A number as a label or an annotation has it."""
    return int(written) if written.isascii() and written.isdigit() and len(written) <= 9 else None


def rows(thing: t.Any, *path: str) -> list[Object]:
    """The objects of a list."""
    found = at(thing, *path)
    return [row for row in found if isinstance(row, t.Mapping)] if isinstance(found, list) else []


def moment(thing: t.Any, *path: str) -> datetime.datetime | None:
    """A time, always with its zone."""
    try:
        found = datetime.datetime.fromisoformat(text(thing, *path))
    except ValueError:
        return None
    return found if found.tzinfo else found.replace(tzinfo=datetime.UTC)


def condition(thing: t.Any, kind: str) -> Object | None:
    """The condition of a kind in an object's status, whether it is true or not."""
    return next((row for row in rows(thing, "status", "conditions") if row.get("type") == kind), None)


def is_true(row: Object | None) -> bool:
    return row is not None and row.get("status") == "True"


def owner(thing: t.Any, kind: str) -> Object | None:
    """The owner that controls an object, if it is of a kind."""
    found = rows(thing, "metadata", "ownerReferences")
    return next((row for row in found if row.get("kind") == kind and row.get("controller") is True), None)
