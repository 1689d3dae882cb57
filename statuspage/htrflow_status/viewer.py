"""Universal Viewer on a volume's ``iiif.json``, from our own origin.

The frame knows one manifest, the one of its own address: nothing in the address's fragment can make it load another.
"""

from __future__ import annotations

import dataclasses
import json
import pathlib
import typing as t

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute, Mount, Route
from starlette.staticfiles import StaticFiles

from htrflow_status import results_of, urls
from htrflow_status.looks import Looks, policy
from htrflow_status.model import Source
from htrflow_status.pages import Pages, ReaderOf, volume_of

#: What the viewer needs beyond our own pages: it styles its elements itself, and makes images and workers of data.
CSP = {
    "script-src": "'self' 'unsafe-eval'",
    "style-src": "'self' 'unsafe-inline'",
    "img-src": "'self' https: http: data: blob:",
    "connect-src": "'self' https: http:",
    "font-src": "'self' data:",
    "worker-src": "'self' blob:",
    "frame-ancestors": "'self'",
}


@dataclasses.dataclass(frozen=True, slots=True)
class Viewer:
    """The routes of the viewer. ``folder`` is its built ``dist``, None where it is not installed."""

    source: Source
    reader_of: ReaderOf
    looks: Looks
    pages: Pages
    folder: pathlib.Path | None

    def routes(self) -> list[BaseRoute]:
        volume = "/campaigns/{namespace}/{campaign}/{volume}"
        made: list[BaseRoute] = [
            Route(f"{volume}/viewer", self.page),
            Route(f"{volume}/viewer/frame", self.frame),
            Route(f"{volume}/iiif.json", self.manifest),
        ]
        if self.folder is not None:
            made.append(Mount("/viewer", StaticFiles(directory=self.folder)))
        return made

    async def page(self, request: Request) -> Response:
        """The page around the frame."""
        self.reader_of(request)
        campaign, volume = volume_of(request, self.source.snapshot())
        if self.folder is None:
            raise HTTPException(404)
        data = {
            "card": {"name": campaign.name, "url": urls.campaign(campaign)},
            "volume": {"id": volume.id, "url": urls.volume(campaign, volume.id)},
            "frame": f"{urls.viewer(campaign, volume.id)}/frame",
            "text_url": urls.read(campaign, volume.id, 1),
        }
        return self.looks.page(request, "viewer.html", data)

    async def frame(self, request: Request) -> Response:
        """The viewer itself."""
        self.reader_of(request)
        campaign, volume = volume_of(request, self.source.snapshot())
        manifest = f"{urls.volume(campaign, volume.id)}/iiif.json"
        answer = self.looks.page(request, "frame.html", {"manifest": manifest, "id": volume.id})
        answer.headers["Content-Security-Policy"] = policy(CSP)
        return answer

    async def manifest(self, request: Request) -> Response:
        """The volume's ``iiif.json`` with the search of this site beside it."""
        reader = self.reader_of(request)
        campaign, volume = volume_of(request, self.source.snapshot())
        keys = results_of.keys(campaign, volume.id)
        content = await reader.content(keys.iiif) if keys else None
        found = _manifest(content)
        if found is None:
            raise HTTPException(404)
        address = str(request.url.replace(path=urls.search(campaign, volume.id), query=""))
        found["service"] = [
            {"id": address, "type": "SearchService2"},
            {
                "@context": "http://iiif.io/api/search/1/context.json",
                "@id": f"{address}?version=1",
                "@type": "SearchService1",
                "profile": "http://iiif.io/api/search/1/search",
                "label": "search",
            },
        ]
        return JSONResponse(found, headers={"Cache-Control": "private, no-cache"})


def _manifest(content: bytes | None) -> dict[str, t.Any] | None:
    try:
        found = json.loads(content or b"null")
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) and found.get("type") == "Manifest" else None
