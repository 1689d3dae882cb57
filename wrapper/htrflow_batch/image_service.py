"""The IIIF Image API: what a service says of itself, and the addresses that an image can be had from, best first.

Rules are from the specifications of the Image API 1.1, 2.1 and 3.0 (sections "Image request", "Image information" and
"Compliance"). A sized request is always ``w,``: servers that are fine otherwise answer 501 to ``!w,h``.
"""

from __future__ import annotations

import math
import re
import typing as t

from htrflow_batch.source import Image, ImageService, address_of, listed, size, type_of

#: Answers that refuse this form of request and not the image: the next address of the page is worth asking. 403 is not
#: among them: it says that the image has no rights statement, whatever the size, and fails the page for good.
REFUSED_FORM = frozenset({400, 404, 501})

#: A ready size narrower than this share of the width that is wanted cannot be read: it is a thumbnail.
_LEAST_SHARE = 0.5

_CONTEXT = re.compile(r"iiif\.io/api/image/([123])|library\.stanford\.edu/iiif/image-api/(1)?")
_PROFILE = re.compile(r"(?:^|[/#])level([012])(?:\.json)?$")
_TYPE = re.compile(r"imageservice([123])")
_PROTOCOL = "iiif.io/api/image"


class Candidate(t.NamedTuple):
    """An address of one page's image. ``asks`` says in a few words which form of request it is."""

    address: str
    asks: str


def candidates(image: Image, max_width: int = 2500) -> tuple[Candidate, ...]:
    """Where one page's image can be had at about ``max_width`` pixels, best first; at least one.

    Requests for a size come before those for the whole image, and the image's own address is last. A fetcher asks for
    the next one when the answer is in :data:`REFUSED_FORM`. An image is never made larger than it is, where its width
    is known.
    """
    services = _in_order(image)
    found = [candidate for service in services for candidate in _sized(service, image, max_width)]
    found += [candidate for service in services for candidate in _whole(service)]
    if image.id is not None:
        found.append(Candidate(image.id, "the image's own address"))
    once: dict[str, Candidate] = {}
    for candidate in found:
        once.setdefault(candidate.address, candidate)
    return tuple(once.values())


def wants_info(image: Image) -> ImageService | None:
    """The service whose ``info.json`` would lead to better addresses, when what the source states is not enough.

    Without it, a server of level 0 would be asked for the whole image though it has sizes ready, and one of Image API 1
    or 2 could be made to blow a small image up.
    """
    if not image.services:
        return None
    service = _in_order(image)[0]
    without_sizes = service.level == 0 and not service.any_width and not service.sizes
    may_enlarge = service.level != 0 and service.version < 3 and (service.width or image.width) is None
    return service if without_sizes or may_enlarge else None


def info_address(service: ImageService) -> str:
    return _join(service.id, "info.json")


def with_info(image: Image, service: ImageService, info: object) -> Image:
    """The image with what an ``info.json`` says of one of its services. Data that is no ``info.json`` changes nothing.

    The address stays the one that the source gives, since servers behind a proxy often misstate their own.
    """
    stated = read_service({"@id": service.id, **info}) if isinstance(info, dict) else None
    if stated is None:
        return image
    better = ImageService(
        id=service.id,
        version=stated.version,
        level=service.level if stated.level is None else stated.level,
        width=stated.width or service.width,
        height=stated.height or service.height,
        sizes=stated.sizes or service.sizes,
        any_width=stated.any_width or service.any_width,
        max_width=stated.max_width or service.max_width,
        max_height=stated.max_height or service.max_height,
        max_area=stated.max_area or service.max_area,
        data=service.data,
    )
    services = tuple(better if one == service else one for one in image.services)
    return Image(image.id, image.format, image.width, image.height, services)


def read_services(value: object, base: str = "") -> tuple[ImageService, ...]:
    """The image services among the services of a resource, each once. Others (a login, a search) are passed over."""
    found: dict[tuple[str, int], ImageService] = {}
    for entry in listed(value):
        if (service := read_service(entry, base)) is not None:
            found.setdefault((service.id, service.version), service)
    return tuple(found.values())


