"""A connection to the Kubernetes API: reading, watching, and patching an object.

It is urllib3, which is there with ``requests``. The official client brings 60 000 lines of generated models, of which
each pod would become one, and its watch neither takes bookmarks nor can be stopped by another thread; the smaller
clients are written for writing. Needed are ``GET`` of a list and of a stream of lines, with a time limit for each of
them, and one ``PATCH``.
"""

from __future__ import annotations

import base64
import collections
import json
import pathlib
import ssl
import tempfile
import typing as t
import urllib.parse

import urllib3
import yaml

from htrflow_status.sources.fields import Object

SERVICE_ACCOUNT = pathlib.Path("/var/run/secrets/kubernetes.io/serviceaccount")
_CONNECT_SECONDS, _READ_SECONDS = 5.0, 30.0
#: The API server sends a bookmark about once a minute. A stream that is silent for longer has lost its other end.
_SILENT_SECONDS = 90.0


class ApiError(Exception):
    """The API server refused. ``status`` is the HTTP status, ``retry_after`` seconds that it asks to wait."""

    def __init__(self, status: int, message: str, retry_after: float = 0.0) -> None:
        super().__init__(message)
        self.status = status
        self.retry_after = retry_after


class UnreachableError(Exception):
    """No whole answer came. ``slow`` says that the server was there and did not answer in time."""

    def __init__(self, message: str, *, slow: bool) -> None:
        super().__init__(message)
        self.slow = slow


class ConfigurationError(Exception):
    """The server or the identity cannot be made out. The message is one sentence."""


class Connection:
    """The API as one identity sees it. Threads may share it."""

    def __init__(
        self,
        server: str,
        context: ssl.SSLContext | None = None,
        token: t.Callable[[], str] | None = None,
        headers: t.Mapping[str, str] | None = None,
        *,
        read_seconds: float = _READ_SECONDS,
        silent_seconds: float = _SILENT_SECONDS,
    ) -> None:
        """``token`` is asked for each request, since the kubelet renews it.

        ``read_seconds`` and ``silent_seconds`` are how long a server may say nothing: before an answer, and in a watch.
        """
        self._server, self._token, self._headers = server.rstrip("/"), token, dict(headers or {})
        self._seconds, self._silent = read_seconds, silent_seconds
        # Each watch holds a connection.
        self._pool = urllib3.PoolManager(num_pools=2, maxsize=64, retries=False, ssl_context=context)

    @classmethod
    def in_cluster(cls, environ: t.Mapping[str, str], folder: pathlib.Path = SERVICE_ACCOUNT) -> Connection:
        """As the service account of the pod that this runs in. Raises :class:`ConfigurationError`."""
        host, port = environ.get("KUBERNETES_SERVICE_HOST"), environ.get("KUBERNETES_SERVICE_PORT", "443")
        if not host:
            raise ConfigurationError("there is no KUBERNETES_SERVICE_HOST — run it in a pod, or name a kubeconfig")
        try:
            context = ssl.create_default_context(cafile=str(folder / "ca.crt"))
            token = folder / "token"
            token.read_text(encoding="ascii")
        except (OSError, ValueError) as error:
            message = f"the service account in {folder} cannot be read ({error}) — set automountServiceAccountToken"
            raise ConfigurationError(message) from None
        shown = f"[{host}]" if ":" in host else host
        return cls(f"https://{shown}:{port}", context, lambda: token.read_text(encoding="ascii").strip())

    @classmethod
    def of_kubeconfig(cls, file: pathlib.Path, **options: t.Any) -> Connection:
        """As the current context of a kubeconfig says. Raises :class:`ConfigurationError`."""
        try:
            cluster, user = _current(yaml.safe_load(file.read_text(encoding="utf-8")))
            context = _context(cluster, user, file.parent)
            server = cluster["server"]
        except (OSError, ValueError, KeyError, TypeError, StopIteration, yaml.YAMLError) as error:
            message = f"{file} names no cluster and user that can be used ({type(error).__name__}: {error})"
            raise ConfigurationError(f"{message} — see kubectl config view") from None
        if "exec" in user or "auth-provider" in user:
            raise ConfigurationError(f"{file} has a user with a plugin — use one with a certificate or a token")
        headers = {"Impersonate-User": str(user["as"])} if "as" in user else {}
        return cls(server, context, _token(user, file.parent), headers, **options)

    def get(self, path: str, **query: str) -> dict[str, t.Any]:
        """What is at a path. Raises :class:`ApiError` and :class:`UnreachableError`."""
        answer = self._request(path, query, self._seconds, stream=False)
        try:
            found = json.loads(answer.data)
        except (ValueError, RecursionError):
            raise UnreachableError(f"the answer for {path} is no JSON", slow=False) from None
        if not isinstance(found, dict):
            raise UnreachableError(f"the answer for {path} is no object", slow=False)
        return found

    def patch(self, path: str, change: Object) -> None:
        """Merges a change into an object (RFC 7386). Raises as :meth:`get`."""
        self._request(path, {}, self._seconds, stream=False, change=change)

    def pages(self, path: str, size: int, **query: str) -> t.Iterator[dict[str, t.Any]]:
        """A list in pages of at most so many objects, so that it is never in memory as a whole."""
        more = ""
        while True:
            page = self.get(path, limit=str(size), **({"continue": more} if more else {}), **query)
            yield page
            metadata = page.get("metadata")
            more = str(metadata.get("continue") or "") if isinstance(metadata, dict) else ""
            if not more:
                return

    def stream(self, path: str, **query: str) -> Stream:
        """The events of a watch. Raises as :meth:`get`."""
        return Stream(self._request(path, {"watch": "true", **query}, self._silent, stream=True))

    def close(self) -> None:
        """Lets go of connections that nobody uses."""
        self._pool.clear()

    def _request(
        self, path: str, query: t.Mapping[str, str], seconds: float, *, stream: bool, change: Object | None = None
    ) -> urllib3.BaseHTTPResponse:
        headers = {"Accept": "application/json", "Accept-Encoding": "gzip", **self._headers}
        if change is not None:
            headers["Content-Type"] = "application/merge-patch+json"
        try:
            if self._token:
                headers["Authorization"] = f"Bearer {self._token()}"
            answer = self._pool.request(
                "GET" if change is None else "PATCH",
                f"{self._server}{path}?{urllib.parse.urlencode(query)}",
                headers=headers,
                body=None if change is None else json.dumps(change).encode(),
                preload_content=not stream,
                redirect=False,
                timeout=urllib3.Timeout(connect=_CONNECT_SECONDS, read=seconds),
            )
            if answer.status == 200:
                return answer
            raise _refusal(answer)
        except (urllib3.exceptions.HTTPError, OSError, ValueError) as error:
            raise _unreachable(error) from None


