"""A server of the S3 API that checks signatures and rights."""

from __future__ import annotations

import json
import os
import pathlib
import secrets
import typing as t

import boto3
import botocore.config
import requests

from tests import tools
from tests.testbed.plugin import processes
from tests.testbed.plugin.run import Run
from tests.testbed.plugin.slow_link import SlowLink

if t.TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client

REGION = "us-east-1"


class Account(t.NamedTuple):
    """An account of the store."""

    access: str
    secret: str


class Store:
    """A store with three accounts and a bucket that is empty at first.

    ``root`` may do everything. ``writer`` owns the bucket, as pods of a campaign do. ``reader`` may list and read it,
    as readers of results do, and write nothing.
    """

    def __init__(self, url: str, accounts: t.Mapping[str, t.Sequence[str]]) -> None:
        self.url = url
        self.root, self.writer, self.reader = (Account(*accounts[name]) for name in ("root", "writer", "reader"))
        self.bucket = f"bucket-{secrets.token_hex(6)}"

    def client(self, account: Account, **settings: t.Any) -> S3Client:
        """A client of boto3; ``settings`` are those of its configuration."""
        options: dict[str, t.Any] = {"retries": {"total_max_attempts": 1}, "s3": {"addressing_style": "path"}}
        return boto3.client(
            "s3",
            endpoint_url=self.url,
            region_name=REGION,
            aws_access_key_id=account.access,
            aws_secret_access_key=account.secret,
            config=botocore.config.Config(**{**options, **settings}),
        )

    def create_bucket(self) -> None:
        """Makes the bucket, with its policy."""
        resources = [f"arn:aws:s3:::{self.bucket}", f"arn:aws:s3:::{self.bucket}/*"]
        reading = ["s3:GetObject", "s3:ListBucket"]
        statements = [
            {"Effect": "Allow", "Principal": self.reader.access, "Action": reading, "Resource": resources},
            {"Effect": "Allow", "Principal": self.writer.access, "Action": "s3:*", "Resource": resources},
        ]
        client = self.client(self.root)
        client.create_bucket(Bucket=self.bucket)
        policy = {"Version": "2012-10-17", "Statement": statements}
        client.put_bucket_policy(Bucket=self.bucket, Policy=json.dumps(policy))
        client.close()


class OwnStore(Store):
    """A store that a test has for itself, and may stop, start and slow down."""

    def __init__(self, run: Run, folder: pathlib.Path) -> None:
        self._run, self._folder = run, folder
        (self._port,) = processes.free_ports(1)
        self._accounts, self._process = _start(run, folder, self._port)
        self.link = SlowLink(self._port)
        super().__init__(f"http://127.0.0.1:{self.link.port}", self._accounts)

    def stop(self) -> None:
        """Ends the server; what it holds stays."""
        self._process.stop()
        self.link.cut()

    def start(self) -> None:
        """Starts the server again, at the same address."""
        self._process = _serve(self._run, self._folder, self._port, Account(*self._accounts["root"]))

    def slow(self, *, delay: float = 0.0, pace: int = 0) -> None:
        """Makes each answer wait ``delay`` seconds, and passes ``pace`` bytes a second; without both it is fast."""
        self.link.delay, self.link.pace = delay, pace

    def close(self) -> None:
        """Ends the server for good."""
        self._process.stop()
        self.link.close()


def start_shared(run: Run, folder: pathlib.Path) -> dict[str, t.Any]:
    """Starts a server in a folder, and returns the arguments of :class:`Store`."""
    (port,) = processes.free_ports(1)
    accounts, _ = _start(run, folder, port)
    return {"url": f"http://127.0.0.1:{port}", "accounts": accounts}


def _start(run: Run, folder: pathlib.Path, port: int) -> tuple[dict[str, Account], processes.Process]:
    accounts = {name: Account(f"{name}-key", secrets.token_hex(16)) for name in ("root", "writer", "reader")}
    (folder / "buckets").mkdir(parents=True)
    (folder / "accounts").mkdir()
    # The form in which the server keeps its accounts.
    known = {
        account.access: {"access": account.access, "secret": account.secret, "role": "user"}
        for name, account in accounts.items()
        if name != "root"
    }
    (folder / "accounts/users.json").write_text(json.dumps({"accessAccounts": known}), encoding="utf-8")
    return accounts, _serve(run, folder, port, accounts["root"])


def _serve(run: Run, folder: pathlib.Path, port: int, root: Account) -> processes.Process:
    command: list[str | pathlib.Path] = [
        tools.find("versitygw"),
        f"--port=127.0.0.1:{port}",
        f"--region={REGION}",
        f"--iam-dir={folder / 'accounts'}",
        "--health=/health",
        "--quiet",
        "posix",
        *_metadata(folder),
        str(folder / "buckets"),
    ]
    secret = {"ROOT_ACCESS_KEY": root.access, "ROOT_SECRET_KEY": root.secret}
    process = run.started(processes.start("versitygw", command, folder, run.owner, secret))
    process.wait_until(lambda: _answers(port))
    return process


def _metadata(folder: pathlib.Path) -> list[str]:
    """The options that say where type, metadata and ETag of an object are kept.

    In the attributes of its file they are replaced together with the content. Where the file system has no room for
    attributes they are files beside it, and a reader may find those of the content before or after.
    """
    try:
        os.setxattr(folder, "user.metadata", b"fits")
    except OSError:
        beside = folder / "metadata"
        beside.mkdir(exist_ok=True)
        return [f"--sidecar={beside}"]
    return []


def _answers(port: int) -> bool:
    try:
        return requests.get(f"http://127.0.0.1:{port}/health", timeout=5).ok
    except requests.RequestException:
        return False
