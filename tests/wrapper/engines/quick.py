"""An engine that takes no time: each page has the text that its image's bytes decide."""

from __future__ import annotations

import hashlib
import typing as t
from xml.sax.saxutils import quoteattr

import PIL.Image

from htrflow_batch.engine import Paths, Read, Unread
from htrflow_batch.run import Model

_WORDS = ("ting", "gård", "skilling", "socken", "hustru", "åker", "präst", "nämndeman")


class Quick:
    """See :class:`htrflow_batch.engine.Engine`. ``prepare`` gives each page's size and lines."""

    name = "quick 1.0"

    def load(self) -> tuple[Model, ...]:
        return (Model("demo/quick", "0" * 40),)

    def prepare(self, paths: Paths) -> dict[int, tuple[int, int, list[str]]]:
        made = {}
        for number, path in paths.items():
            digest = hashlib.sha256(path.read_bytes()).digest()
            with PIL.Image.open(path) as image:
                made[number] = (*image.size, lines_of(digest))
        return made

    def infer(self, group: t.Any) -> t.Any:
        return group

    def export(self, group: dict[int, tuple[int, int, list[str]]]) -> list[Read | Unread]:
        return [read(number, *page) for number, page in group.items()]


def lines_of(digest: bytes) -> list[str]:
    """The lines that an image with this SHA-256 has; none for one in 64."""
    if digest[0] % 64 == 0:
        return []
    return [" ".join(_WORDS[(digest[line] >> shift) % 8] for shift in (0, 3)) for line in range(1, 4 + digest[0] % 8)]


def read(number: int, width: int, height: int, lines: t.Sequence[str]) -> Read:
    """A page as the library would write it."""
    return Read(number, alto(number, width, height, lines), page(number, width, height, lines), tuple(lines))


def alto(number: int, width: int, height: int, lines: t.Sequence[str]) -> str:
    step = height // (len(lines) + 1)
    written = "".join(
        f'<TextLine ID="l{index}" HPOS="10" VPOS="{index * step}" WIDTH="{width - 20}" HEIGHT="{step}">'
        f'<String HPOS="10" VPOS="{index * step}" WIDTH="{width - 20}" HEIGHT="{step}" CONTENT={quoteattr(line)}'
        f' WC="0.9{index % 10}"/></TextLine>'
        for index, line in enumerate(lines)
    )
    block = f'<TextBlock ID="b" HPOS="0" VPOS="0" WIDTH="{width}" HEIGHT="{height}">{written}</TextBlock>'
    return (
        '<alto xmlns="http://www.loc.gov/standards/alto/ns-v4#"><Description><MeasurementUnit>pixel</MeasurementUnit>'
        f"<sourceImageInformation><fileName>{number:04}.jpg</fileName></sourceImageInformation></Description>"
        f'<Layout><Page ID="p" PHYSICAL_IMG_NR="{number}" WIDTH="{width}" HEIGHT="{height}"><PrintSpace>'
        f"{block if lines else ''}</PrintSpace></Page></Layout></alto>"
    )


def page(number: int, width: int, height: int, lines: t.Sequence[str]) -> str | None:
    if not lines:
        return None
    box = f'<Coords points="0,0 {width},0 {width},{height} 0,{height}"/>'
    written = "".join(
        f'<TextLine id="l{index}">{box}<TextEquiv conf="0.9{index % 10}"><Unicode>{line}</Unicode></TextEquiv>'
        "</TextLine>"
        for index, line in enumerate(lines)
    )
    return (
        '<PcGts xmlns="http://schema.primaresearch.org/PAGE/gts/pagecontent/2019-07-15"><Metadata>'
        "<Creator>quick</Creator><Created>2026-01-01T00:00:00</Created><LastChange>2026-01-01T00:00:00</LastChange>"
        f'</Metadata><Page imageFilename="{number:04}.jpg" imageWidth="{width}" imageHeight="{height}">'
        f'<TextRegion id="r">{box}{written}</TextRegion></Page></PcGts>'
    )


def create(pipeline: bytes) -> Quick:
    return Quick()
