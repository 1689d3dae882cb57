"""What the store's refusal, or its silence, means for a reader."""

from __future__ import annotations

import logging

import botocore.exceptions
import botocore.parsers
import urllib3.exceptions

from htrflow_batch import s3_errors
from htrflow_status.results.refusal import Code, Refusal

_LOG = logging.getLogger(__name__)

#: All that a request can end with.
ERRORS = (botocore.exceptions.BotoCoreError, botocore.exceptions.ClientError, botocore.parsers.ResponseParserError)
#: All that the content of an answer can end with.
CUT_OFF = (*ERRORS, urllib3.exceptions.HTTPError, OSError)

# What stores say of keys: Amazon's "Error responses", and the same words of others.
_KEYS = {"InvalidAccessKeyId", "SignatureDoesNotMatch", "ExpiredToken", "InvalidToken", "InvalidSecurity"}
_SLOW = (
    botocore.exceptions.ReadTimeoutError,
    botocore.exceptions.ConnectTimeoutError,
    urllib3.exceptions.TimeoutError,
    TimeoutError,
)


def refusal_of(error: Exception, doing: str) -> Refusal:
    """What a reader is told. What the platform team has to know of it is logged; ``doing`` says what was asked."""
    if isinstance(error, botocore.exceptions.ClientError):
        status, word = s3_errors.status(error), s3_errors.code(error)
        if code := _answer(status, word):
            return Refusal(code)
        shown = word if word.isascii() and word.isalnum() and len(word) <= 64 else "unknown"
        _LOG.warning("cannot %s: the store answers %d (%s)", doing, status, shown)
        return Refusal("store_slow" if status in (408, 504) or word == "RequestTimeout" else "store_away")
    _LOG.warning("cannot %s: no whole answer of the store came (%s)", doing, type(error).__name__)
    return Refusal("store_slow" if isinstance(error, _SLOW) else "store_away")


def _answer(status: int, word: str) -> Code | None:
    """The code for an answer that says something of the reader or the key, and nothing of the store."""
    if word in _KEYS or status == 401:
        return "keys_refused"
    if status == 404 and word != "NoSuchBucket":
        return "not_found"
    # A store whose clock is another's refuses everybody.
    if status == 403 and word != "RequestTimeTooSkewed":
        return "no_right"
    return "range" if status == 416 else None
