"""The drawn pages: the same for the same seed, with the ink where the truth says, and none on a blank page."""

from __future__ import annotations

import functools
import itertools

import pytest
from PIL import Image, ImageDraw, ImageOps

from tests.models import drawing
from tests.models.drawing import Box, Face

SEEDS = range(12)
#: For tests that only look at a page.
_page = functools.cache(drawing.page)
#: Grey values: ink is darker, paper (with its edges) is lighter.
DARK = 150


def _ink(image: Image.Image) -> Image.Image:
    """White where ``image`` has ink."""
    return ImageOps.grayscale(image).point(lambda value: 255 if value < DARK else 0)


def _inside(box: Box, outer: Box) -> bool:
    return outer[0] <= box[0] and outer[1] <= box[1] and box[2] <= outer[2] and box[3] <= outer[3]


def test_the_same_seed_draws_the_same_page() -> None:
    first, again = drawing.page(7), drawing.page(7)
    assert first.image.tobytes() == again.image.tobytes()
    assert first.regions == again.regions
    assert drawing.blank_page(7).image.tobytes() == drawing.blank_page(7).image.tobytes()


def test_other_seeds_draw_other_pages() -> None:
    assert len({_page(seed).text for seed in SEEDS}) == len(SEEDS)
    assert len({drawing.blank_page(seed).image.tobytes() for seed in SEEDS}) == len(SEEDS)


@pytest.mark.parametrize("face", Face)
@pytest.mark.parametrize("regions", [1, 2])
def test_a_page_has_as_many_regions_as_asked_for_in_either_face(face: Face, regions: int) -> None:
    for seed in SEEDS:
        page = drawing.page(seed, face, 1 if regions == 1 else 2)
        assert page.image.mode == "RGB"
        assert page.image.size == drawing.PAGE_SIZE
        assert len(page.regions) == regions
        assert all(len(region.lines) >= 2 for region in page.regions)


@pytest.mark.parametrize("seed", SEEDS)
def test_every_line_box_holds_its_ink_from_the_first_letter_to_the_last(seed: int) -> None:
    page = _page(seed)
    ink = _ink(page.image)
    for line in page.lines:
        found = ink.crop(line.box).getbbox()
        assert found is not None, line
        width = line.box[2] - line.box[0]
        assert found[0] < 16, line
        assert found[2] > width - 16, line


@pytest.mark.parametrize("seed", SEEDS)
def test_there_is_no_ink_outside_of_the_lines_and_the_frames(seed: int) -> None:
    page = _page(seed)
    ink = _ink(page.image)
    cover = ImageDraw.Draw(ink)
    for line in page.lines:
        cover.rectangle(line.box, fill=0)
    for left, top, right, bottom in (region.box for region in page.regions):
        # A frame is five pixels wide at most, and its lines run up to six past its corners.
        cover.rectangle((left - 8, top - 8, right + 8, bottom + 8), outline=0, width=16)
    assert ink.getbbox() is None


@pytest.mark.parametrize("seed", SEEDS)
def test_regions_and_lines_stand_in_reading_order_and_do_not_overlap(seed: int) -> None:
    page = _page(seed)
    whole = (0, 0, *page.image.size)
    for upper, lower in itertools.pairwise(page.regions):
        assert upper.box[3] < lower.box[1]
    for region in page.regions:
        assert _inside(region.box, whole)
        assert all(_inside(line.box, region.box) for line in region.lines)
        middles = [(line.box[1] + line.box[3]) / 2 for line in region.lines]
        assert middles == sorted(middles)
        height = region.lines[0].box[3] - region.lines[0].box[1]
        assert all(lower - upper > 0.8 * height for upper, lower in itertools.pairwise(middles))


@pytest.mark.parametrize("seed", SEEDS)
def test_every_character_has_its_place_in_the_line(seed: int) -> None:
    for line in _page(seed).lines:
        assert 0 < len(line.text) <= drawing.LONGEST
        assert line.text == line.text.strip()
        assert len(line.middles) == len(line.text)
        assert list(line.middles) == sorted(line.middles)
        assert line.box[0] <= line.middles[0]
        assert line.middles[-1] <= line.box[2]


@pytest.mark.parametrize("seed", SEEDS)
def test_a_blank_page_has_paper_and_no_ink(seed: int) -> None:
    page = drawing.blank_page(seed)
    assert page.image.size == drawing.PAGE_SIZE
    assert (page.regions, page.lines, page.text) == ((), (), "")
    assert _ink(page.image).getbbox() is None
