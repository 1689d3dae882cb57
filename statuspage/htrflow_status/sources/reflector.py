"""Keeps one kind of object of one namespace up to date: a list, and then a watch from where the list ended.

The rules are those of "Efficient detection of changes" in the Kubernetes documentation of API concepts: go on at the
last resource version that was seen, take bookmarks, and list anew when the server says 410.
"""

from __future__ import annotations

import dataclasses
import datetime
import random
import threading
import time
import typing as t

from htrflow_status.model import Reason, Trouble
from htrflow_status.sources import fields
from htrflow_status.sources.connection import ApiError, Connection, Stream, UnreachableError
from htrflow_status.sources.fields import Object
from htrflow_status.sources.intake import Kind

_PAGE = 500
_GONE = 410


@dataclasses.dataclass(frozen=True, slots=True)
class Pauses:
    """Seconds before what failed is tried again: the first time, at most, and where it is not allowed.

    ``watch`` are the least and the most after which the server is to end a watch: not all of them at once.
    """

    first: float = 0.5
    most: float = 30.0
    refused: float = 60.0
    watch: tuple[int, int] = (240, 360)


PAUSES = Pauses()


class Sink(t.Protocol):
    """Who takes objects."""

    def put(self, kind: Kind, thing: Object) -> None: ...

    def drop(self, kind: Kind, thing: Object) -> None: ...

    def replace(self, kind: Kind, things: t.Iterable[Object]) -> None: ...


class _GoneError(Exception):
    """What came after the resource version is not known any more."""


class Reflector:
    """A thread with one list and its watch."""

    def __init__(
        self,
        connection: Connection,
        kind: Kind,
        path: str,
        sink: Sink,
        told: t.Callable[[], None],
        *,
        selector: str = "",
        namespace: str = "",
        pauses: Pauses = PAUSES,
    ) -> None:
        """``told`` is called when :attr:`trouble` or :attr:`synced` is another one."""
        self.kind, self.namespace = kind, namespace
        #: Whether there was a whole list.
        self.synced = False
        #: What keeps it from going on.
        self.trouble: Trouble | None = None
        #: Lists that were made; for tests and metrics.
        self.lists = 0
        self._connection, self._path, self._sink, self._told = connection, path, sink, told
        self._query = {"labelSelector": selector} if selector else {}
        self._pauses, self._version, self._stream = pauses, "", t.cast("Stream | None", None)
        self._failed_before = False
        self._stopped, self._lock = threading.Event(), threading.Lock()
        self._thread = threading.Thread(target=self._run, name=f"watch {namespace}/{kind}", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """Asks the thread to end."""
        with self._lock:
            self._stopped.set()
            if self._stream:
                self._stream.close()

    def join(self, seconds: float) -> None:
        self._thread.join(seconds)

    def _run(self) -> None:
        pause = self._pauses.first
        while not self._stopped.is_set():
            began, wait = time.monotonic(), pause
            try:
                if not self._version:
                    self._list()
                for _ in self._watch():
                    pause = self._pauses.first
                if time.monotonic() - began > self._pauses.first:
                    continue
            except _GoneError:
                self._version = ""
            except ApiError as error:
                wait = max(error.retry_after, self._refused(error) or pause)
            except UnreachableError as error:
                # A watch that breaks off is nothing; it is something when it cannot be begun again.
                if self._failed_before:
                    code = "server-slow" if error.slow else "server-unreachable"
                    self._note(Trouble("server", Reason(code, {"message": str(error)}, "platform"), _now()))
                self._failed_before = True
            pause = min(2 * pause, self._pauses.most)
            self._stopped.wait(wait * random.uniform(0.8, 1.2))  # noqa: S311

    def _refused(self, error: ApiError) -> float:
        """Notes what the server refuses, and gives the seconds to wait where it will not be otherwise soon."""
        if error.status == _GONE:
            self._version = ""
            return 0.0
        self._note(_trouble(error, self.kind, self.namespace))
        return self._pauses.refused if error.status in (403, 404) else 0.0

    def _list(self) -> None:
        self.lists += 1
        version = ""

        def things() -> t.Iterator[Object]:
            nonlocal version
            for page in self._connection.pages(self._path, _PAGE, **self._query):
                version = fields.text(page, "metadata", "resourceVersion")
                yield from fields.rows(page, "items")

        self._sink.replace(self.kind, things())
        self._version = version
        self._well()

    def _watch(self) -> t.Iterator[None]:
        seconds = random.randint(*self._pauses.watch)  # noqa: S311
        stream = self._connection.stream(
            self._path,
            resourceVersion=self._version,
            allowWatchBookmarks="true",
            timeoutSeconds=str(seconds),
            **self._query,
        )
        with self._lock:
            if self._stopped.is_set():
                stream.close()
                return
            self._stream = stream
        self._well()
        yield
        for event in stream:
            self._take(fields.text(event, "type"), fields.at(event, "object"))
            yield

    def _take(self, change: str, thing: t.Any) -> None:
        if change == "ERROR":
            if fields.number(thing, "code") == _GONE or fields.text(thing, "reason") in ("Expired", "Gone"):
                raise _GoneError
            raise UnreachableError(fields.text(thing, "message"), slow=False)
        if not isinstance(thing, dict):
            return
        if change in ("ADDED", "MODIFIED"):
            self._sink.put(self.kind, thing)
        elif change == "DELETED":
            self._sink.drop(self.kind, thing)
        # Only then: a change that was not taken comes again.
        self._version = fields.text(thing, "metadata", "resourceVersion") or self._version

    def _well(self) -> None:
        self._failed_before = False
        if self.trouble or not self.synced:
            self.trouble, self.synced = None, True
            self._told()

    def _note(self, trouble: Trouble) -> None:
        before = self.trouble
        if before and (before.what, before.reason.code) == (trouble.what, trouble.reason.code):
            return
        self.trouble = trouble
        self._told()


def _trouble(error: ApiError, kind: Kind, namespace: str) -> Trouble:
    what = f"{namespace}/{kind}" if namespace else kind
    facts: dict[str, str | int] = {"namespace": namespace, "kind": kind, "message": str(error)}
    code = {401: "not-logged-in", 403: "forbidden", 404: "kind-missing", 429: "server-busy"}.get(error.status)
    if code is None or code in ("not-logged-in", "server-busy"):
        return Trouble("server", Reason(code or "server-error", {**facts, "status": error.status}, "platform"), _now())
    return Trouble(what, Reason(code, facts, "platform"), _now())


def _now() -> datetime.datetime:
    return datetime.datetime.now(datetime.UTC)
