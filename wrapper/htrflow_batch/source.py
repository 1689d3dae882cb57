"""What a volume's pages are made from, as plain values, and how text and addresses in others' JSON become usable."""

from __future__ import annotations

import dataclasses
import re
import typing as t
import unicodedata
import urllib.parse

#: Characters of a label. A longer one is cut: it is shown in one line.
_LABEL_CHARACTERS = 300
_UNSAFE = re.compile(r"[\s\x00-\x20\x7f-\x9f\ud800-\udfff\"<>\\^`{|}]")
_REFUSED = re.compile("[\x00-\x1f\x7f-\x9f\ud800-\udfff\\\\]")
_NUMBER = re.compile(r"[0-9]{1,9}", re.ASCII)


@dataclasses.dataclass(frozen=True, slots=True)
class ImageService:
    """One IIIF Image API service of one image.

    ``id`` has no slash at its end. ``version`` is 1, 2 (2.0 and 2.1 look the same from outside) or 3. ``level`` is None
    where nothing states it. ``width`` and ``height`` are those of the whole image in pixels, ``sizes`` (width, height)
    of what the server has ready, smallest first. The three limits are those that a server states for one request, in
    pixels. ``data`` is the service as the source has it.
    """

    id: str
    version: t.Literal[1, 2, 3]
    level: int | None = None
    width: int | None = None
    height: int | None = None
    sizes: tuple[tuple[int, int], ...] = ()
    any_width: bool = False
    max_width: int | None = None
    max_height: int | None = None
    max_area: int | None = None
    data: t.Mapping[str, t.Any] = dataclasses.field(default_factory=dict, compare=False, repr=False)


@dataclasses.dataclass(frozen=True, slots=True)
class Image:
    """The image that is painted on a canvas. It has an ``id``, the image's own address, or a service, or both.

    ``width`` and ``height`` are what the source says of the image, in pixels; they may be wrong.
    """

    id: str | None
    format: str | None = None
    width: int | None = None
    height: int | None = None
    services: tuple[ImageService, ...] = ()

    @property
    def address(self) -> str:
        """The address that stands for this image in provenance: its own, or else its service's."""
        return self.id or self.services[0].id


class _Numbered:
    __slots__ = ()
    number: int

    @property
    def name(self) -> str:
        """The stem of the page's files, from its number: ``0001``. It can end an XML name."""
        return page_name(self.number)


@dataclasses.dataclass(frozen=True, slots=True)
class Page(_Numbered):
    """A page with an image.

    ``number`` counts the canvases of the source from 1. ``canvas_id`` is None where the canvas has none, or one that an
    earlier canvas has. ``label`` is empty where there is none. ``width`` and ``height`` are the canvas's own units, and
    None where they are missing or placeholders. ``notes`` say what of the canvas is not read.
    """

    number: int
    image: Image
    canvas_id: str | None = None
    label: str = ""
    width: int | None = None
    height: int | None = None
    notes: tuple[str, ...] = ()


@dataclasses.dataclass(frozen=True, slots=True)
class FailedPage(_Numbered):
    """A canvas that no image can be had from; ``reason`` is a sentence."""

    number: int
    reason: str
    canvas_id: str | None = None
    label: str = ""


@dataclasses.dataclass(frozen=True, slots=True)
class Terms:
    """What its owner wants to be shown with a volume: a ``statement`` under a ``heading``, and a licence's address.

    Each is empty where there is none.
    """

    heading: str = ""
    statement: str = ""
    licence: str = ""


@dataclasses.dataclass(frozen=True, slots=True)
class Source:
    """A volume's pages in order, at least one of them a :class:`Page`. ``id`` is the manifest's own, where it has one.

    ``presentation`` is the version of the IIIF Presentation API whose shape the source has. ``direction`` is the way in
    which the pages are turned, empty where nothing states it.
    """

    id: str | None
    label: str
    presentation: t.Literal[2, 3]
    pages: tuple[Page | FailedPage, ...]
    notes: tuple[str, ...] = ()
    terms: Terms = Terms()
    direction: str = ""

    @property
    def usable(self) -> tuple[Page, ...]:
        return tuple(page for page in self.pages if isinstance(page, Page))

    @property
    def failed(self) -> tuple[FailedPage, ...]:
        return tuple(page for page in self.pages if isinstance(page, FailedPage))


