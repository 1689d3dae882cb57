"""What a request asks of a result: a part of it, or nothing if it has not changed (RFC 9110, 13 and 14)."""

from __future__ import annotations

import re
import typing as t

from starlette.datastructures import Headers

from htrflow_status.results.reader import Span

_TAGS = re.compile(r'\s*(?:W/)?"([!#-~]*)"\s*(?:,|\Z)')
_SPAN = re.compile(r"bytes=\s*(?:([0-9]{1,15})-([0-9]{0,15})|-([0-9]{1,15}))\s*", re.IGNORECASE)


class Conditions(t.NamedTuple):
    """``known`` are the tags of what the client has, ``*`` for any. ``span`` holds if the tag is ``only``, if given."""

    known: t.Sequence[str] = ()
    span: Span | None = None
    only: str | None = None

    def met(self, etag: str) -> bool:
        """Whether the client has the result with this tag."""
        return "*" in self.known or (bool(etag) and etag in self.known)


def conditions_of(headers: Headers) -> Conditions:
    """The conditions that a request states. One that is not understood, or asks for several parts, is none."""
    known = _known(",".join(headers.getlist("if-none-match")))
    only = headers.get("if-range")
    match = None if only is None else re.fullmatch('"([!#-~]*)"', only.strip())
    if only is not None and match is None:
        return Conditions(known)  # by its time, or by a weak tag, which no part can be joined by
    return Conditions(known, _span(headers), match[1] if match else None)


def _known(text: str) -> t.Sequence[str]:
    if text.strip() == "*":
        return ("*",)
    tags, at = [], 0
    while match := _TAGS.match(text, at):
        tags.append(match[1])
        at = match.end()
    return tags


def _span(headers: Headers) -> Span | None:
    said = headers.getlist("range")
    match = _SPAN.fullmatch(said[0]) if len(said) == 1 else None
    if match is None:
        return None
    if match[3]:
        # None of the last bytes is a range that no result has.
        return Span(-int(match[3])) if int(match[3]) else None
    first, last = int(match[1]), int(match[2]) if match[2] else None
    return None if last is not None and last < first else Span(first, last)
