"""Brings one page's image from its archive into the work directory, ready for the model."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import pathlib

from htrflow_batch import image_service, images
from htrflow_batch.config import Fetching
from htrflow_batch.errors import LaterError, PageError
from htrflow_batch.fetch import Fetcher, Refused
from htrflow_batch.source import Image, Page

_INFO_BYTES = 1024 * 1024


class ImageError(PageError):
    """The image came, and cannot be decoded."""


@dataclasses.dataclass(frozen=True, slots=True)
class Downloaded:
    """A page whose image lies at ``path``: ``width`` × ``height`` pixels, ``size`` bytes."""

    page: Page
    path: pathlib.Path
    width: int
    height: int
    size: int
    notes: tuple[str, ...]


def download(page: Page, fetcher: Fetcher, limits: Fetching, folder: pathlib.Path) -> Downloaded:
    """Fetches and normalises a page's image.

    Raises:
        ImageError: the image cannot be decoded.
        PageError: the image cannot be had, for good.
        LaterError: it may be there later.
    """
    content = _fetch(page.image, fetcher, limits)
    path = folder / f"{page.name}.jpg"
    try:
        made = images.normalise(content, path, max_pixels=limits.max_pixels, max_width=limits.max_width)
    except PageError as error:
        raise ImageError(f"{str(error)[:1].upper()}{str(error)[1:]}.") from error
    notes = (*page.notes, *made.notes)
    return Downloaded(page, path, made.width, made.height, path.stat().st_size, notes)


def identity(page: Page, limits: Fetching) -> str:
    """What tells a page's source from any other, in hexadecimal: its image's address and the width that is asked for.

    The address goes in with its query, which may be what tells two images of an archive apart.
    """
    return hashlib.sha256(f"{limits.max_width} {page.image.address}".encode()).hexdigest()


def _fetch(image: Image, fetcher: Fetcher, limits: Fetching) -> bytes:
    refusal: Refused | None = None
    for candidate in image_service.candidates(_informed(image, fetcher), limits.max_width):
        try:
            return fetcher.fetch(candidate.address, limit_bytes=limits.image_bytes, kind="image").content
        except Refused as error:
            if error.status not in image_service.REFUSED_FORM:
                raise
            refusal = refusal or error
    assert refusal is not None
    raise refusal


def _informed(image: Image, fetcher: Fetcher) -> Image:
    """The image with what its service says of itself, where the source says too little."""
    service = image_service.wants_info(image)
    if service is None:
        return image
    try:
        found = fetcher.fetch(image_service.info_address(service), limit_bytes=_INFO_BYTES, kind="json")
        return image_service.with_info(image, service, json.loads(found.content))
    except LaterError:
        raise
    except (PageError, ValueError, RecursionError):
        # Servers without an info.json give images all the same.
        return image
