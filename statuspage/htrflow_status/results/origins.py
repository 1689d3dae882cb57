"""Whether a request that changes something comes from a page of the site itself."""

from __future__ import annotations

import typing as t
import urllib.parse

from starlette.datastructures import Headers

_PORTS = {"http": 80, "https": 443}


class Origins:
    """The addresses at which browsers reach the site, such as ``https://htr.example.org``; a path is passed over.

    Raises ``ValueError`` for anything that is no address, and if there is none.
    """

    def __init__(self, addresses: t.Iterable[str]) -> None:
        known = {address: _origin(address) for address in addresses}
        wrong = [address for address, origin in known.items() if origin is None]
        if wrong or not known:
            raise ValueError(f"no address of the site: {', '.join(map(repr, wrong)) or 'none is given'}")
        self._known = frozenset(known.values())

    @property
    def secure(self) -> bool:
        """Whether all of them are at https."""
        return all(origin is not None and origin[0] == "https" for origin in self._known)

    def sent(self, headers: Headers) -> bool:
        """Whether a page of the site sent this request. One that says nothing of its origin is nobody's."""
        said = headers.getlist("origin") or headers.getlist("referer")
        return len(said) == 1 and (origin := _origin(said[0])) is not None and origin in self._known


def _origin(address: str) -> tuple[str, str, int] | None:
    try:
        parts = urllib.parse.urlsplit(address)
        port = parts.port or _PORTS.get(parts.scheme)
    except ValueError:
        return None
    if parts.scheme not in _PORTS or not parts.hostname or port is None or "@" in parts.netloc:
        return None
    return parts.scheme, parts.hostname, port
