"""What kind of thing an address or a content resource is, by what its source says of it."""

from __future__ import annotations

import posixpath
import typing as t
import urllib.parse

from htrflow_batch.image_service import read_services
from htrflow_batch.source import address_of, clean, type_of

_FORMATS = {
    ".jpg": "image/jpeg",
    ".jpeg": "image/jpeg",
    ".jpe": "image/jpeg",
    ".png": "image/png",
    ".tif": "image/tiff",
    ".tiff": "image/tiff",
    ".jp2": "image/jp2",
    ".webp": "image/webp",
    ".gif": "image/gif",
    ".bmp": "image/bmp",
    ".pdf": "application/pdf",
    ".mp3": "audio/mpeg",
    ".wav": "audio/wav",
    ".mp4": "video/mp4",
    ".webm": "video/webm",
    ".svg": "image/svg+xml",
    ".txt": "text/plain",
    ".html": "text/html",
    ".xml": "text/xml",
}
_IMAGE_TYPES = {"image", "stillimage"}
_OTHER_TYPES = {
    "sound": "a sound recording",
    "audio": "a sound recording",
    "video": "a video",
    "movingimage": "a video",
    "text": "a text",
    "textualbody": "a text",
    "contentastext": "a text",
    "dataset": "a data set",
    "model": "a 3D model",
    "physicalobject": "a 3D model",
}
_OTHER_FORMATS = {
    "application/pdf": "a PDF",
    "image/svg+xml": "a drawing (SVG)",
    "audio": "a sound recording",
    "video": "a video",
    "text": "a text",
    "model": "a 3D model",
}


def other_than_image(resource: t.Mapping[str, t.Any]) -> str:
    """What a content resource is when it is not an image; empty for an image, and for what may be one."""
    stated = resource.get("format")
    format_ = stated.strip().casefold() if isinstance(stated, str) else format_of(address_of(resource))
    kind = type_of(resource)
    if kind == "text" and format_ in _OTHER_FORMATS:
        return _OTHER_FORMATS[format_]
    if kind and kind not in _IMAGE_TYPES:
        return _OTHER_TYPES.get(kind, f"a resource of the type {clean(kind, 40)}")
    if read_services(resource.get("service")):
        return ""
    return _OTHER_FORMATS.get(format_) or _OTHER_FORMATS.get(format_.partition("/")[0], "")


def format_of(address: str | None) -> str:
    """The media type that the ending of an address stands for; empty for none or an unknown one."""
    return _FORMATS.get(posixpath.splitext(file_name(address))[1].casefold(), "")


def file_name(address: str | None) -> str:
    """The last part of an address's path as text, without what escapes it."""
    path = (address or "").partition("?")[0].partition("#")[0]
    return clean(urllib.parse.unquote(path.rpartition("/")[2]))
