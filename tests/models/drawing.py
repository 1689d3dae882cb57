"""Pages that look like those of an archive, drawn from a seed, with all that a reader should find on them."""

from __future__ import annotations

import dataclasses
import enum
import functools
import itertools
import pathlib
import random
import typing as t

from PIL import Image, ImageChops, ImageDraw, ImageFilter, ImageFont

from tests.models import prose

FONTS = pathlib.Path(__file__).parent / "fonts"
#: Width and height of a page in pixels.
PAGE_SIZE = (1000, 1400)
#: No line has more characters.
LONGEST = 32
#: Left, top, right, bottom in pixels; right and bottom are the first that lie outside.
Box: t.TypeAlias = tuple[int, int, int, int]

_MARGIN = 60
#: Between a frame and the text in it.
_PADDING = 30
#: What a line's box holds beyond its letters.
_ROOM = 4
_TALLEST = "ÅÄÖbgjpqy"
_VOWELS = "aeiouyåäö"


class Face(enum.Enum):
    """A handwriting face: its file, and the sizes in which it looks like a hand on a page of this size."""

    DANCING = ("DancingScript-Regular.otf", 47, 53)
    BREIP = ("Breip.ttf", 44, 49)


@dataclasses.dataclass(frozen=True)
class Line:
    """One line of text: ``middles`` are the x of the middle of every character of ``text``."""

    box: Box
    text: str
    middles: tuple[float, ...]


@dataclasses.dataclass(frozen=True)
class Region:
    """A frame, and the lines that stand in it, from the top to the bottom."""

    box: Box
    lines: tuple[Line, ...]


@dataclasses.dataclass(frozen=True)
class Page:
    """An RGB image, and its regions from the top to the bottom."""

    image: Image.Image
    regions: tuple[Region, ...]

    @property
    def lines(self) -> tuple[Line, ...]:
        """All lines in reading order."""
        return tuple(line for region in self.regions for line in region.lines)

    @property
    def text(self) -> str:
        """The lines' texts in reading order, one a line."""
        return "\n".join(line.text for line in self.lines)


@functools.cache
def _font(face: Face, size: int) -> ImageFont.FreeTypeFont:
    # The basic layout is part of every build of Pillow, so a page is the same everywhere.
    return ImageFont.truetype(str(FONTS / face.value[0]), size, layout_engine=ImageFont.Layout.BASIC)


class _Hand:
    """Writes lines in one face and size onto a layer of ink."""

    def __init__(self, ink: Image.Image, font: ImageFont.FreeTypeFont, rng: random.Random) -> None:
        self._draw, self._font, self._rng = ImageDraw.Draw(ink), font, rng
        _, top, _, bottom = font.getbbox(_TALLEST, anchor="ls")
        self.ascent, self.descent = -int(top), int(bottom)
        self.pitch = round((self.ascent + self.descent) * rng.uniform(1.1, 1.22))

    def fits(self, text: str, width: int) -> bool:
        return len(text) <= LONGEST and self._font.getlength(text) * 1.02 < width

    def write(self, text: str, x: int, baseline: int, width: int) -> Line:
        """Word by word, each a little off the line and more or less black, spread to ``width`` or nearly so."""
        spread = min(36.0, (width - self._font.getlength(text)) / max(1, text.count(" ")))
        here, left, right, middles = float(x), float(x), float(x), list[float]()
        for word in text.split(" "):
            if middles:
                gap = self._font.getlength(" ") + spread + self._rng.uniform(-2, 2)
                middles.append(here + gap / 2)
                here += gap
            at = (round(here), baseline + self._rng.randint(-2, 2))
            self._draw.text(at, word, fill=self._rng.randint(200, 255), font=self._font, anchor="ls")
            box = self._font.getbbox(word, anchor="ls")
            left, right = min(left, at[0] + box[0]), max(right, at[0] + box[2])
            ends = [self._font.getlength(word[:count]) for count in range(len(word) + 1)]
            middles += [at[0] + (start + end) / 2 for start, end in itertools.pairwise(ends)]
            here = at[0] + ends[-1]
        top, bottom = baseline - self.ascent - _ROOM, baseline + self.descent + _ROOM
        return Line((int(left) - _ROOM, top, int(right) + _ROOM + 1, bottom), text, tuple(middles))


