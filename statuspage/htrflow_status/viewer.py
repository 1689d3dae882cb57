"""Universal Viewer on a volume's ``iiif.json``, from our own origin.

The frame knows one manifest, the one of its own address: nothing in the address's fragment or query can make it load
another, and its policy lets it ask no host but ours and those that the manifest's images come from.
"""

from __future__ import annotations

import dataclasses
import json
import pathlib
import re
import typing as t
import urllib.parse

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute, Mount, Route
from starlette.staticfiles import StaticFiles
from starlette.types import Scope

from htrflow_status import pieces, results_of, urls
from htrflow_status.looks import Looks, policy
from htrflow_status.model import Campaign, Source, Volume
from htrflow_status.pages import Pages, ReaderOf, volume_of
from htrflow_status.results_of import Reader

Manifest: t.TypeAlias = dict[str, t.Any]

#: Where the frame's policy differs from that of our pages.
CSP = {
    # The viewer brings most of its style sheets as elements that its scripts make, and styles elements in its markup.
    "style-src": "'self' 'unsafe-inline'",
    # Its icons are data; what it draws of a page to save it is a blob. An archive may send an image on to another host.
    "img-src": "'self' https: http: data: blob:",
    "frame-src": "'none'",
    "form-action": "'none'",
    # Only our own page around it may hold the frame.
    "frame-ancestors": "'self'",
}
#: Hosts of image services that the policy names at most.
_MOST_ORIGINS = 20
_ORIGIN = re.compile(r"https?://[A-Za-z0-9.\-]+(:\d+)?|https?://\[[0-9A-Fa-f:]+\](:\d+)?")


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
            made.append(Mount("/viewer", _Programs(directory=self.folder)))
        return made

    async def page(self, request: Request) -> Response:
        """The page around the frame, or what to do without it."""
        reader = self.reader_of(request)
        campaign, volume = volume_of(request, self.source.snapshot())
        known = await results_of.progresses(reader, [(campaign, volume)], cells=True)
        found = known.get((campaign.key, volume.index))
        readable = await _manifest(reader, campaign, volume) is not None
        missing = "" if self.folder and readable else "viewer.missing" if self.folder is None else "viewer.nothing"
        data = {
            "card": {"name": campaign.name, "url": urls.campaign(campaign)},
            "volume": {"id": volume.id, "url": urls.volume(campaign, volume.id)},
            "frame": None if missing else f"{urls.viewer(campaign, volume.id)}/frame",
            "missing": missing,
            "text_url": pieces.first(campaign, volume, found.cells) if found else None,
        }
        return self.looks.page(request, "viewer.html", data, status=404 if self.folder is None else 200)

    async def frame(self, request: Request) -> Response:
        """The viewer itself."""
        reader = self.reader_of(request)
        campaign, volume = volume_of(request, self.source.snapshot())
        found = await _manifest(reader, campaign, volume)
        if self.folder is None or found is None:
            raise HTTPException(404)
        data = {"manifest": f"{urls.volume(campaign, volume.id)}/iiif.json", "id": volume.id}
        answer = self.looks.page(request, "frame.html", data)
        services = sorted({origin for body in _bodies(found) for origin in _service_origins(body)})
        asks = " ".join(["'self'", *services[:_MOST_ORIGINS]])
        answer.headers["Content-Security-Policy"] = policy({**CSP, "connect-src": asks})
        return answer

    async def manifest(self, request: Request) -> Response:
        """The volume's ``iiif.json`` with the search of this site beside it."""
        reader = self.reader_of(request)
        campaign, volume = volume_of(request, self.source.snapshot())
        found = await _manifest(reader, campaign, volume)
        if found is None:
            raise HTTPException(404)
        _give_thumbnails(found)
        address = f"{_own(request)}{urls.search(campaign, volume.id)}"
        found["service"] = [
            {"id": address, "type": "SearchService2"},
            {
                "@context": "http://iiif.io/api/search/1/context.json",
                # In the path: the viewer adds its question to the address as if that had none.
                "@id": f"{address}/1",
                "@type": "SearchService1",
                "profile": "http://iiif.io/api/search/1/search",
                "label": "search",
            },
        ]
        return JSONResponse(found, headers={"Cache-Control": "private, no-cache"})


class _Programs(StaticFiles):
    """The viewer's scripts and styles, and none of its own pages: those open whatever manifest an address names."""

    async def get_response(self, path: str, scope: Scope) -> Response:
        if not path.endswith((".js", ".css")):
            raise HTTPException(404)
        answer = await super().get_response(path, scope)
        # Files whose name has a digest never change; without a word, a browser would keep the others for years too.
        hashed = re.search(r"\.[0-9a-f]{20}\.js$", path)
        answer.headers["Cache-Control"] = "public, max-age=31536000, immutable" if hashed else "no-cache"
        return answer


async def _manifest(reader: Reader, campaign: Campaign, volume: Volume) -> Manifest | None:
    keys = results_of.keys(campaign, volume.id)
    content = await reader.content(keys.iiif) if keys else None
    try:
        found = json.loads(content or b"null")
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) and found.get("type") == "Manifest" else None


def _bodies(manifest: Manifest) -> t.Iterator[dict[str, t.Any]]:
    """The images of a manifest that the wrapper wrote; whatever has another form is passed over."""
    for canvas in _dicts(manifest.get("items")):
        for page in _dicts(canvas.get("items")):
            for annotation in _dicts(page.get("items")):
                yield from _dicts([annotation.get("body")])


def _dicts(found: t.Any) -> list[dict[str, t.Any]]:
    return [one for one in found if isinstance(one, dict)] if isinstance(found, list) else []


def _service_origins(body: dict[str, t.Any]) -> list[str]:
    """The origins that an image's services are asked at: never more of an address than scheme, host and port."""
    addresses = [one.get("@id") or one.get("id") for one in _dicts(body.get("service"))]
    matches = [_ORIGIN.match(address) for address in addresses if isinstance(address, str)]
    return [match[0] for match in matches if match]


def _give_thumbnails(manifest: Manifest) -> None:
    """A canvas without an image service has its image as thumbnail too: the viewer would ask for none there is."""
    for canvas in _dicts(manifest.get("items")):
        bodies = list(_bodies({"items": [canvas]}))
        if bodies and not bodies[0].get("service") and "thumbnail" not in canvas:
            canvas["thumbnail"] = [{name: bodies[0][name] for name in ("id", "type", "format") if name in bodies[0]}]


def _own(request: Request) -> str:
    """The site's address as the browser has it: behind a proxy that ends TLS, the scheme is the one it names."""
    forwarded = request.headers.get("x-forwarded-proto", "").partition(",")[0].strip().lower()
    scheme = forwarded if forwarded in ("http", "https") else request.url.scheme
    return urllib.parse.urlunsplit((scheme, request.url.netloc, "", "", ""))
