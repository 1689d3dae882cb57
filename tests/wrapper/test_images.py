from __future__ import annotations

import concurrent.futures
import io
import pathlib
import struct
import subprocess
import sys
import tempfile
import typing as t
import warnings

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image, ImageCms, ImageFile

from htrflow_batch.errors import PageError, TransientError
from htrflow_batch.images import Normalised, normalise
from tests.wrapper import drawn

RED, GREEN, BLUE, BLACK = drawn.CORNERS
WHITE = (255, 255, 255)
SAMPLES = drawn.samples()
#: Words in the names of samples that have not the drawing's own colours, and have tests of theirs.
OTHER_COLOURS = {"turned", "profile", "alpha", "clear", "grey", "lossless", "float", "bit", "bits"}
OTHER_COLOURS |= {"group3", "group4", "tiff_ccitt"}
#: Which corner of the drawing comes to stand where, by the EXIF specification's orientation.
TURNED = {
    1: (RED, GREEN, BLUE, BLACK),
    2: (GREEN, RED, BLACK, BLUE),
    3: (BLACK, BLUE, GREEN, RED),
    4: (BLUE, BLACK, RED, GREEN),
    5: (RED, BLUE, GREEN, BLACK),
    6: (BLUE, RED, BLACK, GREEN),
    7: (BLACK, GREEN, BLUE, RED),
    8: (GREEN, BLACK, RED, BLUE),
}


class Made(t.NamedTuple):
    result: Normalised
    image: Image.Image
    content: bytes


def make(content: bytes, folder: pathlib.Path, max_width: int | None = None, max_pixels: int = 1_000_000) -> Made:
    path = folder / "0001.jpg"
    result = normalise(content, path, max_pixels=max_pixels, max_width=max_width)
    written = path.read_bytes()
    image = Image.open(io.BytesIO(written))
    image.load()
    assert image.format == "JPEG"
    assert image.mode in ("L", "RGB")
    assert image.size == (result.width, result.height)
    assert [child.name for child in folder.iterdir()] == [path.name]
    return Made(result, image, written)


def refusal(content: bytes, folder: pathlib.Path, max_pixels: int = 1_000_000) -> str:
    with pytest.raises(PageError) as caught:
        normalise(content, folder / "0001.jpg", max_pixels=max_pixels, max_width=None)
    assert list(folder.iterdir()) == []
    return str(caught.value)


def assert_colours(image: Image.Image, wanted: t.Sequence[tuple[int, int, int]], tolerance: int = 6) -> None:
    found = drawn.corners(image)
    for have, want in zip(found, wanted, strict=True):
        assert max(abs(a - b) for a, b in zip(have, want, strict=True)) <= tolerance, (found, wanted)


