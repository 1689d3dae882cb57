"""What holds for every file: its keys and the kinds of its values, as the JSON Schemas say them."""

from __future__ import annotations

from htrflow_campaigns.problems import Rule

UNKNOWN_KEY = Rule("HTR101", "unknown-key", "Every key is a known one", "{key} is not a key of {place}", "{instead}")
MISSING_KEY = Rule("HTR102", "missing-key", "Required keys are there", "{place} has no {key}", "add {example}")
WRONG_TYPE = Rule(
    "HTR103", "wrong-type", "A value is of its key's kind", "{key} is {found}, not {wanted}", "write {instead}"
)
MISREAD_TEXT = Rule(
    "HTR104",
    "misread-text",
    "Text that YAML reads as something else is quoted",
    "YAML reads {source} as {read}, and {key} is a text",
    "put it in quotes: {quoted}",
    fixable=True,
)
NUMBER_RANGE = Rule(
    "HTR105", "number-range", "Numbers are within their range", "{key} is {value}", "write a whole number {range}"
)
NUMBER_SPELLING = Rule(
    "HTR106",
    "number-spelling",
    "Whole numbers are written in plain digits",
    "YAML reads {source} as {value}",
    "write the number that you mean in plain digits, without a leading zero or separators",
)
EMPTY_VALUE = Rule("HTR107", "empty-value", "Lists and texts are not empty", "{key} is empty", "{instead}")
KEY_NOT_TEXT = Rule(
    "HTR108",
    "key-not-text",
    "Keys are words",
    "YAML reads the key {source} as {read}",
    "write a plain word as the key, or put it in quotes",
)
VALUE_NOT_PLAIN = Rule(
    "HTR109",
    "value-not-plain",
    "Values are text, numbers, true or false, lists and mappings",
    "YAML reads {source} as {read}, which has no place in a pipeline",
    "put it in quotes, or write another value",
)
QUOTED_VALUE = Rule(
    "HTR110",
    "quoted-value",
    "Numbers and true/false stand without quotes",
    "the quotes make {key} a text",
    "write {value} without quotes",
)
NOT_ONE_OF = Rule("HTR111", "not-one-of", "A value from a fixed list is in it", "{key} is {value}", "write {choices}")
VOLUME_SOURCE = Rule(
    "HTR112",
    "volume-source",
    "A volume has one source of pages",
    "this volume has {found}",
    "give it one of the two: manifest: with the address of its IIIF manifest, or images: with a list of image addresses",
)
