"""Text that anybody may see: without the secrets of addresses, and without characters that steer a terminal."""

from __future__ import annotations

import re

from htrflow_batch import redact

#: Characters of one text that are looked at. What is longer ends with a word on how much more there was.
MOST = 32 * 1024

_BREAK = re.compile("\r\n|[\r\x85\u2028\u2029]")
# What terminals take for commands: colours, titles, the cursor's way.
_COMMAND = re.compile("\x1b(?:\\[[0-?]*[ -/]*[@-~]|\\][^\x07\x1b\n]*(?:\x07|\x1b\\\\)|[ -/]*[0-~])")
_ORDINARY = re.compile("[ -~\n]*")
# Where redaction takes an address to end.
_TO_LAST_SPACE = re.compile("(?s).*[ \t\r\n\f\v]")


def text(raw: str) -> str:
    """The text with its lines, fit for a log: see the module. Never raises."""
    kept, more = _cut(raw)
    shown = _COMMAND.sub("", kept)
    if _ORDINARY.fullmatch(shown):
        shown = redact.url(shown)
    else:
        shown = redact.url("".join(map(_without_control, shown)))
        # Only now: a space that is put into an address would end it, and show what comes before.
        shown = "".join(map(_space, _BREAK.sub("\n", shown)))
    return f"{shown}… ({more} more characters)" if more else shown


def line(raw: str) -> str:
    """As :func:`text`, with one space in place of each run of white space."""
    return " ".join(text(raw).split())


def _cut(raw: str) -> tuple[str, int]:
    """A part of the text that does not end inside an address, and how many characters come after it."""
    if len(raw) <= MOST:
        return raw, 0
    # Half an address may hold a password whose end, the at sign, is in the other half.
    words = _TO_LAST_SPACE.match(raw[:MOST])
    kept = words[0] if words else ""
    return kept, len(raw) - len(kept)


def _without_control(sign: str) -> str:
    if sign.isprintable() or sign.isspace():
        return sign
    return "\ufffd" if "\ud800" <= sign <= "\udfff" else ""


def _space(sign: str) -> str:
    return " " if sign.isspace() and sign != "\n" else sign
