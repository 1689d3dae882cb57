"""Reads the manifests of new volumes, politely, and counts their pages."""

from __future__ import annotations

import collections
import concurrent.futures
import threading
import time
import typing as t

import requests

from htrflow_batch import addresses, errors, fetch, hosts, iiif
from htrflow_campaigns.document import Document
from htrflow_campaigns.limits import MIB
from htrflow_campaigns.model import Campaign
from htrflow_campaigns.plan import public_only, rules
from htrflow_campaigns.problems import Position, Problem, Words

#: Manifests that are read at most; of more, some of each campaign.
MOST = 500
#: The largest manifest, whatever the repo says.
MOST_BYTES = 64 * MIB
_THREADS, _CONNECTIONS = 8, 2
_CONNECT, _SILENCE, _WHOLE, _PATIENCE = 5.0, 10.0, 30.0, 5.0
#: Failures in a row after which a server is left alone.
_FAILURES = 3
_SENTENCE = 500
#: How often it is looked how far things are, in seconds.
_LOOK = 0.2


class Volume(t.NamedTuple):
    """A new volume with a manifest, and where it stands in its campaign's file."""

    id: str
    manifest: str
    position: Position


class Counted(t.NamedTuple):
    """The pages of manifests by their address, what is wrong with others, and why some were not asked for."""

    pages: dict[str, int]
    problems: list[Problem]
    notes: list[str]


def volumes_of(campaign: Campaign, document: Document) -> list[Volume]:
    """The volumes of a campaign that have a manifest."""
    items = document.root["volumes"]
    return [
        Volume(volume.id, volume.manifest, document.at(_path(items[index], index)))
        for index, volume in enumerate(campaign.volumes)
        if volume.manifest is not None
    ]


def _path(item: object, index: int) -> tuple[str | int, ...]:
    return ("volumes", index, "manifest") if isinstance(item, dict) else ("volumes", index)


def chosen(campaigns: t.Sequence[t.Sequence[Volume]], most: int = MOST) -> tuple[list[Volume], int]:
    """At most so many volumes, spread evenly over campaigns and within each, and how many others there are."""
    rows = [collections.deque(_spread(volumes, most)) for volumes in campaigns if volumes]
    found: list[Volume] = []
    while rows and len(found) < most:
        for row in rows[: most - len(found)]:
            found.append(row.popleft())
        rows = [row for row in rows if row]
    return found, sum(map(len, campaigns)) - len(found)


def _spread(volumes: t.Sequence[Volume], most: int) -> list[Volume]:
    if len(volumes) <= most:
        return [*volumes]
    return [volumes[index * len(volumes) // most] for index in range(most)]


class Reader:
    """Asks for manifests until ``seconds`` are over. ``private`` lets it connect to addresses that are not public."""

    def __init__(self, seconds: float, *, private: bool, limit_bytes: int) -> None:
        self._end = time.monotonic() + seconds
        self._seconds, self._limit = seconds, limit_bytes
        self._fetcher = fetch.Fetcher(
            None,
            limits=hosts.Hosts(_CONNECTIONS, patience=_PATIENCE),
            connect_seconds=_CONNECT,
            silence_seconds=_SILENCE,
            whole_seconds=_WHOLE,
            adapter=None if private else public_only.Adapter(pool_connections=32, pool_maxsize=32),
        )
        self._lock = threading.Lock()
        self._failures: collections.Counter[str] = collections.Counter()
        self._answers: dict[str, int | Exception] = {}

    def count(self, volumes: t.Sequence[Volume], progress: t.Callable[[int, int], None] | None = None) -> Counted:
        """The pages of the volumes. Each address is asked for once, and a server for two at a time."""
        by_host: dict[str, collections.deque[str]] = {}
        for manifest in dict.fromkeys(volume.manifest for volume in volumes):
            by_host.setdefault(addresses.host(manifest), collections.deque()).append(manifest)
        total = sum(map(len, by_host.values()))
        pool = concurrent.futures.ThreadPoolExecutor(_THREADS, "manifest")
        try:
            workers = {
                pool.submit(self._work, host, waiting)
                for host, waiting in by_host.items()
                for _ in range(min(_CONNECTIONS, len(waiting)))
            }
            while workers and (left := self._end - time.monotonic()) > 0:
                done, workers = concurrent.futures.wait(workers, min(left, _LOOK))
                for worker in done:
                    worker.result()
                if progress:
                    progress(len(self._answers), total)
        finally:
            # What still runs ends within half a second.
            self._fetcher.close()
            pool.shutdown(wait=True, cancel_futures=True)
        return self._counted(volumes, by_host)

    def _work(self, host: str, waiting: collections.deque[str]) -> None:
        """Asks one server for what is waiting, one after the other."""
        while True:
            with self._lock:
                if not waiting or self._failures[host] >= _FAILURES or time.monotonic() >= self._end:
                    return
                address = waiting.popleft()
            answer: int | Exception
            try:
                found = self._fetcher.fetch(address, limit_bytes=self._limit, kind="json")
                answer = len(iiif.read(found.content, found.url).pages)
            except hosts.Closing:
                return
            except (errors.PermanentError, errors.PageError, errors.LaterError) as error:
                answer = error
            with self._lock:
                self._answers[address] = answer
                self._failures[host] = self._failures[host] + 1 if isinstance(answer, errors.LaterError) else 0

    def _counted(self, volumes: t.Sequence[Volume], by_host: t.Mapping[str, t.Sequence[str]]) -> Counted:
        counted = Counted({}, [], [])
        for volume in volumes:
            answer = self._answers.get(volume.manifest)
            if isinstance(answer, int):
                counted.pages[volume.manifest] = answer
            elif answer is not None:
                counted.problems.append(_problem(volume, answer))
        alone = sorted(host for host, waiting in by_host.items() if self._failures[host] >= _FAILURES and waiting)
        late = len({volume.manifest for volume in volumes}) - len(self._answers)
        late -= sum(len(by_host[host]) for host in alone)
        if late:
            counted.notes.append(
                f"the {self._seconds:g} seconds for asking servers were over before {late} manifests came"
            )
        if alone:
            counted.notes.append(f"failed {_FAILURES} times in a row and left alone: {', '.join(alone)}")
        return counted


def _problem(volume: Volume, error: Exception) -> Problem:
    said, _, instead = str(error)[:_SENTENCE].rstrip(".").rpartition(" — ")
    if not said:
        said, instead = instead, "open the address in a browser to see what is there"
    values = {"id": volume.id, "reason": Words(_line(said)), "instead": Words(_line(instead))}
    if isinstance(error, public_only.PrivateError):
        return rules.PRIVATE.at(volume.position, **values)
    if isinstance(error, errors.LaterError):
        return rules.UNREACHABLE.at(volume.position, **values)
    if isinstance(error, fetch.Refused) and error.status in (requests.codes.unauthorized, requests.codes.forbidden):
        return rules.FORBIDDEN.at(volume.position, **values)
    return rules.NO_MANIFEST.at(volume.position, **values)


def _line(text: str) -> str:
    """One printable line of what a server had a part in."""
    return "".join(sign if sign.isprintable() else " " for sign in text)