def page_name(number: int) -> str:
    return f"{number:04d}"


def listed(value: object) -> list[t.Any]:
    """A list as it is, nothing for None, and any other value as a list of it: JSON-LD writes a single value bare."""
    if isinstance(value, list):
        return value
    return [] if value is None else [value]


def type_of(resource: object) -> str:
    """The type of a IIIF resource in lower case, without its prefix: ``sc:Manifest`` and ``Manifest`` are one.

    What nobody can read, such as a lone half of a character, is no type.
    """
    if not isinstance(resource, dict):
        return ""
    for value in listed(resource.get("type")) + listed(resource.get("@type")):
        if isinstance(value, str) and (name := re.split("[:/#]", clean(value))[-1]):
            return name.casefold()
    return ""


def address_of(resource: object, base: str = "") -> str | None:
    """The address of a resource, from ``id`` or ``@id`` or the resource itself when it is text."""
    if isinstance(resource, str):
        return address(resource, base)
    if not isinstance(resource, dict):
        return None
    return address(resource.get("id"), base) or address(resource.get("@id"), base)


def address(value: object, base: str = "") -> str | None:
    """``value`` as an absolute http or https address that a client can send, or None.

    A relative one is taken from ``base``, as in every JSON-LD document. Spaces and letters outside ASCII are
    percent-encoded; what stands encoded already stays as it is.
    """
    if not isinstance(value, str) or not (text := value.strip()) or _REFUSED.search(text):
        return None
    try:
        whole = urllib.parse.urljoin(base, text) if base else text
        parts = urllib.parse.urlsplit(whole)
        host, port = parts.hostname, parts.port
    except ValueError:
        return None
    if parts.scheme.lower() not in ("http", "https") or not host or port == 0 or _UNSAFE.search(parts.netloc):
        return None
    start = f"{parts.scheme}://{parts.netloc}"
    return start + urllib.parse.quote(whole[len(start) :], safe="/?#[]@!$&'()*+,;=:%~")


def size(value: object) -> int | None:
    """A positive whole number of pixels, also where it is written as text or with a fraction of zero."""
    if isinstance(value, str) and _NUMBER.fullmatch(value.strip()):
        value = int(value)
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int):
        return None
    return value if 0 < value < 2**31 else None


def text(value: object) -> str:
    """A label of any shape as one line of text: text, a list, a language map, ``@value`` objects; empty for none.

    Of several languages the first with a text is taken; several texts of one language are joined by ``; ``.
    """
    return clean("; ".join(_texts(value)))


def clean(value: str, characters: int = _LABEL_CHARACTERS) -> str:
    """One line without control characters, half characters and runs of white space, cut at ``characters``."""
    kept = (" " if unicodedata.category(sign) in ("Cc", "Cs") else sign for sign in value[: 4 * characters])
    line = " ".join("".join(kept).split())
    return line if len(line) <= characters else line[: characters - 1].rstrip() + "…"


def _texts(value: object) -> list[str]:
    if isinstance(value, dict):
        if "@value" in value:
            return _plain(value["@value"])
        return next((texts for entry in value.values() if (texts := _plain(entry))), [])
    if not isinstance(value, list):
        return _plain(value)
    found: list[str] = []
    language: object = None
    for entry in value:
        its = entry.get("@language") if isinstance(entry, dict) else None
        if texts := [] if isinstance(entry, list) else _texts(entry):
            if found and its != language:
                continue
            language = its
            found += texts
    return found


def _plain(value: object) -> list[str]:
    if isinstance(value, list):
        return [text for entry in value if not isinstance(entry, list) for text in _plain(entry)]
    if isinstance(value, dict):
        return _plain(value["@value"]) if isinstance(value.get("@value"), str) else []
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        return []
    if isinstance(value, int) and value.bit_length() > 64:
        return []
    line = clean(str(value))
    return [line] if line else []
