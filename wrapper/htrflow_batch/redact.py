"""Takes the secrets out of addresses before anyone reads them.

An address can hold a password before its host and a token in its query or fragment; each becomes ``…``.
Where a text is ambiguous, more is taken out than need be.
"""

from __future__ import annotations

import re
import urllib.parse

#: What stands in place of a secret.
MARK = "…"

# A word ends where an address does. Other kinds of white space are taken for a part of it.
_WORD = re.compile(r"[^ \t\r\n\f\v]+")
# The sentence's own marks behind an address.
_TAIL = re.compile(r"[\"'”’`<>()\[\]{},.;:!]*\Z")
_AUTHORITY = re.compile(r"(?:\[[0-9A-Fa-f:.%]*\]|[^:@\[\]]*)(?::[0-9]*)?")
# An address that is an identifier in another address: its "://" is percent-encoded, once or more.
_ENCODED = re.compile(r"%(?:25)*3A(?:/|%(?:25)*2F){2}[^/?#]*", re.IGNORECASE)


def url(text: str) -> str:
    """The text, with the user info, the query and the fragment of every address in it replaced by ``…``.

    Finds addresses anywhere in the text, also those without a scheme (``/p?token=x``, as libraries write them in
    their errors), in another address, and percent-encoded in another address. White space ends an address.
    Applying it twice changes nothing more.
    """
    return _WORD.sub(lambda word: _word(word[0]), text)


def _word(word: str) -> str:
    tail = _TAIL.search(word)
    end = tail.start() if tail else len(word)
    return _addresses(word[:end]) + word[end:]


def _addresses(text: str) -> str:
    """A text without white space. An address may hold another one in its path, and so on."""
    head, tail = "", ""
    while True:
        before, separator, rest = text.partition("://")
        if not separator:
            return head + _encoded(_bare(text)) + tail
        if _has_query(before, text):
            return head + _encoded(_bare(text)) + tail
        inside, mark, secret = _cut(rest)
        authority, slash, path = inside.partition("/")
        if _AUTHORITY.fullmatch(authority):
            shown, text = _encoded(authority) + slash, path
        elif "@" in inside:
            # A password with a slash in it reaches further than the first slash.
            shown, text = f"{MARK}@", inside.rpartition("@")[2]
        else:
            shown, text = MARK + slash, path
        head += _bare(before) + separator + shown
        tail = mark + (MARK if secret else "") + tail


def _cut(text: str) -> tuple[str, str, str]:
    """What is before the query or fragment, its sign, and itself."""
    found = re.search(r"[?#]", text)
    return (text[: found.start()], found[0], text[found.end() :]) if found else (text, "", "")


def _has_query(before: str, text: str) -> bool:
    head, mark, _ = before.partition("?")
    return bool(mark) and ("/" in head or "=" in text.partition("?")[2])


def _bare(text: str) -> str:
    """An address without a scheme: what has a colon before an at sign, and a query behind a slash or with a value."""
    head, mark, secret = text.partition("?")
    if not (mark and secret and ("/" in head or "=" in secret)):
        head, mark, secret = text, "", ""
    name, at, host = head.rpartition("@")
    if at and ":" in name:
        head = f"{MARK}@{host}"
    return head + mark + (MARK if secret else "")


def _encoded(text: str) -> str:
    return _ENCODED.sub(lambda found: _decoded(found[0]), text)


def _decoded(text: str) -> str:
    plain = text
    while (once := urllib.parse.unquote(plain)) != plain:
        plain = once
    shown = _addresses(plain)
    return text if shown == plain else urllib.parse.quote(shown, safe=MARK)
