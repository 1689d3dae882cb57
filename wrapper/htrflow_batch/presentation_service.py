"""The image services of a source as IIIF Presentation 3 has them.

Rules are from the Presentation API 3.0, sections 3.3 (``service``) and 3.2 (``id``, ``type``, ``profile``).
"""

from __future__ import annotations

import math
import re
import typing as t

from htrflow_batch.documents import Document, without_user_info
from htrflow_batch.image_service import candidates
from htrflow_batch.source import Image, ImageService, address, listed, text

#: Objects in objects of a service. A login with its token and logout are two.
_DEPTH = 8
_LANGUAGE = re.compile("[A-Za-z-]+")
_AUTH = re.compile(r"/auth/[01]/(login|clickthrough|kiosk|external|token|logout)$")
_AUTH_TYPES = {"token": "AuthTokenService1", "logout": "AuthLogoutService1"}
_WHOLE = re.compile("/full/(?:full|max)/0/")
_SIZED = re.compile("/full/([0-9]+),[0-9]*/0/")


def as_presentation_3(service: ImageService) -> Document:
    """A service with all that the source says of it, in a form that Presentation 3 allows.

    ``@id`` comes with ``@type`` and ``id`` with ``type``, whichever the source has. An address without a slash at its
    end, a type and a ``profile`` that are one text each take the place of what Presentation 3 forbids. User information
    is taken out of addresses.
    """
    data = {name: _copy(value, 1) for name, value in service.data.items()}
    short = "id" in data or (service.version == 3 and "@id" not in data)
    data["id" if short else "@id"] = without_user_info(service.id)
    return _formed(data, f"ImageService{service.version}")


def whole(service: ImageService) -> str:
    """Where the whole image can be had from a service, as large as it gives it, in the words of its version."""
    found = [candidate.address for candidate in candidates(Image(None, services=(service,)))]
    return next(one for one in found if _WHOLE.search(one))


def smaller(service: ImageService, width: int) -> tuple[str, int] | None:
    """Where an image of about ``width`` pixels can be had, and how wide that one is, or None.

    None where the service does not state that it makes sizes, or has none ready that is nearly as small.
    """
    if not (service.level or service.any_width or service.sizes):
        return None
    for candidate in candidates(Image(None, services=(service,)), width):
        found = _SIZED.search(candidate.address)
        if found and int(found[1]) <= 4 * width:
            return candidate.address, int(found[1])
    return None


def _formed(data: Document, kind: str) -> Document:
    """``data`` with what Presentation 3 asks of a service in its place. It has an ``id`` or an ``@id``."""
    its, its_type = ("id", "type") if "id" in data else ("@id", "@type")
    stated = (value for name in (its_type, "type", "@type") if isinstance(value := data.get(name), str) and value)
    formed: Document = {its: data[its], its_type: next(stated, kind)}
    for name, value in data.items():
        if name in ("id", "@id", "type", "@type"):
            continue
        if name == "profile":
            # Image API 1 and 2 put objects beside it, which a viewer finds in info.json too.
            value = next((entry for entry in listed(value) if isinstance(entry, str)), None)
        elif name == "service":
            value = [_formed(entry, _kind(entry)) for entry in listed(value) if _is_service(entry)] or None
        elif name == "label" and its == "id" and not _is_language_map(value):
            value = {"none": [label]} if (label := text(value)) else None
        if value is not None:
            formed[name] = value
    return formed


def _is_service(entry: object) -> t.TypeGuard[Document]:
    """Whether an entry has an address where :func:`_formed` looks for it."""
    return isinstance(entry, dict) and address(entry.get("id" if "id" in entry else "@id")) is not None


def _kind(service: Document) -> str:
    for profile in listed(service.get("profile")):
        if isinstance(profile, str) and (found := _AUTH.search(profile)):
            return _AUTH_TYPES.get(found[1], "AuthCookieService1")
    return "Service"


def _is_language_map(value: object) -> bool:
    return isinstance(value, dict) and all(
        isinstance(name, str)
        and _LANGUAGE.fullmatch(name)
        and isinstance(texts, list)
        and all(isinstance(entry, str) for entry in texts)
        for name, texts in value.items()
    )


def _copy(value: t.Any, depth: int) -> t.Any:
    """A copy without passwords, without numbers that JSON cannot hold, and not endlessly deep."""
    if isinstance(value, str):
        return without_user_info(value)
    if isinstance(value, dict | list) and depth == _DEPTH:
        return None
    if isinstance(value, dict):
        return {name: _copy(entry, depth + 1) for name, entry in value.items()}
    if isinstance(value, list):
        return [_copy(entry, depth + 1) for entry in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
