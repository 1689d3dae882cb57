"""Makes of a downloaded image the one that htrflow reads: upright, 8-bit RGB or grey, of the size that a viewer shows.

What is written is always a JPEG: the source's own bytes when nothing has to change, otherwise quality 95 without colour
subsampling. A PNG of a page takes 5 to 19 times as long to write and two and a half times the space, which is memory in
a pod.
"""

from __future__ import annotations

import dataclasses
import io
import math
import os
import pathlib
import tempfile
import typing as t
import warnings

from PIL import (
    ExifTags,
    Image,
    ImageFile,
    Jpeg2KImagePlugin,
    TiffImagePlugin,
    UnidentifiedImageError,
)

from htrflow_batch import image_colours, image_headers
from htrflow_batch.errors import PageError, TransientError

#: libjpeg writes no longer side.
_LONGEST_SIDE = 65_500
_JPEG: t.Final[dict[str, t.Any]] = {"quality": 95, "subsampling": 0}


@dataclasses.dataclass(frozen=True, slots=True)
class Normalised:
    """The written image in pixels, and what was done to the source or ignored in it, in words."""

    width: int
    height: int
    notes: tuple[str, ...]


def normalise(content: bytes, path: pathlib.Path, *, max_pixels: int, max_width: int | None) -> Normalised:
    """Writes the image ``content`` to ``path`` as a JPEG. The same content gives the same bytes.

    ``max_pixels`` bounds width × height as the source's header states them, before anything is decoded.
    An image wider than ``max_width``, as it stands upright, is made smaller and keeps its proportions.

    :raises PageError: what ``content`` is instead of an image, why it cannot be decoded, or that it is too large.
    :raises TransientError: ``path`` cannot be written. Nothing is left of it then.
    """
    _prepare_pillow()
    kind = image_headers.kind_of(content)
    try:
        made, result = _make(content, kind, max_pixels, max_width)
    except PageError:
        raise
    except MemoryError as error:
        raise PageError(f"the {kind} image takes more memory to decode than there is") from error
    except Exception as error:  # Pillow's plugins raise whatever bad bytes lead them to
        reason = _one_line(error)
        broken = "is cut off" if "truncated" in reason.lower() else "cannot be decoded"
        raise PageError(f"the {kind} image {broken}: {reason}") from error
    _write(made, path)
    return result


def _prepare_pillow() -> None:
    """Sets what Pillow keeps once for the process, and other libraries in it may have set differently.

    The pixel limit is ours, and counts for all threads alike. Pillow warns of headers that it can cope with; turning
    warnings off for the time of a call would not be safe among threads.
    """
    Image.MAX_IMAGE_PIXELS = None
    ImageFile.LOAD_TRUNCATED_IMAGES = False
    warnings.filterwarnings("ignore", module=r"PIL\.")


def _make(content: bytes, kind: str, max_pixels: int, max_width: int | None) -> tuple[bytes, Normalised]:
    if kind == "WebP" and (
        size := image_headers.webp_size(content)
    ):  # Pillow allocates a WebP's canvas when it opens it
        _check_size(kind, size, max_pixels)
    try:
        image = Image.open(io.BytesIO(content), formats=[image_headers.READABLE[kind]])
    except UnidentifiedImageError as error:
        raise PageError(f"the {kind} image has a header that is broken or of an unknown variety") from error
    with image:
        for size in _stated_sizes(image, content):
            _check_size(kind, size, max_pixels)
        return _upright(image, content, max_width)


def _check_size(kind: str, size: tuple[int, int], max_pixels: int) -> None:
    width, height = size
    shown = f"the {kind} image is {width} × {height} pixels"
    if width < 1 or height < 1:
        raise PageError(f"{shown}, so there is nothing to read")
    if width * height > max_pixels:
        raise PageError(f"{shown}, {width * height} in all, and the limit max_pixels allows {max_pixels}")


def _stated_sizes(image: ImageFile.ImageFile, content: bytes) -> t.Iterator[tuple[int, int]]:
    """All that a decoder would allocate by: a file may state different sizes in different places."""
    yield image.size
    if isinstance(image, Jpeg2KImagePlugin.Jpeg2KImageFile) and (codestream := image_headers.codestream(content)):
        yield codestream[0]
    if isinstance(image, TiffImagePlugin.TiffImageFile):
        tags = image.tag_v2
        tile = tags.get(TiffImagePlugin.TILEWIDTH), tags.get(TiffImagePlugin.TILELENGTH)
        if isinstance(tile[0], int) and isinstance(tile[1], int):
            yield tile[0], tile[1]


