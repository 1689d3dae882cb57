"""A way to the real API server on which things go wrong when a test wants it: cut, slow, gone, or down."""

from __future__ import annotations

import contextlib
import http.client
import http.server
import pathlib
import re
import socket
import threading
import time
import typing as t
import urllib.parse

from tests.testbed.plugin.identity import Identity

_VERSION = re.compile("resourceVersion=[0-9]+")


class ApiProxy:
    """Listens on 127.0.0.1 without TLS, and asks as the identity of a kubeconfig. It ends with :meth:`close`."""

    def __init__(self, kubeconfig: pathlib.Path) -> None:
        self._identity = Identity(kubeconfig)
        self._open: set[socket.socket] = set()
        #: Kinds whose next watch asks for a version that the server has forgotten.
        self.forget: set[str] = set()
        #: Kinds whose next watch is answered with 410.
        self.gone: set[str] = set()
        #: Seconds before an answer begins.
        self.delay = 0.0
        #: What was asked, in order: kind and query.
        self.asked: list[tuple[str, dict[str, str]]] = []
        self._port = 0
        self._listener: http.server.ThreadingHTTPServer | None = None
        self.up()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._port}"

    def up(self) -> None:
        """Listens, always on the same port."""
        self._listener = http.server.ThreadingHTTPServer(("127.0.0.1", self._port), _handler(self))
        self._listener.daemon_threads = True
        self._port = self._listener.server_port
        threading.Thread(target=self._listener.serve_forever, args=(0.02,), daemon=True).start()

    def down(self) -> None:
        """Listens no more, and ends what is open."""
        if self._listener:
            self._listener.shutdown()
            self._listener.server_close()
            self._listener = None
        self.cut()

    def close(self) -> None:
        """Is down for ever."""
        self.down()
        self._identity.close()

    def cut(self) -> None:
        """Ends all connections where they are, in the middle of a line or not."""
        for one in list(self._open):
            with contextlib.suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)

    def watches(self, kind: str) -> list[dict[str, str]]:
        """The watches of a kind that were asked for."""
        return [query for name, query in list(self.asked) if name == kind and "watch" in query]

    def pass_on(self, request: http.server.BaseHTTPRequestHandler) -> None:
        """Answers a request as the API server does."""
        path, _, query = request.path.partition("?")
        kind = path.rpartition("/")[2]
        parameters = dict(urllib.parse.parse_qsl(query))
        self.asked.append((kind, parameters))
        asked = request.path
        if "watch" in parameters and kind in self.forget:
            self.forget.discard(kind)
            asked = _VERSION.sub("resourceVersion=1", asked)
        if "watch" in parameters and kind in self.gone:
            self.gone.discard(kind)
            request.send_error(410)
            return
        time.sleep(self.delay)
        ours = request.connection
        self._open.add(ours)
        upstream = self._identity.connect()
        try:
            upstream.request("GET", asked, headers={**self._identity.headers, "Accept": "application/json"})
            self._open.add(upstream.sock)
            answer = upstream.getresponse()
            request.send_response(answer.status)
            request.send_header("Content-Type", "application/json")
            request.send_header("Transfer-Encoding", "chunked")
            request.end_headers()
            while part := answer.read1(65536):
                request.wfile.write(b"%x\r\n%s\r\n" % (len(part), part))
                request.wfile.flush()
            request.wfile.write(b"0\r\n\r\n")
        except (OSError, http.client.HTTPException):
            request.close_connection = True
        finally:
            self._open.discard(ours)
            if upstream.sock:
                self._open.discard(upstream.sock)
            upstream.close()


def _handler(proxy: ApiProxy) -> type[http.server.BaseHTTPRequestHandler]:
    class Handler(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            proxy.pass_on(self)

        def handle_one_request(self) -> None:
            with contextlib.suppress(ConnectionError, ValueError):
                super().handle_one_request()
                return
            self.close_connection = True

        def log_message(self, *values: t.Any) -> None:
            pass

    return Handler
