"""The real library with steps that fail on purpose, each on the pages that its settings name.

``Lines`` needs no model: it finds one region with three lines on each page, and their text.
"""

from __future__ import annotations

import os
import threading
import time
import typing as t

from htrflow.pipeline import steps as library
from htrflow.results import RecognizedText, Result, Segment

from htrflow_batch.htrflow_engine import HtrflowEngine, create
from tests.wrapper.engines.broken_texts import LINES

__all__ = ["HtrflowEngine", "create"]


class Lines(library.PipelineStep):  # type: ignore[misc]
    """Finds a region, three lines in it, and their text."""

    def run(self, collection: t.Any) -> t.Any:
        boxes = [(10, 10 + 50 * line, 150, 50 + 50 * line) for line in range(3)]
        collection.update([Result(segments=[Segment((5, 5, 190, 200))]) for _ in collection.pages])
        collection.update([Result(segments=[Segment(box) for box in boxes]) for _ in collection.pages])
        leaves = len(list(collection.active_leaves()))
        collection.update([Result(text=RecognizedText([LINES[leaf % 3]], [0.9])) for leaf in range(leaves)])
        return collection


class OnPages(library.PipelineStep):  # type: ignore[misc]
    """A step that does something to some pages."""

    def __init__(self, pages: list[int]) -> None:
        self._pages = pages

    def run(self, collection: t.Any) -> t.Any:
        for page in collection.pages:
            if int(page.label.removeprefix("page_")) in self._pages:
                collection = self.spoil(page, collection)
        return collection

    def spoil(self, page: t.Any, collection: t.Any) -> t.Any:
        raise NotImplementedError


class Hang(OnPages):
    def spoil(self, page: t.Any, collection: t.Any) -> t.Any:
        time.sleep(3600)


class Raise(OnPages):
    def spoil(self, page: t.Any, collection: t.Any) -> t.Any:
        raise RuntimeError("CUDA error: device-side assert triggered")


class Exit(OnPages):
    """Takes the process with it, as the kernel does when memory runs out."""

    def spoil(self, page: t.Any, collection: t.Any) -> t.Any:
        os.kill(os.getpid(), 9)


class EndThread(OnPages):
    """Ends the thread that it runs in."""

    def spoil(self, page: t.Any, collection: t.Any) -> t.Any:
        raise SystemExit


class WaitForDeadThread(OnPages):
    """Waits for a worker of its own, which has died."""

    def spoil(self, page: t.Any, collection: t.Any) -> t.Any:
        done = threading.Event()
        worker = threading.Thread(target=_die, daemon=True)
        worker.start()
        done.wait()


class Nothing(OnPages):
    def spoil(self, page: t.Any, collection: t.Any) -> t.Any:
        return None


class TextOnPage(OnPages):
    def spoil(self, page: t.Any, collection: t.Any) -> t.Any:
        page.children = []
        page.add_data(text_result=RecognizedText(["Anno"], [0.9]))
        return collection


class Characters(OnPages):
    """A text that no XML can hold as it is."""

    def spoil(self, page: t.Any, collection: t.Any) -> t.Any:
        line = page.children[0].children[1]
        line.add_data(text_result=RecognizedText(["h\x00öl\x1bls \ud800laga & <ting>"], [0.9]))
        return collection


class Markup(OnPages):
    """A label that breaks the XML that it is written into."""

    def spoil(self, page: t.Any, collection: t.Any) -> t.Any:
        page.children[0]._label = '"><'
        collection.relabel()
        return collection


class EmptyLine(OnPages):
    def spoil(self, page: t.Any, collection: t.Any) -> t.Any:
        page.children[0].children[1].add_data(text_result=RecognizedText([""], [0.9]))
        return collection


def _die() -> None:
    # Without the traceback that a thread prints.
    raise SystemExit


_STEPS = [Lines, Hang, Raise, Exit, EndThread, WaitForDeadThread, Nothing, TextOnPage, Characters, Markup, EmptyLine]
library.STEPS.update({step.__name__.lower(): step for step in _STEPS})
