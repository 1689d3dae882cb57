"""Images for tests, drawn by Pillow: every variety that an archive's server may send."""

from __future__ import annotations

import io
import struct
import typing as t
import zlib

from PIL import Image, ImageCms, TiffImagePlugin

#: Upper left, upper right, lower left, lower right of :func:`quarters`.
CORNERS = ((220, 30, 40), (30, 200, 60), (40, 60, 210), (20, 20, 20))


def quarters(width: int = 64, height: int = 48) -> Image.Image:
    """Four fields in the colours of :data:`CORNERS`, so that any turn, mirror or wrong colour shows."""
    image = Image.new("RGB", (width, height))
    half = (width // 2, height // 2)
    for index, colour in enumerate(CORNERS):
        image.paste(colour, (index % 2 * half[0], index // 2 * half[1], width, height))
    return image


def corners(image: Image.Image) -> tuple[tuple[int, int, int], ...]:
    """The colours in the middles of the four quarters of ``image``."""
    colour, (width, height) = image.convert("RGB"), image.size
    places = [(width * x // 4, height * y // 4) for y in (1, 3) for x in (1, 3)]
    return tuple(t.cast(tuple[int, int, int], colour.getpixel(place)) for place in places)


def encoded(image: Image.Image, kind: str, **options: t.Any) -> bytes:
    """``image`` in Pillow's format ``kind``. Of a copy, since an image keeps what it was last saved with."""
    written = io.BytesIO()
    image.copy().save(written, kind, **options)
    return written.getvalue()


def oriented(value: int, kind: str = "JPEG") -> bytes:
    """:func:`quarters` with ``value`` as its EXIF orientation, the pixels as they are."""
    exif = Image.Exif()
    exif[0x0112] = value
    return encoded(quarters(), kind, exif=exif, **({"quality": 95, "subsampling": 0} if kind == "JPEG" else {}))


def oddly_oriented(form: int, count: int, value: bytes) -> bytes:
    """A JPEG whose EXIF orientation is not the one short number that it should be: TIFF's type, how many, which."""
    entry = struct.pack("<HHI4s", 0x0112, form, count, value)
    exif = b"Exif\0\0" + b"II*\0" + struct.pack("<IH", 8, 1) + entry + bytes(4)
    return encoded(quarters(), "JPEG", exif=exif, quality=95, subsampling=0)


def oriented_tiff(value: int) -> bytes:
    directory = TiffImagePlugin.ImageFileDirectory_v2()
    directory[0x0112] = value
    return encoded(quarters(), "TIFF", tiffinfo=directory)


def tiff_of_tiles(width: int, height: int) -> bytes:
    """A TIFF that says so of its tiles. Pillow writes none, so the two numbers go in under tags of nobody's."""
    directory = TiffImagePlugin.ImageFileDirectory_v2()
    for tag, value in ((65_000, width), (65_001, height)):
        directory.tagtype[tag] = 4
        directory[tag] = value
    content = encoded(quarters(), "TIFF", tiffinfo=directory)
    for tag, new in ((65_000, 322), (65_001, 323)):
        content = content.replace(struct.pack("<HH", tag, 4), struct.pack("<HH", new, 4))
    return content


def ramp(mode: str, white: float, width: int = 64, height: int = 16) -> Image.Image:
    """Grey from 0 at the left to ``white`` at the right, in a mode of more than 8 bits."""
    column = struct.Struct("<f" if mode == "F" else "<i")
    row = b"".join(column.pack((float if mode == "F" else int)(white * x / (width - 1))) for x in range(width))
    deep = "F" if mode == "F" else "I"
    return Image.frombytes(deep, (width, height), row * height).convert(mode)


def ycck() -> bytes:
    """A JPEG as Photoshop writes it: CMYK, inverted, and its colours in YCC. Pillow writes CMYK only as it is."""
    cyan, magenta, yellow, black = quarters().convert("CMYK").split()
    ycc = Image.merge("RGB", (cyan, magenta, yellow)).convert("YCbCr").split()
    planes = [plane.point(lambda value: 255 - value) for plane in ycc]
    content = bytearray(encoded(Image.merge("CMYK", (*planes, black)), "JPEG", quality=95, subsampling=0))
    content[content.index(b"Adobe") + 11] = 2
    return bytes(content)


def exchanging_profile() -> bytes:
    """A colour profile under which red is what sRGB calls green, and green what it calls red."""
    content = ImageCms.ImageCmsProfile(ImageCms.createProfile("sRGB")).tobytes()
    for old, new in ((b"rXYZ", b"????"), (b"gXYZ", b"rXYZ"), (b"????", b"gXYZ")):
        content = content.replace(old, new, 1)
    return content.replace("sRGB".encode("utf-16-be"), "test".encode("utf-16-be")).replace(b"sRGB built", b"test built")


def png_of_size(width: int, height: int) -> bytes:
    """A header alone, of any size."""
    chunks = (
        (b"IHDR", struct.pack(">2I5B", width, height, 8, 2, 0, 0, 0)),
        (b"IDAT", zlib.compress(b"")),
        (b"IEND", b""),
    )
    made = (
        struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data)) for name, data in chunks
    )
    return b"\x89PNG\r\n\x1a\n" + b"".join(made)


def inflated(kind: str, side: int = 16_000) -> bytes:
    """A small image whose header says that it is ``side`` pixels wide and high."""
    if kind == "PNG":
        return png_of_size(side, side)
    content = bytearray(encoded(quarters(), kind))
    if kind == "JPEG":
        struct.pack_into(">2H", content, content.index(b"\xff\xc0") + 5, side, side)
    elif kind == "GIF":
        struct.pack_into("<2H", content, 6, side, side)
    elif kind == "BMP":
        struct.pack_into("<2i", content, 18, side, side)
    elif kind == "WEBP":
        struct.pack_into("<2H", content, content.index(b"\x9d\x01\x2a") + 3, side, side)
    elif kind == "JPEG2000":
        struct.pack_into(">2I", content, content.index(b"ihdr") + 4, side, side)
    else:
        directory = TiffImagePlugin.ImageFileDirectory_v2()
        content = bytearray(encoded(quarters(), kind, tiffinfo=directory))
        for tag in (256, 257):
            entry = content.index(struct.pack("<HHI", tag, 4, 1)) if struct.pack("<HHI", tag, 4, 1) in content else -1
            entry = entry if entry >= 0 else content.index(struct.pack("<HHI", tag, 3, 1))
            struct.pack_into("<I", content, entry + 8, side)
    return bytes(content)


def samples() -> dict[str, bytes]:
    """One image of each kind by its name: what :func:`normalise` has to read, and what a fuzzer begins with."""
    page = quarters()
    clear = page.convert("RGBA")
    clear.putalpha(Image.linear_gradient("L").resize(page.size))

    def several(kind: str, **options: t.Any) -> bytes:
        return encoded(page, kind, save_all=True, append_images=[page.rotate(180)], **options)

    made = {
        "jpeg": encoded(page, "JPEG", quality=95, subsampling=0),
        "jpeg progressive": encoded(page, "JPEG", quality=95, subsampling=0, progressive=True),
        "jpeg grey": encoded(page.convert("L"), "JPEG", quality=95),
        "jpeg cmyk": encoded(page.convert("CMYK"), "JPEG", quality=95, subsampling=0),
        "jpeg ycck": ycck(),
        "jpeg turned": oriented(6),
        "jpeg profile": encoded(page, "JPEG", quality=95, subsampling=0, icc_profile=exchanging_profile()),
        "jpeg several": several("MPO", quality=95, subsampling=0),
        "png": encoded(page, "PNG"),
        "png alpha": encoded(clear, "PNG"),
        "png grey alpha": encoded(clear.convert("LA"), "PNG"),
        "png palette": encoded(page.quantize(16), "PNG"),
        "png palette clear": encoded(page.quantize(16), "PNG", transparency=0),
        "png one bit": encoded(page.convert("1"), "PNG"),
        "png 16 bits": encoded(ramp("I;16", 65535), "PNG"),
        "webp": encoded(page, "WEBP", quality=95),
        "webp lossless": encoded(clear, "WEBP", lossless=True),
        "webp several": several("WEBP"),
        "bmp": encoded(page, "BMP"),
        "gif": encoded(page, "GIF"),
        "gif several": several("GIF"),
        "jp2": encoded(page, "JPEG2000"),
        "j2k": encoded(page, "JPEG2000", no_jp2=True),
        "avif": encoded(page, "AVIF", quality=95),
        "tiff float": encoded(ramp("F", 1.0), "TIFF"),
        "tiff 16 bits": encoded(ramp("I;16", 4095), "TIFF"),
        "tiff several": several("TIFF"),
        "tiff cmyk": encoded(page.convert("CMYK"), "TIFF"),
        "tiff lab": encoded(_lab(page), "TIFF"),
        "tiff turned": oriented_tiff(6),
    }
    for name in ("tiff_lzw", "tiff_deflate", "tiff_adobe_deflate", "packbits", "jpeg", "zstd", "lzma"):
        made[f"tiff in {name}"] = encoded(page, "TIFF", compression=name)
    for name in ("group3", "group4", "tiff_ccitt"):
        made[f"tiff in {name}"] = encoded(page.convert("1"), "TIFF", compression=name)
    return made


def _lab(image: Image.Image) -> Image.Image:
    made = ImageCms.profileToProfile(
        image, ImageCms.createProfile("sRGB"), ImageCms.createProfile("LAB"), outputMode="LAB"
    )
    assert made is not None
    return made
