"""The bytes of a document that should be a IIIF manifest: their JSON, and what they are when they are no manifest."""

from __future__ import annotations

import json
import re
import typing as t

from htrflow_batch import redact
from htrflow_batch.errors import PermanentError
from htrflow_batch.source import address_of, clean, listed, size, type_of

_COPY = "copy the manifest's own address from the archive's page"

#: What starts a file that is not JSON, and what it is.
_STARTS = (
    (b"%PDF", "a PDF"),
    (b"\xff\xd8\xff", "a JPEG image"),
    (b"\x89PNG", "a PNG image"),
    (b"II*\0", "a TIFF image"),
    (b"MM\0*", "a TIFF image"),
    (b"\x1f\x8b", "a gzip file"),
    (b"PK\x03\x04", "a ZIP file"),
)
_HTML = re.compile(rb"<(?:!doctype\s+html|html|head|body|script|title|meta)\b", re.IGNORECASE)

#: Kinds of IIIF and of annotations that people take for a manifest.
_OTHERS = {
    "canvas": "a single Canvas",
    "annotationpage": "an AnnotationPage",
    "annotationlist": "an AnnotationList",
    "annotationcollection": "an AnnotationCollection",
    "annotation": "a single Annotation",
    "sequence": "a Sequence",
    "range": "a Range",
    "layer": "a Layer",
    "image": "a single image",
}
_LISTED = 3


def parse(content: bytes, address: str) -> object:
    """The JSON in ``content``, whose address messages name. Raises PermanentError when it is not JSON.

    A byte-order mark is skipped, and UTF-16 and UTF-32 are read, as the text says itself which it is.
    """
    where = shown(address)
    try:
        return json.loads(content, parse_constant=_refuse_constant)
    except RecursionError:
        raise PermanentError(f"{where} is JSON that is nested too deeply to be a IIIF manifest — {_COPY}") from None
    except UnicodeDecodeError:
        kind = _kind(content) or "in another encoding than UTF-8"
        raise PermanentError(f"{where} is {kind}, not a IIIF manifest — {_COPY}") from None
    except json.JSONDecodeError as error:
        if not content.strip(b"\xef\xbb\xbf\xfe\xff\0 \t\r\n"):
            raise PermanentError(f"{where} is empty, not a IIIF manifest — {_COPY}") from None
        if kind := _kind(content):
            raise PermanentError(f"{where} is {kind}, not a IIIF manifest — {_COPY}") from None
        place = f"line {error.lineno}, column {error.colno}"
        cut_off = error.pos >= len(error.doc.rstrip()) or error.msg.startswith("Unterminated")
        reason = "ends too early" if cut_off else "is not JSON"
        raise PermanentError(f"{where} {reason} at {place} — open it in a browser and tell its owner") from None
    except ValueError as error:
        # A number of more digits than Python converts, or a word such as NaN.
        detail = str(error) if "JSON" in str(error) else "it holds a number that is too long"
        raise PermanentError(f"{where} is not JSON, since {detail} — tell its owner") from None


def no_manifest(data: object, address: str) -> PermanentError:
    """Says what data that is no manifest with canvases is, in one sentence, and what to give in its place."""
    where = shown(address)
    what, instead = _what(data, address)
    return PermanentError(f"{where} is {what}, not a IIIF manifest — {instead}")


def shown(address: str) -> str:
    """An address as messages name it: one line without secrets."""
    return redact.url(clean(address, 2000)) or "the document"


def is_manifest(data: object) -> t.TypeGuard[dict[str, t.Any]]:
    """Whether data is a manifest by its type, or by its shape where its type is none that IIIF knows."""
    if not isinstance(data, dict):
        return False
    kind = type_of(data)
    if kind == "manifest":
        return True
    if kind == "collection" or kind in _OTHERS or _is_image_information(data):
        return False
    items = listed(data.get("items"))
    return bool(listed(data.get("sequences"))) or any(type_of(item) == "canvas" for item in items)


