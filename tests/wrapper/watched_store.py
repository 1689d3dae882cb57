"""A way to the store that counts what is written, and calls a test before and after each write."""

from __future__ import annotations

import collections
import contextlib
import http.client
import http.server
import threading
import typing as t
import urllib.parse

Moment = t.Literal["before", "after"]
_HOP = {"connection", "keep-alive", "transfer-encoding"}


class WatchedStore:
    """Passes requests on unchanged, with their signatures. ``url`` is where clients go instead.

    ``watch`` is called with the key and the moment of each write. ``written`` counts the writes of each key that the
    store took, ``sent`` the bytes of all writes of a key.
    """

    def __init__(self, target: str, watch: t.Callable[[str, Moment], None] = lambda key, moment: None) -> None:
        self.target = urllib.parse.urlsplit(target)
        self.watch = watch
        self.written: collections.Counter[str] = collections.Counter()
        self.sent: collections.Counter[str] = collections.Counter()
        self.order: list[str] = []
        self.lock = threading.Lock()
        self._server = _Server(("127.0.0.1", 0), _handler(self))
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()


class _Server(http.server.ThreadingHTTPServer):
    def handle_error(self, request: t.Any, client_address: t.Any) -> None:
        """A client that was killed is what these tests are about."""


def _handler(store: WatchedStore) -> type[http.server.BaseHTTPRequestHandler]:
    class Handler(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def _pass_on(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            key = urllib.parse.unquote(self.path.partition("?")[0]).removeprefix("/").partition("/")[2]
            put = self.command == "PUT"
            if put:
                store.watch(key, "before")
            assert store.target.hostname is not None
            connection = http.client.HTTPConnection(store.target.hostname, store.target.port, timeout=30)
            try:
                connection.request(self.command, self.path, body, dict(self.headers.items()))
                answer = connection.getresponse()
                content = answer.read()
            finally:
                connection.close()
            if put and answer.status == 200:
                with store.lock:
                    store.written[key] += 1
                    store.sent[key] += len(body)
                    store.order.append(key)
                store.watch(key, "after")
            with contextlib.suppress(OSError):
                self.send_response_only(answer.status, answer.reason)
                for name, value in answer.getheaders():
                    if name.lower() not in _HOP | {"content-length"} or (self.command == "HEAD"):
                        self.send_header(name, value)
                if self.command != "HEAD":
                    self.send_header("Content-Length", str(len(content)))
                self.end_headers()
                self.wfile.write(content)

        do_GET = do_PUT = do_HEAD = do_POST = do_DELETE = _pass_on  # noqa: N815

        def log_message(self, *values: object) -> None:
            return

    return Handler
