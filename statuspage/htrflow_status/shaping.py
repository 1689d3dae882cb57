"""Types as JSON Schemas, and plain data cut to a type: what is published of an answer, and the answer, are one thing.

A type is built of ``TypedDict``, dataclasses, ``Literal``, lists, mappings, unions with ``None`` and plain values.
``Annotated`` adds to it: text is its description, :class:`More` is of its schema, and :class:`From` and
:class:`Through` say where its value comes from.
"""

from __future__ import annotations

import dataclasses
import functools
import types
import typing as t

Schema: t.TypeAlias = dict[str, t.Any]
_PLAIN: t.Final[t.Mapping[t.Any, str]] = {
    str: "string",
    bool: "boolean",
    int: "integer",
    float: "number",
    types.NoneType: "null",
}


@dataclasses.dataclass(frozen=True, slots=True)
class From:
    """The value has this name in the data."""

    name: str


@dataclasses.dataclass(frozen=True, slots=True)
class Through:
    """The value goes through a function; None stays None."""

    change: t.Callable[[t.Any], t.Any]


class More:
    """Keywords of the schema."""

    def __init__(self, **keywords: t.Any) -> None:
        self.keywords = keywords


def schema(of: t.Any, named: dict[str, Schema]) -> Schema:
    """The schema of a type. Those with fields come into ``named`` by their names, and are referred to."""
    plain, extras = _parts(of)
    found = _schema(plain, named)
    for extra in extras:
        if isinstance(extra, str):
            found |= {"description": extra}
        elif isinstance(extra, More):
            found |= extra.keywords
    return found


def shaped(of: t.Any, data: t.Any) -> t.Any:
    """The part of the data that the type has. Raises ``KeyError`` where the data lacks something."""
    plain, extras = _parts(of)
    if data is None:
        return None
    for extra in extras:
        if isinstance(extra, Through):
            data = extra.change(data)
    if (fields := _fields(plain)) is not None:
        return {name: shaped(hint, data[where]) for name, hint, where in fields}
    inner = t.get_args(plain)
    origin = t.get_origin(plain)
    if origin in (t.Union, types.UnionType):
        some = [one for one in inner if one is not types.NoneType]
        return shaped(some[0], data) if len(some) == 1 else data
    if origin is list:
        return [shaped(inner[0], one) for one in data]
    if origin is dict:
        return {key: shaped(inner[1], one) for key, one in dict(data).items()}
    return data


def _schema(of: t.Any, named: dict[str, Schema]) -> Schema:
    if of in _PLAIN:
        return {"type": _PLAIN[of]}
    if _fields(of) is not None:
        return _named(of, named)
    origin, inner = t.get_origin(of), t.get_args(of)
    if origin is t.Literal:
        return {"type": "string", "enum": list(inner)}
    if origin is list:
        return {"type": "array", "items": schema(inner[0], named)}
    if origin is dict:
        names = schema(inner[0], named)
        only = {"propertyNames": {"enum": names["enum"]}} if "enum" in names else {}
        return {"type": "object", "additionalProperties": schema(inner[1], named), **only}
    if origin in (t.Union, types.UnionType):
        return _one_of([schema(one, named) for one in inner])
    raise TypeError(f"no schema is known of {of!r}")


def _one_of(schemas: list[Schema]) -> Schema:
    """Plain types together, else each by itself."""
    if any("$ref" in one or "enum" in one for one in schemas):
        return {"anyOf": schemas}
    merged: Schema = {}
    for one in schemas:
        merged |= one
    return {**merged, "type": [one["type"] for one in schemas]}


def _named(of: t.Any, named: dict[str, Schema]) -> Schema:
    if of.__name__ not in named:
        found: Schema = {"type": "object"}
        named[of.__name__] = found
        if of.__doc__ and not of.__doc__.startswith(f"{of.__name__}("):
            found["description"] = of.__doc__.strip().partition("\n\n")[0]
        fields = _fields(of) or ()
        found["properties"] = {name: schema(hint, named) for name, hint, _ in fields}
        found["required"] = [name for name, _, _ in fields]
        found["additionalProperties"] = False
    return {"$ref": f"#/components/schemas/{of.__name__}"}


@functools.cache
def _fields(of: t.Any) -> tuple[tuple[str, t.Any, str], ...] | None:
    """Name, type and name in the data of each field; None for a type without fields."""
    if not (t.is_typeddict(of) or (isinstance(of, type) and dataclasses.is_dataclass(of))):
        return None
    hints = t.get_type_hints(of, include_extras=True)
    return tuple((name, hint, _name_in_data(name, hint)) for name, hint in hints.items())


def _name_in_data(name: str, hint: t.Any) -> str:
    return next((extra.name for extra in _parts(hint)[1] if isinstance(extra, From)), name)


def _parts(of: t.Any) -> tuple[t.Any, tuple[t.Any, ...]]:
    """A type without what ``Annotated`` adds to it, and that."""
    if t.get_origin(of) is not t.Annotated:
        return of, ()
    plain, *extras = t.get_args(of)
    return plain, tuple(extras)
