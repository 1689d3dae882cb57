"""``iiif.json``: the pages that came out, with their text, as a IIIF Presentation 3 manifest for any viewer.

Its images are those of the source, so its addresses have to work in a reader's browser: they are the source's own, with
their queries, since there are servers that know an image by its query. Only user information, the ``name:password@`` of
an address, is taken out, wherever an address begins with it. A token in a query is in the file for whoever may read it,
as it is in the source's manifest.

Rules are from https://iiif.io/api/presentation/3.0/. Unlike in ``manifest.json`` there is nothing here of pages that
failed.
"""

from __future__ import annotations

import re

from htrflow_batch import alto, pagexml, presentation_service
from htrflow_batch.documents import Document, without_user_info
from htrflow_batch.iiif import PRESENTATION_3
from htrflow_batch.keys import Keys
from htrflow_batch.ledger import Ledger, Outcome
from htrflow_batch.media import format_of
from htrflow_batch.redact import MARK
from htrflow_batch.run import Run
from htrflow_batch.source import Image, Page, page_name

PRESENTATION_2 = "http://iiif.io/api/presentation/2/context.json"
#: Pixels.
_THUMBNAIL_WIDTH = 200
_FORMAT = re.compile("[a-z]+/[a-z0-9][a-z0-9.+-]*")


def manifest(ledger: Ledger, run: Run, keys: Keys) -> Document | None:
    """The manifest of the pages that have come out so far, in the order of the source.

    None while there is no such page: a manifest without canvases is none.
    """
    canvases = [
        _canvas(page, outcome, run, keys)
        for page in ledger.source.usable
        if ledger.failure(page) is None and (outcome := ledger.outcome(page)) is not None
    ]
    if not canvases:
        return None
    facts = [
        ("Volume", run.volume),
        ("Campaign", run.campaign),
        ("Pipeline", run.recipe.pipeline_id),
        ("Text recognition", run.engine),
    ]
    document: Document = {
        "@context": PRESENTATION_3,
        "id": run.address(keys.iiif),
        "type": "Manifest",
        "label": {"none": [ledger.source.label or run.volume]},
        "metadata": [{"label": {"en": [name]}, "value": {"none": [value]}} for name, value in facts if value],
    }
    source = ledger.source
    if source.terms.statement:
        heading = source.terms.heading or "Attribution"
        document["requiredStatement"] = {
            "label": {"none": [heading]},
            "value": {"none": [source.terms.statement]},
        }
    if source.terms.licence:
        document["rights"] = without_user_info(source.terms.licence)
    if source.direction:
        document["viewingDirection"] = source.direction
    if (see_also := _source(ledger, run)) is not None:
        document["seeAlso"] = [see_also]
    return {**document, "items": canvases}


def canvas_id(page: Page, run: Run, keys: Keys) -> str:
    """The id of a page's canvas, which the annotations of its text point at.

    It is the source's, where the source has one of its own for this canvas, so that what others know of the canvas
    holds here too. One with a fragment cannot be pointed into, and one with a password cannot be shown.
    """
    own, ours = page.canvas_id, f"{run.address(keys.iiif)}/canvas/"
    if own is None or "#" in own or without_user_info(own) != own or own.startswith(ours):
        return f"{ours}{page_name(page.number)}"
    return own


def _source(ledger: Ledger, run: Run) -> Document | None:
    """The manifest that the pages are from: another description of them, not a whole that they are part of."""
    address = without_user_info(ledger.source.id or run.source_url)
    if not address or MARK in address:
        return None
    return {
        "id": address,
        "type": "Manifest",
        "label": {"en": ["The manifest of the images"]},
        "format": "application/ld+json",
        "profile": PRESENTATION_3 if ledger.source.presentation == 3 else PRESENTATION_2,
    }


def _canvas(page: Page, outcome: Outcome, run: Run, keys: Keys) -> Document:
    """One page. Its units are the pixels of the image that was read, as in the page's ALTO and PAGE."""
    target = canvas_id(page, run, keys)
    ours = f"{run.address(keys.iiif)}/canvas/{page.name}"
    painting = {
        "id": f"{ours}/painting",
        "type": "Annotation",
        "motivation": "painting",
        "body": _body(page.image),
        "target": target,
    }
    canvas: Document = {
        "id": target,
        "type": "Canvas",
        "label": {"none": [page.label or str(page.number)]},
        "height": outcome.height,
        "width": outcome.width,
    }
    if (thumbnail := _thumbnail(page.image, outcome)) is not None:
        canvas["thumbnail"] = [thumbnail]
    canvas["seeAlso"] = [
        _result(run.address(keys.alto(page.number)), "ALTO XML", alto.NAMESPACE),
        _result(run.address(keys.page(page.number)), "PAGE XML", pagexml.NAMESPACE),
    ]
    canvas["items"] = [{"id": f"{ours}/page", "type": "AnnotationPage", "items": [painting]}]
    canvas["annotations"] = [{"id": run.address(keys.annotations(page.number)), "type": "AnnotationPage"}]
    return canvas


def _body(image: Image) -> Document:
    address = image.id or presentation_service.whole(image.services[0])
    body: Document = {"id": without_user_info(address), "type": "Image"}
    stated = (image.format or "").strip().casefold()
    if _FORMAT.fullmatch(stated) or (stated := format_of(address)):
        body["format"] = stated
    if image.width and image.height:
        body |= {"height": image.height, "width": image.width}
    if image.services:
        body["service"] = [presentation_service.as_presentation_3(service) for service in image.services]
    return body


def _thumbnail(image: Image, outcome: Outcome) -> Document | None:
    if outcome.width <= _THUMBNAIL_WIDTH:
        return None
    for service in image.services:
        if (found := presentation_service.smaller(service, _THUMBNAIL_WIDTH)) is not None:
            address, width = found
            height = max(1, round(width * outcome.height / outcome.width))
            size = {"height": height, "width": width}
            return {"id": without_user_info(address), "type": "Image", "format": "image/jpeg", **size}
    return None


def _result(address: str, label: str, namespace: str) -> Document:
    return {
        "id": address,
        "type": "Dataset",
        "label": {"en": [label]},
        "format": "application/xml",
        "profile": namespace,
    }
