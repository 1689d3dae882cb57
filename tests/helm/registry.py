"""A small registry on this machine with an image in it, which may be signed as cosign signs."""

from __future__ import annotations

import base64
import hashlib
import http.server
import json
import threading
import typing as t

from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec

_MANIFEST = "application/vnd.oci.image.manifest.v1+json"
_CONFIG = "application/vnd.oci.image.config.v1+json"
#: A signature is an image of its own; its layer is a text that names the digest of the signed image.
_SIGNED_TEXT = "application/vnd.dev.cosign.simplesigning.v1+json"
_SIGNATURE = "dev.cosignproject.cosign/signature"


class Registry:
    """Serves images until :meth:`close`."""

    def __init__(self) -> None:
        self._found: dict[str, tuple[str, bytes]] = {}
        self._server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        self.address = f"127.0.0.1:{self._server.server_port}"

    def image(self, repository: str, key: ec.EllipticCurvePrivateKey | None = None) -> str:
        """Adds an image, signed with a key when there is one, and returns its name with its digest."""
        digest = self._push(repository, [(repository.encode(), "application/vnd.oci.image.layer.v1.tar", {})])
        if key:
            critical = {
                "identity": {"docker-reference": f"{self.address}/{repository}"},
                "image": {"docker-manifest-digest": digest},
                "type": "cosign container image signature",
            }
            text = json.dumps({"critical": critical, "optional": None}).encode()
            signature = base64.b64encode(key.sign(text, ec.ECDSA(hashes.SHA256()))).decode()
            layer = (text, _SIGNED_TEXT, {"annotations": {_SIGNATURE: signature}})
            self._push(repository, [layer], tag=f"{digest.replace(':', '-')}.sig")
        return f"{self.address}/{repository}@{digest}"

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()

    def _push(self, repository: str, layers: t.Iterable[tuple[bytes, str, dict[str, t.Any]]], tag: str = "") -> str:
        config = json.dumps({"architecture": "amd64", "os": "linux", "rootfs": {"type": "layers", "diff_ids": []}})
        manifest = {
            "schemaVersion": 2,
            "mediaType": _MANIFEST,
            "config": self._blob(repository, config.encode(), _CONFIG),
            "layers": [{**self._blob(repository, content, kind), **more} for content, kind, more in layers],
        }
        content = json.dumps(manifest).encode()
        digest = _digest(content)
        for reference in filter(None, (digest, tag)):
            self._found[f"/v2/{repository}/manifests/{reference}"] = (_MANIFEST, content)
        return digest

    def _blob(self, repository: str, content: bytes, kind: str) -> dict[str, t.Any]:
        digest = _digest(content)
        self._found[f"/v2/{repository}/blobs/{digest}"] = ("application/octet-stream", content)
        return {"mediaType": kind, "size": len(content), "digest": digest}

    def _handler(self) -> type[http.server.BaseHTTPRequestHandler]:
        found = self._found

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                kind, content = found.get(self.path, ("application/json", b"{}"))
                self.send_response(200 if self.path in found or self.path == "/v2/" else 404)
                self.send_header("Content-Type", kind)
                self.send_header("Content-Length", str(len(content)))
                self.send_header("Docker-Content-Digest", _digest(content))
                self.end_headers()
                if self.command == "GET":
                    self.wfile.write(content)

            do_HEAD = do_GET  # noqa: N815 -- the library's name

            def log_message(self, *_: object) -> None:
                pass

        return Handler


def _digest(content: bytes) -> str:
    return f"sha256:{hashlib.sha256(content).hexdigest()}"
