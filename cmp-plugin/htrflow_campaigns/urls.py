"""Which addresses a browser and the wrapper can both open."""

from __future__ import annotations

import ipaddress
import re
import typing as t

from htrflow_campaigns.problems import Words

_EXAMPLE = "https://example.org/scan-0001.jpg"

#: Nearly every address; all others are looked at part by part.
_ORDINARY = re.compile(
    r"https?://(?:[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?\.)*[A-Za-z](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?"
    r"(?:/[!#-;=?-\[\]_a-z~]*)?",
    re.ASCII,
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
        return _fault("is empty", "write an address, such as {example}")
    if space := re.search(r"[\s\x00-\x20\x7f-\xa0]", url):
        kind = "white space" if space.group().isspace() else "a control character"
        return _fault(f"holds {kind} at character {space.start() + 1}", "write a space inside an address as %20")
    for sign, name in (("\\", "a backslash"), ("<", "a '<'"), (">", "a '>'"), ('"', "a quotation mark")):
        if sign in url:
            return _fault(f"holds {name}", "copy the address from the browser's address bar")
    match = _PARTS.fullmatch(url)
    if match is None or not match[2]:
        return _fault("has no http:// or https:// at its start", "write the whole address, such as {example}")
    scheme, _, authority, _ = match.groups()
    if scheme.lower() not in ("http", "https"):
        return _fault(f"starts with {scheme}://", "write an address that starts with http:// or https://")
    if "@" in authority:
        return _fault("holds a user name or password, which everyone could read", "delete what stands before the '@'")
    return _authority_fault(authority)


def _fault(reason: str, instead: str) -> Fault:
    return Fault(Words(reason), Words(instead.format(example=_EXAMPLE)))


def _authority_fault(authority: str) -> Fault | None:
    host, colon, port = authority.rpartition(":") if not authority.endswith("]") else (authority, "", "")
    if not colon:
        host = authority
    elif not (port.isascii() and port.isdigit() and 0 < int(port[:6]) <= 65535):
        return _fault(
            "has a port that is not a number from 1 to 65535", "correct the number after the ':', or delete it"
        )
    if not host:
        return _fault("has no host name", "write the whole address, such as {example}")
    bad_host = _fault("has a host name that a browser cannot open", "check the part between // and the next /")
    if host.startswith("["):
        return None if _is_ip(ipaddress.IPv6Address, host[1:-1]) and host.endswith("]") else bad_host
    labels = host.removesuffix(".").split(".")
    if labels[-1].isascii() and re.fullmatch(r"[0-9]+|0[xX][0-9a-fA-F]*", labels[-1]):
        return None if _is_ip(ipaddress.IPv4Address, host) else bad_host
    if len(host) > 253 or not all(_LABEL.fullmatch(label) for label in labels):
        return bad_host
    try:
        host.encode("idna")
    except UnicodeError:
        return bad_host
    return None


def _is_ip(kind: type, text: str) -> bool:
    try:
        kind(text)
    except ValueError:
        return False
    return True
