"""What YAML 1.1 makes of a text without quotes, and how a message names it."""

from __future__ import annotations

import math
import typing as t

from yaml.constructor import ConstructorError, SafeConstructor
from yaml.nodes import ScalarNode
from yaml.resolver import Resolver

_TAG = "tag:yaml.org,2002:"
#: No number and no date is longer. Beyond this many characters, reading one takes time that grows with the square.
_NUMBER_CHARACTERS = 100

#: By the first character: what a text that starts with it may be read as. A text with another start stays a text.
RESOLVERS: t.Mapping[str, t.Any] = Resolver.yaml_implicit_resolvers
_CONSTRUCTOR = SafeConstructor()


def read_plain(text: str) -> tuple[t.Any, str | None]:
    """What YAML 1.1 makes of an unquoted scalar, and the text itself when that is not a text.

    A number or date that looks like one and is none (``2024-13-45``, ``1:99``) is a text, and its source is kept.
    """
    if len(text) > _NUMBER_CHARACTERS:
        return text, None
    for tag, pattern in RESOLVERS.get(text[:1], ()):
        if not pattern.match(text):
            continue
        kind = tag.removeprefix(_TAG)
        if kind in ("merge", "value"):
            return text, None
        try:
            return _CONSTRUCTOR.construct_object(ScalarNode(tag, text), deep=True), text
        except (ValueError, OverflowError, ConstructorError):
            return text, None
    return text, None


def describe(value: object) -> str:
    """A value of YAML's, in words: ``the number 5349``, ``true``, ``nothing``, ``a list``."""
    if value is None:
        return "nothing (null)"
    if isinstance(value, bool):
        return f"the truth value {str(value).lower()}"
    if isinstance(value, int | float):
        if isinstance(value, float) and not math.isfinite(value):
            return "something that is not a number" if math.isnan(value) else "infinity"
        text = str(value)
        return f"the number {text if len(text) <= 24 else text[:24] + '…'}"
    if isinstance(value, str):
        return "a text"
    if isinstance(value, dict):
        return "a mapping"
    if isinstance(value, list):
        return "a list"
    return f"the date {value}"
