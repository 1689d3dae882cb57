"""Where the bucket is, and how to speak to it in an account's name."""

from __future__ import annotations

import dataclasses
import functools
import os
import pathlib
import typing as t

import botocore.config
import botocore.exceptions
import botocore.loaders
import botocore.session

from htrflow_status.results.accounts import Account
from htrflow_status.results.places import Places

if t.TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client


@dataclasses.dataclass(frozen=True, slots=True)
class S3Place:
    """The bucket of the results. Times are in seconds."""

    bucket: str
    places: Places
    #: None is Amazon's.
    endpoint: str | None = None
    region: str = "us-east-1"
    #: A file of certificates to trust, or whether to check at all.
    verify: pathlib.Path | bool = True
    connect_timeout: float = 3.0
    #: Without a byte.
    read_timeout: float = 10.0
    #: How often a request is sent in all.
    attempts: int = 2
    #: For one result that is read into memory, from its first byte to its last.
    patience: float = 20.0

    def connected(self, account: Account) -> S3Client:
        """A client of its own, which signs with the account's keys only and asks nothing yet.

        No file and no variable of the environment gives it keys or another address. Raises ``ValueError`` if the
        endpoint is no address.
        """
        nothing = {
            "profile": (None, None, None, None),
            "config_file": (None, None, os.devnull, None),
            "credentials_file": (None, None, os.devnull, None),
        }
        session = botocore.session.Session(session_vars=nothing)
        session.register_component("data_loader", _descriptions())
        config = botocore.config.Config(
            signature_version="s3v4",
            s3={"addressing_style": "path"},
            connect_timeout=self.connect_timeout,
            read_timeout=self.read_timeout,
            retries={"mode": "standard", "total_max_attempts": self.attempts},
            ignore_configured_endpoint_urls=True,  # type: ignore[call-arg] # missing in the stubs
            # Older stores refuse the checksums that the client asks for by default.
            request_checksum_calculation="when_required",
            response_checksum_validation="when_required",
        )
        try:
            client = session.create_client(
                "s3",
                endpoint_url=self.endpoint,
                region_name=self.region,
                aws_access_key_id=account.access,
                aws_secret_access_key=account.secret,
                verify=self.verify if isinstance(self.verify, bool) else str(self.verify),
                config=config,
            )
        except botocore.exceptions.BotoCoreError:
            raise ValueError("the endpoint is not the address of a store") from None
        return t.cast("S3Client", client)


@functools.cache
def _descriptions() -> botocore.loaders.Loader:
    """What each client knows of the service. Reading it takes far longer than making a client."""
    return botocore.loaders.Loader()
