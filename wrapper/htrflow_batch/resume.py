"""What earlier attempts have left of a volume: which pages are done, and which they ended on."""

from __future__ import annotations

import concurrent.futures
import dataclasses
import json
import typing as t

from htrflow_batch import facts, provenance
from htrflow_batch.errors import PageError
from htrflow_batch.facts import Origin
from htrflow_batch.keys import Keys, Pages
from htrflow_batch.ledger import Outcome
from htrflow_batch.run import Model
from htrflow_batch.store import Store

_AT_ONCE = 16


@dataclasses.dataclass(frozen=True, slots=True)
class Left:
    """What is in the store.

    ``done`` are pages that this recipe made from this source. ``there`` are the files of any page. ``ended_on`` are
    pages that the model had when the attempt before ended without a word. ``suspects`` are these and those that failed
    in it: they come last.
    """

    done: tuple[Outcome, ...]
    there: Pages
    ended_on: tuple[int, ...]
    suspects: tuple[int, ...]


def find(store: Store, keys: Keys, origins: t.Mapping[int, Origin]) -> Left:
    """Reads a volume's folder. ``origins`` are those that its pages would have now, by the pages' numbers.

    A page whose ALTO says nothing of its origin is not done: an object that was copied without its metadata is such a
    one.
    """
    there = keys.pages(entry.key for entry in store.list(keys.folder))
    done = _done(store, keys, there.whole, origins)
    finished = {found.number for found in done}
    ended_on, failed = _before(store, keys)
    suspects = dict.fromkeys(number for number in (*failed, *ended_on) if number in origins and number not in finished)
    return Left(done, there, tuple(number for number in ended_on if number in suspects), tuple(suspects))


def made(store: Store, keys: Keys, origins: t.Mapping[int, Origin]) -> tuple[frozenset[int], tuple[Outcome, ...]]:
    """The pages that have both files, and what is known of those that this recipe made from this source."""
    whole = keys.pages(entry.key for entry in store.list(keys.folder)).whole
    return whole, _done(store, keys, whole, origins)


def made_by(store: Store, keys: Keys, done: t.Sequence[Outcome]) -> tuple[str, tuple[Model, ...]]:
    """The library and the models that the finished pages name, for an attempt that has no need to load them."""
    for outcome in done:
        found = store.get(keys.alto(outcome.number))
        try:
            stated = provenance.stated(found.content) if found else {}
        except PageError:
            continue
        if "engine" in stated:
            models = (name.rpartition("@") for name in stated.get("model", ()))
            return stated["engine"][0], tuple(Model(name, revision) for name, _, revision in models)
    return "", ()


def _done(store: Store, keys: Keys, whole: t.Collection[int], origins: t.Mapping[int, Origin]) -> tuple[Outcome, ...]:
    def outcome(number: int) -> Outcome | None:
        info = store.head(keys.alto(number))
        return facts.from_metadata(number, info.metadata, origins[number]) if info else None

    pool = concurrent.futures.ThreadPoolExecutor(_AT_ONCE, "resume")
    try:
        return tuple(found for found in pool.map(outcome, sorted(origins.keys() & whole)) if found)
    finally:
        # Whoever asked the pod to end does not wait for a store that does not answer.
        pool.shutdown(wait=False, cancel_futures=True)


def _before(store: Store, keys: Keys) -> tuple[list[int], list[int]]:
    """The pages that the last attempt ended on without a word, and those that the model did not read in it."""
    found = store.get(keys.progress)
    try:
        progress = json.loads(found.content) if found else None
    except ValueError:
        progress = None
    if not isinstance(progress, dict):
        return [], []
    active = progress.get("active") if progress.get("state") == "running" else None
    failed = progress.get("failed")
    return (
        [number for number in active if isinstance(number, int)] if isinstance(active, list) else [],
        [
            entry["page"]
            for entry in (failed if isinstance(failed, list) else [])
            if isinstance(entry, dict) and entry.get("cause") == "model" and isinstance(entry.get("page"), int)
        ],
    )
