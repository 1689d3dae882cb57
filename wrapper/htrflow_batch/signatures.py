"""What a file is, by its first bytes, whatever its server calls it."""

from __future__ import annotations

import re

#: How many bytes decide.
ENOUGH = 1024

_RASTERS = {
    "JPEG": re.compile(rb"\xff\xd8\xff"),
    "PNG": re.compile(rb"\x89PNG\r\n\x1a\n"),
    "TIFF": re.compile(rb"II[*+]\0|MM\0[*+]"),
    "WebP": re.compile(rb"RIFF....WEBP", re.DOTALL),
    "GIF": re.compile(rb"GIF8[79]a"),
    # The size of the second header tells a bitmap from a text that begins with BM.
    "BMP": re.compile(rb"BM.{12}[\x0c\x28\x34\x38\x40\x6c\x7c]\0\0\0", re.DOTALL),
    "JPEG 2000": re.compile(rb"\0\0\0\x0cjP  \r\n\x87\n|\xff\x4f\xff\x51"),
}
# A comment ends at its first end, and so there is one way to read many of them.
_PROLOGUE = rb"(<\?xml[^>]*>\s*)?(<!--((?!-->).)*-->\s*)*"
_OTHERS = {
    "an AVIF or HEIC image or a film": re.compile(rb"....ftyp", re.DOTALL),
    "a PDF": re.compile(rb"%PDF-"),
    "a ZIP archive": re.compile(rb"PK\x03\x04"),
    "compressed data": re.compile(rb"\x1f\x8b"),
    "an HTML page": re.compile(_PROLOGUE + rb"<(!doctype\s+html|html|head|body)\b", re.IGNORECASE | re.DOTALL),
    "an SVG drawing": re.compile(_PROLOGUE + rb"<(!doctype\s+)?svg\b", re.IGNORECASE | re.DOTALL),
    "an XML document": re.compile(rb"<[?!]?[A-Za-z]"),
    "a JSON document": re.compile(rb"[{\[]"),
}
_MARK = re.compile(rb"(\xef\xbb\xbf)?[ \t\r\n]*")


def raster(head: bytes) -> str | None:
    """The format's name, when it is one of the images that this program reads."""
    return next((name for name, pattern in _RASTERS.items() if pattern.match(head)), None)


def is_json(head: bytes) -> bool:
    """Whether a JSON object or array may begin so."""
    return name(head) == "a JSON document"


def name(head: bytes) -> str:
    """What begins with these bytes, with its article."""
    if not head:
        return "nothing at all"
    if image := raster(head):
        return f"a {image} image"
    text = head[_MARK.match(head).end() :]  # type: ignore[union-attr]
    found = next((name for name, pattern in _OTHERS.items() if pattern.match(text)), None)
    if found:
        return found
    return "data of an unknown kind" if re.search(rb"[\0-\x08\x0e-\x1f]", head) else "plain text"
