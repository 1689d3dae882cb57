"""What an S3 store's refusal, or its silence, means for the attempt."""

from __future__ import annotations

import re

import botocore.exceptions

from htrflow_batch.errors import AttemptError, PermanentError, TransientError

SECRET = "the Secret that s3_secret in converter.yaml names"  # noqa: S105

# What a store says of keys that it refuses.
_KEYS = ("InvalidAccessKeyId", "SignatureDoesNotMatch", "ExpiredToken", "InvalidToken")
_REFUSED: dict[str, tuple[str, str]] = {
    "NoSuchBucket": ("there is no such bucket", f"check S3_BUCKET and S3_ENDPOINT in {SECRET}"),
    "InvalidBucketName": ("a bucket cannot be called so", f"check S3_BUCKET in {SECRET}"),
    "InvalidAccessKeyId": ("the access key is unknown", f"check aws_access_key_id and S3_ENDPOINT in {SECRET}"),
    "SignatureDoesNotMatch": (
        "the secret key is not the one of the access key",
        f"check aws_secret_access_key in {SECRET}",
    ),
    "AccessDenied": (
        "the account has no right to do so",
        f"let the account in {SECRET} list, read and write there, or check S3_BUCKET",
    ),
    "ExpiredToken": ("the keys are no longer valid", f"put new ones into {SECRET}"),
    "InvalidToken": ("the session token is not valid", f"check aws_session_token in {SECRET}"),
    "AuthorizationHeaderMalformed": ("the store is in another region", f"check S3_ENDPOINT in {SECRET}"),
}
# Refused with a status of the kind 4xx, but not for good.
_LATER = {"RequestTimeTooSkewed", "SlowDown", "RequestTimeout", "BadDigest", "InvalidDigest", "OperationAborted"}
_LATER |= {"ConditionalRequestConflict", "XAmzContentSHA256Mismatch", "QuotaExceeded", "IncompleteBody"}


def code(error: botocore.exceptions.ClientError) -> str:
    """The store's word for what is wrong, or the number of the status if it gave none."""
    return str(error.response.get("Error", {}).get("Code", ""))


def status(error: botocore.exceptions.ClientError) -> int:
    """The HTTP status."""
    return int(error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0))


def may_be_keys(error: botocore.exceptions.ClientError) -> bool:
    """Whether other keys could help. The answer to HEAD has no body that says more than 403."""
    return code(error) in (*_KEYS, "403")


def refused(said: str, error: botocore.exceptions.ClientError) -> AttemptError:
    """What to raise for an answer that says no. ``said`` is what could not be done and where.

    Of the answer, only its status and its code get into the message.
    """
    number, word = status(error), code(error)
    if word == "403":
        word = "AccessDenied"
    if word in _REFUSED:
        reason, advice = _REFUSED[word]
        return PermanentError(f"{said}: {reason} — {advice}")
    shown = word if re.fullmatch("[A-Za-z0-9._-]{1,64}", word) else "unknown"
    if word in _LATER or number >= 500 or number in (408, 425, 429):
        return TransientError(f"{said} for a while: it answers {number} ({shown}) — see how the store is")
    return PermanentError(f"{said}: it answers {number} ({shown}) — check S3_ENDPOINT and S3_BUCKET in {SECRET}")


def unreachable(said: str, error: Exception) -> AttemptError:
    """What to raise if no answer came, or half of one. ``said`` is what could not be done and where."""
    if isinstance(error, botocore.exceptions.ParamValidationError):
        return PermanentError(f"{said}: no request can be made of it — check S3_BUCKET in {SECRET}")
    if isinstance(error, botocore.exceptions.SSLError) and "CERTIFICATE_VERIFY_FAILED" in str(error):
        return PermanentError(
            f"{said}: its certificate is not trusted — check S3_ENDPOINT in {SECRET}, or trust its authority"
        )
    kind = type(error).__name__
    return TransientError(f"{said} for a while: no whole answer came ({kind}) — see whether the store is reachable")


def not_s3(said: str) -> TransientError:
    """What to raise for an answer that is none of S3. It may be a proxy's, while the store is away."""
    return TransientError(
        f"{said}: what answers is not S3 — check S3_ENDPOINT in {SECRET}, and any proxy before the store"
    )
