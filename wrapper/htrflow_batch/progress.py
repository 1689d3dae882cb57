"""``progress.json``: how far a volume is, small enough to be written every second and read by every visitor.

What is known of each page stands in columns, one entry a page in the order of the source, so that 2 000 pages stay
under 30 kB.
"""

from __future__ import annotations

import dataclasses
import datetime
import typing as t

from htrflow_batch.config import Attempt
from htrflow_batch.documents import VERSION, Document, redacted, to_bytes, utc
from htrflow_batch.ledger import Failure, Ledger, State
from htrflow_batch.run import Run
from htrflow_batch.source import Page

Stage = t.Literal["config", "setup", "resume", "load", "stream", "verify", "publish"]
Condition = t.Literal["running", "stopped", "failed", "finished"]

_LETTERS: t.Final[t.Mapping[State, str]] = {
    "text": "t",
    "no text": "n",
    "low confidence": "l",
    "failed": "f",
    "waiting": "w",
}
_DEFERRED = "d"

#: Bytes of the whole document, which the failed pages fill up, and those that they may take in any case.
_MOST = 29_000
_MOST_OF_FAILED = 6_000


@dataclasses.dataclass(frozen=True, slots=True)
class Standing:
    """Where an attempt stands, as nothing but the attempt itself knows.

    ``started`` is when this attempt began, ``advanced`` when it last came further, ``updated`` the present; all know
    their time zone. ``resumed`` is how many pages came out before this attempt. ``active`` and ``deferred`` are numbers
    of pages: of those that are being worked on, and of those to be asked for again later. ``error`` is the sentence
    with which an attempt failed or was stopped.
    """

    condition: Condition
    stage: Stage
    started: datetime.datetime
    advanced: datetime.datetime
    updated: datetime.datetime
    attempt: Attempt
    resumed: int = 0
    active: t.Collection[int] = ()
    deferred: t.Collection[int] = ()
    error: str | None = None


def document(ledger: Ledger, run: Run, standing: Standing) -> Document:
    """The progress of a volume. Failed pages are left out of the list from the end where there are too many of them."""
    pages = ledger.source.pages
    known = ledger.counts()
    waiting = {page.number for page in ledger.waiting}
    deferred = waiting.intersection(standing.deferred)
    outcomes = [None if ledger.failure(page) else ledger.outcome(page) for page in pages]
    done = known["text"] + known["no text"] + known["low confidence"]
    made: Document = {
        "version": VERSION,
        "volume": run.volume,
        "campaign": run.campaign,
        "pipeline": run.recipe.pipeline_id,
        "recipe_sha256": run.recipe.sha256,
        "image": run.recipe.image,
        "engine": run.engine or None,
        "state": standing.condition,
        "stage": standing.stage,
        "error": standing.error,
        "started": utc(standing.started),
        "advanced": utc(standing.advanced),
        "updated": utc(standing.updated),
        "attempt": {"failures": standing.attempt.failures, "limit": standing.attempt.limit},
        "counts": {
            "total": len(pages),
            "done": done,
            "text": known["text"],
            "no_text": known["no text"],
            "low_confidence": known["low confidence"],
            "failed": known["failed"],
            "waiting": known["waiting"] - len(deferred),
            "deferred": len(deferred),
        },
        "pages_per_hour": _pace(done - standing.resumed, standing.updated - standing.started),
        "active": sorted(waiting.intersection(standing.active)),
        "pages": {
            "states": "".join(_DEFERRED if page.number in deferred else _LETTERS[ledger.state(page)] for page in pages),
            "seconds": [None if outcome is None else round(outcome.seconds, 1) for outcome in outcomes],
            "confidence": [
                None if outcome is None or outcome.confidence is None else round(outcome.confidence, 2)
                for outcome in outcomes
            ],
        },
    }
    room = max(_MOST_OF_FAILED, _MOST - len(to_bytes(made)))
    shown: list[Document] = []
    failures = {failure.number: failure for failure in ledger.failures}
    for page in pages:
        if (failure := failures.get(page.number)) is None:
            continue
        entry = _failed(failure, page.image.address if isinstance(page, Page) else None)
        room -= len(to_bytes(entry))
        if room < 0:
            break
        shown.append(entry)
    return {**made, "failed": shown, "failed_left_out": known["failed"] - len(shown)}


def _failed(failure: Failure, address: str | None) -> Document:
    return {
        "page": failure.number,
        "cause": failure.cause,
        "reason": failure.reason,
        "source": redacted(address),
    }


def _pace(pages: int, span: datetime.timedelta) -> float | None:
    """Pages an hour, or None where it would be a guess."""
    seconds = span.total_seconds()
    return round(pages * 3600 / seconds, 1) if pages > 0 and seconds >= 1 else None
