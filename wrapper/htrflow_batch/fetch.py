"""Downloads images and manifests from archives: safely, politely, and with a sentence for whatever goes wrong."""

from __future__ import annotations

import contextlib
import dataclasses
import http
import importlib.metadata
import pathlib
import time
import typing as t
import urllib.parse
import zlib

import requests
import urllib3

from htrflow_batch import addresses, answers, connections, errors, hosts, redact, retry_after, signatures

Kind = answers.Kind

MAX_REDIRECTS = 5

_ACCEPT: t.Final[t.Mapping[Kind, str]] = {
    "image": "image/jpeg, image/*;q=0.9, */*;q=0.8",
    "json": "application/ld+json, application/json;q=0.9, */*;q=0.8",
}
_REDIRECTS = {301, 302, 303, 307, 308}
_LATER = {202, 408, 425, 429}
# These two are no faults of a moment: the server knows no such request.
_NEVER = {501, 505}
_BLOCK = 64 * 1024
_SHORT = 4 * 1024


class Refused(errors.PageError):
    """The server's answer to this address is not the file, and will not be. Another address of the page may do."""

    def __init__(self, message: str, status: int) -> None:
        super().__init__(message)
        #: Of HTTP. It is 200 where a server sends something else as if it were the file.
        self.status = status


@dataclasses.dataclass(frozen=True, slots=True)
class Fetched:
    """A file that came whole."""

    content: bytes = dataclasses.field(repr=False)
    #: Where it came from in the end. It may hold a secret.
    url: str = dataclasses.field(repr=False)
    #: As the server says, in lower case and without parameters; empty if it does not.
    content_type: str

    @property
    def shown(self) -> str:
        """The address without secrets."""
        return redact.url(self.url)


@dataclasses.dataclass(slots=True)
class _Task:
    """One file on its way, over all its redirects."""

    kind: Kind
    limit: int
    accept: str
    #: Seconds that may still be spent on answers.
    left: float
    #: Whether every address was encrypted, or none. Headers that may hold a secret never go from https to http.
    was_https: bool = False


