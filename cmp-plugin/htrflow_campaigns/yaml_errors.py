"""What libyaml cannot read, in plain words."""

from __future__ import annotations

import re
import typing as t

from yaml.error import MarkedYAMLError

from htrflow_campaigns import limits
from htrflow_campaigns.problems import Problem, Words, show
from htrflow_campaigns.rules import files as rules

if t.TYPE_CHECKING:
    from htrflow_campaigns.document import Text

_CONFLICT = re.compile("^(?:<<<<<<<|>>>>>>>) ", re.MULTILINE)
_INDENTING_TAB = re.compile(r"^( *)\t[ \t]*[^\s]", re.MULTILINE)
#: Where YAML needs a space: before a line's text, and behind a ':' or a dash.
_FOREIGN_SPACE = re.compile("(?:^[ -]*|:)([\u00a0\u2000-\u200a\u202f\u205f\u3000])", re.MULTILINE)
_MISFIT = "this line does not fit the lines above it"
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
        True,
    ),
    ("found unexpected end of stream", "the quote that opens here is never closed", "close the quote", True),
    ("found unexpected document indicator", "the quote that opens here is never closed", "close the quote", True),
    ("did not find expected key", _MISFIT, _LAYOUT, False),
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
        "found invalid Unicode character escape code",
        "the '\\' escape here names no character",
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
        True,
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
    ("found unknown directive name", "a line that starts with '%' is an instruction to YAML", "delete it", True),
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
    if problem.startswith("exceeded maximum nesting depth"):
        return rules.NESTING.at(document.position(offset), limit=limits.FILE_DEPTH)
    if found := _special(document, problem, offset):
        return found
    if problem.startswith("found character that cannot start any token"):
        character = document.text[offset : offset + 1]
        if character == "\t":
            return rules.TAB_INDENTATION.at(document.position(offset))
        shown = character if character.isprintable() else show(character)[1:-1]
        reason, remedy = f"a value cannot start with {shown}", "put the value in quotes"
        return rules.YAML_SYNTAX.at(document.position(offset), reason=Words(reason), remedy=Words(remedy))
    for start, reason, remedy, opening in _SENTENCES:
        if problem.startswith(start):
            position = document.position(opened if opening else offset)
            return rules.YAML_SYNTAX.at(position, reason=Words(reason), remedy=Words(remedy))
    reason = f"YAML cannot be read here ({problem or error.context})"
    remedy = "check the quotes, colons and indentation of this line"
    return rules.YAML_SYNTAX.at(document.position(offset), reason=Words(reason), remedy=Words(remedy))


def _special(document: Text, problem: str, offset: int) -> Problem | None:
    """What libyaml says without saying what is wrong."""
    text = document.text
    line = text.rfind("\n", 0, offset) + 1
    before = text[line:offset]
    if foreign := _FOREIGN_SPACE.search(text, 0, offset):
        place = foreign.start(1)
        reason = f"there is a space here that YAML does not take for one, U+{ord(foreign[1]):04X}"
        remedy = "replace it with an ordinary space"
    elif conflict := _CONFLICT.search(text):
        place, reason = conflict.start(), "git left a merge conflict here"
        remedy = "keep one side, and delete the marks"
    elif problem.startswith("mapping values are not allowed") and not re.search(":[ \t]", before):
        above = text.rfind("\n", 0, max(line - 1, 0)) + 1
        if re.search(r":(\s|$)", text[above:line]):
            place, reason, remedy = line + len(before) - len(before.lstrip()), _MISFIT, _LAYOUT
        else:
            place, reason = above, "there is no ': ' between a key and a value on this line"
            remedy = "write a ':' and a space after the key"
    elif problem.startswith(("did not find expected key", "did not find expected '-'")) and before.strip(" -?"):
        place, reason = offset, "there is text behind the end of a value here"
        remedy = "put the whole value in one pair of quotes, or delete what is behind it"
    else:
        return None
    return rules.YAML_SYNTAX.at(document.position(place), reason=Words(reason), remedy=Words(remedy))


def _indenting_tab(text: str, start: int, end: int) -> int | None:
    """The first tab among the white space that starts a line between the lines of ``start`` and ``end``."""
    stop = text.find("\n", end)
    tab = _INDENTING_TAB.search(text, text.rfind("\n", 0, start) + 1, len(text) if stop < 0 else stop)
    return tab.end(1) if tab else None
