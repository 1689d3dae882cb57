"""Which page is fetched when, and what becomes of pages that are not to be had."""

from __future__ import annotations

import collections
import concurrent.futures
import heapq
import logging
import queue
import time
import typing as t

from htrflow_batch import download
from htrflow_batch.config import Config
from htrflow_batch.download import Downloaded, ImageError
from htrflow_batch.errors import AttemptError, LaterError, PageError, TransientError
from htrflow_batch.fetch import Fetcher
from htrflow_batch.ledger import Cause
from htrflow_batch.source import Page

_LOG = logging.getLogger(__name__)
_THREADS = 8
#: Seconds before a page is asked for once more, where its server names no time, and at most.
_LATER, _LATEST = 5.0, 300.0
#: What an image is taken to weigh before the first has come, in bytes.
_GUESS = 4 * 1024 * 1024

Fail: t.TypeAlias = t.Callable[[Page, Cause, str], None]


class Fetched(t.NamedTuple):
    """What a thread says of a page."""

    page: Page
    result: Downloaded | Exception


class Fetching:
    """The pages that are not here yet. ``fail`` is told of those that never will be.

    Pages are fetched in order. One that may come later is asked for again after all others, and again as long as other
    pages come in between: there are servers that let only so many through at a time. ``solo`` pages come last of all
    and one by one: each has ended an attempt before.
    """

    def __init__(
        self,
        config: Config,
        pages: t.Iterable[Page],
        solo: t.Iterable[Page],
        fetcher: Fetcher,
        events: queue.SimpleQueue[t.Any],
        fail: Fail,
    ) -> None:
        self._config, self._fetcher, self._events, self._fail = config, fetcher, events, fail
        self._folder = config.workdir / "pages"
        self._waiting = collections.deque(pages)
        self._solo = collections.deque(solo)
        #: By when they are asked for again, and by number.
        self._deferred: list[tuple[float, int, Page]] = []
        #: How many pages had come when each of these was last refused.
        self._refused: dict[int, int] = {}
        self._came = 0
        self._late: list[tuple[Page, str]] = []
        self._largest = 0
        self.active: set[int] = set()
        self._pool = concurrent.futures.ThreadPoolExecutor(_THREADS, "fetch")

    @property
    def left(self) -> bool:
        """Whether any page is still to come."""
        return bool(self._waiting or self._deferred or self._solo or self.active)

    @property
    def soon(self) -> bool:
        """Whether pages come without a wait that is somebody else's wish."""
        return bool(self._waiting or self.active)

    @property
    def deferred(self) -> set[int]:
        """The pages that wait for their server, in this attempt or for the next."""
        return {number for _, number, _ in self._deferred} | {page.number for page, _ in self._late}

    def fill(self, pages: int, size: int) -> None:
        """Fetches as many pages as fit into the window, beside ``pages`` of ``size`` bytes that are here."""
        while (page := self._next(pages + len(self.active), size)) is not None:
            self.active.add(page.number)
            self._pool.submit(self._download, page)

    def take(self, event: Fetched) -> Downloaded | None:
        """The page that came, if one did."""
        page = event.page
        self.active.discard(page.number)
        match event.result:
            case Downloaded() as image:
                self._came += 1
                self._largest = max(self._largest, image.size)
                _LOG.info("page %s fetched: %s x %s pixels", page.number, image.width, image.height)
                return image
            case LaterError() as error:
                self._later(page, error)
            case ImageError() as error:
                self._fail(page, "image", str(error))
            case PageError() as error:
                self._fail(page, "fetch", str(error))
            case AttemptError() as error:
                raise error
            case error:
                _LOG.error("page %s: this is a fault of the program", page.number, exc_info=error)
                self._fail(page, "fetch", f"The image could not be fetched: {type(error).__name__}.")
        return None

    def settle(self) -> None:
        """Ends what was put off: for the next attempt (:class:`TransientError`), or for good in the last one."""
        if self._late and not self._config.attempt.last:
            more = f" and {len(self._late) - 1} more" if len(self._late) > 1 else ""
            raise TransientError(f"page {self._late[0][0].number}{more} could not be had yet: {self._late[0][1]}")
        for page, reason in self._late:
            self._fail(page, "fetch", f"{reason.rstrip('.')}, also in the last attempt.")

    def close(self) -> None:
        """Ends everything that is under way, without waiting for a server that is slow."""
        self._fetcher.close()
        self._pool.shutdown(wait=False, cancel_futures=True)

    def _next(self, pages: int, size: int) -> Page | None:
        window = self._config.lookahead
        coming = len(self.active) * (self._largest or _GUESS)
        if pages and (pages >= window.pages or size + coming >= window.bytes):
            return None
        if self._waiting:
            return self._waiting.popleft()
        if self._deferred and self._deferred[0][0] <= time.monotonic():
            return heapq.heappop(self._deferred)[2]
        if self._solo and not self._deferred and not pages:
            return self._solo.popleft()
        return None

    def _download(self, page: Page) -> None:
        result: Downloaded | Exception
        try:
            result = download.download(page, self._fetcher, self._config.fetching, self._folder)
        except Exception as error:
            result = error
        self._events.put(Fetched(page, result))

    def _later(self, page: Page, error: LaterError) -> None:
        if self._refused.get(page.number) == self._came:
            self._late.append((page, str(error)))
            _LOG.warning("page %s is left for the next attempt: %s", page.number, error)
            return
        self._refused[page.number] = self._came
        wait = min(_LATER if error.after is None else error.after, _LATEST)
        heapq.heappush(self._deferred, (time.monotonic() + wait, page.number, page))
        _LOG.warning("page %s is put off to the end: %s", page.number, error)
