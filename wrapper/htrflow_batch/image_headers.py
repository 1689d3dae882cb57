"""What the first bytes of a file say of it, before a decoder sees them."""

from __future__ import annotations

import re
import struct

from htrflow_batch.errors import PageError

#: What Pillow may try. Others of its plugins start programs (EPS) or take almost any bytes for an image (TGA).
READABLE = {"JPEG": "JPEG", "PNG": "PNG", "TIFF": "TIFF", "JPEG 2000": "JPEG2000", "WebP": "WEBP", "GIF": "GIF"}
READABLE |= {"BMP": "BMP", "AVIF": "AVIF"}
#: What may stand before the first element of XML or HTML; possessive, since a file can be made to be matched slowly.
_PROLOGUE = rb"(?>\xef\xbb\xbf|\s|<\?[^>]*+>|<!--.*?-->)*+"
#: How each kind of file begins, the more exact first.
_SIGNATURES: tuple[tuple[str, bytes], ...] = (
    ("JPEG", rb"\xff\xd8\xff"),
    ("PNG", rb"\x89PNG\r\n\x1a\n"),
    ("JPEG XR", rb"II\xbc"),
    ("Canon raw", rb"II\*\0.{4}CR"),
    ("TIFF", rb"II\*\0|MM\0\*|II\+\0|MM\0\+"),
    ("JPEG 2000", rb"\0\0\0\x0cjP  \r\n\x87\n|\xff\x4f\xff\x51"),
    ("WebP", rb"RIFF.{4}WEBP"),
    ("GIF", rb"GIF8[79]a"),
    ("BMP", rb"BM.{12}[\x0c-\x7c]\0\0\0"),
    ("AVIF", rb".{4}ftyp(?:avi[fs]|mi[fa]1.{0,40}?avif)"),
    ("HEIC", rb".{4}ftyp(?:hei|hev|mif|msf)"),
    ("JPEG XL", rb"\xff\x0a|\0\0\0\x0cJXL "),
    ("MP4 video", rb".{4}ftyp"),
    ("PDF", rb".{0,1000}?%PDF-"),
    ("SVG", _PROLOGUE + rb"(?:<!doctype\s+svg[^>]*>)?" + _PROLOGUE + rb"<(?:\w+:)?svg\b"),
    ("HTML", _PROLOGUE + rb"<(?:!doctype\s+html|html|head|body|script|title|meta|p|div)\b"),
    ("XML", _PROLOGUE + rb"<!doctype\b|(?:\xef\xbb\xbf)?\s*<\?xml\b"),
    ("JSON", rb"(?:\xef\xbb\xbf)?\s*[\[{]"),
    ("PostScript", rb"%!PS|\xc5\xd0\xd3\xc6"),
    ("Photoshop", rb"8BPS"),
    ("DjVu", rb"AT&TFORM"),
    ("PNM", rb"P[1-7fF]\s"),
    ("icon", rb"\0\0[\x01\x02]\0"),
    ("DICOM", rb".{128}DICM"),
    ("FITS", rb"SIMPLE  ="),
    ("ZIP", rb"PK\x03\x04"),
    ("gzip", rb"\x1f\x8b"),
)
_MAIN_HEADER = 1 << 20


def kind_of(content: bytes) -> str:
    """The name of the image format that ``content`` is in, a key of :data:`READABLE`.

    :raises PageError: it is something else, with what it is.
    """
    if not content:
        raise PageError("the file is empty")
    head = content[:4096]
    kind = next((name for name, begin in _SIGNATURES if re.match(begin, head, re.DOTALL | re.IGNORECASE)), None)
    readable = ", ".join(READABLE)
    if kind is None:
        raise PageError(
            f"the file begins with the bytes {head[:8].hex(' ')}, as no image of the formats {readable} does"
        )
    if kind not in READABLE:
        raise PageError(f"the file is {kind}, and not an image of the formats {readable}")
    return kind


def codestream(content: bytes) -> tuple[tuple[int, int], int] | None:
    """Width and height as JPEG 2000's SIZ segment has them, and how often all its parts can be halved (ISO 15444-1)."""
    start = content.find(b"\xff\x4f\xff\x51")
    if start < 0 or len(content) < start + 24:
        return None
    right, lower, left, upper = struct.unpack_from(">4I", content, start + 8)
    end = content.find(b"\xff\x90", start, start + _MAIN_HEADER)
    header = content[start : end if end >= 0 else start + _MAIN_HEADER]
    style = header.find(b"\xff\x52", 40)
    halvings = header[style + 9] if 0 <= style < len(header) - 9 and b"\xff\x53" not in header else 0
    return (right - left, lower - upper), min(halvings, 32)


def webp_size(content: bytes) -> tuple[int, int] | None:
    """Width and height of a WebP's canvas, whose chunks are those of RFC 9649, or None where there is none."""
    head = content[:30].ljust(30, b"\0")
    chunk = head[12:16]
    if chunk == b"VP8X":
        return int.from_bytes(head[24:27], "little") + 1, int.from_bytes(head[27:30], "little") + 1
    if chunk == b"VP8L":
        bits = int.from_bytes(head[21:25], "little")
        return (bits & 0x3FFF) + 1, (bits >> 14 & 0x3FFF) + 1
    if chunk == b"VP8 ":
        width, height = struct.unpack_from("<2H", head, 26)
        return width & 0x3FFF, height & 0x3FFF
    return None
