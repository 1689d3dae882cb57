"""A small archive on loopback: two volumes of drawn pages, served as IIIF."""

from __future__ import annotations

import dataclasses
import http.server
import io
import json
import threading
import typing as t
import urllib.parse

from tests.models import drawing
from tests.models.drawing import Face

_PRESENTATION = "http://iiif.io/api/presentation/3/context.json"
_IMAGE = "http://iiif.io/api/image/3/context.json"


@dataclasses.dataclass(frozen=True, slots=True)
class Sheet:
    """One page of a volume. ``text`` is what stands on it; ``lost`` says that the archive has no image of it."""

    seed: int
    face: Face | None = None
    lost: bool = False

    def drawn(self) -> drawing.Page:
        """The page, blank where nobody wrote on it."""
        return drawing.page(self.seed, self.face) if self.face else drawing.blank_page(self.seed)


#: Each volume's label and pages. Of the first, a page is missing; each has a blank one, and a hand of its own.
VOLUMES: t.Mapping[str, tuple[str, tuple[Sheet, ...]]] = {
    "dombok-1734": (
        "Dombok 1734",
        (
            Sheet(7001, Face.DANCING),
            Sheet(7002, Face.DANCING),
            Sheet(7003),
            Sheet(7004, Face.DANCING),
            Sheet(7005, Face.DANCING, lost=True),
            Sheet(7006, Face.DANCING),
        ),
    ),
    "brev-1802": (
        "Brev 1802",
        (Sheet(7101, Face.BREIP), Sheet(7102, Face.BREIP), Sheet(7103), Sheet(7104, Face.BREIP)),
    ),
}


class Archive:
    """Serves :data:`VOLUMES` at ``/<volume>/manifest.json``, with the Image API at level 0.

    Port 0 takes a free one. Raises ``OSError`` when the port is not to be had.
    """

    def __init__(self, port: int = 0) -> None:
        self._files: dict[str, tuple[str, bytes]] = {}
        self._server = http.server.ThreadingHTTPServer(("127.0.0.1", port), _handler(self._files))
        self.port = int(self._server.server_address[1])
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"
        for name, (label, sheets) in VOLUMES.items():
            self._add(name, label, sheets)
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def manifest(self, volume: str) -> str:
        """The address of a volume's manifest."""
        return f"{self.url}/{volume}/manifest.json"

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()

    def _add(self, name: str, label: str, sheets: t.Sequence[Sheet]) -> None:
        canvases = []
        for number, sheet in enumerate(sheets, 1):
            page = sheet.drawn().image
            service, (width, height) = f"{self.url}/{name}/{number}", page.size
            information = {
                "@context": _IMAGE,
                "id": service,
                "type": "ImageService3",
                "protocol": "http://iiif.io/api/image",
                "profile": "level0",
                "width": width,
                "height": height,
                "sizes": [{"width": width, "height": height}],
            }
            self._put(f"/{name}/{number}/info.json", "application/ld+json", json.dumps(information).encode())
            if not sheet.lost:
                written = io.BytesIO()
                page.save(written, "JPEG", quality=88)
                for size in ("max", f"{width},{height}", f"{width},"):
                    self._put(f"/{name}/{number}/full/{size}/0/default.jpg", "image/jpeg", written.getvalue())
            canvases.append(_canvas(f"{self.url}/{name}/canvas/{number}", service, number, width, height))
        manifest = {
            "@context": _PRESENTATION,
            "id": self.manifest(name),
            "type": "Manifest",
            "label": {"sv": [label]},
            "items": canvases,
        }
        self._put(f"/{name}/manifest.json", "application/ld+json", json.dumps(manifest).encode())

    def _put(self, path: str, kind: str, content: bytes) -> None:
        self._files[path] = (kind, content)


def _canvas(canvas: str, service: str, number: int, width: int, height: int) -> dict[str, t.Any]:
    size = {"width": width, "height": height}
    body = {
        "id": f"{service}/full/max/0/default.jpg",
        "type": "Image",
        "format": "image/jpeg",
        **size,
        "service": [{"id": service, "type": "ImageService3", "profile": "level0"}],
    }
    painting = {"type": "Annotation", "motivation": "painting", "target": canvas, "body": body}
    page = {"id": f"{canvas}/page", "type": "AnnotationPage", "items": [{"id": f"{canvas}/painting", **painting}]}
    return {"id": canvas, "type": "Canvas", "label": {"none": [str(number)]}, **size, "items": [page]}


def _handler(files: t.Mapping[str, tuple[str, bytes]]) -> type[http.server.BaseHTTPRequestHandler]:
    class Handler(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            kind, content = files.get(urllib.parse.unquote(self.path), ("text/plain", b""))
            self.send_response_only(200 if content else 404)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(content)))
            # A viewer on another address reads manifests and images.
            self.send_header("Access-Control-Allow-Origin", "*")
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *values: object) -> None:
            return

    return Handler
