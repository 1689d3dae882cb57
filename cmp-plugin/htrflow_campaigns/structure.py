"""Holds a document against its JSON Schema and turns what jsonschema finds into problems at their place.

Only the keywords that speak of structure are evaluated here. What a value must look like (``pattern``) is left to the
rules that know what it is for, and they take the pattern from the schema.
"""

from __future__ import annotations

import difflib
import functools
import itertools
import typing as t

from jsonschema import Draft4Validator, Draft202012Validator
from jsonschema.exceptions import ValidationError
from jsonschema.validators import create

from htrflow_campaigns import schemas
from htrflow_campaigns.document import Document, Mapping, Path, Sequence
from htrflow_campaigns.problems import Found, Problem, Words, show
from htrflow_campaigns.rules import files
from htrflow_campaigns.rules import structure as rules
from htrflow_campaigns.scalars import describe

_KEYWORDS = (
    "additionalProperties enum else if items maximum minItems minLength minimum oneOf properties required then type"
)
#: Draft 4's type checker, since later drafts take 2.0 for an integer.
_Validator = create(
    meta_schema=Draft202012Validator.META_SCHEMA,
    validators={
        keyword: function
        for keyword, function in Draft202012Validator.VALIDATORS.items()
        if keyword in _KEYWORDS.split()
    },
    type_checker=Draft4Validator.TYPE_CHECKER,
)

_KINDS = {
    "string": "a text",
    "integer": "a whole number",
    "number": "a number",
    "boolean": "true or false",
    "array": "a list",
    "object": "a mapping of keys and values",
    "quantity": "an amount",
}
_INSTEAD = {
    "string": "a text",
    "integer": "a whole number, such as {example}",
    "number": "a number, such as {example}",
    "boolean": "true or false",
    "array": "a list: each item on a line of its own after '- '",
    "object": "keys and values: each on a line of its own as 'key: value'",
    "quantity": "an amount, such as {example}",
}


#: How many choices a word is held against.
_CHOICES = 100


@functools.cache
def _validator(kind: schemas.Kind) -> t.Any:
    return _Validator(schemas.load(kind))


def check(document: Document, kind: schemas.Kind) -> Found:
    """What is wrong with the structure of ``document``.

    Numbers that stand where a text is wanted become the text that was written, when both look the same: 30002056 is a
    volume id. Afterwards every value is of the type that its schema asks for, unless a problem says otherwise.
    """
    if document.root is None and kind == "converter":
        document.root = Mapping(0)
    if document.root is None:
        example = " and ".join(f"{key}:" for key in schemas.load(kind)["required"])
        return Found([files.EMPTY_FILE.at(document.at(()), instead=Words(f"write {example}, or delete it"))])
    problems = _settle_numbers(document, document.root, schemas.load(kind), ())
    if next(_validator(kind).iter_errors(_outline(document.root)), None) is not None:
        for error in _validator(kind).iter_errors(document.root):
            problems += _explain(document, error)
            if problems.is_full:
                break
    return problems


def _settle_numbers(document: Document, data: t.Any, schema: schemas.Schema, path: Path) -> Found:
    problems = Found()
    for key, source in data.sources.items() if isinstance(data, Mapping | Sequence) else ():
        wanted = _subschema(data, schema, key).get("type")
        if type(data[key]) is not int or str(data[key]) == source:
            if wanted == "string" and type(data[key]) is int:
                data[key] = source
        elif wanted == "integer":
            value = Words(describe(data[key]))
            problems.append(rules.NUMBER_SPELLING.at(document.at((*path, key)), source=source, value=value))
    items = data.items() if isinstance(data, Mapping) else enumerate(data) if isinstance(data, Sequence) else ()
    for key, value in items:
        if type(value) is Mapping or type(value) is Sequence:
            problems += _settle_numbers(document, value, _subschema(data, schema, key), (*path, key))
    return problems


