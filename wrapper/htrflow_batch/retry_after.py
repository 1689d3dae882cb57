"""How long a server asks to be left alone: the header ``Retry-After`` of RFC 9110, section 10.2.3."""

from __future__ import annotations

import datetime
import email.utils
import re


def seconds(value: str | None, date: str | None = None) -> float | None:
    """The wait in seconds, 0 for a time that is past, and None when the header is missing or cannot be read.

    A point in time is measured from the server's own ``date``, so that a clock that is wrong on either side does not
    matter, and from this machine's clock when there is none.
    """
    if value is None:
        return None
    value = value.strip()
    if re.fullmatch(r"[0-9]+", value):
        # More digits than any wait has.
        return float(value[:12]) if len(value) <= 12 else 1e12
    then = _moment(value)
    if then is None:
        return None
    return max(0.0, (then - (_moment(date) or datetime.datetime.now(datetime.UTC))).total_seconds())


def _moment(value: str | None) -> datetime.datetime | None:
    if value is None:
        return None
    try:
        moment = email.utils.parsedate_to_datetime(value)
    except (ValueError, TypeError, OverflowError, IndexError):
        return None
    return moment if moment.tzinfo else moment.replace(tzinfo=datetime.UTC)
