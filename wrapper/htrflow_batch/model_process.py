"""The process that holds the models: ``python -m htrflow_batch.model_process``.

A model that hangs or takes its process with it costs the page in work and no more, and the memory of its weights is
given back when the process is ended. It is asked over a pipe and answers over another; the messages are JSON, their
shapes are those of :mod:`htrflow_batch.messages`. Three threads pass groups of pages on, so that images are decoded and
results written while the model works. It ends at once when the pipe that it reads from is closed: nobody is left who
wants an answer.
"""

from __future__ import annotations

import contextlib
import functools
import logging
import os
import pathlib
import queue
import signal
import sys
import threading
import time
import typing as t

from htrflow_batch import engine, messages
from htrflow_batch.engine import EngineError, Paths, Read, Unread

_LOG = logging.getLogger(__name__)
#: Groups whose images may be decoded before the model is free for them.
_AHEAD = 1
#: The exit code when a thread ended that should not.
_THREAD_ENDED = 70


class _Group(t.NamedTuple):
    number: int
    paths: Paths
    #: What the engine made of the images, or why it could not.
    prepared: t.Any


class _Server:
    def __init__(self, asked: messages.Pipe, answers: messages.Pipe) -> None:
        self._asked = asked
        self._answers = answers
        self._engine: engine.Engine
        self._prepared: queue.Queue[_Group] = queue.Queue(_AHEAD)
        self._read: queue.Queue[t.Callable[[], None]] = queue.Queue(2)

    def serve(self) -> None:
        first = self._asked.receive()
        if not isinstance(first, messages.Load):
            return
        try:
            started = time.monotonic()
            self._engine = engine.create(first.engine, first.pipeline.encode())
            models = self._engine.load()
        except EngineError as error:
            _LOG.error("%s", error, exc_info=error.__cause__)
            self._answers.send(messages.Refused(str(error), error.permanent))
            return
        took = time.monotonic() - started
        self._answers.send(messages.Loaded(self._engine.name, [(model.name, model.revision) for model in models], took))
        for step in (self._infer_all, self._export_all):
            threading.Thread(target=_or_die, args=(step,), name=step.__name__.strip("_"), daemon=True).start()
        self._prepare_all()

    def _prepare_all(self) -> None:
        while (group := self._asked.receive()) is not None:
            if isinstance(group, messages.Group):
                paths = {number: pathlib.Path(path) for number, path in group.pages}
                self._prepared.put(_Group(group.number, paths, self._prepare(paths)))

    def _prepare(self, paths: Paths) -> t.Any:
        try:
            return self._engine.prepare(paths)
        except Exception as error:
            return error

    def _infer_all(self) -> None:
        idle = time.monotonic()
        while True:
            group = self._prepared.get()
            started = time.monotonic()
            self._answers.send(messages.Started(group.number, started - idle))
            results = self._infer(group)
            idle = time.monotonic()
            self._read.put(functools.partial(self._export, group, results, idle - started))

    def _infer(self, group: _Group) -> list[t.Any | Unread]:
        """What the engine made of the group: of all of it, or of page after page when that fails."""
        try:
            if isinstance(group.prepared, Exception):
                raise group.prepared
            return [self._engine.infer(group.prepared)]
        except Exception as error:
            if len(group.paths) == 1:
                _LOG.exception("page %s was not read", *group.paths)
                return [Unread(number, _said(error)) for number in group.paths]
            _LOG.warning("a group of %s pages failed and is read page by page: %s", len(group.paths), _said(error))
        finally:
            group = group._replace(prepared=None)
        results: list[t.Any | Unread] = []
        for number, path in group.paths.items():
            alone = {number: path}
            results += self._infer(_Group(group.number, alone, self._prepare(alone)))
        return results

    def _export(self, group: _Group, results: list[t.Any | Unread], seconds: float) -> None:
        left = set(group.paths)
        for result in results:
            for page in [result] if isinstance(result, Unread) else self._written(result):
                if page.number not in left:
                    continue
                left.discard(page.number)
                if isinstance(page, Unread):
                    self._answers.send(messages.Failed(page.number, page.reason))
                else:
                    each = seconds / len(group.paths)
                    self._answers.send(messages.Page(page.number, page.alto, page.page, list(page.lines), each))
        for number in sorted(left):
            self._answers.send(messages.Failed(number, "The model returned nothing for this page."))
        self._answers.send(messages.Done(group.number, seconds))

    def _written(self, result: t.Any) -> list[Read | Unread]:
        try:
            return self._engine.export(result)
        except Exception as error:
            _LOG.exception("a group of pages cannot be written")
            reason = f"The result cannot be written: {_said(error)}"
            return [Unread(number, reason) for number in result] if isinstance(result, dict) else []

    def _export_all(self) -> None:
        while True:
            self._read.get()()


def _or_die(work: t.Callable[[], None]) -> None:
    """A thread that ends takes the process with it: nobody would notice a thread."""
    try:
        work()
    except BaseException:
        _LOG.exception("the thread %s ended", threading.current_thread().name)
        logging.shutdown()
        os._exit(_THREAD_ENDED)


def _said(error: BaseException) -> str:
    text = " ".join(str(error).split()) or "no reason given"
    return f"The model raised {type(error).__name__}: {text[:300]}"


def main() -> None:
    """Serves over the two descriptors that the arguments name."""
    # The parent decides when this process ends, and a terminal's Ctrl-C goes to both.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    logging.basicConfig(stream=sys.stderr, level=logging.INFO, format="%(levelname)s %(name)s: %(message)s")
    asked, answers = (messages.Pipe(int(number)) for number in sys.argv[1:3])
    with contextlib.suppress(BrokenPipeError):
        _Server(asked, answers).serve()
    logging.shutdown()
    # Without waiting for a model that works or hangs.
    os._exit(0)


if __name__ == "__main__":
    main()