def _subschema(data: t.Any, schema: schemas.Schema, key: t.Any) -> schemas.Schema:
    if isinstance(data, Sequence):
        found = schema.get("items", {})
        if "if" in found:
            found = found["then"] if isinstance(data[key], dict) else found["else"]
    else:
        found = schema.get("properties", {}).get(key) or schema.get("additionalProperties") or {}
    return found if isinstance(found, dict) else {}


def _outline(root: t.Any) -> t.Any:
    """``root`` with one volume of each shape: the same keys, and values of the same types.

    No keyword that is evaluated here can tell two volumes of one shape apart, so a list of 10 000 costs what one costs.
    """
    volumes = root.get("volumes") if isinstance(root, dict) else None
    if not isinstance(volumes, list):
        return root
    shapes = {_shape(volume): volume for volume in volumes}
    return {**root, "volumes": list(shapes.values())}


def _shape(value: t.Any) -> t.Any:
    if isinstance(value, dict):
        types = tuple(map(type, value.values()))
        if Sequence in types or Mapping in types:
            return tuple(value), tuple(map(_shape, value.values()))
        return tuple(value), types
    if isinstance(value, list):
        return len(value) > 0, frozenset(map(type, value))
    return type(value)


def label(path: t.Iterable[t.Any]) -> Words:
    """The key at the end of ``path`` as a message names it."""
    *before, last = [*path] or ["this"]
    if isinstance(last, int):
        name = next((step for step in reversed(before) if isinstance(step, str)), "this list")
        return Words(f"item {last + 1} of {name}")
    return Words(show(last)[1:-1])


def _close(word: str, choices: t.Iterable[str]) -> list[str]:
    return difflib.get_close_matches(word[:100], itertools.islice(choices, _CHOICES), n=1, cutoff=0.6)


def suggest(word: str, choices: t.Iterable[str], otherwise: str) -> Words:
    """``did you mean "x"?`` when a choice is close to ``word``, and ``otherwise`` when none is."""
    close = _close(word, choices)
    return Words(f"did you mean {show(close[0])}?" if close else otherwise)


def either(choices: t.Sequence[str]) -> str:
    """``a, b or c``."""
    *most, last = choices
    return f"{', '.join(most)} or {last}" if most else last


def _explain(document: Document, error: ValidationError) -> t.Iterator[Problem]:
    path: Path = tuple(error.absolute_path)
    schema = t.cast(schemas.Schema, error.schema)
    explain = {
        "additionalProperties": _explain_unknown,
        "required": _explain_missing,
        "type": _explain_type,
        "oneOf": _explain_source,
    }.get(str(error.validator), _explain_value)
    return explain(document, path, schema, error.instance)


def _explain_unknown(document: Document, path: Path, schema: schemas.Schema, data: t.Any) -> t.Iterator[Problem]:
    known = schema["properties"]
    for key in data:
        if key not in known:
            instead = suggest(key, known, f"the keys are {', '.join(known)}")
            position = document.at((*path, key), key=True)
            yield rules.UNKNOWN_KEY.at(position, key=key, place=Words(schema["title"]), instead=instead)


def _meant(schema: schemas.Schema, data: t.Any) -> set[str]:
    """The known keys that unknown ones probably stand for, and for a volume with no known key all of them.

    Their absence is not said as well.
    """
    known = schema["properties"]
    if "oneOf" in schema and not any(key in known for key in data):
        return {*known} if data else set()
    return {close[0] for key in data if key not in known for close in [_close(key, known)] if close}


def _explain_missing(document: Document, path: Path, schema: schemas.Schema, data: t.Any) -> t.Iterator[Problem]:
    meant = _meant(schema, data)
    for key in schema["required"]:
        if key not in data and key not in meant:
            example = schema["properties"][key].get("examples", [""])[0]
            example = f"{key}: {example}" if isinstance(example, str | int) else f"{key}: with a list under it"
            place = Words(schema["title"])
            yield rules.MISSING_KEY.at(document.at(path), place=place, key=Words(key), example=Words(example))


