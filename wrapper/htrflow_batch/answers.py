"""What a server's answer, or the lack of one, is called in a message."""

from __future__ import annotations

import contextlib
import http
import typing as t

import requests
import urllib3

Kind = t.Literal["image", "json"]

NOUN: t.Final[t.Mapping[Kind, str]] = {"image": "an image", "json": "a JSON document"}


def failure(error: Exception, connect: float, silence: float) -> str:
    """What a failed exchange is. The library's own text is left out, since it has the whole address in it.

    ``connect`` and ``silence`` are the limits that held, in seconds.
    """
    if isinstance(error, requests.exceptions.ConnectTimeout):
        return f"could not be reached within {connect:g} s"
    if isinstance(error, requests.Timeout | urllib3.exceptions.TimeoutError | TimeoutError):
        return f"sent nothing for {silence:g} s"
    if isinstance(error, requests.exceptions.SSLError | urllib3.exceptions.SSLError):
        return "has no encryption that can be trusted — its certificate may have run out"
    cause = getattr(error.args[0] if error.args else None, "reason", None)
    if isinstance(cause, urllib3.exceptions.NameResolutionError):
        return "is on a host whose name is not known right now"
    if isinstance(cause, urllib3.exceptions.NewConnectionError):
        return "is on a host that takes no connection"
    return "broke off before it was whole"


def refusal(shown: str, status: int, kind: Kind) -> str:
    """The sentence on an answer that is an error for good."""
    if status in (401, 403):
        return f"{shown} answered {status_line(status)}: the archive does not publish this page."
    if status in (404, 410):
        return f"{shown} answered {status_line(status)}: there is no such file — check the address."
    return f"{shown} answered {status_line(status)} where {NOUN[kind]} was expected."


def status_line(status: int) -> str:
    """The status with its name."""
    with contextlib.suppress(ValueError):
        return f"{status} {http.HTTPStatus(status).phrase}"
    return str(status)