class Fetcher:
    """Fetches files over HTTP. Safe for threads.

    Args:
        contact: an address of mail or of a page where an archive finds who asks, for the ``User-Agent``.
        headers_by_host: headers for single servers, by ``host`` or ``host:port``. They go to no other server, and not
            over http once https was used.
        limits: of connections per server; :class:`hosts.Hosts` with its defaults otherwise.
        connect_seconds: the limit of one try to connect.
        silence_seconds: how long a server may send nothing.
        whole_seconds: the limit of one file with its redirects, without the waiting for a turn.
        version: for the ``User-Agent``; that of the installed package otherwise.
        authorities: a file of certificates to trust in place of the usual authorities.
        adapter: what makes the connections, in place of one that connects to any server.

    Raises:
        errors.PermanentError: the contact or a header cannot be sent in HTTP.
    """

    def __init__(
        self,
        contact: str | None,
        headers_by_host: t.Mapping[str, t.Mapping[str, str]] | None = None,
        *,
        limits: hosts.Hosts | None = None,
        connect_seconds: float = 10.0,
        silence_seconds: float = 30.0,
        whole_seconds: float = 300.0,
        version: str | None = None,
        authorities: pathlib.Path | None = None,
        adapter: connections.Adapter | None = None,
    ) -> None:
        self._agent = f"htrflow-batch/{version or importlib.metadata.version('htrflow-campaigns')}"
        if contact:
            self._agent += f" (+{contact})"
        connections.check_header("User-Agent", self._agent, "the contact")
        self._headers = {host.lower(): dict(named) for host, named in (headers_by_host or {}).items()}
        for host, named in self._headers.items():
            for name, value in named.items():
                connections.check_header(name, value, f"a header for {host}")
        self._hosts = limits or hosts.Hosts()
        self._connect = connect_seconds
        self._silence = silence_seconds
        self._whole = whole_seconds
        self._verify = str(authorities) if authorities else True
        self._adapter = adapter or connections.Adapter(pool_connections=32, pool_maxsize=32)

    def fetch(self, url: str, *, limit_bytes: int, kind: Kind) -> Fetched:
        """The file at an address, checked to be whole and to be what was asked for.

        Args:
            url: http or https. User info in it is sent as HTTP's basic authentication.
            limit_bytes: the cap of the file, counted after decompression.
            kind: ``image`` is a raster image by its first bytes, ``json`` what begins as a JSON object or array.

        Raises:
            Refused: the server answers with a status, or with something else; ``status`` says which.
            errors.PageError: the address, its redirects or the file's size are wrong.
            errors.LaterError: the server is overloaded, unreachable, too slow, or broke off.
            hosts.Closing: :meth:`close` was called.
        """
        task = _Task(kind, limit_bytes, _ACCEPT[kind], self._whole)
        asked = set()
        for _ in range(MAX_REDIRECTS + 1):
            request = self._request(url, task)
            if (request.url, task.accept) in asked:
                raise errors.PageError(f"{addresses.shown(url)} redirects in a circle — check the address.")
            asked.add((request.url, task.accept))
            with self._hosts.turn(addresses.host(request.url or "")):
                found = self._ask(request, task)
            if isinstance(found, Fetched):
                return found
            url = found
        raise errors.PageError(
            f"{addresses.shown(url)} comes after more than {MAX_REDIRECTS} redirects — check the address."
        )

    def close(self) -> None:
        """Ends the downloads that run or wait, within half a second, and every later one, with ``hosts.Closing``."""
        self._hosts.close()
        self._adapter.close()

    def _request(self, url: str, task: _Task) -> requests.PreparedRequest:
        url = addresses.quoted(url)
        if not url.lower().startswith(("http://", "https://")):
            raise errors.PageError(f"{addresses.shown(url)} is no address of http or https — give one that is.")
        try:
            headers = {"User-Agent": self._agent, "Accept": task.accept}
            headers["Accept-Encoding"] = "gzip" if task.kind == "json" else "identity"
            request = requests.Request("GET", url, headers=headers).prepare()
            parts = urllib.parse.urlsplit(request.url or "")
            port, name = parts.port or addresses.PORTS[parts.scheme], parts.hostname or ""
            if not name or ("%" in name and ":" not in name):
                raise ValueError("no name of a host")
        except (ValueError, KeyError, requests.RequestException):
            raise errors.PageError(
                f"{addresses.shown(url)} is no address that can be asked — check its host and port."
            ) from None
        task.was_https |= parts.scheme == "https"
        if parts.scheme == "https" or not task.was_https:
            request.headers.update(self._headers.get(f"{name}:{port}") or {})
            if port == addresses.PORTS[parts.scheme]:
                request.headers.update(self._headers.get(name) or {})
        return request

    def _ask(self, request: requests.PreparedRequest, task: _Task) -> Fetched | str:
        """The file, or the address to go on with."""
        url, start = request.url or "", time.monotonic()
        limits = connections.Limits(start + task.left, self._silence, self._check)
        try:
            with connections.limited(limits), contextlib.ExitStack() as stack:
                timeout = (min(self._connect, max(task.left, 0.01)), self._silence)
                answer = self._adapter.send(request, stream=True, timeout=timeout, verify=self._verify)
                stack.callback(_release, answer)
                return self._read(answer, url, task)
        except (requests.exceptions.InvalidURL, UnicodeError, urllib3.exceptions.LocationValueError):
            raise errors.PageError(
                f"{addresses.shown(url)} is no address that can be asked — check its host and port."
            ) from None
        except (requests.RequestException, urllib3.exceptions.HTTPError, OSError) as error:
            self._check()
            late = time.monotonic() >= limits.until
            said = (
                f"took longer than {self._whole:g} s" if late else answers.failure(error, self._connect, self._silence)
            )
            raise errors.LaterError(f"{addresses.shown(url)} {said}.") from None
        finally:
            task.left -= time.monotonic() - start

    def _read(self, answer: requests.Response, url: str, task: _Task) -> Fetched | str:
        status, headers = answer.status_code, answer.headers
        if status in _REDIRECTS and "Location" in headers:
            # HTTP's headers come as Latin-1, and servers write UTF-8.
            location = headers["Location"].encode("latin-1", "replace").decode("utf-8", "replace")
            try:
                return urllib.parse.urljoin(url, location.strip())
            except ValueError:
                raise Refused(
                    f"{addresses.shown(url)} redirects to what is no address — check the address.", status
                ) from None
        if status == http.HTTPStatus.NOT_ACCEPTABLE and task.accept != "*/*":
            task.accept = "*/*"
            return url
        if status in _LATER or (status >= 500 and status not in _NEVER):
            raise self._later(answer, url)
        self._hosts.fine(addresses.host(url))
        if status not in (200, 203):
            raise Refused(answers.refusal(addresses.shown(url), status, task.kind), status)
        content = b"".join(_blocks(answer, url, task))
        _expect(content, url, task.kind)
        return Fetched(content, url, headers.get("Content-Type", "").partition(";")[0].strip().lower())

    def _later(self, answer: requests.Response, url: str) -> errors.LaterError:
        after = retry_after.seconds(answer.headers.get("Retry-After"), answer.headers.get("Date"))
        if after is not None:
            after = self._hosts.pause(addresses.host(url), after)
        elif answer.status_code in (429, 503):
            self._hosts.pause(addresses.host(url))
        wish = "" if after is None else f" and wants to be asked again in {after:.0f} s"
        return errors.LaterError(
            f"{addresses.shown(url)} answered {answers.status_line(answer.status_code)}{wish}.", after
        )

    def _check(self) -> None:
        if self._hosts.closed:
            raise hosts.Closing


