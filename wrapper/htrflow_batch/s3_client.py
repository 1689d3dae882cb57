"""How to speak to an S3 store: where it is, whose keys to use, how patient to be."""

from __future__ import annotations

import dataclasses
import functools
import os
import pathlib
import typing as t

import boto3.session
import botocore.config
import botocore.credentials
import botocore.exceptions
import botocore.handlers
import botocore.loaders
import botocore.session

from htrflow_batch import redact
from htrflow_batch.errors import PermanentError
from htrflow_batch.s3_errors import SECRET

if t.TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client

_PROFILE = "default"


class S3Keys(t.NamedTuple):
    """What requests are signed with."""

    access: str
    secret: str
    token: str | None


@dataclasses.dataclass(frozen=True)
class S3Settings:
    """Where the bucket is, and how patient to be. Times are in seconds."""

    bucket: str
    #: A file as ``AWS_SHARED_CREDENTIALS_FILE`` names it; its section ``default`` is used. Read again when the store
    #: refuses the keys, as a Secret may be replaced while a volume runs.
    credentials: pathlib.Path
    #: None is Amazon's.
    endpoint: str | None = None
    region: str = "us-east-1"
    #: A file of certificates to trust, or whether to check at all.
    verify: pathlib.Path | bool = True
    connect_timeout: float = 5.0
    #: Without a byte in either direction.
    read_timeout: float = 30.0
    #: How often a request is sent in all, with growing pauses of up to 1, 2, 4, … and at most 20 seconds between.
    attempts: int = 4
    #: How many at once; more wait for one another.
    connections: int = 16

    @property
    def where(self) -> str:
        """The bucket and its address in words, without secrets."""
        return f"bucket {self.bucket} at {redact.url(self.endpoint or 'Amazon S3')}"


def read_keys(file: pathlib.Path) -> S3Keys:
    """The keys in a credentials file. Raises :class:`PermanentError` if there are none."""
    try:
        found = botocore.credentials.SharedCredentialProvider(str(file), _PROFILE).load()
    except (botocore.exceptions.BotoCoreError, OSError, ValueError):
        found = None
    if found is None or not found.access_key or not found.secret_key:
        raise PermanentError(
            f"no keys of the store in {file} — write aws_access_key_id and aws_secret_access_key below [{_PROFILE}]"
            f" into credentials in {SECRET}"
        )
    return S3Keys(found.access_key, found.secret_key, found.token)


def connect(settings: S3Settings, keys: S3Keys) -> S3Client:
    """A client of its own, which nothing in the environment or the home directory changes but the proxy's variables.

    Asks the store nothing. Raises :class:`PermanentError` if the endpoint is no address.
    """
    alone = botocore.session.Session()
    here = {"config_file": os.devnull, "credentials_file": str(settings.credentials), "profile": _PROFILE}
    for name, value in here.items():
        alone.set_config_variable(name, value)
    alone.register_component("data_loader", _descriptions())
    config = botocore.config.Config(
        signature_version="s3v4",
        s3={"addressing_style": "path"},
        connect_timeout=settings.connect_timeout,
        read_timeout=settings.read_timeout,
        retries={"mode": "standard", "total_max_attempts": settings.attempts},
        max_pool_connections=settings.connections,
        ignore_configured_endpoint_urls=True,  # type: ignore[call-arg] # missing in the stubs
        # Older stores refuse the checksums that the client adds by default. The signature covers the body.
        request_checksum_calculation="when_required",
        response_checksum_validation="when_required",
    )
    try:
        client: S3Client = boto3.session.Session(botocore_session=alone).client(
            "s3",
            endpoint_url=settings.endpoint,
            region_name=settings.region,
            aws_access_key_id=keys.access,
            aws_secret_access_key=keys.secret,
            aws_session_token=keys.token,
            verify=settings.verify if isinstance(settings.verify, bool) else str(settings.verify),
            config=config,
        )
    except (ValueError, botocore.exceptions.BotoCoreError):
        raise PermanentError(
            f"{settings.where} cannot be the address of a store — write http:// or https:// and a host into"
            f" S3_ENDPOINT in {SECRET}"
        ) from None
    # What is written is small: asking first whether it may be sent takes a turn of the network, and as long again.
    client.meta.events.unregister("before-call.s3", botocore.handlers.add_expect_header)
    return client


@functools.cache
def _descriptions() -> botocore.loaders.Loader:
    """What the client knows of the service. Reading it takes longer than writing a hundred pages."""
    return botocore.loaders.Loader()
