"""Connections to public addresses alone.

Whoever may open a pull request chooses the addresses that ``plan --fetch`` asks. Were private ones among them, a pull
request could reach what only the machine that runs the check reaches: cloud metadata, internal services, its own ports.
The address is checked when the connection is made, so neither a redirect nor a name that resolves twice gets around it.
"""

from __future__ import annotations

import ipaddress
import socket
import typing as t

import urllib3
import urllib3.exceptions
import urllib3.util.connection

from htrflow_batch import connections, errors

_NAT64 = ipaddress.IPv6Network("64:ff9b::/96")


class PrivateError(errors.PageError):
    """The name of a host leads to an address that is not public. The message is one sentence."""


def is_public(text: str) -> bool:
    """Whether an address, without a port, is one of the public internet, also where IPv6 wraps an IPv4 address."""
    address = ipaddress.ip_address(text.partition("%")[0])
    if isinstance(address, ipaddress.IPv6Address):
        inner = address.ipv4_mapped or address.sixtofour or (address.teredo[1] if address.teredo else None)
        if address in _NAT64:
            inner = ipaddress.IPv4Address(int(address) & 0xFFFF_FFFF)
        if inner is not None:
            return is_public(str(inner))
    return address.is_global and not address.is_multicast


def _connect(host: str, port: int, timeout: t.Any, options: t.Any) -> socket.socket:
    """A connection to the first public address of ``host`` that takes one.

    Raises :class:`PrivateError` when it has no public address, and :class:`OSError`.
    """
    # urllib3 asks for the same kinds of addresses.
    family = urllib3.util.connection.allowed_gai_family()
    found = {str(entry[4][0]) for entry in socket.getaddrinfo(host.strip("[]"), port, family, socket.SOCK_STREAM)}
    public = sorted((address for address in found if is_public(address)), key=lambda address: ":" in address)
    if not public:
        raise PrivateError(f"{host} is in a private network")
    fault: OSError | None = None
    for address in public:
        try:
            return urllib3.util.connection.create_connection((address, port), timeout, socket_options=options)
        except OSError as error:
            fault = error
    raise fault or OSError("no address")


class _HttpConnection(connections.HttpConnection):
    def _new_conn(self) -> socket.socket:
        return _opened(self)


class _HttpsConnection(connections.HttpsConnection):
    def _new_conn(self) -> socket.socket:
        return _opened(self)


def _opened(connection: connections.HttpConnection | connections.HttpsConnection) -> socket.socket:
    """As urllib3's own, with the errors that its callers expect."""
    try:
        return _connect(connection.host, connection.port, connection.timeout, connection.socket_options)
    except socket.gaierror as error:
        raise urllib3.exceptions.NameResolutionError(connection.host, connection, error) from error
    except TimeoutError as error:
        raise urllib3.exceptions.ConnectTimeoutError(connection, "timed out") from error
    except OSError as error:
        raise urllib3.exceptions.NewConnectionError(connection, "no connection") from error


class _HttpPool(urllib3.HTTPConnectionPool):
    ConnectionCls = _HttpConnection


class _HttpsPool(urllib3.HTTPSConnectionPool):
    ConnectionCls = _HttpsConnection


class Adapter(connections.Adapter):
    """Connects to public addresses alone."""

    def init_poolmanager(self, *values: t.Any, **named: t.Any) -> None:
        super().init_poolmanager(*values, **named)
        self.poolmanager.pool_classes_by_scheme = {"http": _HttpPool, "https": _HttpsPool}
