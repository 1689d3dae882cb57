"""A bucket: accounts, settings, and a server that stops or is slow."""

from __future__ import annotations

import contextlib
import os
import pathlib
import socketserver
import ssl
import subprocess
import sys
import textwrap
import threading
import time

import pytest

from htrflow_batch.errors import PermanentError, TransientError
from htrflow_batch.keys import Keys
from htrflow_batch.s3_client import S3Settings
from htrflow_batch.s3_store import S3Store
from tests.testbed.plugin.certificates import Authority
from tests.testbed.plugin.s3 import Account, OwnStore
from tests.testbed.plugin.s3 import Store as Server
from tests.wrapper.stores import credentials, s3_store

XML = "application/xml"


def test_an_account_without_the_right_to_write_is_told_so(s3: Server, tmp_path: pathlib.Path) -> None:
    with s3_store(s3, tmp_path) as writer:
        writer.put("ns/key", b"text", "text/plain")
    with s3_store(s3, tmp_path, s3.reader) as reader:
        found = reader.get("ns/key")
        assert found is not None
        assert found.content == b"text"
        with pytest.raises(PermanentError, match=r"cannot write ns/key in bucket .* no right .* Secret"):
            reader.put("ns/key", b"other", "text/plain")


@pytest.mark.parametrize(
    ("access", "secret", "settings", "message"),
    [
        (None, "wrong-secret-value", {}, "aws_secret_access_key in the Secret"),
        ("stranger", "wrong-secret-value", {}, "aws_access_key_id and S3_ENDPOINT in the Secret"),
        (None, None, {"bucket": "no-such-bucket-here"}, "there is no such bucket — check S3_BUCKET"),
        (None, None, {"bucket": "Not A Bucket"}, "check S3_BUCKET"),
    ],
)
def test_what_is_wrong_with_the_secret_is_said_without_it(
    s3: Server,
    tmp_path: pathlib.Path,
    access: str | None,
    secret: str | None,
    settings: dict[str, str],
    message: str,
) -> None:
    account = Account(access or s3.writer.access, secret or s3.writer.secret)
    with s3_store(s3, tmp_path, account, **settings) as store:
        for act in (lambda: list(store.list("ns/")), lambda: store.put("ns/key", b"", XML)):
            with pytest.raises(PermanentError, match=message) as caught:
                act()
            assert account.secret not in str(caught.value)
            assert caught.value.__cause__ is None


@pytest.mark.parametrize(
    "content", [None, "", "[other]\naws_access_key_id = x\n", "[default]\naws_access_key_id = x\n", "]["]
)
def test_a_file_without_keys_is_said_to_be_one(s3: Server, tmp_path: pathlib.Path, content: str | None) -> None:
    file = tmp_path / "credentials"
    if content is not None:
        file.write_text(content)
    with pytest.raises(PermanentError, match=r"no keys of the store in .*credentials — write aws_access_key_id"):
        S3Store(S3Settings(s3.bucket, file, s3.url))


def test_the_message_that_the_documentation_shows_is_a_real_one(s3: Server, tmp_path: pathlib.Path) -> None:
    page = pathlib.Path(__file__).parent.parent.parent / "docs/s3-layout.md"
    (shown,) = [line for line in page.read_text(encoding="utf-8").splitlines() if line.startswith("cannot write ")]
    key = Keys("htr-batch/", "demo-v1", "R0001203").page(1)

    with s3_store(s3, tmp_path, Account(s3.writer.access, "wrong")) as store, pytest.raises(PermanentError) as caught:
        store.put(key, b"", XML)

    said = str(caught.value).replace(s3.url, "https://s3.example.org").replace(s3.bucket, "results")
    assert said == shown


@pytest.mark.parametrize("endpoint", ["s3.example.org", "http://", "http://user:password@a b?token=x"])
def test_an_endpoint_that_is_no_address_is_said_to_be_none(tmp_path: pathlib.Path, endpoint: str) -> None:
    file = credentials(tmp_path, Account("a", "b"))
    with pytest.raises(PermanentError, match="http:// or https://") as caught:
        S3Store(S3Settings("bucket", file, endpoint))
    assert "password" not in str(caught.value)
    assert "token" not in str(caught.value)


def test_keys_that_were_replaced_while_it_runs_are_read_again(s3: Server, tmp_path: pathlib.Path) -> None:
    with s3_store(s3, tmp_path, Account(s3.writer.access, "old")) as store:
        credentials(tmp_path, s3.writer)
        store.put("ns/key", b"text", "text/plain")
        assert store.head("ns/key") is not None


