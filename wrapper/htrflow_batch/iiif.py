"""A IIIF Presentation 2 or 3 manifest as a source of pages, and the manifest of a volume that has none.

The version is read from the document and never from its address. Where its ``@context`` and its shape differ, the shape
is read. An odd canvas becomes a failed page and the volume goes on.
"""

from __future__ import annotations

import re
import typing as t

from htrflow_batch import iiif_document
from htrflow_batch.errors import PermanentError
from htrflow_batch.image_service import read_services
from htrflow_batch.media import file_name, format_of, other_than_image
from htrflow_batch.source import (
    FailedPage,
    Image,
    Page,
    Source,
    Terms,
    address_of,
    clean,
    listed,
    page_name,
    size,
    text,
    type_of,
)
from htrflow_batch.source import address as clean_address

PRESENTATION_3 = "http://iiif.io/api/presentation/3/context.json"
#: Units of a canvas whose image nobody has seen yet. :func:`read` takes them for the placeholder that they are.
PLACEHOLDER = 1000

_DIRECTIONS = ("left-to-right", "right-to-left", "top-to-bottom", "bottom-to-top")
_WRAPPERS = {"choice", "composite", "list", "independents"}
#: Bodies in bodies: a Choice of SpecificResources of a Choice is odd, and more than that is a loop or an attack.
_DEPTH = 8


def read(content: bytes, address: str) -> Source:
    """The source that the bytes of a manifest are. Raises PermanentError when there is no usable page in them."""
    return read_manifest(iiif_document.parse(content, address), address)


def read_manifest(data: object, address: str) -> Source:
    """The source that a manifest's JSON is. ``address`` is where it was had from, for messages and relative addresses.

    Raises PermanentError, with a sentence that says what the data is, when no page of it has an image.
    """
    if not iiif_document.is_manifest(data):
        raise iiif_document.no_manifest(data, address)
    canvases, presentation, notes = _canvases(data)
    pages: list[Page | FailedPage] = []
    seen: dict[str, int] = {}
    for number, canvas in enumerate(canvases, start=1):
        pages.append(_page(number, canvas, address, seen))
    source = Source(
        address_of(data, address),
        text(data.get("label")),
        presentation,
        tuple(pages),
        tuple(notes),
        _terms(data),
        _direction(data),
    )
    if not source.usable:
        where = iiif_document.shown(address)
        if not source.failed:
            raise PermanentError(f"the manifest {where} is empty: it has no canvas — tell its owner")
        which = "its one canvas" if len(source.failed) == 1 else f"any of its {len(source.failed)} canvases"
        first = source.failed[0].reason.rstrip(".")
        reason = first[:1].lower() + first[1:]
        raise PermanentError(f"the manifest {where} has no image to read on {which}; of page 1, {reason}")
    return source


def _terms(data: dict[str, t.Any]) -> Terms:
    """``requiredStatement`` and ``rights`` of Presentation 3, or ``attribution`` and ``license`` of 2."""
    statement = data.get("requiredStatement")
    heading, said = "", text(data.get("attribution"))
    if isinstance(statement, dict) and (value := text(statement.get("value"))):
        heading, said = text(statement.get("label")), value
    licences = (clean_address(one) for one in (*listed(data.get("rights")), *listed(data.get("license"))))
    return Terms(heading, said, next(filter(None, licences), ""))


def _direction(data: dict[str, t.Any]) -> str:
    stated = [data, *listed(data.get("sequences"))[:1]]
    found = (one.get("viewingDirection") for one in stated if isinstance(one, dict))
    return next((value for value in found if isinstance(value, str) and value in _DIRECTIONS), "")


def synthetic_manifest(volume_id: str, addresses: t.Sequence[str], base: str) -> dict[str, t.Any]:
    """A Presentation 3 manifest of a volume that is a list of images, to be published as ``<base>/manifest.json``.

    The size of the images is not known, so that each canvas has that of a placeholder.
    """
    base = base.rstrip("/")
    canvases = []
    for number, address in enumerate(addresses, start=1):
        canvas = f"{base}/canvas/{page_name(number)}"
        body = {"id": clean_address(address) or address, "type": "Image"}
        if format_ := format_of(address):
            body["format"] = format_
        painting = {"id": f"{canvas}/painting", "type": "Annotation", "motivation": "painting", "target": canvas}
        canvases.append(
            {
                "id": canvas,
                "type": "Canvas",
                "label": {"none": [file_name(address) or str(number)]},
                "height": PLACEHOLDER,
                "width": PLACEHOLDER,
                "items": [{"id": f"{canvas}/page", "type": "AnnotationPage", "items": [{**painting, "body": body}]}],
            }
        )
    return {
        "@context": PRESENTATION_3,
        "id": f"{base}/manifest.json",
        "type": "Manifest",
        "label": {"none": [volume_id]},
        "items": canvases,
    }


def _canvases(data: dict[str, t.Any]) -> tuple[list[t.Any], t.Literal[2, 3], list[str]]:
    """The canvases in order, the version whose shape they have, and what is not read."""
    contexts = [context for context in listed(data.get("@context")) if isinstance(context, str)]
    sequences = listed(data.get("sequences"))
    items = listed(data.get("items"))
    if items and (any("presentation/3" in context for context in contexts) or not sequences):
        ranges = [entry for entry in listed(data.get("structures")) if isinstance(entry, dict)]
        others = any("sequence" in listed(entry.get("behavior")) for entry in ranges)
        return items, 3, ["The manifest has another order of its canvases, which is not read."] if others else []
    readable = [
        canvases
        for sequence in sequences
        if isinstance(sequence, dict) and (canvases := listed(sequence.get("canvases") or sequence.get("items")))
    ]
    if not readable:
        return items, 3 if not sequences else 2, []
    more = len(sequences) - 1
    notes = [f"The manifest has {len(sequences)} sequences; only the first with canvases is read."] if more else []
    return readable[0], 2, notes