def _explain_type(document: Document, path: Path, schema: schemas.Schema, value: t.Any) -> t.Iterator[Problem]:
    position, key, source = document.at(path), label(path) if path else Words(schema["title"]), document.source(path)
    wanted = schema["type"] if isinstance(schema["type"], str) else "quantity"
    example = Words(schema.get("examples", ["1"])[0])
    if value is None:
        instead = Words("write a value" if path and path[-1] in _required() else "write a value, or delete the line")
        instead = Words("add at least one item") if wanted == "array" and path[-1] in _required() else instead
        yield rules.EMPTY_VALUE.at(position, key=key, instead=instead)
    elif wanted == "string" and source is not None:
        quoted = Words(show(source))
        yield rules.MISREAD_TEXT.at(position, source=source, read=Words(describe(value)), key=key, quoted=quoted)
    elif _would_be(wanted, value) and document.character(position) in ("'", '"'):
        yield rules.QUOTED_VALUE.at(position, key=key, value=Words(show(value.strip().lower())[1:-1]))
    elif _would_be(wanted, value) and document.character(position) in "123456789":
        yield from _explain_value(document, path, schema, int(value[:100]))
    elif _would_be(wanted, value) and document.character(position) == "0":
        yield rules.NUMBER_SPELLING.at(position, source=value, value=Words("a text"))
    else:
        instead = Words(_INSTEAD[wanted].format(example=example))
        found = Words(describe(value))
        yield rules.WRONG_TYPE.at(position, key=key, found=found, wanted=Words(_KINDS[wanted]), instead=instead)


@functools.cache
def _required() -> frozenset[str]:
    """The keys that cannot simply be left out."""
    kinds: tuple[schemas.Kind, ...] = ("converter", "campaign", "pipeline")
    found, nodes = set(), [t.cast(t.Any, schemas.load(kind)) for kind in kinds]
    while nodes:
        node = nodes.pop()
        if isinstance(node, dict):
            found |= {*node.get("required", ())}
            nodes += [value for key, value in node.items() if key != "oneOf"]
    return frozenset(found)


def expect_mapping(document: Document, path: Path, value: t.Any) -> t.Iterator[Problem]:
    """The problem of a value that must be a mapping although no schema says so."""
    if not isinstance(value, Mapping):
        yield from _explain_type(document, path, {"type": "object"}, value)


def _would_be(wanted: str, value: t.Any) -> bool:
    text = value.strip().lower() if isinstance(value, str) else ""
    if wanted == "boolean":
        return text in ("true", "false")
    return wanted == "integer" and text.isascii() and text.isdigit()


def _explain_source(document: Document, path: Path, schema: schemas.Schema, volume: t.Any) -> t.Iterator[Problem]:
    if _meant(schema, volume) & {"manifest", "images"}:
        return
    both = "manifest" in volume and "images" in volume
    found = Words("both a manifest and images" if both else "neither a manifest nor images")
    yield rules.VOLUME_SOURCE.at(document.at((*path, "images") if both else path, key=both), found=found)


def _explain_value(document: Document, path: Path, schema: schemas.Schema, value: t.Any) -> t.Iterator[Problem]:
    position, key = document.at(path), label(path)
    if "enum" in schema and value is not None:
        choices = Words(either(schema["enum"]))
        shown = value if isinstance(value, str) else document.source(path) or Words(describe(value))
        yield rules.NOT_ONE_OF.at(position, key=key, value=shown, choices=choices)
    elif isinstance(value, int):
        limits = Words(f"from {schema['minimum']} to {schema['maximum']}")
        yield rules.NUMBER_RANGE.at(position, key=key, value=Words(show(str(value))[1:-1]), range=limits)
    else:
        otherwise = "write a value" if isinstance(value, str) else "write a value, or delete the line"
        instead = Words("add at least one item" if isinstance(value, list) else otherwise)
        yield rules.EMPTY_VALUE.at(position, key=key, instead=instead)
