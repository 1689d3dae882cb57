"""A way to the real API server on which things go wrong when a test wants it."""

from __future__ import annotations

import dataclasses
import email.utils
import http.client
import http.server
import json
import pathlib
import re
import socket
import threading
import time
import typing as t
import urllib.parse

from tests.testbed.plugin.control_plane import write_kubeconfig
from tests.testbed.plugin.identity import Identity


@dataclasses.dataclass(frozen=True)
class Asked:
    """One request: ``what`` is such as ``jobs/letters``, ``number`` counts the writes from 1, 0 for a read."""

    method: str
    what: str
    query: t.Mapping[str, str]
    number: int

    @property
    def is_dry_run(self) -> bool:
        return "dryRun" in self.query

    def __str__(self) -> str:
        return f"{self.method} {self.what}{' (dry run)' * self.is_dry_run}"


@dataclasses.dataclass(frozen=True)
class Fault:
    """What comes in place of the answer. With ``after`` the API server does what it was asked, and only then."""

    status: int = 0
    after: bool = False
    headers: t.Mapping[str, str] = dataclasses.field(default_factory=dict)
    do: t.Callable[[], None] = lambda: None
    #: Passes the request on although it is a fault, so that only ``do`` is extra.
    passes: bool = False

    def __str__(self) -> str:
        return f"{self.status or 'cut'}{'-after' * self.after}"

    @property
    def cuts(self) -> bool:
        return not self.status and not self.passes


CUT = Fault()
Script = t.Callable[[Asked], Fault | None]


class Proxy:
    """Listens on 127.0.0.1 without TLS, and asks as the administrator. ``script`` says what goes wrong."""

    def __init__(self, admin: pathlib.Path, folder: pathlib.Path, script: Script = lambda asked: None) -> None:
        self._identity = Identity(admin)
        self.script = script
        self.asked: list[Asked] = []
        #: Of its clock, which it puts in place of the API server's.
        self.minutes_ahead = 0.0
        self._writes = 0
        self._lock = threading.Lock()
        self._server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), _handler(self))
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,))
        self._thread.start()
        self.kubeconfig = folder / "proxy.kubeconfig"
        write_kubeconfig(self.kubeconfig, f"http://127.0.0.1:{self._server.server_port}")

    def close(self) -> None:
        """Listens no more."""
        if not self._thread.is_alive():
            return
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()
        self._identity.close()

    @property
    def writes(self) -> list[str]:
        """What was to be written, in order."""
        return [str(one) for one in self.asked if one.number]

    def forget(self) -> None:
        """Begins to count anew."""
        self.asked, self._writes = [], 0

    def answer(self, request: http.server.BaseHTTPRequestHandler) -> None:
        """Answers a request as the API server does, or as the script wants it."""
        body = request.rfile.read(int(request.headers.get("Content-Length", 0)))
        asked = self._note(request)
        fault = self.script(asked)
        if fault is None or fault.after or fault.passes:
            status, headers, content = self._pass_on(request, body)
        if fault is not None:
            fault.do()
            if fault.cuts:
                self._cut(request)
                return
            if not fault.passes:
                status, headers = fault.status, {**fault.headers}
                content = json.dumps({"kind": "Status", "message": f"the proxy says {status}", "code": status}).encode()
        request.send_response_only(status)
        request.send_header("Date", email.utils.formatdate(time.time() + 60 * self.minutes_ahead, usegmt=True))
        for name, value in {**headers, "Content-Length": str(len(content))}.items():
            request.send_header(name, value)
        request.end_headers()
        request.wfile.write(content)

    def _note(self, request: http.server.BaseHTTPRequestHandler) -> Asked:
        path, _, query = request.path.partition("?")
        what = re.sub("^.*?/namespaces/[^/]+/", "", path)
        with self._lock:
            writes = request.command != "GET"
            self._writes += writes
            asked = Asked(request.command, what, dict(urllib.parse.parse_qsl(query)), self._writes if writes else 0)
            self.asked.append(asked)
        return asked

    def _pass_on(self, request: http.server.BaseHTTPRequestHandler, body: bytes) -> tuple[int, dict[str, str], bytes]:
        upstream = self._identity.connect(timeout=60)
        try:
            kept = {name: request.headers[name] for name in ("Accept", "Content-Type") if name in request.headers}
            upstream.request(request.command, request.path, body or None, {**kept, **self._identity.headers})
            answer = upstream.getresponse()
            headers = {name: answer.headers[name] for name in ("Content-Type", "Retry-After") if name in answer.headers}
            return answer.status, headers, answer.read()
        finally:
            upstream.close()

    def _cut(self, request: http.server.BaseHTTPRequestHandler) -> None:
        """Half-closes the connection: the client can send on, and gets nothing."""
        request.close_connection = True
        request.connection.shutdown(socket.SHUT_WR)


def _handler(proxy: Proxy) -> type[http.server.BaseHTTPRequestHandler]:
    class Handler(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def handle_one_request(self) -> None:
            try:
                super().handle_one_request()
            except (ConnectionError, ValueError):
                self.close_connection = True

        def do(self) -> None:
            proxy.answer(self)

        do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = do  # noqa: N815

        def log_message(self, *values: t.Any) -> None:
            pass

    return Handler