def grey_of(image: Image.Image) -> list[int]:
    """The values of the middle row, from left to right."""
    assert image.mode == "L"
    return [t.cast(int, image.getpixel((x, image.height // 2))) for x in range(image.width)]


# --- every kind of image


@pytest.mark.parametrize("name", [name for name in SAMPLES if not OTHER_COLOURS & set(name.split())])
def test_the_colours_of_an_image_come_out_whatever_its_format_and_colour_model(
    name: str, tmp_path: pathlib.Path
) -> None:
    made = make(SAMPLES[name], tmp_path)
    assert_colours(made.image, drawn.CORNERS)
    assert made.image.size == (64, 48)


@pytest.mark.parametrize("name", ["jpeg several", "tiff several", "gif several", "webp several"])
def test_of_several_frames_the_first_is_used_and_it_is_said(name: str, tmp_path: pathlib.Path) -> None:
    assert make(SAMPLES[name], tmp_path).result.notes == ("only the first of several frames is used",)


@pytest.mark.parametrize("name", ["png alpha", "webp lossless"])
def test_transparent_parts_are_white(name: str, tmp_path: pathlib.Path) -> None:
    made = make(SAMPLES[name], tmp_path)
    assert made.result.notes == ("transparent parts are white",)
    assert min(t.cast(tuple[int, ...], made.image.getpixel((60, 0)))) > 245


def test_a_transparent_colour_of_a_palette_is_white(tmp_path: pathlib.Path) -> None:
    assert_colours(make(SAMPLES["png palette clear"], tmp_path).image, (RED, WHITE, BLUE, BLACK))


def test_grey_with_transparency_stays_grey_and_stands_on_white(tmp_path: pathlib.Path) -> None:
    made = make(SAMPLES["png grey alpha"], tmp_path)
    assert made.image.mode == "L"
    assert t.cast(int, made.image.getpixel((60, 0))) > 245


@pytest.mark.parametrize("mode", ["L", "RGB", "1"])
def test_a_single_colour_that_is_marked_as_transparent_is_white(mode: str, tmp_path: pathlib.Path) -> None:
    clear: t.Any = {"L": 20, "RGB": BLACK, "1": 0}[mode]
    page = Image.new(mode, (32, 32), clear)
    assert_colours(make(drawn.encoded(page, "PNG", transparency=clear), tmp_path).image, [WHITE] * 4)


@pytest.mark.parametrize("name", ["png one bit", "tiff in group3", "tiff in group4", "tiff in tiff_ccitt"])
def test_one_bit_a_pixel_becomes_black_and_white(name: str, tmp_path: pathlib.Path) -> None:
    page = Image.new("1", (32, 32), 1)
    page.paste(0, (0, 0, 16, 32))
    kind, _, compression = name.partition(" in ")
    options = {"compression": compression} if compression else {}
    made = make(drawn.encoded(page, kind.split()[0].upper(), **options), tmp_path)
    assert made.image.mode == "L"
    assert_colours(made.image, [(0, 0, 0), WHITE] * 2)


def test_a_colour_profile_is_applied(tmp_path: pathlib.Path) -> None:
    made = make(SAMPLES["jpeg profile"], tmp_path)
    assert made.result.notes == ("its colours are converted to sRGB",)
    exchanged = [(green, red, blue) for red, green, blue in drawn.CORNERS]
    assert_colours(made.image, exchanged, tolerance=8)
    assert "icc_profile" not in made.image.info


def test_nothing_but_the_pixels_of_an_image_is_written(tmp_path: pathlib.Path) -> None:
    srgb = ImageCms.ImageCmsProfile(ImageCms.createProfile("sRGB")).tobytes()
    for content in (
        drawn.encoded(drawn.quarters(), "WEBP", icc_profile=srgb, xmp=b"<x/>"),
        drawn.encoded(drawn.quarters().convert("L"), "GIF", comment=b"by hand"),
    ):
        made = make(content, tmp_path)
        assert made.result.notes == ()
        assert set(made.image.info) <= {"jfif", "jfif_version", "jfif_unit", "jfif_density"}


@pytest.mark.parametrize(
    ("profile", "note"),
    [(b"no profile", "cannot be read"), (drawn.exchanging_profile()[:200], "cannot be read")],
)
def test_a_colour_profile_that_is_broken_is_ignored_and_it_is_said(
    profile: bytes, note: str, tmp_path: pathlib.Path
) -> None:
    made = make(drawn.encoded(drawn.quarters(), "PNG", icc_profile=profile), tmp_path)
    assert made.result.notes == (f"its colour profile {note} and is ignored",)
    assert_colours(made.image, drawn.CORNERS)


def test_a_colour_profile_for_other_pixels_is_ignored_and_it_is_said(tmp_path: pathlib.Path) -> None:
    content = drawn.encoded(drawn.quarters().convert("L"), "PNG", icc_profile=drawn.exchanging_profile())
    made = make(content, tmp_path)
    assert made.result.notes == ("its colour profile does not fit its pixels and is ignored",)
    assert made.image.mode == "L"


# --- grey of more than 8 bits


@pytest.mark.parametrize(
    ("mode", "kind", "white"),
    [
        ("I;16", "TIFF", 65535),
        ("I;16", "TIFF", 4095),
        ("I;16", "TIFF", 255),
        ("I;16B", "TIFF", 65535),
        ("I;16B", "TIFF", 1023),
        ("I;16", "PNG", 65535),
        ("I;16", "PNG", 4095),
        ("I;16", "JPEG2000", 65535),
        ("I", "TIFF", 1_000_000),
        ("F", "TIFF", 1.0),
        ("F", "TIFF", 255.0),
        ("F", "TIFF", 1e9),
    ],
)
def test_deep_grey_is_scaled_by_its_real_range(mode: str, kind: str, white: float, tmp_path: pathlib.Path) -> None:
    options = {"irreversible": False} if kind == "JPEG2000" else {}
    found = grey_of(make(drawn.encoded(drawn.ramp(mode, white), kind, **options), tmp_path).image)
    assert max(abs(have - 255 * x / 63) for x, have in enumerate(found)) <= 3


def test_the_lowest_of_negative_grey_is_black(tmp_path: pathlib.Path) -> None:
    image = Image.new("I", (64, 16), -1000)
    image.paste(1000, (32, 0, 64, 16))
    found = grey_of(make(drawn.encoded(image, "TIFF"), tmp_path).image)
    assert found[0] < 5
    assert found[-1] > 240


def test_a_blank_page_in_16_bits_stays_blank(tmp_path: pathlib.Path) -> None:
    noise = struct.pack("<64H", *(60_000 + x % 7 for x in range(64))) * 64
    found = grey_of(make(drawn.encoded(Image.frombytes("I;16", (64, 64), noise), "TIFF"), tmp_path).image)
    assert max(found) - min(found) <= 2


def test_deep_grey_of_which_0_is_white_is_turned_round(tmp_path: pathlib.Path) -> None:
    content = drawn.encoded(drawn.ramp("I;16", 65535), "TIFF", tiffinfo={262: 0})
    content = content.replace(struct.pack("<HHIHH", 262, 3, 1, 1, 0), struct.pack("<HHIHH", 262, 3, 1, 0, 0))
    found = grey_of(make(content, tmp_path).image)
    assert found[0] > 250
    assert found[-1] < 5


@pytest.mark.parametrize("value", ["nan", "inf"])
def test_grey_without_finite_numbers_is_refused(value: str, tmp_path: pathlib.Path) -> None:
    image = Image.new("F", (8, 8), float(value))
    assert refusal(drawn.encoded(image, "TIFF"), tmp_path) == "the image has pixels that are no finite number"


# --- orientation


@pytest.mark.parametrize("kind", ["JPEG", "PNG", "WEBP", "TIFF"])
@pytest.mark.parametrize("value", TURNED)
def test_an_image_is_turned_as_its_orientation_says(value: int, kind: str, tmp_path: pathlib.Path) -> None:
    content = drawn.oriented_tiff(value) if kind == "TIFF" else drawn.oriented(value, kind)
    made = make(content, tmp_path)
    assert made.image.size == ((48, 64) if value > 4 else (64, 48))
    # A lossy WebP of 64 pixels mixes the colours of neighbours.
    assert_colours(made.image, TURNED[value], tolerance=12 if kind == "WEBP" else 6)
    assert made.image.getexif().get(0x0112, 1) == 1
    assert made.result.notes == ((f"turned upright, as its EXIF orientation {value} says",) if value > 1 else ())


@pytest.mark.parametrize(
    ("content", "shown"),
    [
        (drawn.oriented(0), "0"),
        (drawn.oriented(9), "9"),
        (drawn.oriented(65535), "65535"),
        (drawn.oddly_oriented(2, 4, b"up\n\0"), "up"),
        (drawn.oddly_oriented(7, 4, b"\x06\0\0\0"), r"b'\x06\x00\x00\x00'"),
        (drawn.oddly_oriented(11, 1, struct.pack("<f", 6.5)), "6.5"),
        (drawn.oriented_tiff(9), "9"),
    ],
)
def test_an_orientation_that_is_none_is_ignored_and_it_is_said(
    content: bytes, shown: str, tmp_path: pathlib.Path
) -> None:
    made = make(content, tmp_path)
    assert made.image.size == (64, 48)
    assert_colours(made.image, drawn.CORNERS)
    assert made.result.notes == (f"its EXIF orientation {shown} is none and is ignored",)


def test_what_pillow_only_warns_of_is_no_error(tmp_path: pathlib.Path) -> None:
    content = drawn.oddly_oriented(3, 2, struct.pack("<2H", 6, 6))
    with pytest.warns(UserWarning, match="too many entries"), Image.open(io.BytesIO(content)) as image:
        image.getexif().get(0x0112)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        assert_colours(make(content, tmp_path).image, TURNED[6])
    assert caught == []


def test_an_orientation_that_stands_behind_the_pixels_of_a_png_counts(tmp_path: pathlib.Path) -> None:
    content = drawn.oriented(6, "PNG")
    start = content.index(b"eXIf") - 4
    end = start + 12 + int.from_bytes(content[start : start + 4], "big")
    last = content.index(b"IEND") - 4
    assert end < last
    made = make(content[:start] + content[end:last] + content[start:end] + content[last:], tmp_path)
    assert_colours(made.image, TURNED[6])


def test_exif_that_is_garbage_is_ignored(tmp_path: pathlib.Path) -> None:
    made = make(drawn.encoded(drawn.quarters(), "JPEG", exif=b"Exif\0\0garbage" * 9, quality=95), tmp_path)
    assert made.result.notes == ("its EXIF data cannot be read and is ignored",)


def test_the_width_cap_holds_for_the_image_as_it_stands_upright(tmp_path: pathlib.Path) -> None:
    for content in (drawn.oriented(6), drawn.oriented(6, "PNG"), drawn.oriented_tiff(6)):
        made = make(content, tmp_path, max_width=24)
        assert made.image.size == (24, 32)
        assert_colours(made.image, TURNED[6], tolerance=12)


# --- size


@pytest.mark.parametrize("name", SAMPLES)
def test_a_width_cap_keeps_the_proportions_in_every_format(name: str, tmp_path: pathlib.Path) -> None:
    whole = make(SAMPLES[name], tmp_path).result
    made = make(SAMPLES[name], tmp_path, max_width=16)
    assert made.image.size == (16, round(16 * whole.height / whole.width))
    assert f"made smaller, from {whole.width} × {whole.height} pixels" in made.result.notes


def test_an_image_that_is_narrow_enough_is_not_made_larger(tmp_path: pathlib.Path) -> None:
    assert make(SAMPLES["png"], tmp_path, max_width=64).image.size == (64, 48)
    assert make(SAMPLES["png"], tmp_path, max_width=2500).image.size == (64, 48)


def test_a_line_of_pixels_keeps_one_row_under_a_width_cap(tmp_path: pathlib.Path) -> None:
    assert make(drawn.encoded(Image.new("RGB", (5000, 1)), "PNG"), tmp_path, max_width=10).image.size == (10, 1)


@pytest.mark.parametrize("kind", ["PNG", "JPEG", "GIF", "BMP", "WEBP", "JPEG2000", "TIFF"])
def test_an_image_over_the_pixel_limit_is_refused_by_its_header(kind: str, tmp_path: pathlib.Path) -> None:
    message = refusal(drawn.inflated(kind), tmp_path)
    assert message.endswith(" image is 16000 × 16000 pixels, 256000000 in all, and the limit max_pixels allows 1000000")


def test_the_pixel_limit_is_the_largest_size_that_passes(tmp_path: pathlib.Path) -> None:
    assert make(SAMPLES["png"], tmp_path, max_pixels=64 * 48).image.size == (64, 48)
    (tmp_path / "0001.jpg").unlink()
    assert "max_pixels" in refusal(SAMPLES["png"], tmp_path, max_pixels=64 * 48 - 1)


def test_a_jpeg_2000_whose_codestream_is_larger_than_its_box_says_is_refused(tmp_path: pathlib.Path) -> None:
    content = bytearray(SAMPLES["jp2"])
    struct.pack_into(">2I", content, content.index(b"\xff\x4f\xff\x51") + 8, 50_000, 50_000)
    assert "50000 × 50000" in refusal(bytes(content), tmp_path)


def test_a_tiff_whose_tiles_are_over_the_limit_is_refused(tmp_path: pathlib.Path) -> None:
    assert "30000 × 40000" in refusal(drawn.tiff_of_tiles(30_000, 40_000), tmp_path)


@pytest.mark.parametrize(("width", "height"), [(0, 0), (0, 5), (5, 0), (2**31 - 1, 2**31 - 1), (2**32 - 1, 1)])
def test_a_size_of_nothing_or_beyond_reason_is_refused(width: int, height: int, tmp_path: pathlib.Path) -> None:
    assert refusal(drawn.png_of_size(width, height), tmp_path)


def test_a_side_that_no_jpeg_can_have_is_refused_and_named(tmp_path: pathlib.Path) -> None:
    content = drawn.encoded(Image.new("1", (70_000, 2)), "PNG")
    assert refusal(content, tmp_path) == "the image is 70000 × 2 pixels, and no side may have over 65500"
    assert make(content, tmp_path, max_width=700).image.size == (700, 1)


def in_a_process_of_its_own(content: bytes, folder: pathlib.Path, max_width: int) -> tuple[str, int]:
    """What :func:`normalise` gives, and by how many MiB memory grew at its highest."""
    # Not by getrusage(): a process inherits the highest memory of the one that started it.
    program = """
import pathlib, re, sys
from htrflow_batch.images import normalise
def peak(): return int(re.search(r"VmHWM:\\s+(\\d+)", pathlib.Path("/proc/self/status").read_text())[1]) // 1024
folder = pathlib.Path(sys.argv[1])
content = (folder / "source").read_bytes()
before = peak()
result = normalise(content, folder / "0001.jpg", max_pixels=200_000_000, max_width=int(sys.argv[2]))
print(f"{result.width}x{result.height} {peak() - before}")
"""
    (folder / "source").write_bytes(content)
    command = [sys.executable, "-W", "error", "-c", program, str(folder), str(max_width)]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=120)
    assert done.stderr == ""
    size, grown = done.stdout.split()
    return size, int(grown)


def test_a_page_of_100_million_pixels_takes_little_memory_under_a_width_cap(tmp_path: pathlib.Path) -> None:
    content = drawn.encoded(drawn.quarters(12_000, 8_400), "JPEG")
    size, mebibytes = in_a_process_of_its_own(content, tmp_path, 2500)
    assert size == "2500x1750"
    assert mebibytes < 120


def test_a_jpeg_2000_is_decoded_no_larger_than_the_width_cap_needs(tmp_path: pathlib.Path) -> None:
    content = drawn.encoded(drawn.quarters(4000, 3000), "JPEG2000")
    size, mebibytes = in_a_process_of_its_own(content, tmp_path, 500)
    assert size == "500x375"
    assert mebibytes < 60


def test_an_image_that_pillow_would_call_a_bomb_is_read_when_the_limit_allows_it(tmp_path: pathlib.Path) -> None:
    content = drawn.encoded(Image.new("L", (15_000, 12_500), 200), "JPEG")
    size, _ = in_a_process_of_its_own(content, tmp_path, 1000)
    assert size == "1000x833"


# --- what is written


def test_a_jpeg_that_is_right_as_it_is_is_written_byte_by_byte(tmp_path: pathlib.Path) -> None:
    for name in ("jpeg", "jpeg progressive", "jpeg grey"):
        assert make(SAMPLES[name], tmp_path).content == SAMPLES[name]
    assert make(drawn.oriented(1), tmp_path).content == drawn.oriented(1)


def test_a_jpeg_with_exif_twice_is_written_without_it_since_readers_may_differ(tmp_path: pathlib.Path) -> None:
    content = drawn.oriented(1)
    start = content.index(b"Exif\0\0") - 4
    segment = content[start : start + 2 + int.from_bytes(content[start + 2 : start + 4], "big")]
    made = make(content[:start] + segment + content[start:], tmp_path)
    assert b"Exif" not in made.content
    assert_colours(made.image, drawn.CORNERS)


@pytest.mark.parametrize("name", SAMPLES)
def test_the_same_content_gives_the_same_bytes(name: str, tmp_path: pathlib.Path) -> None:
    assert make(SAMPLES[name], tmp_path, max_width=40)[::2] == make(SAMPLES[name], tmp_path, max_width=40)[::2]


def test_threads_do_not_disturb_each_other(tmp_path: pathlib.Path) -> None:
    def work(index: int) -> tuple[Normalised, bytes]:
        path = tmp_path / f"{index}.jpg"
        content = SAMPLES[names[index % len(names)]]
        return normalise(content, path, max_pixels=10_000, max_width=40), path.read_bytes()

    names = list(SAMPLES)
    alone = [work(index) for index in range(len(names))]
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        assert list(pool.map(work, range(4 * len(names)))) == alone * 4


@pytest.mark.parametrize("place", ["missing", "folder"])
def test_a_place_that_cannot_be_written_is_no_fault_of_the_page_and_nothing_is_left(
    place: str, tmp_path: pathlib.Path
) -> None:
    (tmp_path / "folder" / "0001.jpg").mkdir(parents=True)
    with pytest.raises(TransientError, match=r"^the image 0001\.jpg cannot be written: "):
        normalise(SAMPLES["png"], tmp_path / place / "0001.jpg", max_pixels=10_000, max_width=None)
    assert sorted(path.name for path in tmp_path.rglob("*")) == ["0001.jpg", "folder"]


def test_a_page_that_fails_leaves_the_file_of_an_earlier_one_alone(tmp_path: pathlib.Path) -> None:
    before = make(SAMPLES["png"], tmp_path).content
    with pytest.raises(PageError):
        normalise(b"<html>", tmp_path / "0001.jpg", max_pixels=10_000, max_width=None)
    assert (tmp_path / "0001.jpg").read_bytes() == before


# --- what is refused


@pytest.mark.parametrize(
    ("content", "name"),
    [
        (b"%PDF-1.7\n", "PDF"),
        (b'<?xml version="1.0"?>\n<!-- a drawing -->\n<svg xmlns="http://www.w3.org/2000/svg"/>', "SVG"),
        (b"<svg width='1'/>", "SVG"),
        (b"\n<!DOCTYPE html><html><svg></svg></html>", "HTML"),
        (b"\xef\xbb\xbf<HTML><body>Log in</body>", "HTML"),
        (b"<!-- x --><!doctype html>", "HTML"),
        (b"<?xml version='1.0'?><error/>", "XML"),
        (b'{"error": "no rights"}', "JSON"),
        (b"%!PS-Adobe-3.0 EPSF-3.0", "PostScript"),
        (b"8BPS\0\1" + bytes(20), "Photoshop"),
        (b"\0\0\0\x18ftypheic" + bytes(20), "HEIC"),
        (b"\xff\x0a" + bytes(20), "JPEG XL"),
        (b"II\xbc\x01" + bytes(20), "JPEG XR"),
        (b"AT&TFORM" + bytes(20), "DjVu"),
        (b"PK\3\4" + bytes(20), "ZIP"),
        (b"\x1f\x8b\x08" + bytes(20), "gzip"),
    ],
)
def test_what_is_no_image_is_called_by_its_name(content: bytes, name: str, tmp_path: pathlib.Path) -> None:
    assert refusal(content, tmp_path) == (
        f"the file is {name}, and not an image of the formats JPEG, PNG, TIFF, JPEG 2000, WebP, GIF, BMP, AVIF"
    )


def test_what_has_no_name_is_shown_by_its_first_bytes(tmp_path: pathlib.Path) -> None:
    assert refusal(b"\x01\x02\x03\x04\x05\x06\x07\x08\x09", tmp_path).startswith(
        "the file begins with the bytes 01 02 03 04 05 06 07 08, as no image of the formats JPEG, "
    )
    assert refusal(b"", tmp_path) == "the file is empty"


@pytest.mark.parametrize("name", SAMPLES)
def test_an_image_that_is_cut_off_in_the_middle_is_refused(name: str, tmp_path: pathlib.Path) -> None:
    content = SAMPLES[name]
    kept = content[: len(content) // 3]
    # The second frame of a file can be lost without harm, so the cut comes early. A TIFF's directory comes last.
    assert "image" in refusal(kept, tmp_path)


def test_a_jpeg_that_opens_and_then_ends_is_called_cut_off(tmp_path: pathlib.Path) -> None:
    page = Image.effect_noise((200, 200), 50)
    content = drawn.encoded(page, "JPEG")
    kept = content[:-2000]
    assert Image.open(io.BytesIO(kept)).size == (200, 200)
    assert refusal(kept, tmp_path).startswith("the JPEG image is cut off: image file is truncated")


def test_a_truncated_image_is_refused_also_when_another_library_told_pillow_to_pass_it(
    tmp_path: pathlib.Path,
) -> None:
    content = drawn.encoded(Image.effect_noise((200, 200), 50), "JPEG")[:-2000]
    ImageFile.LOAD_TRUNCATED_IMAGES = True
    try:
        assert "cut off" in refusal(content, tmp_path)
    finally:
        ImageFile.LOAD_TRUNCATED_IMAGES = False


# --- what always holds


def outcome(content: bytes) -> None:
    with tempfile.TemporaryDirectory() as name, warnings.catch_warnings():
        warnings.simplefilter("error")
        folder = pathlib.Path(name)
        try:
            make(content, folder, max_width=50, max_pixels=40_000)
        except PageError as error:
            message = str(error)
            assert message
            assert message.isprintable()
            assert len(message) < 250
            assert list(folder.iterdir()) == []


@settings(max_examples=300, deadline=None)
@given(st.sampled_from(list(SAMPLES.values())), st.data())
def test_any_damage_to_an_image_gives_an_image_or_a_sentence(content: bytes, data: st.DataObject) -> None:
    damaged = bytearray(content)
    for _ in range(data.draw(st.integers(1, 6))):
        # Most of what decides stands in the first hundred bytes.
        place = data.draw(st.integers(0, 100) | st.integers(0, len(content) - 1)) % max(1, len(damaged))
        piece = data.draw(st.binary(max_size=4) | st.sampled_from([b"\xff" * 4, b"\0" * 4, b"\x7f\xff\xff\xff"]))
        damaged[place : place + data.draw(st.integers(0, 4))] = piece
    outcome(bytes(damaged[: data.draw(st.none() | st.integers(0, len(damaged)))]))


BEGINNINGS = [content[:length] for content in SAMPLES.values() for length in (4, 12, 26)]


@settings(max_examples=200, deadline=None)
@given(st.sampled_from([b"", b"<", b"<?xml ", b"BM", *BEGINNINGS]), st.binary(max_size=200))
def test_any_bytes_give_an_image_or_a_sentence(beginning: bytes, rest: bytes) -> None:
    outcome(beginning + rest)