def test_the_environment_does_not_say_where_the_store_is(s3: Server, tmp_path: pathlib.Path) -> None:
    file = credentials(tmp_path, s3.writer)
    program = textwrap.dedent("""
        import pathlib, sys
        from htrflow_batch.s3_store import S3Store
        from htrflow_batch.s3_client import S3Settings
        store = S3Store(S3Settings(sys.argv[1], pathlib.Path(sys.argv[2]), sys.argv[3]))
        store.put("ns/key", b"text", "text/plain")
    """)
    misleading = {
        "AWS_PROFILE": "none",
        "AWS_ACCESS_KEY_ID": "x",
        "AWS_SECRET_ACCESS_KEY": "x",
        "AWS_ENDPOINT_URL": "http://127.0.0.1:1",
        "AWS_CONFIG_FILE": str(file),
        "AWS_MAX_ATTEMPTS": "1",
    }
    done = subprocess.run(
        [sys.executable, "-c", program, s3.bucket, str(file), s3.url],
        env={**os.environ, **misleading},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    with s3_store(s3, tmp_path) as store:
        assert store.head("ns/key") is not None


def test_a_store_that_is_stopped_is_an_error_for_a_while_and_works_again_once_started(
    own_s3: OwnStore, tmp_path: pathlib.Path
) -> None:
    with s3_store(own_s3, tmp_path, attempts=3) as store:
        store.put("ns/key", b"text", "text/plain")
        own_s3.stop()
        for act in (
            lambda: store.put("ns/key", b"new", "text/plain"),
            lambda: store.put("ns/other", b"new", "text/plain", if_none_match=True),
            lambda: store.get("ns/key"),
            lambda: store.head("ns/key"),
            lambda: list(store.list("ns/")),
        ):
            started = time.monotonic()
            with pytest.raises(TransientError, match=r"cannot \w+ ns/\w* in bucket .* for a while: .* reachable"):
                act()
            assert time.monotonic() - started < 15
        own_s3.start()

        found = store.get("ns/key")
        assert found is not None
        assert found.content == b"text"
        store.put("ns/key", b"new", "text/plain")


def test_a_store_that_is_too_slow_is_an_error_for_a_while(own_s3: OwnStore, tmp_path: pathlib.Path) -> None:
    with s3_store(own_s3, tmp_path, attempts=2, read_timeout=0.3) as store:
        store.put("ns/key", b"x" * 400_000, "text/plain")
        own_s3.slow(delay=1)
        started = time.monotonic()
        with pytest.raises(TransientError, match="ReadTimeoutError"):
            store.get("ns/key")
        assert time.monotonic() - started < 10
        own_s3.slow(pace=100_000)  # each read is in time, the whole is not
        started = time.monotonic()
        with pytest.raises(TransientError, match="ReadTimeoutError"):
            store.get("ns/key")
        assert time.monotonic() - started < 3
        own_s3.slow()
        assert store.head("ns/key") is not None


class _Handshakes(socketserver.StreamRequestHandler):
    def handle(self) -> None:
        with contextlib.suppress(OSError):
            self.server.context.wrap_socket(self.request, server_side=True).close()  # type: ignore[attr-defined]


def test_a_certificate_counts_only_if_its_authority_is_trusted(tmp_path: pathlib.Path) -> None:
    authority = Authority(tmp_path, "authority")
    authority.server(tmp_path / "server.crt", tmp_path / "server.key", "127.0.0.1")
    server = socketserver.ThreadingTCPServer(("127.0.0.1", 0), _Handshakes)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(tmp_path / "server.crt", tmp_path / "server.key")
    server.context = context  # type: ignore[attr-defined]
    file = credentials(tmp_path, Account("key", "secret"))
    endpoint = f"https://127.0.0.1:{server.server_address[1]}"
    with server:
        thread = threading.Thread(target=server.serve_forever, args=(0.02,))
        thread.start()
        try:
            stranger = S3Store(S3Settings("b", file, endpoint, attempts=2))
            with pytest.raises(PermanentError, match="its certificate is not trusted"):
                stranger.get("ns/key")
            # The handshake is all that this server does.
            for verify in (authority.certificate, False):
                store = S3Store(S3Settings("b", file, endpoint, attempts=2, verify=verify))
                with pytest.raises(TransientError, match="no whole answer came"):
                    store.get("ns/key")
        finally:
            server.shutdown()
            thread.join()
