"""Which addresses a browser and the wrapper can both open."""

from __future__ import annotations

import ipaddress
import re
import typing as t
import unicodedata

from htrflow_campaigns.problems import Words, show

_WHOLE = "write the whole address, which starts with http:// or https://"

#: Nearly every address; all others are looked at part by part.
_ORDINARY = re.compile(
    r"https?://(?![^/]{254})(?:[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?\.)*[A-Za-z](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?"
    r"(?:/[!#-;=?-\[\]_a-z~]*)?",
    re.ASCII,
)
#: Characters without a shape: they join, part and turn the text around them, and come along when text is copied.
_HIDDEN = re.compile(
    "[\xad\u061c\u180e\u200b-\u200f\u202a-\u202e\u2060-\u206f\ud800-\udfff\ufeff\ufff9-\ufffb\U000e0000-\U000e0fff]"
)
_PARTS = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*):(//)?([^/?#]*)(.*)", re.DOTALL)
_LABEL = re.compile(r"[^\W_](?:[\w-]{0,61}[^\W_])?|_[\w-]{0,62}")


class Fault(t.NamedTuple):
    """Why an address cannot be opened, and what to write instead."""

    reason: Words
    instead: Words


def fault(url: str) -> Fault | None:
    """What keeps ``url`` from being an absolute http or https address, by the rules of the WHATWG URL standard.

    The raw text is looked at, since :mod:`urllib.parse` drops line breaks and tabs without a word.
    """
    if _ORDINARY.fullmatch(url):
        return None
    if not url:
        return _fault("is empty", _WHOLE)
    if space := re.search(r"[\s\x00-\x20\x7f-\xa0]", url):
        sign, rest = space.group(), url[space.end() :]
        other = "white space" if sign.isspace() else "a control character"
        kind = {" ": "a space", "\n": "a line break", "\t": "a tab"}.get(sign, other)
        instead = "write a space inside an address as %20" if sign == " " and rest.strip() else "delete it"
        instead = "write each address on a line of its own" if "://" in rest else instead
        return _fault(f"holds {kind} at character {space.start() + 1}", instead)
    for sign, name in (("\\", "a backslash"), ("<", "a '<'"), (">", "a '>'"), ('"', "a quotation mark")):
        if sign in url:
            return _fault(f"holds {name}", "copy the address from the browser's address bar")
    if hidden := _HIDDEN.search(url):
        return _fault(
            f"holds U+{ord(hidden.group()):04X}, which cannot be seen, at character {hidden.start() + 1}", "delete it"
        )
    match = _PARTS.fullmatch(url)
    if match is None or not match[2]:
        return _fault("has no http:// or https:// at its start", _WHOLE)
    scheme, _, authority, _ = match.groups()
    if scheme.lower() not in ("http", "https"):
        return _fault(f"starts with {show(scheme)[1:-1]}://", _WHOLE)
    if "@" in authority:
        return _fault("holds a user name or password, which everyone could read", "delete what stands before the '@'")
    return _authority_fault(authority)


def _fault(reason: str, instead: str) -> Fault:
    return Fault(Words(reason), Words(instead))


def _authority_fault(authority: str) -> Fault | None:
    host, colon, port = authority.rpartition(":") if not authority.endswith("]") else (authority, "", "")
    if not colon:
        host = authority
    elif not (port.isascii() and port.isdigit() and 0 < int(port[:6]) <= 65535):
        return _fault(
            "has a port that is not a number from 1 to 65535", "correct the number after the ':', or delete it"
        )
    if not host:
        return _fault("has no host name", _WHOLE)
    bad_host = _fault("has a host name that a browser cannot open", "check the part between // and the next /")
    if host.startswith("["):
        # Browsers open no address with a zone (%eth0).
        is_ip = host.endswith("]") and "%" not in host and _is_ip(ipaddress.IPv6Address, host[1:-1])
        return None if is_ip else bad_host
    # In every script's digits: a browser takes them for the ASCII ones.
    plain = unicodedata.normalize("NFKC", host)
    labels = plain.removesuffix(".").split(".")
    if re.fullmatch(r"[0-9]+|0[xX][0-9a-fA-F]*", labels[-1], re.ASCII):
        return None if _is_ip(ipaddress.IPv4Address, host) else bad_host
    if len(host) > 253 or not all(_LABEL.fullmatch(label) for label in labels):
        return bad_host
    # IDNA 2008, which requests follows, takes letters, marks and digits as they are in lower case.
    if not host.isascii() and (plain != host or not all(map(_is_idna, host.lower()))):
        return bad_host
    try:
        host.encode("idna")
    except UnicodeError:
        return bad_host
    return None


def _is_idna(character: str) -> bool:
    return character in "-." or unicodedata.category(character) in ("Ll", "Lo", "Lm", "Mn", "Mc", "Nd")


def _is_ip(kind: type, text: str) -> bool:
    try:
        kind(text)
    except ValueError:
        return False
    return True
