"""Puts pages that were read into the store, while the model reads others."""

from __future__ import annotations

import concurrent.futures
import heapq
import logging
import queue
import time
import typing as t

from htrflow_batch import download, facts, messages, results
from htrflow_batch.config import Config
from htrflow_batch.download import Downloaded
from htrflow_batch.errors import AttemptError, PageError, TransientError
from htrflow_batch.fetching import Fail
from htrflow_batch.keys import Pages
from htrflow_batch.ledger import Outcome
from htrflow_batch.run import Run
from htrflow_batch.store import Store

_LOG = logging.getLogger(__name__)
_THREADS = 4
#: How often in a row the store may fail before the attempt ends.
MOST_FAILURES = 5
#: Of the seconds that a pod has to end.
_LAST_SECONDS = 15.0


class Stored(t.NamedTuple):
    """What a thread says of a page. ``began`` is when it was asked to."""

    image: Downloaded
    read: messages.Page
    began: float
    result: Outcome | Exception


class Storing:
    """The pages between their text and the store. ``fail`` is told of those whose result cannot be published.

    ``there`` are the files that a listing found before.
    """

    def __init__(
        self, config: Config, there: Pages, store: Store, events: queue.SimpleQueue[t.Any], fail: Fail
    ) -> None:
        self._config, self._there, self._store = config, there, store
        self._events, self._fail = events, fail
        self._again: list[tuple[float, int, Downloaded, messages.Page, Run]] = []
        self._active: dict[int, Run] = {}
        self._failures, self._counted_until = 0, 0.0
        #: Until then nothing new is written.
        self._quiet_until = 0.0
        self._odd: set[int] = set()
        self._tasks: set[concurrent.futures.Future[None]] = set()
        self._pool = concurrent.futures.ThreadPoolExecutor(_THREADS, "store")

    @property
    def pages(self) -> int:
        """How many pages are here."""
        return len(self._active) + len(self._again)

    def add(self, image: Downloaded, read: messages.Page, run: Run) -> None:
        now = time.monotonic()
        if now < self._quiet_until:
            heapq.heappush(self._again, (self._quiet_until, image.page.number, image, read, run))
            return
        self._active[image.page.number] = run
        task = self._pool.submit(self._make_and_put, image, read, run, now)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def retry(self) -> None:
        """Writes again what could not be written, once it is time."""
        while self._again and self._again[0][0] <= time.monotonic():
            _, _, image, read, run = heapq.heappop(self._again)
            self.add(image, read, run)

    def take(self, event: Stored) -> Outcome | None:
        """The page that is in the store, if one is.

        Raises :class:`PermanentError` or :class:`TransientError` when the store does not take pages.
        """
        page = event.image.page
        run = self._active.pop(page.number)
        match event.result:
            case Outcome() as outcome:
                self._failures, self._quiet_until = 0, 0.0
                return outcome
            case PageError() as error:
                self._fail(page, "result", str(error))
            case TransientError() as error:
                self._failed(event, run, error)
            case AttemptError() as error:
                raise error
            case error:
                _LOG.error("page %s: this is a fault of the program", page.number, exc_info=error)
                if page.number not in self._odd:
                    # Some happen only now and then.
                    self._odd.add(page.number)
                    self.add(event.image, event.read, run)
                else:
                    self._fail(page, "result", f"The result could not be made: {type(error).__name__}.")
        return None

    def close(self) -> None:
        """Ends. What is being written gets a while to become whole, and its page need not be read again."""
        self._pool.shutdown(wait=False, cancel_futures=True)
        concurrent.futures.wait(list(self._tasks), _LAST_SECONDS)

    def _make_and_put(self, image: Downloaded, read: messages.Page, run: Run, began: float) -> None:
        result: Outcome | Exception
        try:
            origin = facts.Origin(run.recipe.sha256, download.identity(image.page, self._config.fetching))
            made = results.make(read, image, origin, run, self._config.keys)
            result = results.put(made, self._store, self._config.keys, self._there)
        except Exception as error:
            result = error
        self._events.put(Stored(image, read, began, result))

    def _failed(self, event: Stored, run: Run, error: TransientError) -> None:
        now = time.monotonic()
        # Writes that fail at the same time fail for one reason, which counts once.
        if event.began >= self._counted_until:
            self._failures += 1
            self._counted_until, self._quiet_until = now, now + 2.0**self._failures
        if self._failures >= MOST_FAILURES:
            raise error
        number = event.image.page.number
        _LOG.warning("page %s is written again: %s", number, error)
        heapq.heappush(self._again, (max(now, self._quiet_until), number, event.image, event.read, run))
