"""The process with the models, as the wrapper sees it: started, given groups of pages, watched, and ended."""

from __future__ import annotations

import collections
import contextlib
import dataclasses
import logging
import os
import pathlib
import queue
import re
import signal
import subprocess
import sys
import threading
import time
import typing as t

from htrflow_batch import messages

_LOG = logging.getLogger(__name__)
_LINES = logging.getLogger("htrflow")
_LEVEL = re.compile("(INFO|WARNING|ERROR) ")
#: Groups that the process has at once: one in work, one whose images it decodes.
MOST_GROUPS = 2


@dataclasses.dataclass(frozen=True, slots=True)
class Said:
    """A message of the process of this ``generation``, or None when the process is gone."""

    generation: int
    message: messages.Message | None


@dataclasses.dataclass(slots=True)
class Group:
    """Pages that the process has: what it has said nothing of yet."""

    number: int
    pages: dict[int, pathlib.Path]
    size: int


class Model:
    """One process at a time. Everything but what its two readers put into ``events`` happens in the caller's thread.

    ``page_seconds`` is what a page may take, and ``load_seconds`` what loading may take, before the process is held to
    be stuck.
    """

    def __init__(
        self,
        engine: str,
        pipeline: bytes,
        workdir: pathlib.Path,
        events: queue.SimpleQueue[t.Any],
        *,
        page_seconds: float,
        load_seconds: float,
        variables: t.Mapping[str, str] | None = None,
    ) -> None:
        self._load = messages.Load(engine, pipeline.decode("utf-8", "replace"))
        self._workdir = workdir
        self._events = events
        self._environment = {**os.environ, **(variables or {})}
        self._page_seconds = page_seconds
        self._load_seconds = load_seconds
        self._process: subprocess.Popen[bytes] | None = None
        self._asked: messages.Pipe | None = None
        self._numbers = 0
        self._since = 0.0
        self.generation = 0
        self.loaded = False
        self.groups: collections.deque[Group] = collections.deque()

    @property
    def running(self) -> bool:
        return self._process is not None

    @property
    def free(self) -> bool:
        """Whether it takes another group."""
        return self.loaded and len(self.groups) < MOST_GROUPS

    def start(self) -> None:
        """Starts the process, which loads the models at once."""
        assert self._process is None
        self.generation += 1
        their_end, asked = os.pipe()
        answers, their_answers = os.pipe()
        command = [sys.executable, "-m", "htrflow_batch.model_process", str(their_end), str(their_answers)]
        self._process = subprocess.Popen(
            command,
            cwd=self._workdir,
            env=self._environment,
            pass_fds=(their_end, their_answers),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        os.close(their_end)
        os.close(their_answers)
        self._asked = messages.Pipe(asked)
        for reader, source in ((self._listen, messages.Pipe(answers)), (_log_lines, self._process.stdout)):
            arguments = (source, self.generation) if reader == self._listen else (source,)
            threading.Thread(target=reader, args=arguments, daemon=True).start()
        self._since = time.monotonic()
        self._tell(self._load)

    def give(self, pages: t.Mapping[int, pathlib.Path]) -> None:
        """Hands a group of pages over."""
        self._numbers += 1
        if not self.groups:
            self._since = time.monotonic()
        self.groups.append(Group(self._numbers, dict(pages), len(pages)))
        self._tell(messages.Group(self._numbers, [(number, str(path)) for number, path in pages.items()]))

    def note(self, message: messages.Message) -> None:
        """Takes what the process said into account."""
        match message:
            case messages.Loaded():
                self.loaded = True
            case messages.Page(number=number) | messages.Failed(number=number):
                for group in self.groups:
                    group.pages.pop(number, None)
            case messages.Started():
                self._since = time.monotonic()
            case messages.Done(group=number) if self.groups and self.groups[0].number == number:
                self.groups.popleft()
                self._since = time.monotonic()

    def overdue(self) -> str | None:
        """What the process should have done by now, in words, or None."""
        if self._process is None:
            return None
        spent = time.monotonic() - self._since
        if not self.loaded:
            return f"the models did not load in {self._load_seconds:g} s" if spent > self._load_seconds else None
        if self.groups and spent > self._page_seconds * self.groups[0].size:
            return f"the model did not finish in {self._page_seconds:g} s"
        return None

    def end(self, *, gone: bool = False) -> str:
        """Ends the process and whatever it started. Says how it had ended by itself, if ``gone`` says that it had."""
        process, self._process = self._process, None
        self.loaded = False
        self.groups.clear()
        if self._asked is not None:
            self._asked.close()
            self._asked = None
        if process is None:
            return ""
        # Its pipe closes a moment before it has ended.
        code = _wait(process, 5.0) if gone else None
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        return _how(code) if code is not None else ""

    def _tell(self, message: messages.Message) -> None:
        try:
            assert self._asked is not None
            self._asked.send(message)
        except OSError:
            # It is gone, and the reader of its answers says so.
            _LOG.debug("the process with the models does not listen")

    def _listen(self, answers: messages.Pipe, generation: int) -> None:
        while (message := answers.receive()) is not None:
            self._events.put(Said(generation, message))
        answers.close()
        self._events.put(Said(generation, None))


def _log_lines(output: t.IO[bytes]) -> None:
    """Passes on what the process says, at the level that it says it at."""
    with output:
        for line in output:
            if text := line.decode("utf-8", "replace").rstrip():
                found = _LEVEL.match(text)
                level = logging.getLevelNamesMapping()[found[1]] if found else logging.INFO
                _LINES.log(level, "%s", text[found.end() if found else 0 :][:2000])


def _wait(process: subprocess.Popen[bytes], seconds: float) -> int | None:
    try:
        return process.wait(seconds)
    except subprocess.TimeoutExpired:
        return None


def _how(code: int) -> str:
    if code >= 0:
        return f"it ended with exit code {code}"
    name = signal.Signals(-code).name if -code in set(signal.Signals) else str(-code)
    return f"it was ended by {name}" + (", as when memory runs out" if name == "SIGKILL" else "")
