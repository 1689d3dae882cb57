"""The text of one canvas as a IIIF Presentation 3 annotation page, one annotation a line."""

from __future__ import annotations

from htrflow_batch import alto
from htrflow_batch.alto import TextLine
from htrflow_batch.documents import Document
from htrflow_batch.iiif import PRESENTATION_3


def page(content: bytes, canvas_id: str, address: str) -> Document:
    """The lines of an ALTO file in reading order, each with its place on the canvas.

    The canvas has the size that the file states, and places are clipped to it. ``address`` is where the annotation page
    is published. An annotation's id is that address with a fragment, as the specification has it for what is only
    found in another document.

    Raises :class:`~htrflow_batch.errors.PageError` when the file cannot be read.
    """
    layout = alto.layout_of(content)
    items = [
        {
            "id": f"{address}#line-{number}",
            "type": "Annotation",
            "motivation": "supplementing",
            "body": {"type": "TextualBody", "value": line.text, "format": "text/plain"},
            "target": f"{canvas_id}#xywh={_place(line, layout.width, layout.height)}",
        }
        for number, line in enumerate(layout.lines, start=1)
    ]
    return {"@context": PRESENTATION_3, "id": address, "type": "AnnotationPage", "items": items}


def _place(line: TextLine, width: int, height: int) -> str:
    """The line's box within the canvas: x, y, width, height in pixels. It is never empty."""
    x, wide = _clipped(line.x, line.width, width)
    y, high = _clipped(line.y, line.height, height)
    return f"{x},{y},{wide},{high}"


def _clipped(start: int, length: int, most: int) -> tuple[int, int]:
    first = min(max(start, 0), most - 1)
    return first, max(min(start + length, most) - first, 1)
