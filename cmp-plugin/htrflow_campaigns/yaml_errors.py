"""What libyaml cannot read, in plain words."""

from __future__ import annotations

import typing as t

from yaml.error import MarkedYAMLError

from htrflow_campaigns.problems import Problem, Words
from htrflow_campaigns.rules import files as rules

if t.TYPE_CHECKING:
    from htrflow_campaigns.yamldoc import Text

_LAYOUT = "line the keys of one mapping up under each other, and the dashes of one list"

#: libyaml's problem (the start of it) → what is wrong, what to write instead, and whether the opening place is meant.
_SENTENCES: tuple[tuple[str, str, str, bool], ...] = (
    (
        "mapping values are not allowed in this context",
        "a second ': ' on this line starts a value inside a value",
        "put the value in quotes if the ':' belongs to it",
        False,
    ),
    (
        "could not find expected ':'",
        "this line is neither a 'key: value' nor part of the text above it",
        "add the ':' after the key, or indent the line as part of the value above",
        False,
    ),
    ("found unexpected end of stream", "the quote that opens here is never closed", "close the quote", True),
    ("found unexpected document indicator", "the quote that opens here is never closed", "close the quote", True),
    ("did not find expected key", "this line does not fit the lines above it", _LAYOUT, False),
    ("did not find expected '-' indicator", "this line does not fit the list above it", _LAYOUT, False),
    (
        "did not find expected ',' or ']'",
        "the list that opens here with '[' is never closed, or lacks a comma",
        "separate its items with ',' and close it with ']'",
        True,
    ),
    (
        "did not find expected ',' or '}'",
        "the mapping that opens here with '{' is never closed, or lacks a comma",
        "separate its entries with ',' and close it with '}'",
        True,
    ),
    (
        "did not find expected node content",
        "a value is missing here",
        "write the value, and put it in quotes if it starts with a sign",
        False,
    ),
    (
        "block sequence entries are not allowed in this context",
        "a list item cannot start here",
        "start the list on a line of its own, indented under its key",
        False,
    ),
    (
        "block mapping keys are not allowed in this context",
        "a key cannot start here",
        "start it on a line of its own",
        False,
    ),
    ("mapping keys are not allowed in this context", "a key cannot start here", "start it on a line of its own", False),
    (
        "found unknown escape character",
        "a '\\' inside double quotes starts an escape that does not exist",
        "use single quotes, or write the '\\' twice",
        False,
    ),
    (
        "did not find expected hexdecimal number",
        "the '\\' escape here lacks its digits",
        "use single quotes, or write the '\\' twice",
        False,
    ),
    (
        "did not find expected <document start>",
        "this does not belong to the YAML above it",
        "indent it under a key, or delete it",
        False,
    ),
    (
        "did not find expected alphabetic or numeric character",
        "a '&' or '*' here starts an alias without a name",
        "put the value in quotes",
        False,
    ),
    (
        "did not find expected comment or line break",
        "there is text after a '|' or '>'",
        "start the text on the next line",
        False,
    ),
    (
        "did not find expected whitespace or line break",
        "a sign here runs into the text behind it",
        "put the value in quotes",
        False,
    ),
    ("found undefined tag handle", "a '!' here starts a tag that is not defined", "put the value in quotes", False),
    ("did not find expected tag URI", "a '!' here starts a tag", "put the value in quotes", False),
    ("did not find expected '!'", "a '!' here starts a tag", "put the value in quotes", False),
    ("did not find URI escaped octet", "a '!' here starts a tag", "put the value in quotes", False),
    ("found incompatible YAML document", "only YAML 1.1 and 1.2 are read", "delete the %YAML line", False),
    ("found duplicate %", "a '%' line stands twice", "delete it", False),
    ("found unknown directive name", "a line that starts with '%' is an instruction to YAML", "delete it", False),
)


def explain(document: Text, error: MarkedYAMLError) -> Problem:
    """The one problem that ended the reading of ``document``."""
    mark = error.problem_mark or error.context_mark
    offset = min(mark.index, len(document.text)) if mark else 0
    opened = error.context_mark.index if error.context_mark else offset
    tab = _indenting_tab(document.text, opened, offset)
    if tab is not None:
        return rules.TAB_INDENTATION.at(document.position(tab))
    problem = error.problem or ""
    if problem.startswith("found character that cannot start any token"):
        character = document.text[offset : offset + 1]
        reason, remedy = f"a value cannot start with {character}", "put the value in quotes"
        return rules.YAML_SYNTAX.at(document.position(offset), reason=Words(reason), remedy=Words(remedy))
    for start, reason, remedy, opening in _SENTENCES:
        if problem.startswith(start):
            position = document.position(opened if opening else offset)
            return rules.YAML_SYNTAX.at(position, reason=Words(reason), remedy=Words(remedy))
    reason = f"YAML cannot be read here ({problem or error.context})"
    remedy = "check the quotes, colons and indentation of this line"
    return rules.YAML_SYNTAX.at(document.position(offset), reason=Words(reason), remedy=Words(remedy))


def _indenting_tab(text: str, start: int, end: int) -> int | None:
    """The first tab among the white space that starts a line between the lines of ``start`` and ``end``."""
    line = text.rfind("\n", 0, start) + 1
    while line <= end:
        stop = text.find("\n", line)
        stop = len(text) if stop < 0 else stop
        content = text[line:stop]
        indent = len(content) - len(content.lstrip(" \t"))
        if "\t" in content[:indent] and content[indent:].strip():
            return line + content.index("\t")
        line = stop + 1
    return None
