"""GitHub's REST API for the comments of issues, on loopback: it keeps comments, pages, and knows who may do what."""

from __future__ import annotations

import http.server
import json
import re
import threading
import typing as t
import urllib.parse

_BOT = {"login": "github-actions[bot]", "type": "Bot"}


class GitHub:
    """A server of its own, with the comments of one repository.

    ``writers`` are the tokens that may write, ``readers`` those that may only read. ``longest`` is how many characters
    a comment may have.
    """

    longest = 65_536

    def __init__(self) -> None:
        self.comments: list[dict[str, t.Any]] = []
        self.requests: list[tuple[str, str]] = []
        self.writers, self.readers = {"may-write"}, {"may-read"}
        #: An answer in place of the API's own.
        self.broken: int | None = None
        outer = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                outer._answer(self)

            def do_POST(self) -> None:
                outer._answer(self)

            def do_PATCH(self) -> None:
                outer._answer(self)

            def log_message(self, *_: t.Any) -> None:
                pass

        self._server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)
        self._thread.start()

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self._server.server_port}"

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def add(self, body: str, *, association: str = "NONE", user: t.Mapping[str, str] | None = None) -> dict[str, t.Any]:
        """Another comment, of somebody else unless ``user`` says whose."""
        comment = {
            "id": 1000 + len(self.comments),
            "body": body,
            "user": dict(user or {"login": "somebody", "type": "User"}),
            "author_association": association,
        }
        self.comments.append(comment)
        return comment

    def _answer(self, request: http.server.BaseHTTPRequestHandler) -> None:
        self.requests.append((request.command, request.path))
        length = int(request.headers.get("Content-Length") or 0)
        sent = json.loads(request.rfile.read(length) or b"null")
        status, answer = self._status(request, sent)
        body = json.dumps(answer).encode()
        request.send_response(status)
        if 300 <= status < 400:
            request.send_header("Location", f"{self.address}/elsewhere")
        request.send_header("Content-Type", "application/json; charset=utf-8")
        request.send_header("Content-Length", str(len(body)))
        request.end_headers()
        request.wfile.write(body)

    def _status(self, request: http.server.BaseHTTPRequestHandler, sent: t.Any) -> tuple[int, t.Any]:
        if self.broken is not None:
            return self.broken, {"message": "broken"}
        token = request.headers.get("Authorization", "").removeprefix("Bearer ")
        if token not in self.writers | self.readers:
            return 401, {"message": "Bad credentials"}
        url = urllib.parse.urlsplit(request.path)
        if re.fullmatch(r"/repos/arkiv/campaigns/issues/7/comments", url.path) and request.command == "GET":
            query = urllib.parse.parse_qs(url.query)
            size = min(100, int(query.get("per_page", ["30"])[0]))
            start = size * (int(query.get("page", ["1"])[0]) - 1)
            return 200, self.comments[start : start + size]
        if token not in self.writers:
            return 403, {"message": "Resource not accessible by integration"}
        if len(sent.get("body", "").encode("utf-16-le")) // 2 > self.longest:
            return 422, {"message": "Validation Failed"}
        if re.fullmatch(r"/repos/arkiv/campaigns/issues/7/comments", url.path) and request.command == "POST":
            return 201, self.add(sent["body"], user=_BOT)
        match = re.fullmatch(r"/repos/arkiv/campaigns/issues/comments/(\d+)", url.path)
        if match and request.command == "PATCH":
            comment = next(comment for comment in self.comments if comment["id"] == int(match[1]))
            comment["body"] = sent["body"]
            return 200, comment
        return 404, {"message": "Not Found"}
