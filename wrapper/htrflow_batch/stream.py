"""The pages of a volume on their way: fetched, read and stored, several at a time, in the order in which they arrive.

One loop owns all state. Threads that fetch, the process with the models and threads that store work for it, and answer
through one queue. The window of pages in flight is bounded by number and by bytes, so that memory does not grow with
the volume.
"""

from __future__ import annotations

import dataclasses
import logging
import queue
import typing as t

from htrflow_batch.config import Config
from htrflow_batch.fetch import Fetcher
from htrflow_batch.fetching import Fetched, Fetching
from htrflow_batch.keys import Pages
from htrflow_batch.ledger import Cause, Failure, Ledger
from htrflow_batch.model import Said
from htrflow_batch.reading import Reading
from htrflow_batch.run import Model, Run
from htrflow_batch.source import Page
from htrflow_batch.store import Store
from htrflow_batch.storing import Stored, Storing

_LOG = logging.getLogger(__name__)
#: Seconds after which the loop looks around though nothing came.
_TICK = 0.25


class Terminated(BaseException):
    """The pod was asked to end. Libraries that catch every ``Exception`` and ask again do not catch this one."""


class Stop:
    """What is put into the queue to end the run."""


class Stream:
    """One pass over the pages that are left of a volume.

    ``suspects`` are pages that ended an attempt before. ``changed`` is called whenever something may have, for whoever
    shows progress.
    """

    def __init__(
        self,
        config: Config,
        run: Run,
        ledger: Ledger,
        there: Pages,
        suspects: t.Sequence[int],
        store: Store,
        fetcher: Fetcher,
        events: queue.SimpleQueue[t.Any],
        changed: t.Callable[[Stream], None],
    ) -> None:
        self.run_facts, self.ledger = run, ledger
        self._folder = config.workdir / "pages"
        self._events, self._changed = events, changed
        pages = {page.number: page for page in ledger.waiting}
        solo = [pages.pop(number) for number in suspects if number in pages]
        self.fetching = Fetching(config, pages.values(), solo, fetcher, events, self._fail)
        self.reading = Reading(config, events, self._fail)
        self.storing = Storing(config, there, store, events, self._fail)

    def run(self) -> None:
        """Reads every page that is left.

        Raises:
            Terminated: a :class:`Stop` came.
            PermanentError: the pipeline is wrong, or the store refuses.
            TransientError: the models or the store are not to be had, or pages are left for the next attempt.
        """
        self._folder.mkdir(parents=True, exist_ok=True)
        if self.fetching.left:
            self.reading.start()
        try:
            while self.fetching.left or self.reading.pages or self.storing.pages:
                self._step()
                self._changed(self)
        finally:
            # What is fetched or read and not stored yet is done again by the next attempt.
            self.reading.close()
            self.fetching.close()
            self.storing.close()
        self.fetching.settle()

    def _step(self) -> None:
        self.fetching.fill(self.reading.pages + self.storing.pages, self.reading.size)
        while group := self.reading.next_group(more=self.fetching.soon):
            self.reading.give(group)
            self._changed(self)
        self.storing.retry()
        self.reading.watch(more=bool(self.fetching.active))
        self._take()

    def _take(self) -> None:
        try:
            event = self._events.get(timeout=_TICK)
        except queue.Empty:
            return
        match event:
            case Stop():
                raise Terminated
            case Fetched():
                if (image := self.fetching.take(event)) is not None:
                    self.reading.add(image)
            case Said():
                if (found := self.reading.take(event)) is not None:
                    self.storing.add(*found, self.run_facts)
                elif self.reading.loaded and not self.run_facts.engine:
                    self._note_models()
            case Stored():
                if (outcome := self.storing.take(event)) is not None:
                    self.ledger.came_out(outcome)
                    _LOG.info(
                        "page %s done: %s lines, %s words, %.1f s",
                        outcome.number,
                        outcome.lines,
                        outcome.words,
                        outcome.seconds,
                    )

    def _note_models(self) -> None:
        assert self.reading.loaded is not None
        models = tuple(Model(name, revision) for name, revision in self.reading.loaded.models)
        self.run_facts = dataclasses.replace(self.run_facts, engine=self.reading.loaded.engine, models=models)

    def _fail(self, page: Page, cause: Cause, reason: str) -> None:
        self.ledger.failed(Failure(page.number, cause, reason))
        _LOG.error("page %s failed: %s", page.number, reason)
