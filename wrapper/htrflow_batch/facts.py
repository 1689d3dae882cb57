"""What a page's ALTO says of itself in the store, so that a later attempt knows what the page is without reading it."""

from __future__ import annotations

import dataclasses
import json
import re
import typing as t
import urllib.parse

from htrflow_batch.ledger import Outcome

#: Bytes of notes, so that everything stays below what the stores allow for metadata.
_NOTES = 1200
_NUMBER = re.compile("[0-9]{1,9}")
_DECIMAL = re.compile(r"[0-9]{1,9}(?:\.[0-9]{1,6})?")
_SHA256 = re.compile("[0-9a-f]{64}")


@dataclasses.dataclass(frozen=True, slots=True)
class Origin:
    """What a page was made by and from: the recipe's digest and the source's, both in hexadecimal."""

    recipe: str
    source: str


def to_metadata(outcome: Outcome, origin: Origin) -> dict[str, str]:
    """An object's metadata, as :meth:`htrflow_batch.store.Store.put` takes it. Notes that are too long are cut."""
    notes = list(outcome.notes)
    while len(written := urllib.parse.quote(json.dumps(notes, ensure_ascii=False), safe="")) > _NOTES:
        notes.pop()
    return {
        "recipe": origin.recipe,
        "source": origin.source,
        "width": str(outcome.width),
        "height": str(outcome.height),
        "lines": str(outcome.lines),
        "words": str(outcome.words),
        "confidence": "none" if outcome.confidence is None else f"{outcome.confidence:.4f}",
        "seconds": f"{outcome.seconds:.2f}",
        "sha256": outcome.sha256,
        "notes": written,
    }


def from_metadata(number: int, metadata: t.Mapping[str, str], origin: Origin) -> Outcome | None:
    """The page that was made by this recipe from this source, or None: another one made it, or nobody can know."""
    if (metadata.get("recipe"), metadata.get("source")) != (origin.recipe, origin.source):
        return None
    whole = [metadata.get(name, "") for name in ("width", "height", "lines", "words")]
    confidence, seconds = metadata.get("confidence", ""), metadata.get("seconds", "")
    digest, notes = metadata.get("sha256", ""), _notes(metadata.get("notes", ""))
    if not all(map(_NUMBER.fullmatch, whole)) or not _DECIMAL.fullmatch(seconds) or not _SHA256.fullmatch(digest):
        return None
    if notes is None or not (confidence == "none" or _DECIMAL.fullmatch(confidence)):
        return None
    stated = None if confidence == "none" else float(confidence)
    width, height, lines, words = map(int, whole)
    return Outcome(number, width, height, lines, words, stated, float(seconds), digest, notes)


def settled(outcome: Outcome, origin: Origin) -> Outcome:
    """The outcome as a later attempt will read it, so that both write the same documents."""
    found = from_metadata(outcome.number, to_metadata(outcome, origin), origin)
    assert found is not None
    return found


def _notes(text: str) -> tuple[str, ...] | None:
    try:
        found = json.loads(urllib.parse.unquote(text, errors="strict"))
    except ValueError:
        return None
    if not isinstance(found, list) or not all(isinstance(note, str) for note in found):
        return None
    return tuple(found)
