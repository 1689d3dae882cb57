"""A server that answers each path as a test wants it."""

from __future__ import annotations

import contextlib
import dataclasses
import email.message
import http
import http.server
import mimetypes
import pathlib
import socket
import struct
import threading
import time
import typing as t


@dataclasses.dataclass(frozen=True)
class Answer:
    """One answer. Nothing said, it is an empty page with the status 200."""

    body: bytes | str | pathlib.Path = b""
    status: int = 200
    #: Added to, or in place of, ``Content-Length`` and ``Content-Type``; None leaves a header out.
    headers: t.Mapping[str, str | None] = dataclasses.field(default_factory=dict)
    #: Seconds before the first byte, the status line.
    delay: float = 0.0
    #: Bytes a second of the body; 0 is as fast as it goes.
    pace: int = 0
    #: Ends the connection after so many bytes of the body, though more were announced.
    cut_after: int | None = None
    #: Ends it with a reset, as a crashed server does, and not properly.
    reset: bool = False

    def content(self) -> bytes:
        """The whole body."""
        if isinstance(self.body, pathlib.Path):
            return self.body.read_bytes()
        return self.body.encode() if isinstance(self.body, str) else self.body


@dataclasses.dataclass(frozen=True)
class Request:
    """One request that came."""

    method: str
    #: With its query.
    path: str
    headers: email.message.Message
    body: bytes


class MisbehavingHttp:
    """A server on 127.0.0.1. A path that was not set answers 404."""

    def __init__(self) -> None:
        self._answers: dict[str, list[Answer]] = {}
        self._folders: dict[str, pathlib.Path] = {}
        self._lock = threading.Lock()
        #: What came so far, in order.
        self.requests: list[Request] = []
        self._stopped = threading.Event()
        self._server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), _handler(self))
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,))
        self._thread.start()

    @property
    def url(self) -> str:
        """The address of the server, without a slash at the end."""
        return f"http://127.0.0.1:{self._server.server_port}"

    def put(self, path: str, *answers: Answer | bytes | str | pathlib.Path) -> str:
        """Sets the answers of a path, one a request; the last one stays. Returns the whole address."""
        wrapped = [item if isinstance(item, Answer) else Answer(item) for item in answers]
        with self._lock:
            self._answers[path] = wrapped or [Answer()]
        return self.url + path

    def redirect(self, path: str, to: str, status: int = 302) -> str:
        """Sends a path elsewhere. Returns the whole address."""
        return self.put(path, Answer(status=status, headers={"Location": to}))

    def serve(self, prefix: str, folder: pathlib.Path) -> str:
        """Serves the files of a folder under a path that ends in a slash. Returns the whole address."""
        with self._lock:
            self._folders[prefix] = folder.resolve()
        return self.url + prefix

    def count(self, path: str) -> int:
        """How many requests of a path came so far, whatever their query."""
        with self._lock:
            return sum(request.path.partition("?")[0] == path for request in self.requests)

    def close(self) -> None:
        """Ends the server and all its connections."""
        self._stopped.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def take(self, request: Request) -> Answer:
        """The answer to a request, which is noted."""
        path = request.path.partition("?")[0]
        with self._lock:
            self.requests.append(request)
            answers = self._answers.get(request.path) or self._answers.get(path)
            if answers:
                return answers.pop(0) if len(answers) > 1 else answers[0]
            for prefix, folder in self._folders.items():
                file = (folder / path.removeprefix(prefix)).resolve()
                if path.startswith(prefix) and file.is_relative_to(folder) and file.is_file():
                    return Answer(file)
        return Answer("not found\n", 404)

    def pause(self, seconds: float) -> bool:
        """Waits, and says whether the server still runs."""
        return not self._stopped.wait(seconds)


def _handler(site: MisbehavingHttp) -> type[http.server.BaseHTTPRequestHandler]:
    class Handler(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        timeout = 30

        def _handle(self) -> None:
            length = int(self.headers.get("Content-Length") or 0)
            answer = site.take(Request(self.command, self.path, self.headers, self.rfile.read(length)))
            with contextlib.suppress(ConnectionError, TimeoutError):
                if answer.delay and not site.pause(answer.delay):
                    self.close_connection = True
                    return
                self._say(answer)

        do_GET = do_HEAD = do_POST = do_PUT = do_DELETE = do_OPTIONS = _handle  # noqa: N815

        def _say(self, answer: Answer) -> None:
            content = answer.content()
            kind = mimetypes.guess_type(self.path.partition("?")[0])[0] or "text/plain"
            headers = {"Content-Type": kind, "Content-Length": str(len(content)), **answer.headers}
            phrase = http.HTTPStatus(answer.status).phrase if answer.status in set(http.HTTPStatus) else ""
            if answer.reset and answer.cut_after is None:
                self._reset()
                return
            self.send_response(answer.status, phrase)
            for name, value in headers.items():
                if value is not None:
                    self.send_header(name, value)
            if headers["Content-Length"] is None:
                self.close_connection = True
            self.end_headers()
            if self.command != "HEAD":
                self._send(content[: answer.cut_after], answer.pace)
            if answer.cut_after is not None:
                self.wfile.flush()
                self.close_connection = True
                if answer.reset:
                    self._reset()

        def _send(self, content: bytes, pace: int) -> None:
            if not pace:
                self.wfile.write(content)
                return
            started = time.monotonic()
            for sent in range(0, len(content), max(1, pace // 20)):
                self.wfile.write(content[sent : sent + max(1, pace // 20)])
                if not site.pause(max(0.0, started + sent / pace - time.monotonic())):
                    return

        def _reset(self) -> None:
            # With a linger time of zero the kernel throws away what is unsent and resets the connection.
            self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            self.close_connection = True
            self.connection.close()

        def log_message(self, *values: object) -> None:
            pass

    return Handler