def _upright(image: ImageFile.ImageFile, content: bytes, max_width: int | None) -> tuple[bytes, Normalised]:
    notes: list[str] = []
    if getattr(image, "is_animated", False):
        notes.append("only the first of several frames is used")
    tags = image.tag_v2 if isinstance(image, TiffImagePlugin.TiffImageFile) else None
    if image.format == "PNG":  # its EXIF may stand after the pixels
        image.load()
    orientation = _orientation(image, notes)
    inverted = tags is not None and tags.get(TiffImagePlugin.PHOTOMETRIC_INTERPRETATION) == 0
    if tags is not None:  # Pillow turns a TIFF itself
        image.load()
    sideways = orientation in (5, 6, 7, 8) and tags is None
    found = image.size
    upright = found[::-1] if sideways else found
    wanted = _fit(upright, max_width)
    if max(wanted) > _LONGEST_SIDE:
        raise PageError(f"the image is {upright[0]} × {upright[1]} pixels, and no side may have over {_LONGEST_SIDE}")
    stored = wanted[::-1] if sideways else wanted
    profile = image_colours.profile_of(image, notes) if image.format == "JPEG" else None
    same = image.format == "JPEG" and image.mode in ("L", "RGB") and stored == found
    if same and orientation in (None, 1) and profile is None and not notes and content.count(b"Exif\0\0") < 2:
        _read_through(content)
        return content, Normalised(*found, ())

    _decode_smaller(image, content, stored)
    image.load()
    if image.format != "JPEG":  # some kinds carry it behind the pixels
        profile = image_colours.profile_of(image, notes)
    plain = image_colours.eight_bits(image, inverted, notes)
    if plain.size != stored:
        plain = plain.resize(stored, Image.Resampling.LANCZOS)
    if wanted != upright:
        notes.append(f"made smaller, from {upright[0]} × {upright[1]} pixels")
    if plain.has_transparency_data:
        plain = image_colours.on_white(plain)
        notes.append("transparent parts are white")
    plain = image_colours.in_srgb(plain, profile, notes)
    if orientation is not None and orientation > 1:
        notes.append(f"turned upright, as its EXIF orientation {orientation} says")
        if tags is None:
            plain = plain.transpose(_TURNS[orientation])
    plain.info.clear()
    written = io.BytesIO()
    plain.save(written, "JPEG", **_JPEG)
    return written.getvalue(), Normalised(*plain.size, tuple(notes))


_TURNS = {
    2: Image.Transpose.FLIP_LEFT_RIGHT,
    3: Image.Transpose.ROTATE_180,
    4: Image.Transpose.FLIP_TOP_BOTTOM,
    5: Image.Transpose.TRANSPOSE,
    6: Image.Transpose.ROTATE_270,
    7: Image.Transpose.TRANSVERSE,
    8: Image.Transpose.ROTATE_90,
}


def _orientation(image: ImageFile.ImageFile, notes: list[str]) -> int | None:
    """1 to 8 of EXIF's tag 0x0112, or None. Not that of XMP, which Pillow would take and viewers do not."""
    value: object
    if isinstance(image, TiffImagePlugin.TiffImageFile):
        value = image.tag_v2.get(ExifTags.Base.Orientation)
    elif not isinstance(raw := image.info.get("exif"), bytes):
        return None
    else:
        exif = Image.Exif()
        try:
            exif.load(raw)
            value = exif.get(ExifTags.Base.Orientation)
        except Exception:  # the parser meets arbitrary bytes
            notes.append("its EXIF data cannot be read and is ignored")
            return None
    if value is None:
        return None
    if isinstance(value, int) and 1 <= value <= 8:
        return value
    notes.append(f"its EXIF orientation {_one_line(value)} is none and is ignored")
    return None


def _fit(size: tuple[int, int], max_width: int | None) -> tuple[int, int]:
    if max_width is None or size[0] <= max_width:
        return size
    return max_width, max(1, round(size[1] * max_width / size[0]))


def _read_through(content: bytes) -> None:
    """Raises what decoding a JPEG raises. At an eighth of its size that takes half of the time, or less."""
    with Image.open(io.BytesIO(content), formats=["JPEG"]) as image:
        image.draft(image.mode, (1, 1))
        image.load()


def _decode_smaller(image: ImageFile.ImageFile, content: bytes, wanted: tuple[int, int]) -> None:
    """Has the decoder leave out detail that is not wanted: a quarter of each side takes a sixteenth of the memory."""
    if image.format in ("JPEG", "MPO"):
        image.draft(None, wanted)
    elif isinstance(image, Jpeg2KImagePlugin.Jpeg2KImageFile) and (codestream := image_headers.codestream(content)):
        fewer = min(int(math.log2(max(1, have / want))) for have, want in zip(image.size, wanted, strict=True))
        if fewer := min(fewer, codestream[1]):
            image.reduce = fewer


def _write(content: bytes, path: pathlib.Path) -> None:
    """Under another name first, so that whoever finds ``path`` finds all of it."""
    part: pathlib.Path | None = None
    try:
        descriptor, name = tempfile.mkstemp(prefix=".", suffix=".part", dir=path.parent)
        part = pathlib.Path(name)
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
        part.replace(path)
        part = None
    except OSError as error:
        raise TransientError(f"the image {path.name} cannot be written: {error.strerror or 'unknown'}") from error
    finally:
        if part is not None:
            part.unlink(missing_ok=True)


def _one_line(value: object) -> str:
    text = " ".join(str(value).split()) or type(value).__name__
    return "".join(c if c.isprintable() else "?" for c in text)[:120]
