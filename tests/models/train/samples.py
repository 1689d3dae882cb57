"""Pieces of drawn pages, cut as htrflow cuts them, for models to learn from."""

from __future__ import annotations

import concurrent.futures
import dataclasses
import pathlib
import random
import typing as t

from PIL import Image, ImageDraw

from tests.models import drawing

#: Seeds from here on are for judging what was learnt: no model has learnt from such a page.
HELD_OUT = 1_000_000
#: The share of sentences in disorder on pages for learning.
_SHUFFLED = 0.35
_BLANK_PAGES = 0.06

Result = t.TypeVar("Result")


@dataclasses.dataclass(frozen=True)
class LineImage:
    """A line as a reader gets it: grey, scaled to ``pixels``' size, with its characters' places between 0 and 1."""

    pixels: bytes
    text: str
    places: tuple[float, ...]


def drawn(seed: int) -> drawing.Page:
    """The page to learn from (or, from :data:`HELD_OUT` on, to judge by) of ``seed``; a few are blank."""
    if random.Random(seed).random() < _BLANK_PAGES:  # noqa: S311
        return drawing.blank_page(seed)
    return drawing.page(seed, shuffled=0 if seed >= HELD_OUT else _SHUFFLED)


def spread(function: t.Callable[[int], Result], seeds: t.Iterable[int]) -> list[Result]:
    """``function`` of every seed, on all processors."""
    with concurrent.futures.ProcessPoolExecutor() as pool:
        return list(pool.map(function, seeds, chunksize=8))


def _cut(page: drawing.Page, line: drawing.Line, size: tuple[int, int], rng: random.Random) -> LineImage:
    """A line box that a model might have found, white outside of a polygon that is not quite the box."""
    left, top, right, bottom = line.box
    # A finder knows where a line begins better than where it ends.
    left, right = left - rng.randint(-3, 20), right + rng.randint(-3, rng.choice((16, 90)))
    top, bottom = top - rng.randint(-5, 7), bottom + rng.randint(-5, 7)
    image = page.image.convert("L").crop((left, top, right, bottom))
    width, height = image.size
    if rng.random() < 0.7:
        polygon = Image.new("L", image.size, 0)
        corners = [
            (abs(x - rng.randint(0, 7)), abs(y - rng.randint(0, 4)))
            for x, y in ((0, 0), (width // 2, 0), (width, 0), (width, height), (width // 2, height), (0, height))
        ]
        ImageDraw.Draw(polygon).polygon(corners, fill=255)
        image = Image.composite(image, Image.new("L", image.size, 255), polygon)
    scaled = image.resize(size, Image.Resampling.BILINEAR)
    places = tuple((middle - left) / width for middle in line.middles)
    return LineImage(scaled.tobytes(), line.text, places)


def _cut_blank(page: drawing.Page, size: tuple[int, int], rng: random.Random) -> LineImage:
    """Paper without text. On a page without regions htrflow takes the whole page for a line."""
    width, height = page.image.size
    box = (0, 0, width, height)
    if rng.random() < 0.5:
        left, top = rng.randint(0, width // 2), rng.randint(0, height - 100)
        box = (left, top, left + rng.randint(200, width // 2), top + rng.randint(50, 100))
    return LineImage(page.image.convert("L").crop(box).resize(size, Image.Resampling.BILINEAR).tobytes(), "", ())


@dataclasses.dataclass(frozen=True)
class LineCutter:
    """Called with a page's seed, gives ``copies`` images of each of its lines, ``size`` wide and high.

    Of a blank page it gives pieces of paper, whose text is empty.
    """

    size: tuple[int, int]
    copies: int

    def __call__(self, seed: int) -> list[LineImage]:
        page, rng = drawn(seed), random.Random(seed)  # noqa: S311
        if not page.lines:
            return [_cut_blank(page, self.size, rng) for _ in range(5 * self.copies)]
        return [_cut(page, line, self.size, rng) for line in page.lines for _ in range(self.copies)]


@dataclasses.dataclass(frozen=True)
class FinderSamples:
    """Called with a page's seed, writes images and their labels as Ultralytics reads them below ``folder``.

    ``kind`` is ``regions`` (an image is a page) or ``lines`` (an image is a region, cut out roughly).
    """

    folder: pathlib.Path
    kind: t.Literal["regions", "lines"]

    def __call__(self, seed: int) -> int:
        """How many images were written."""
        page, rng = drawn(seed), random.Random(seed)  # noqa: S311
        if self.kind == "regions":
            self._write(str(seed), page.image, [region.box for region in page.regions])
            return 1
        for number, region in enumerate(page.regions):
            left, top, right, bottom = (
                edge + sign * rng.randint(-16, 14) for edge, sign in zip(region.box, (-1, -1, 1, 1), strict=True)
            )
            boxes = [
                # A mask's ends are blunt: room before the first and after the last letter.
                (line.box[0] - 6 - left, line.box[1] - top, line.box[2] + 6 - left, line.box[3] - top)
                for line in region.lines
            ]
            self._write(f"{seed}-{number}", page.image.crop((left, top, right, bottom)), boxes)
        return len(page.regions)

    def _write(self, name: str, image: Image.Image, boxes: list[drawing.Box]) -> None:
        width, height = image.size
        part = "val" if int(name.partition("-")[0]) >= HELD_OUT else "train"
        for folder in ("images", "labels"):
            (self.folder / folder / part).mkdir(parents=True, exist_ok=True)
        image.save(self.folder / "images" / part / f"{name}.jpg", quality=90)
        rows = []
        for left, top, right, bottom in boxes:
            corners = ((left, top), (right, top), (right, bottom), (left, bottom))
            rows.append("0 " + " ".join(f"{x / width:.5f} {y / height:.5f}" for x, y in corners))
        (self.folder / "labels" / part / f"{name}.txt").write_text("\n".join(rows), encoding="utf-8")