def read_service(value: object, base: str = "") -> ImageService | None:
    """A service, or a whole ``info.json``, when it is one of the Image API and has an address."""
    if not isinstance(value, dict) or (version := _version(value)) is None:
        return None
    if (own := address_of(value, base)) is None:
        return None
    # Image API 1 and 2 put features and limits into objects of the profile, 3 into the service itself.
    parts = [value, *(part for part in listed(value.get("profile")) if isinstance(part, dict))]
    limits = [next((n for part in parts if (n := size(part.get(name)))), None) for name in _LIMITS]
    features = [name for part in parts for key in ("supports", "extraFeatures") for name in listed(part.get(key))]
    return ImageService(
        id=re.sub(r"/info\.json(?=\?|$)", "", own.partition("#")[0]).rstrip("/"),
        version=version,
        level=_level(value),
        width=size(value.get("width")),
        height=size(value.get("height")),
        sizes=_sizes(value.get("sizes")),
        any_width="sizeByW" in features,
        max_width=limits[0],
        max_height=limits[1],
        max_area=limits[2],
        data=value,
    )


_LIMITS = ("maxWidth", "maxHeight", "maxArea")


def _in_order(image: Image) -> list[ImageService]:
    """Servers that make any size before those that only have some, new versions before old ones."""
    return sorted(image.services, key=lambda service: (service.level == 0, -service.version))


def _version(service: dict[str, t.Any]) -> t.Literal[1, 2, 3] | None:
    if kind := _TYPE.fullmatch(type_of(service)):
        return _as_version(kind[1])
    profiles = [text for text in listed(service.get("profile")) if isinstance(text, str)]
    for text in [*listed(service.get("@context")), *profiles]:
        if isinstance(text, str) and (context := _CONTEXT.search(text)):
            return _as_version(context[1] or "1")
    protocol = service.get("protocol")
    if isinstance(protocol, str) and _PROTOCOL in protocol:
        return 3 if "id" in service else 2
    # The short names of levels came with 3.0.
    return 3 if any(re.fullmatch("level[012]", text) for text in profiles) else None


def _as_version(digit: str) -> t.Literal[1, 2, 3]:
    return 1 if digit == "1" else 2 if digit == "2" else 3


def _level(service: dict[str, t.Any]) -> int | None:
    for text in listed(service.get("profile")):
        if isinstance(text, str) and (level := _PROFILE.search(text.strip())):
            return int(level[1])
    return None


def _sizes(value: object) -> tuple[tuple[int, int], ...]:
    found = set()
    for entry in listed(value):
        if isinstance(entry, dict) and (width := size(entry.get("width"))) and (height := size(entry.get("height"))):
            found.add((width, height))
    return tuple(sorted(found))


def _sized(service: ImageService, image: Image, max_width: int) -> t.Iterator[Candidate]:
    limit = _limit(service, max_width)
    if (own := service.width or image.width) and own <= limit:
        return
    if service.level != 0 or service.any_width:
        yield _request(service, f"{limit},")
    if service.level:
        return
    fitting = [size for size in reversed(service.sizes) if _LEAST_SHARE * max_width <= size[0] <= max_width]
    larger = [size for size in service.sizes if size[0] > max_width]
    for width, height in (fitting or larger)[:1]:
        yield _request(service, f"{width},{height}")
        if service.version == 2:
            # Sets of ready files are often written under the canonical form alone.
            yield _request(service, f"{width},")


def _whole(service: ImageService) -> t.Iterator[Candidate]:
    if service.version == 1:
        words: tuple[str, ...] = ("full",)
    elif service.version == 3:
        words = ("max",)
    elif service.max_width or service.max_area:
        # Limits came with 2.1, and so did the word that keeps to them.
        words = ("max", "full")
    else:
        words = ("full", "max")
    for word in words:
        yield _request(service, word)


def _limit(service: ImageService, max_width: int) -> int:
    """The widest image that is wanted and that the server states to give."""
    limit = min(max_width, service.max_width or max_width)
    if service.width and service.height:
        shape = service.width / service.height
        if max_height := service.max_height or service.max_width:
            limit = min(limit, math.floor(max_height * shape))
        if service.max_area:
            limit = min(limit, math.floor(math.sqrt(service.max_area * shape)))
    return max(limit, 1)


def _request(service: ImageService, size: str) -> Candidate:
    file = "native.jpg" if service.version == 1 else "default.jpg"
    return Candidate(_join(service.id, f"full/{size}/0/{file}"), f"size {size} of Image API {service.version}")


def _join(service_id: str, path: str) -> str:
    """A query stays at the end: it is a key that the server wants with every request."""
    start, mark, query = service_id.partition("?")
    return f"{start.rstrip('/')}/{path}{mark}{query}"
