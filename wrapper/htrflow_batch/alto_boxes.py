"""Where the elements of an ALTO file stand on the page, in whole pixels from its upper left corner."""

from __future__ import annotations

import math
import re
import typing as t

from htrflow_batch.xml_text import Element

_NS = "{http://www.loc.gov/standards/alto/ns-v4#}"
_NUMBER = re.compile(r"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]{1,3})?", re.ASCII)
#: Pixels. No image is as large.
_FURTHEST = 10_000_000


class Box(t.NamedTuple):
    """The edges of a box, as numbers of pixels from the corner: a box of one pixel has its right edge one further."""

    left: int
    top: int
    right: int
    bottom: int


def around(line: Element) -> Box | None:
    """The box that a line states, or that of its outline, of its words, or of what it is in; None without any."""
    return _stated(line) or _of_points(points(line)) or _of_words(line) or _of_block(line)


def points(line: Element) -> tuple[tuple[int, int], ...]:
    """The outline of a line as (x, y). Files have both ``1,2 3,4`` and ``1 2 3 4``; empty for anything else."""
    polygon = line.find(f"{_NS}Shape/{_NS}Polygon")
    if polygon is None:
        return ()
    numbers = [_number(word) for word in polygon.get("POINTS", "").replace(",", " ").split()]
    whole = [round(number) for number in numbers if number is not None]
    if len(whole) < len(numbers) or len(whole) % 2:
        return ()
    return tuple(zip(whole[::2], whole[1::2], strict=True))


def length(element: Element, attribute: str) -> int | None:
    """A length that is positive, or None."""
    value = _number(element.get(attribute, ""))
    return None if value is None or value <= 0 else math.ceil(value)


def _number(text: str) -> float | None:
    """A number, which may have a fraction."""
    if not _NUMBER.fullmatch(text.strip()):
        return None
    return value if abs(value := float(text)) <= _FURTHEST else None


def _stated(element: Element) -> Box | None:
    """With each pixel that it touches."""
    left, top, width, height = (_number(element.get(name, "")) for name in ("HPOS", "VPOS", "WIDTH", "HEIGHT"))
    if left is None or top is None or width is None or height is None or width < 0 or height < 0:
        return None
    return Box(math.floor(left), math.floor(top), math.ceil(left + width), math.ceil(top + height))


def _of_points(outline: t.Sequence[tuple[int, int]]) -> Box | None:
    across, down = [x for x, _ in outline], [y for _, y in outline]
    return Box(min(across), min(down), max(across), max(down)) if outline else None


def _of_words(line: Element) -> Box | None:
    stated = [box for word in line.iterfind(f"{_NS}String") if (box := _stated(word)) is not None]
    if not stated:
        return None
    left, top, right, bottom = zip(*stated, strict=True)
    return Box(min(left), min(top), max(right), max(bottom))


def _of_block(line: Element) -> Box | None:
    return next((box for above in line.iterancestors() if (box := _stated(above)) is not None), None)
