"""Whether what an attempt believes to be in the store is there."""

from __future__ import annotations

import dataclasses
import typing as t

from htrflow_batch import resume, stores
from htrflow_batch.config import Config
from htrflow_batch.errors import PermanentError, TransientError
from htrflow_batch.facts import Origin
from htrflow_batch.ledger import Ledger
from htrflow_batch.run import Run
from htrflow_batch.store import Store


def verify(config: Config, run: Run, ledger: Ledger, origins: t.Mapping[int, Origin], store: Store) -> Run:
    """Holds the ledger to what is in the store, where another attempt may write as well, and gives the run's facts.

    ``origins`` are those that the pages have in this attempt. Pages that came out of another attempt by the same recipe
    are noted as they are there.

    Raises:
        TransientError: pages are missing, are another recipe's, or are left; or the model read none of them.
        PermanentError: no page can be had.
    """
    keys = config.keys
    whole, made = stores.patiently("the pages", lambda: resume.made(store, keys, origins))
    missing = [outcome.number for outcome in ledger.outcomes if outcome.number not in whole]
    if missing:
        raise TransientError(
            f"the files of {len(missing)} pages are not in the store, page {missing[0]} the first — see who removes"
            " them, and whether the store keeps what it takes"
        )
    ours = {outcome.number for outcome in made}
    others = [outcome.number for outcome in ledger.outcomes if outcome.number not in ours]
    if others:
        raise TransientError(
            f"{len(others)} pages were made by another recipe meanwhile, page {others[0]} the first — see who runs"
            f" {config.recipe.pipeline_id} with another image or other steps, and whether the store keeps metadata"
        )
    for outcome in made:
        ledger.came_out(outcome)
    if ledger.waiting:
        raise TransientError(f"{len(ledger.waiting)} pages are left, which the next attempt reads")
    if not made:
        _nothing(ledger)
    if run.engine:
        return run
    engine, models = stores.patiently("a page", lambda: resume.made_by(store, keys, made))
    return dataclasses.replace(run, engine=engine, models=models)


def _nothing(ledger: Ledger) -> t.NoReturn:
    first = ledger.failures[0]
    said = f"none of the {len(ledger.failures)} pages came out; of page {first.number}: {first.reason}"
    # A model that reads no page at all may read them on another node.
    for_good = all(failure.cause in ("source", "fetch", "image") for failure in ledger.failures)
    raise (PermanentError if for_good else TransientError)(said)