def _what(data: object, address: str) -> tuple[str, str]:
    if not isinstance(data, dict):
        kinds = {"list": "a JSON list", "str": "a JSON text", "NoneType": "JSON null", "bool": "JSON true or false"}
        return kinds.get(type(data).__name__, "a JSON number"), _COPY
    kind = type_of(data)
    if kind == "collection":
        return _collection(data, address)
    if _is_image_information(data):
        return "the info.json of one image", "give the manifest, or list the images' own addresses under images:"
    if kind in _OTHERS:
        parents = listed(data.get("partOf")) + listed(data.get("within"))
        part_of = [parent for entry in parents if (parent := address_of(entry, address))]
        manifests = [
            parent for entry in parents if type_of(entry) == "manifest" and (parent := address_of(entry, address))
        ]
        if part_of:
            return _OTHERS[kind], f"give what it is part of, {redact.url((manifests or part_of)[0])}"
        return _OTHERS[kind], "give the manifest that it is part of"
    if _speaks_of_iiif(data):
        shown = f"of the type {clean(kind, 40)}" if kind else "without a type"
        return f"a IIIF document {shown}", _COPY
    if not data:
        return "an empty JSON object", _COPY
    names = [shown for name in list(data)[:_LISTED] if isinstance(name, str) and (shown := clean(name, 40))]
    if not names:
        return "other JSON", _COPY
    return f"other JSON (it has {', '.join(names)}{', …' if len(data) > _LISTED else ''})", _COPY


def _collection(data: dict[str, t.Any], address: str) -> tuple[str, str]:
    """Presentation 3 has the members in ``items``, 2 in ``manifests``, ``collections`` and ``members``."""
    members = [entry for name in ("items", "manifests", "members") for entry in listed(data.get(name))]
    found = [entry for entry in members if type_of(entry) != "collection"]
    addresses = list(dict.fromkeys(own for entry in found if (own := address_of(entry, address))))
    if addresses:
        first = ", ".join(redact.url(own) for own in addresses[:_LISTED])
        more = f" and {len(addresses) - _LISTED} more" if len(addresses) > _LISTED else ""
        return "a Collection", f"give its manifests, each as a volume of its own: {first}{more}"
    inner = [entry for entry in members + listed(data.get("collections")) if type_of(entry) == "collection" or entry]
    addresses = list(dict.fromkeys(own for entry in inner if (own := address_of(entry, address))))
    if addresses:
        return "a Collection of Collections", f"look for the manifests in {redact.url(addresses[0])} and its neighbours"
    return "a Collection without members", _COPY


def _is_image_information(data: dict[str, t.Any]) -> bool:
    if type_of(data).startswith("imageservice") or data.get("protocol") == "http://iiif.io/api/image":
        return True
    contexts = [text for text in listed(data.get("@context")) if isinstance(text, str)]
    if any("iiif.io/api/image/" in text or "library.stanford.edu/iiif/image-api" in text for text in contexts):
        return True
    has_size = size(data.get("width")) is not None and size(data.get("height")) is not None
    return has_size and not type_of(data) and ("tiles" in data or "scale_factors" in data or "profile" in data)


def _speaks_of_iiif(data: dict[str, t.Any]) -> bool:
    contexts = [text for text in listed(data.get("@context")) if isinstance(text, str)]
    return any("iiif.io/api/presentation" in text or "shared-canvas.org" in text for text in contexts)


def _kind(content: bytes) -> str:
    start = content[:4096].removeprefix(b"\xef\xbb\xbf")
    for mark, name in _STARTS:
        if start.startswith(mark):
            return name
    if not start.lstrip().startswith(b"<"):
        return ""
    return "an HTML page, such as a login or an error" if _HTML.search(start) else "XML"


def _refuse_constant(name: str) -> t.NoReturn:
    raise ValueError(f"it holds {name}, which JSON does not have")
