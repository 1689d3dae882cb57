"""A small Hugging Face Hub on loopback: what ``huggingface_hub`` asks for when it downloads a model, and no more."""

from __future__ import annotations

import hashlib
import http.server
import json
import pathlib
import re
import threading
import typing as t
import urllib.parse

from tests.models import hub

_API = re.compile("/api/models/(?P<repo>[^/]+/[^/]+)(?:/(?P<what>tree|revision)/(?P<revision>[^/]+)(?P<path>/.*)?)?")
_FILE = re.compile("/(?P<repo>[^/]+/[^/]+)/resolve/(?P<revision>[^/]+)/(?P<path>.+)")


class HubServer:
    """Serves folders as repositories, each at one revision, which ``main`` names too.

    ``requests`` are method and path of what was asked, ``tokens`` the values of ``Authorization`` that came. A status
    in ``refusing`` is the answer to everything. A repository in ``gated`` is for those with a token.
    """

    def __init__(self, repositories: t.Mapping[str, pathlib.Path]) -> None:
        self.repositories = dict(repositories)
        self.revisions = {name: hub.revision(folder) for name, folder in repositories.items()}
        self.requests: list[tuple[str, str]] = []
        self.tokens: set[str] = set()
        self.gated: set[str] = set()
        self.refusing: int | None = None
        self._server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), _handler(self))
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    @classmethod
    def of_the_demo(cls) -> HubServer:
        """With the small models of the tests."""
        return cls({repository: hub.WEIGHTS / name for name, repository in hub.REPOSITORIES.items()})

    @property
    def downloads(self) -> list[str]:
        """The paths of the files that were sent whole."""
        return [path for method, path in self.requests if method == "GET" and "/resolve/" in path]

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()


def _handler(server: HubServer) -> type[http.server.BaseHTTPRequestHandler]:
    class Handler(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            self._answer()

        def do_HEAD(self) -> None:
            self._answer()

        def _answer(self) -> None:
            path = urllib.parse.unquote(urllib.parse.urlsplit(self.path).path)
            server.requests.append((self.command, path))
            if token := self.headers.get("Authorization"):
                server.tokens.add(token)
            found = _API.fullmatch(path) or _FILE.fullmatch(path)
            repo = found["repo"] if found else ""
            if server.refusing is not None:
                return self._send(server.refusing, b"{}")
            if repo in server.gated and not token:
                return self._refuse(401, "GatedRepo", f"Access to model {repo} is restricted.")
            if repo not in server.repositories or found is None:
                return self._refuse(401, "RepoNotFound", "Repository not found")
            revision = found["revision"] or "main"
            if revision not in ("main", server.revisions[repo]):
                return self._refuse(404, "RevisionNotFound", f"Invalid rev id: {revision}")
            if path.startswith("/api/"):
                return self._tell(repo, found["what"], found["path"])
            return self._file(repo, found["path"])

        def _tell(self, repo: str, what: str | None, below: str | None) -> None:
            folder = server.repositories[repo]
            files = [file for file in sorted(folder.rglob("*")) if file.is_file()]
            if what != "tree":
                named = [{"rfilename": file.relative_to(folder).as_posix()} for file in files]
                return self._send(
                    200, json.dumps({"id": repo, "sha": server.revisions[repo], "siblings": named}).encode()
                )
            if below:
                return self._refuse(404, "EntryNotFound", "Entry not found")
            listed = [
                {
                    "type": "file",
                    "path": file.relative_to(folder).as_posix(),
                    "size": file.stat().st_size,
                    "oid": "0" * 40,
                }
                for file in files
            ]
            return self._send(200, json.dumps(listed).encode())

        def _file(self, repo: str, name: str) -> None:
            file = server.repositories[repo] / name
            if not file.is_file():
                return self._refuse(404, "EntryNotFound", "Entry not found")
            content = file.read_bytes()
            etag = hashlib.sha256(content).hexdigest()
            headers = {"ETag": f'"{etag}"', "X-Repo-Commit": server.revisions[repo], "Content-Disposition": "inline"}
            return self._send(200, content, headers)

        def _refuse(self, status: int, code: str, message: str) -> None:
            self._send(status, b"{}", {"X-Error-Code": code, "X-Error-Message": message})

        def _send(self, status: int, content: bytes, headers: t.Mapping[str, str] | None = None) -> None:
            self.send_response_only(status)
            for name, value in (headers or {}).items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(content)))
            self.send_header(
                "Content-Type", "application/json" if content[:1] in (b"{", b"[") else "application/octet-stream"
            )
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(content)

        def log_message(self, *values: object) -> None:
            return

    return Handler
