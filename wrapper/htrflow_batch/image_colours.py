"""Brings the pixels of any image into 8-bit grey or sRGB. Each function adds to ``notes`` what it did, in words."""

from __future__ import annotations

import io
import math
import typing as t

from PIL import Image, ImageChops, ImageCms

from htrflow_batch.errors import PageError

_GREY_DEPTHS = ("I;16", "I;16B", "I;16L", "I;16N", "I", "F")
#: Rows that are brought from one depth to another at a time, so that not all pixels lie in memory in both.
_ROWS = 256


def eight_bits(image: Image.Image, inverted: bool, notes: list[str]) -> Image.Image:
    """In a mode of 8 bits a channel that can be resized; transparency is kept in a channel of its own.

    ``inverted`` says that the lowest value of grey is white.

    :raises PageError: for grey in floating point that holds no finite numbers.
    """
    if image.mode in _GREY_DEPTHS:
        return _grey(image, inverted, notes)
    if image.mode == "1" and not image.has_transparency_data:
        return image.convert("L")
    if image.mode in ("LA", "La", "L") and image.has_transparency_data:
        return image.convert("LA")
    if image.has_transparency_data:
        return image.convert("RGBA")
    return image if image.mode in ("L", "RGB", "CMYK", "LAB") else image.convert("RGB")


def _grey(image: Image.Image, inverted: bool, notes: list[str]) -> Image.Image:
    """Grey of more than 8 bits in 256 steps: black is 0, white the largest value of the bit depth that is in use.

    Stretching from the darkest to the lightest pixel instead would turn the noise of a blank page into writing.
    """
    deep: t.Literal["F", "I"] = "F" if image.mode == "F" else "I"
    width, height = image.size

    def strip(top: int) -> Image.Image:
        rows = image.crop((0, top, width, min(height, top + _ROWS)))
        rows.info.clear()
        return rows.convert(deep)

    ends = [t.cast(tuple[float, float], strip(top).getextrema()) for top in range(0, height, _ROWS)]
    low, high = min(0, *(end[0] for end in ends)), max(end[1] for end in ends)
    if not (math.isfinite(low) and math.isfinite(high)):
        raise PageError("the image has pixels that are no finite number")
    depths = [2**bits - 1 for bits in (8, 10, 12, 14, 16)]
    white = next((top for top in ([1, *depths] if deep == "F" else depths) if high <= top), high)
    notes.append(f"its grey from {low:g} to {white:g} is given in 256 steps")
    factor = 255 / (white - low)
    grey = Image.new("L", image.size)
    for top in range(0, height, _ROWS):
        scaled = strip(top).convert("F").point(lambda value: value * factor + (0.5 - low * factor))
        grey.paste(scaled.convert("L"), (0, top))
    return ImageChops.invert(grey) if inverted else grey


def on_white(image: Image.Image) -> Image.Image:
    """An image of the mode LA or RGBA, on white paper."""
    plain = image.convert("L" if image.mode == "LA" else "RGB")
    ground = Image.new(plain.mode, plain.size, "white")
    ground.paste(plain, mask=image.getchannel("A"))
    return ground


def profile_of(image: Image.Image, notes: list[str]) -> ImageCms.ImageCmsProfile | None:
    """The colour profile to convert from; None when there is none, when it is sRGB, and when it cannot be read."""
    content = image.info.get("icc_profile")
    if not isinstance(content, bytes) or not content:
        return None
    try:
        profile = ImageCms.ImageCmsProfile(io.BytesIO(content))
        return None if "srgb" in ImageCms.getProfileDescription(profile).lower() else profile
    except Exception:  # as for EXIF
        notes.append("its colour profile cannot be read and is ignored")
        return None


def in_srgb(image: Image.Image, profile: ImageCms.ImageCmsProfile | None, notes: list[str]) -> Image.Image:
    """An image of the mode L, RGB, CMYK or LAB as L or RGB, by way of ``profile`` where it can be used."""
    if profile is not None:
        srgb = ImageCms.createProfile("sRGB")
        try:
            converted = ImageCms.profileToProfile(image, profile, srgb, outputMode="RGB")
        except (ImageCms.PyCMSError, ValueError):
            notes.append("its colour profile does not fit its pixels and is ignored")
        else:
            notes.append("its colours are converted to sRGB")
            assert converted is not None
            return converted.convert("L") if image.mode == "L" else converted
    if image.mode == "CMYK":
        notes.append("its colours are converted from CMYK")
    return image if image.mode in ("L", "RGB") else image.convert("RGB")