def _paper(rng: random.Random) -> Image.Image:
    """A sheet with grain, stains and darker edges."""
    width, height = PAGE_SIZE
    light = rng.randint(226, 246)
    tint = (light, light - rng.randint(2, 10), light - rng.randint(14, 32))
    sheet = Image.new("RGB", PAGE_SIZE, tint)
    stains = Image.frombytes("L", (10, 14), rng.randbytes(140)).point(lambda value: 240 + value // 17)
    sheet = ImageChops.multiply(sheet, stains.resize(PAGE_SIZE, Image.Resampling.BICUBIC).convert("RGB"))
    edges = Image.new("L", (width // 10, height // 10), 205)
    edges.paste(255, (2, 2, width // 10 - 2, height // 10 - 2))
    edges = edges.filter(ImageFilter.GaussianBlur(2)).resize(PAGE_SIZE, Image.Resampling.BICUBIC)
    sheet = ImageChops.multiply(sheet, edges.convert("RGB"))
    grain = Image.frombytes("L", PAGE_SIZE, rng.randbytes(width * height)).point(lambda value: value // 18)
    return ImageChops.subtract(sheet, grain.convert("RGB"))


def _frame(ink: Image.Image, box: Box, rng: random.Random) -> None:
    """Four ruled lines, each run a little past its corners."""
    draw, strength, wide = ImageDraw.Draw(ink), rng.randint(150, 230), rng.randint(3, 5)
    left, top, right, bottom = box

    def past() -> int:
        return rng.randint(0, 6)

    for y in (top, bottom - wide):
        draw.rectangle((left - past(), y, right - 1 + past(), y + wide - 1), fill=strength)
    for x in (left, right - wide):
        draw.rectangle((x, top - past(), x + wide - 1, bottom - 1 + past()), fill=strength)


def _compose(hand: _Hand, words: t.Iterator[str], width: int, count: int) -> list[str]:
    """``count`` lines of prose no wider than ``width``, and nearly as wide: words are broken as Swedish breaks them."""
    lines, line = list[str](), next(words)
    while len(lines) < count:
        word = next(words)
        if hand.fits(f"{line} {word}", width):
            line = f"{line} {word}"
            continue
        for at in range(len(word) - 2, 1, -1):
            if word.isalpha() and word[at] not in _VOWELS and word[at + 1] in _VOWELS:
                begun = f"{line} {word[:at]}-"
                if hand.fits(begun, width):
                    line, word = begun, word[at:]
                    break
        lines.append(line)
        line = word
    return lines


def page(seed: int, face: Face | None = None, regions: t.Literal[1, 2] | None = None, *, shuffled: float = 0) -> Page:
    """A page of one or two framed regions with prose in one hand.

    The same arguments give the same page. ``face`` and ``regions`` are drawn by lot if not given. A model that is to
    learn reading, and not to guess how a sentence goes on, gets pages with a share of ``shuffled`` sentences.
    """
    rng = random.Random(seed)  # noqa: S311
    face = face or rng.choice(list(Face))
    count = int(regions or rng.choice((1, 2)))
    _, smallest, largest = face.value
    paper, ink = _paper(rng), Image.new("L", PAGE_SIZE, 0)
    hand = _Hand(ink, _font(face, rng.randint(smallest, largest)), rng)
    words = prose.words(rng, shuffled)
    top = _MARGIN + rng.randint(0, 60)
    found = list[Region]()
    for left_to_draw in range(count, 0, -1):
        gap = rng.randint(36, 80)
        # The rooms of the regions still to come are equal; each is filled by half at least.
        room = (PAGE_SIZE[1] - _MARGIN - top - gap * (left_to_draw - 1)) // left_to_draw
        most = (room - 2 * _PADDING) // hand.pitch
        lines = rng.randint(max(2, most // 2), most)
        left = rng.randint(_MARGIN, 200)
        right = min(left + rng.randint(640, 720), PAGE_SIZE[0] - _MARGIN)
        width = right - left - 2 * _PADDING - 10
        bottom = top + 2 * _PADDING + lines * hand.pitch
        box = (left, top, right, bottom)
        _frame(ink, box, rng)
        written = []
        for number, text in enumerate(_compose(hand, words, width, lines)):
            start = (left + _PADDING + rng.randint(0, 8), top + _PADDING + number * hand.pitch + hand.ascent)
            written.append(hand.write(text, *start, width))
        found.append(Region(box, tuple(written)))
        top = bottom + gap
    if rng.random() < 0.5:
        ink = ink.filter(ImageFilter.GaussianBlur(rng.uniform(0.3, 0.8)))
    dark = rng.randint(20, 70)
    paper.paste((dark + rng.randint(0, 30), dark + rng.randint(0, 10), dark), mask=ink)
    return Page(paper, tuple(found))


def blank_page(seed: int) -> Page:
    """A sheet that nobody wrote on."""
    return Page(_paper(random.Random(seed)), ())  # noqa: S311