def _release(answer: requests.Response) -> None:
    """Ends the exchange. A connection whose answer is short and read to its end serves the next request."""
    with contextlib.suppress(urllib3.exceptions.HTTPError, OSError):
        if 0 < (answer.raw.length_remaining or 0) <= _SHORT:
            answer.raw.read1(_SHORT, decode_content=False)
    answer.close()


def _blocks(answer: requests.Response, url: str, task: _Task) -> t.Iterator[bytes]:
    """The body, decompressed, its size and first bytes checked while it comes."""
    declared = answer.headers.get("Content-Length", "")
    encoding = answer.headers.get("Content-Encoding", "").strip().lower()
    too_large = errors.PageError(f"{addresses.shown(url)} is larger than the limit of {task.limit} bytes.")
    if declared.isdecimal() and len(declared) < 20 and int(declared) > task.limit:
        raise too_large
    if encoding not in ("", "identity", "gzip", "x-gzip", "deflate"):
        raise Refused(f"{addresses.shown(url)} comes in an encoding that was not asked for.", 200)
    unpack = zlib.decompressobj(47) if encoding not in ("", "identity") else None
    head, size, raw_size = b"", 0, 0
    while raw := answer.raw.read1(_BLOCK, decode_content=False):
        raw_size += len(raw)
        while raw:
            block, raw, unpack = _unpacked(raw, unpack, task.limit - size + 1, url)
            size += len(block)
            if max(size, raw_size) > task.limit:
                raise too_large
            if len(head) < signatures.ENOUGH:
                head += block
                if len(head) >= signatures.ENOUGH:
                    _expect(head, url, task.kind)
            yield block
    if unpack and raw_size and not unpack.eof:
        raise errors.LaterError(f"{addresses.shown(url)} broke off before it was whole.")


def _unpacked(raw: bytes, unpack: t.Any, most: int, url: str) -> tuple[bytes, bytes, t.Any]:
    """At most so many bytes, the raw bytes that are left, and what unpacks those."""
    if unpack is None:
        return raw, b"", None
    try:
        block = unpack.decompress(raw, most)
    except zlib.error:
        raise Refused(f"{addresses.shown(url)} is not compressed as its server says.", 200) from None
    if unpack.eof and unpack.unused_data:
        return block, unpack.unused_data, zlib.decompressobj(47)
    return block, unpack.unconsumed_tail, unpack


def _expect(content: bytes, url: str, kind: Kind) -> None:
    head = content[: signatures.ENOUGH]
    if not (signatures.raster(head) if kind == "image" else signatures.is_json(head)):
        said = f"{addresses.shown(url)} is {signatures.name(head)} and not {answers.NOUN[kind]}"
        raise Refused(f"{said} — open it in a browser to see what is there.", 200)
