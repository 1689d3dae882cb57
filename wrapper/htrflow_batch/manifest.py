"""``manifest.json``: what became of a volume and of each of its pages. It is written last, and means that all is done.

It says what is known and nothing else. What is known of a page that an earlier attempt made is what that attempt wrote
beside it in the store; ``null`` stands for what nobody knows. Only times and seconds differ between two runs of one
volume: neither the clock nor the number of attempts decides anything else.

The models are those of the run that is given, and ``null`` for a run that does not know them, such as one that found
every page made. Each page's ALTO names the models that read it.
"""

from __future__ import annotations

import datetime

from htrflow_batch.documents import VERSION, Document, redacted, utc
from htrflow_batch.ledger import Ledger
from htrflow_batch.run import Run
from htrflow_batch.source import FailedPage, Page


def document(
    ledger: Ledger, run: Run, finished: datetime.datetime, started: datetime.datetime | None = None
) -> Document:
    """The manifest of a volume that is done. Both times know their time zone.

    A page of which nothing is known is a ``ValueError``: there is no such volume to write a manifest of.
    """
    if ledger.waiting:
        raise ValueError(f"page {ledger.waiting[0].number} has neither come out nor failed, so the volume is not done")
    source, counts = ledger.source, ledger.counts()
    models = [{"name": model.name, "revision": model.revision or None} for model in run.models]
    return {
        "version": VERSION,
        "volume": run.volume,
        "campaign": run.campaign,
        "pipeline": {
            "id": run.recipe.pipeline_id,
            "sha256": run.recipe.pipeline_sha256,
            "recipe_sha256": run.recipe.sha256,
            "image": run.recipe.image,
            "engine": run.engine or None,
            "models": models or None,
        },
        "wrapper": run.wrapper_version,
        "source": {
            "url": redacted(run.source_url),
            "id": redacted(source.id),
            "label": source.label or None,
            "presentation": source.presentation,
            "notes": list(source.notes),
        },
        "started": None if started is None else utc(started),
        "finished": utc(finished),
        "counts": {
            "total": len(source.pages),
            "done": len(source.pages) - counts["failed"],
            "text": counts["text"],
            "no_text": counts["no text"],
            "low_confidence": counts["low confidence"],
            "failed": counts["failed"],
        },
        "pages": [_page(page, ledger) for page in source.pages],
    }


def _page(page: Page | FailedPage, ledger: Ledger) -> Document:
    about: Document = {
        "page": page.number,
        "state": ledger.state(page).replace(" ", "_"),
        "source": redacted(page.image.address) if isinstance(page, Page) else None,
        "canvas": redacted(page.canvas_id),
        "label": page.label or None,
    }
    notes = page.notes if isinstance(page, Page) else ()
    if (failure := ledger.failure(page)) is not None:
        return {**about, "cause": failure.cause, "reason": failure.reason, "notes": list(notes)}
    outcome = ledger.outcome(page)
    assert outcome is not None
    return {
        **about,
        "width": outcome.width,
        "height": outcome.height,
        "lines": outcome.lines,
        "words": outcome.words,
        "confidence": None if outcome.confidence is None else round(outcome.confidence, 4),
        "seconds": round(outcome.seconds, 2),
        "sha256": outcome.sha256,
        "notes": [*notes, *outcome.notes],
    }