def _page(number: int, canvas: object, base: str, seen: dict[str, int]) -> Page | FailedPage:
    if not isinstance(canvas, dict):
        what = "only a reference to a canvas" if isinstance(canvas, str) else "something else"
        return FailedPage(number, f"The manifest has {what} where a canvas with its image should be.")
    notes: list[str] = []
    canvas_id, label = address_of(canvas, base), text(canvas.get("label"))
    if canvas_id is not None and (first := seen.setdefault(canvas_id, number)) != number:
        canvas_id = None
        notes.append(f"The canvas has the same id as that of page {first}.")
    kind = type_of(canvas)
    if kind not in ("", "canvas"):
        return FailedPage(number, f"The manifest has a {clean(kind, 40)} here, not a canvas.", canvas_id, label)
    images, others, faults = _images(canvas, base, notes)
    if not images:
        return FailedPage(number, _no_image(others, faults), canvas_id, label)
    if len(images) > 1:
        notes.append(f"The canvas has {len(images)} images; only the first is read.")
    notes += [f"The canvas also holds {other}, which is not read." for other in dict.fromkeys(others)]
    width, height = _units(canvas, images[0])
    return Page(number, images[0], canvas_id, label, width, height, tuple(dict.fromkeys(notes)))


def _no_image(others: list[str], faults: list[str]) -> str:
    if faults:
        return faults[0]
    if others:
        return f"The canvas holds {' and '.join(dict.fromkeys(others))}, not an image."
    return "The canvas has no image."


def _images(canvas: dict[str, t.Any], base: str, notes: list[str]) -> tuple[list[Image], list[str], list[str]]:
    """The images painted on a canvas, in order, what else is, and why something that should be an image is none."""
    images: list[Image] = []
    others: list[str] = []
    faults: list[str] = []
    for resource in _painted(canvas, notes, faults):
        if other := other_than_image(resource):
            others.append(other)
            continue
        services = read_services(resource.get("service"), base)
        own = address_of(resource, base)
        if own is None and not services:
            faults.append("The canvas has an image without an http or https address.")
            continue
        format_ = resource.get("format")
        width, height = size(resource.get("width")), size(resource.get("height"))
        images.append(Image(own, clean(format_, 100) if isinstance(format_, str) else None, width, height, services))
    return images, others, faults


def _painted(canvas: dict[str, t.Any], notes: list[str], faults: list[str]) -> t.Iterator[dict[str, t.Any]]:
    """The content resources of a canvas's painting annotations: ``images`` in Presentation 2, ``items`` in 3."""
    annotations = list(listed(canvas.get("images")))
    for page in listed(canvas.get("items")):
        if isinstance(page, dict) and "items" in page:
            annotations += listed(page["items"])
        elif isinstance(page, dict) and type_of(page) == "annotation":
            annotations.append(page)
        elif page:
            faults.append("The canvas has only a reference to its images.")
    for annotation in annotations:
        if not isinstance(annotation, dict):
            faults.append("The canvas has only a reference to its image.")
        elif _paints(annotation):
            for target in listed(annotation.get("on")) + listed(annotation.get("target")):
                if "xywh=" in target if isinstance(target, str) else isinstance(target, dict) and "selector" in target:
                    notes.append("An image covers only a part of the canvas; it is read as a page of its own.")
            yield from _unfold([annotation.get("body"), annotation.get("resource")], notes)


def _paints(annotation: dict[str, t.Any]) -> bool:
    motivations = [value for value in listed(annotation.get("motivation")) if isinstance(value, str)]
    return not motivations or any(re.split("[:/#]", value)[-1].casefold() == "painting" for value in motivations)


def _unfold(bodies: list[t.Any], notes: list[str]) -> t.Iterator[dict[str, t.Any]]:
    """The content resources in a body: itself, or those of a list, a Choice or a SpecificResource, in order."""
    pending = [(body, 0) for body in reversed(bodies)]
    while pending:
        body, depth = pending.pop()
        if depth > _DEPTH:
            continue
        if isinstance(body, str):
            if body != "rdf:nil":
                yield {"id": body}
            continue
        inner = _inner(body, notes)
        if inner is not None:
            pending += [(entry, depth + 1) for entry in reversed(inner)]
        elif isinstance(body, dict) and body:
            yield body


def _inner(body: object, notes: list[str]) -> list[t.Any] | None:
    """What a body stands for, when it is no resource itself."""
    if isinstance(body, list):
        return body
    if not isinstance(body, dict):
        return None
    if (kind := type_of(body)) in _WRAPPERS:
        return [entry for name in ("default", "items", "item") for entry in listed(body.get(name))]
    if kind != "specificresource" and (kind or not ("source" in body or "full" in body)):
        return None
    if body.get("selector") or body.get("style"):
        notes.append("An image is shown cut or turned; it is read whole and as it is.")
    outer = {name: body[name] for name in ("format", "service", "width", "height") if body.get(name)}
    sources = listed(body.get("source")) + listed(body.get("full"))
    return [{**outer, **entry} if isinstance(entry, dict) else {**outer, "id": entry} for entry in sources]


def _units(canvas: dict[str, t.Any], image: Image) -> tuple[int | None, int | None]:
    """The canvas's width and height, or None for both when they are missing or cannot be those of the image."""
    width, height = size(canvas.get("width")), size(canvas.get("height"))
    if width is None or height is None or min(width, height) < 10 or (width == height and width % 100 == 0):
        return None, None
    if image.width and image.height and abs(width * image.height / (height * image.width) - 1) > 0.02:
        return None, None
    return width, height
