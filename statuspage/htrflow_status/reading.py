"""The lines of a page from its annotation page: where they are on the image, and how sure the model was."""

from __future__ import annotations

import dataclasses
import json
import re
import typing as t

from htrflow_batch import alto
from htrflow_batch.errors import PageError

#: Below the first, a line is tinted as unsure; below the second, as doubtful.
HIGH, MIDDLE = 0.9, 0.7

_XYWH = re.compile(r"#xywh=(\d+),(\d+),(\d+),(\d+)")


@dataclasses.dataclass(frozen=True, slots=True)
class Line:
    """A line of text; ``points`` are its outline's corners on the image, in pixels."""

    text: str
    points: tuple[tuple[int, int], ...]
    confidence: float | None

    @property
    def tint(self) -> str:
        if self.confidence is None:
            return ""
        return "high" if self.confidence >= HIGH else "middle" if self.confidence >= MIDDLE else "low"


@dataclasses.dataclass(frozen=True, slots=True)
class Sheet:
    """A page that was read: its image's size in pixels, and its lines in reading order."""

    width: int
    height: int
    lines: tuple[Line, ...]


@dataclasses.dataclass(frozen=True, slots=True)
class Hit:
    """A place of a searched text: the page, the annotation with its target, and the line with the text in it."""

    annotation: str
    target: str
    text: str
    start: int
    end: int


def sheet(content: bytes) -> Sheet | None:
    """What an ALTO file says, or None where it cannot be read."""
    try:
        layout = alto.layout_of(content)
    except PageError:
        return None
    lines = []
    for line in layout.lines:
        corners = [(line.x, line.y), (line.x + line.width, line.y)]
        corners += [(line.x + line.width, line.y + line.height), (line.x, line.y + line.height)]
        outline = tuple((int(x), int(y)) for x, y in (line.points or corners))
        lines.append(Line(line.text, outline, line.confidence))
    return Sheet(layout.width, layout.height, tuple(lines))


def hits(content: bytes, query: str, most: int) -> list[Hit]:
    """Where a text stands on a page, from its annotation page; words in any case, in their order."""
    try:
        page = json.loads(content)
    except (ValueError, RecursionError):
        return []
    words = [re.escape(word) for word in query.split()]
    if not words or not isinstance(page, dict):
        return []
    pattern = re.compile(r"\s+".join(words), re.IGNORECASE)
    found: list[Hit] = []
    items = page.get("items")
    for item in items if isinstance(items, list) else []:
        text, target = _text(item), item.get("target") if isinstance(item, dict) else None
        if not isinstance(target, str) or not _XYWH.search(target):
            continue
        for match in pattern.finditer(text):
            found.append(Hit(str(item.get("id", "")), target, text, match.start(), match.end()))
            if len(found) >= most:
                return found
    return found


def _text(item: t.Any) -> str:
    body = item.get("body") if isinstance(item, dict) else None
    body = body[0] if isinstance(body, list) and body else body
    value = body.get("value") if isinstance(body, dict) else None
    return value if isinstance(value, str) else ""


def image_of(manifest: bytes | None, alto_name: str) -> str | None:
    """The address of a page's image in an ``iiif.json``: of the canvas that sees also an ALTO of this name."""
    try:
        canvases = json.loads(manifest or b"null")["items"]
        for canvas in canvases:
            if any(str(see["id"]).endswith(f"/alto{alto_name}") for see in canvas["seeAlso"]):
                address = canvas["items"][0]["items"][0]["body"]["id"]
                return address if str(address).startswith(("http://", "https://")) else None
    except (ValueError, KeyError, TypeError, IndexError, RecursionError):
        return None
    return None
