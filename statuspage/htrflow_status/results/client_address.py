"""Whose request it is, behind proxies too."""

from __future__ import annotations

import ipaddress
import logging

from starlette.requests import HTTPConnection

_LOG = logging.getLogger(__name__)
#: What one household or company has of IPv6.
_SUBNET = 64


def client_of(connection: HTTPConnection, trusted_hops: int) -> str | None:
    """The client's address, or its network where it is of version 6; None if nobody we trust says it.

    ``trusted_hops`` is the number of proxies before the site that add to ``X-Forwarded-For`` whom they heard from. As
    many entries from its right end can be trusted, and what is left of them can be anybody's invention. The
    address of the last proxy is never taken for that of a client.
    """
    if trusted_hops == 0:
        return _network(connection.client.host) if connection.client else None
    entries = [entry.strip() for value in connection.headers.getlist("x-forwarded-for") for entry in value.split(",")]
    found = _network(entries[-trusted_hops]) if len(entries) >= trusted_hops else None
    if found is None:
        _LOG.warning("X-Forwarded-For has no address of a client at place %d from its right end", trusted_hops)
    return found


def _network(text: str) -> str | None:
    """What an entry of the header counts as: some proxies write a port behind the address."""
    host = text
    if text.startswith("["):
        host = text[1:].partition("]")[0]
    elif text.count(":") == 1:
        host = text.partition(":")[0]
    try:
        address = ipaddress.ip_address(host.partition("%")[0])
    except ValueError:
        return None
    if isinstance(address, ipaddress.IPv6Address):
        if address.ipv4_mapped is None:
            return str(ipaddress.ip_network((address, _SUBNET), strict=False))
        address = address.ipv4_mapped
    return str(address)
