"""What the JSON documents of a volume share: their bytes, and how times and addresses stand in them."""

from __future__ import annotations

import datetime
import json
import re
import typing as t

from htrflow_batch import addresses, redact

Document: t.TypeAlias = dict[str, t.Any]

#: The version of the documents whose form is our own. It goes up when a key is taken away or means something else.
VERSION = 1

# Browsers take any number of slashes, of both kinds.
_USER_INFO = re.compile(r"(\s*https?:[/\\]*)[^/?#\\]*@", re.IGNORECASE)


def to_bytes(document: t.Mapping[str, t.Any]) -> bytes:
    """A document as it is published: UTF-8 on one line, the keys in the document's own order, a line feed at the end.

    Half a pair of surrogates, which UTF-8 cannot hold, becomes a question mark. A number that JSON cannot hold is a
    ``ValueError``.
    """
    text = json.dumps(document, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return text.encode("utf-8", "replace") + b"\n"


def utc(moment: datetime.datetime) -> str:
    """A time as the documents have it, in whole seconds: ``2026-11-29T12:00:00Z``. It has to know its time zone."""
    if moment.tzinfo is None:
        raise ValueError(f"a time without its time zone: {moment}")
    whole = moment.astimezone(datetime.UTC).replace(tzinfo=None)
    return f"{whole.isoformat(timespec='seconds')}Z"


def redacted(address: str | None) -> str | None:
    """An address for those who read and do not fetch: without user information, query and fragment."""
    return None if address is None else redact.url(addresses.quoted(address))


def without_user_info(address: str) -> str:
    """An address that a browser can fetch, without the user's name and password. All else stays, the query too."""
    return _USER_INFO.sub(r"\1", address, count=1) if _USER_INFO.match(address) else address