class Stream:
    """The events of one watch, as they come. Another thread may close it."""

    def __init__(self, answer: urllib3.BaseHTTPResponse) -> None:
        self._answer = answer

    def __iter__(self) -> t.Iterator[Object]:
        """Ends where the server ends it; raises :class:`UnreachableError` where the connection broke."""
        left: collections.deque[bytes] = collections.deque()
        try:
            for chunk in self._answer.stream(2**16, decode_content=True):
                *lines, rest = chunk.split(b"\n")
                for line in lines:
                    whole = b"".join((*left, line))
                    left.clear()
                    if whole and isinstance(event := json.loads(whole), dict):
                        yield event
                left.append(rest)
        except (urllib3.exceptions.HTTPError, OSError, ValueError, RecursionError) as error:
            raise _unreachable(error) from None
        finally:
            self._answer.close()

    def close(self) -> None:
        """Ends the iteration, also one that waits."""
        try:
            t.cast(urllib3.HTTPResponse, self._answer).shutdown()
        except (OSError, ValueError, RuntimeError):
            self._answer.close()


def _refusal(answer: urllib3.BaseHTTPResponse) -> ApiError:
    try:
        status = json.loads(answer.data)
        message = str(status["message"])
    except (ValueError, KeyError, TypeError, urllib3.exceptions.HTTPError):
        message = f"HTTP {answer.status}"
    finally:
        answer.close()
    after = answer.headers.get("Retry-After", "")
    return ApiError(answer.status, message, float(after) if after.isdigit() else 0.0)


def _unreachable(error: Exception) -> UnreachableError:
    # Of urllib3, a connection that was refused is a timeout as well.
    refused = isinstance(error, urllib3.exceptions.NewConnectionError)
    slow = isinstance(error, urllib3.exceptions.TimeoutError | TimeoutError) and not refused
    return UnreachableError(str(error), slow=slow)


def _current(config: t.Any) -> tuple[dict[str, t.Any], dict[str, t.Any]]:
    context = next(row["context"] for row in config["contexts"] if row["name"] == config["current-context"])
    cluster = next(row["cluster"] for row in config["clusters"] if row["name"] == context["cluster"])
    return cluster, next(row["user"] for row in config["users"] if row["name"] == context["user"]) or {}


def _context(cluster: dict[str, t.Any], user: dict[str, t.Any], folder: pathlib.Path) -> ssl.SSLContext | None:
    if not str(cluster["server"]).startswith("https:"):
        return None
    authority = _content(cluster, "certificate-authority", folder)
    context = ssl.create_default_context(cadata=authority.decode("ascii") if authority else None)
    if cluster.get("insecure-skip-tls-verify") is True:
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    certificate, key = _content(user, "client-certificate", folder), _content(user, "client-key", folder)
    if certificate and key:
        # The ssl module takes a certificate from a file alone.
        with tempfile.NamedTemporaryFile() as file:
            file.write(certificate + b"\n" + key)
            file.flush()
            context.load_cert_chain(file.name)
    return context


def _content(entry: dict[str, t.Any], key: str, folder: pathlib.Path) -> bytes | None:
    if f"{key}-data" in entry:
        return base64.b64decode(entry[f"{key}-data"])
    return (folder / entry[key]).read_bytes() if key in entry else None


def _token(user: dict[str, t.Any], folder: pathlib.Path) -> t.Callable[[], str] | None:
    if "tokenFile" in user:
        file = folder / user["tokenFile"]
        return lambda: file.read_text(encoding="ascii").strip()
    return (lambda: str(user["token"])) if "token" in user else None
