"""Addresses of the web as they are sent, counted and shown."""

from __future__ import annotations

import typing as t
import urllib.parse

from htrflow_batch import redact

#: The ports that an address need not name.
PORTS: t.Final[t.Mapping[str, int]] = {"http": 80, "https": 443}
_SHOWN = 300


def quoted(url: str) -> str:
    """The address with its white space and control characters encoded.

    White space would end the address in a message, and what follows could be a secret.
    """
    signs = (sign if sign.isprintable() and not sign.isspace() else urllib.parse.quote(sign) for sign in url.strip())
    return "".join(signs)


def host(url: str) -> str:
    """The name of the server in lower case, with its port where that is not the usual one."""
    parts = urllib.parse.urlsplit(url)
    name = (parts.hostname or "").rstrip(".")
    name = f"[{name}]" if ":" in name else name
    return name if parts.port in (None, PORTS.get(parts.scheme)) else f"{name}:{parts.port}"


def shown(url: str) -> str:
    """The address for a message: without secrets, and not endless."""
    text = redact.url(quoted(url))
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"
