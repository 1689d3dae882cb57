"""Which pages the model gets together, and what becomes of pages on which it raises, hangs or dies."""

from __future__ import annotations

import collections
import logging
import queue
import typing as t

from htrflow_batch import messages
from htrflow_batch.config import Config
from htrflow_batch.download import Downloaded
from htrflow_batch.errors import PermanentError, TransientError
from htrflow_batch.fetching import Fail
from htrflow_batch.model import Group, Model, Said

_LOG = logging.getLogger(__name__)
#: How often in a row the process may hang or die before the attempt ends, and the model may raise before the process is
#: taken to be what is broken.
MOST_FAILURES = 5


class Reading:
    """The pages between their image and their text. ``fail`` is told of those that are not read.

    A page that took the process with it while others were in work is not known; those that were are read one by one.
    A page on which the model raises has failed, unless the next ones do as well: then they are all tried once more in a
    new process, since a broken GPU makes every page fail.
    """

    def __init__(self, config: Config, events: queue.SimpleQueue[t.Any], fail: Fail) -> None:
        self._last, self._group_size, self._fail = config.attempt.last, config.lookahead.group, fail
        self._model = Model(
            config.engine,
            config.recipe.yaml,
            config.workdir,
            events,
            page_seconds=config.page_seconds,
            load_seconds=config.load_seconds,
        )
        self._ready: collections.deque[Downloaded] = collections.deque()
        self._alone: collections.deque[Downloaded] = collections.deque()
        self._in_model: dict[int, Downloaded] = {}
        #: Pages on which the model raised, while it is not known whether it is they that are at fault.
        self._doubtful: list[tuple[Downloaded, str]] = []
        self._tried_again: set[int] = set()
        self._deaths = 0
        self.loaded: messages.Loaded | None = None
        #: Bytes of images in the work directory.
        self.size = 0
        #: Seconds that the model had nothing to do after its first group, and that it worked.
        self.idle, self.busy = 0.0, 0.0

    @property
    def pages(self) -> int:
        """How many pages are here."""
        return len(self._ready) + len(self._alone) + len(self._in_model) + len(self._doubtful)

    @property
    def active(self) -> tuple[int, ...]:
        """The pages that the process has."""
        return tuple(sorted(self._in_model))

    def start(self) -> None:
        """Has the models loaded."""
        self._model.start()

    def close(self) -> None:
        """Ends the process, whatever it does."""
        self._model.end()

    def add(self, image: Downloaded) -> None:
        self.size += image.size
        self._ready.append(image)

    def next_group(self, *, more: bool) -> list[Downloaded]:
        """The pages to give next, none if the process has enough. ``more`` says whether more pages will come soon."""
        if not self._model.free:
            return []
        if self._alone:
            return [] if self._model.groups else [self._alone.popleft()]
        # While the model works, a group is worth waiting for until it is full.
        if self._model.groups and more and len(self._ready) < self._group_size:
            return []
        return [self._ready.popleft() for _ in range(min(self._group_size, len(self._ready)))]

    def give(self, group: t.Sequence[Downloaded]) -> None:
        self._in_model.update({image.page.number: image for image in group})
        self._model.give({image.page.number: image.path for image in group})

    def take(self, event: Said) -> tuple[Downloaded, messages.Page] | None:
        """The page that was read, if one was.

        Raises :class:`PermanentError` or :class:`TransientError` when the models are not to be had.
        """
        if event.generation != self._model.generation or not self._model.running:
            return None
        if event.message is None:
            self._gone(None)
            return None
        self._model.note(event.message)
        match event.message:
            case messages.Loaded() as loaded:
                self.loaded = loaded
                _LOG.info("%s loaded its models in %.1f s", loaded.engine, loaded.seconds)
            case messages.Refused() as refused:
                raise (PermanentError if refused.permanent else TransientError)(refused.error)
            case messages.Started(waited=waited):
                self.idle += waited if self.busy else 0.0
            case messages.Done(seconds=seconds):
                self.busy += seconds
            case messages.Page(number=number) as read if (image := self._in_model.pop(number, None)) is not None:
                self._deaths = 0
                self._believe()
                self._discard(image)
                return image, read
            case messages.Failed(number=number, reason=reason) if number in self._in_model:
                self._raised(self._in_model.pop(number), reason)
        return None

    def watch(self, *, more: bool) -> None:
        """Ends the process if it is stuck. ``more`` says whether pages are on their way, which could clear up a doubt.

        Pages in doubt take room of the window and hold up those that come alone, so they do not wait for others.
        """
        if (reason := self._model.overdue()) is not None:
            self._gone(reason)
        if not more and len(self._doubtful) == self.pages:
            self._believe()

    def _raised(self, image: Downloaded, reason: str) -> None:
        if image.page.number in self._tried_again:
            self._give_up(image, reason)
            return
        self._doubtful.append((image, reason))
        if len(self._doubtful) < MOST_FAILURES:
            return
        _LOG.error("the model raised on %s pages in a row; they are tried once more in a new process", MOST_FAILURES)
        self._alone.extend(image for image, _ in self._doubtful)
        self._tried_again.update(image.page.number for image, _ in self._doubtful)
        self._doubtful.clear()
        self._restart([group for group in self._model.groups if group.pages])

    def _believe(self) -> None:
        """It is the pages that are at fault: the model has read another one, or there is no other."""
        for image, reason in self._doubtful:
            self._give_up(image, reason)
        self._doubtful.clear()

    def _gone(self, stuck: str | None) -> None:
        """The process is stuck, or gone if there is no word for what it does: it is started again."""
        loaded, groups = self._model.loaded, [group for group in self._model.groups if group.pages]
        how = self._model.end(gone=stuck is None)
        said = stuck or f"the process with the model was gone, {how or 'nobody knows why'}"
        if not loaded:
            raise TransientError(said if stuck else f"{said}, before its models were loaded")
        _LOG.error("%s, with pages %s; it is started again", said, sorted(self._in_model))
        self._deaths += 1
        if self._deaths >= MOST_FAILURES and not self._last:
            raise TransientError(f"{said}, {self._deaths} times in a row — see the run log, and how the node is")
        if groups:
            suspect = [self._in_model.pop(number) for number in groups.pop(0).pages]
            if len(suspect) == 1:
                self._give_up(suspect[0], f"The page was not read: {said}.")
            else:
                self._alone.extend(suspect)
        self._restart(groups)

    def _restart(self, groups: t.Sequence[Group]) -> None:
        self._ready.extendleft(
            self._in_model.pop(number) for group in reversed(groups) for number in reversed(group.pages)
        )
        self._model.end()
        self._model.start()

    def _give_up(self, image: Downloaded, reason: str) -> None:
        self._discard(image)
        self._fail(image.page, "model", reason)

    def _discard(self, image: Downloaded) -> None:
        """The image is not needed any more. In a pod it lies in memory."""
        image.path.unlink(missing_ok=True)
        self.size -= image.size
