"""Makes of what the library read the files that are published, and puts them into the store in their order."""

from __future__ import annotations

import dataclasses
import datetime
import hashlib
import typing as t

from htrflow_batch import alto, annotation_page, documents, facts, messages, pagexml, provenance
from htrflow_batch.download import Downloaded
from htrflow_batch.errors import PageError, TransientError
from htrflow_batch.facts import Origin
from htrflow_batch.keys import Keys, Pages
from htrflow_batch.ledger import Outcome
from htrflow_batch.presentation import canvas_id
from htrflow_batch.provenance import Provenance
from htrflow_batch.run import Run
from htrflow_batch.store import Exists, Info, Store
from htrflow_batch.xml_text import PageText

#: What of the metadata PAGE has too.
_ABOUT = ("recipe", "source")
_XML = "application/xml"
_JSON = "application/json"
#: How often a page's files are written while another recipe writes them too.
_ROUNDS = 3


@dataclasses.dataclass(frozen=True, slots=True)
class Result:
    """A page's files, checked and stamped, and what is known of them."""

    outcome: Outcome
    origin: Origin
    page: bytes
    annotations: bytes
    alto: bytes


def make(read: messages.Page, image: Downloaded, origin: Origin, run: Run, keys: Keys) -> Result:
    """The files of a page that was read. Raises :class:`PageError` when they cannot be published."""
    expected = PageText(image.width, image.height, tuple(read.lines))
    checked = alto.check_alto(_bytes(read.alto), expected)
    created = datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
    if read.page is None and not checked.lines:
        blank = pagexml.blank_page(image.path.name, image.width, image.height, run.engine, created)
        checked_page = pagexml.check_page(blank, expected)
    elif read.page is None:
        raise PageError("htrflow wrote no PAGE file for a page that has text.")
    else:
        checked_page = pagexml.check_page(_bytes(read.page), expected)
    stamp = Provenance(
        image=run.recipe.image,
        pipeline_id=run.recipe.pipeline_id,
        pipeline_sha256=run.recipe.pipeline_sha256,
        recipe=run.recipe.sha256,
        engine=run.engine,
        models=tuple((model.name, model.revision) for model in run.models),
        source_url=image.page.image.address,
        campaign=run.campaign,
        wrapper_version=run.wrapper_version,
        created=created,
    )
    stamped = provenance.stamp_alto(checked.content, stamp)
    number = image.page.number
    address = run.address(keys.annotations(number))
    confidence = checked.mean_confidence
    outcome = Outcome(
        number=number,
        width=image.width,
        height=image.height,
        lines=checked.lines,
        words=checked.words,
        confidence=checked_page.mean_confidence if confidence is None else confidence,
        seconds=read.seconds,
        sha256=hashlib.sha256(stamped).hexdigest(),
        notes=tuple(dict.fromkeys((*image.notes, *checked.notes, *checked_page.notes))),
    )
    return Result(
        outcome=facts.settled(outcome, origin),
        origin=origin,
        page=provenance.stamp_page(checked_page.content, stamp),
        annotations=documents.to_bytes(annotation_page.page(stamped, canvas_id(image.page, run, keys), address)),
        alto=stamped,
    )


def put(result: Result, store: Store, keys: Keys, there: Pages) -> Outcome:
    """Writes PAGE, annotations and ALTO, in this order, and says what is in the store.

    ``there`` is what a listing found before: only what was there is written over. Where a file has appeared since,
    another attempt at the same volume runs; what it has made by the same recipe from the same source stays.

    Raises :class:`TransientError` also when another recipe writes the same page over and over.
    """
    number, origin = result.outcome.number, result.origin
    if number in there.whole and (other := _stated(store, keys, number, origin)):
        # It was another recipe's when this attempt began.
        return other
    metadata = facts.to_metadata(result.outcome, origin)
    about = {name: metadata[name] for name in _ABOUT}
    fresh_page, fresh_alto = number not in there.page, number not in there.alto
    for _ in range(_ROUNDS):
        _put(store, keys.page(number), result.page, about, fresh=fresh_page)
        store.put(keys.annotations(number), result.annotations, _JSON)
        match _put(store, keys.alto(number), result.alto, metadata, fresh=fresh_alto):
            case "made":
                return result.outcome
            case "kept":
                return _stated(store, keys, number, origin) or result.outcome
        # Whoever comes last has to have written all of the files.
        if _same(store.head(keys.page(number)), about):
            return result.outcome
        fresh_page = fresh_alto = False
    raise TransientError(
        f"another recipe writes {keys.page(number)} at the same time — see who runs this pipeline's id with another"
        " image or other steps"
    )


def _stated(store: Store, keys: Keys, number: int, origin: Origin) -> Outcome | None:
    """What a page's ALTO in the store says of it, if this recipe made it from this source."""
    info = store.head(keys.alto(number))
    return facts.from_metadata(number, info.metadata, origin) if info else None


def _put(
    store: Store, key: str, content: bytes, metadata: t.Mapping[str, str], *, fresh: bool
) -> t.Literal["made", "kept", "replaced"]:
    """Writes a file. It is kept where another attempt has written the same page there."""
    try:
        store.put(key, content, _XML, if_none_match=fresh, metadata=metadata)
        return "made" if fresh else "replaced"
    except Exists:
        if _same(store.head(key), metadata):
            return "kept"
        store.put(key, content, _XML, metadata=metadata)
        return "replaced"


def _same(info: Info | None, metadata: t.Mapping[str, str]) -> bool:
    return info is not None and all(info.metadata.get(name) == metadata[name] for name in _ABOUT)


def _bytes(text: str) -> bytes:
    # A model's text may hold half characters; the check takes them out.
    return text.encode("utf-8", "surrogatepass")
