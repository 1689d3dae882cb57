"""Campaigns from the data folder of ``htrflow-campaigns local``.

The folder has a file of JSON an object, in the form in which an API server gives it (see
:mod:`htrflow_campaigns.local.data`), and each is written whole or not at all. It is looked at once a second; a file is
read when its time, size or inode is another one.
"""

from __future__ import annotations

import dataclasses
import datetime
import json
import os
import pathlib
import threading
import typing as t

from htrflow_status.model import Reason, Snapshot, Trouble
from htrflow_status.sources import fields
from htrflow_status.sources.cache import Cache
from htrflow_status.sources.fields import Object
from htrflow_status.sources.intake import Intake, Kind
from htrflow_status.sources.objects import Facts

#: Time in nanoseconds, size and inode of a file.
_Mark = tuple[int, int, int]


@dataclasses.dataclass(frozen=True, slots=True)
class _Kept:
    """A file that was read, and what it held: kind and object of each, cut down to what names it."""

    mark: _Mark
    things: tuple[tuple[Kind, Object], ...]


class FolderSource:
    """A :class:`htrflow_status.model.Source`. Its thread runs from :meth:`start` to :meth:`close`.

    ``slots`` are those of the runner, None where they are unknown: how many pods of campaigns it runs at once.
    """

    def __init__(self, folder: pathlib.Path, slots: int | None = None, seconds: float = 1.0) -> None:
        self._folder, self._slots, self._seconds = folder, slots, seconds
        self._cache = Cache()
        self._intakes: dict[str, Intake] = {}
        self._kept: dict[pathlib.Path, _Kept] = {}
        self._troubles: dict[str, Trouble] = {}
        self._paused: dict[pathlib.Path, bool] = {}
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, name="watch the data folder", daemon=True)

    def start(self) -> None:
        """Reads the folder, and goes on doing so in a thread."""
        self.look()
        self._thread.start()

    def close(self) -> None:
        """Ends the thread."""
        self._stopped.set()
        self._thread.join(5)

    @property
    def ready(self) -> bool:
        return True

    def snapshot(self) -> Snapshot:
        return self._cache.snapshot()

    def troubles(self) -> t.Sequence[Trouble]:
        return tuple(self._troubles.values())

    async def changed(self, version: str, seconds: float) -> str:
        return await self._cache.changed(version, seconds)

    def look(self) -> None:
        """Takes up what has changed in the folder."""
        troubles: dict[str, Reason] = {}
        try:
            found = dict(self._files())
        except OSError as error:
            found = None
            facts = {"folder": str(self._folder), "message": error.strerror or ""}
            troubles["folder"] = Reason("folder-unreadable", facts, "requester")
        if found is not None:
            with self._cache.at_once():
                for path in self._kept.keys() - found.keys():
                    self._forget(path)
                for path, mark in found.items():
                    kept = self._kept.get(path)
                    if (kept is None or kept.mark != mark) and not self._take(path, mark):
                        what = str(path.relative_to(self._folder))
                        troubles[what] = Reason("file-unreadable", {"file": what}, "platform")
                self._place()
        self._note(troubles)

    def _run(self) -> None:
        while not self._stopped.wait(self._seconds):
            self.look()

    def _files(self) -> t.Iterator[tuple[pathlib.Path, _Mark]]:
        """The files, ConfigMaps first: what a Job is made of is there before it."""
        self._folder.stat()
        for name in ("config-maps", "jobs"):
            yield from _listed(self._folder / name, "")
        yield from _listed(self._folder / "pods", "pod.json")

    def _take(self, path: pathlib.Path, mark: _Mark) -> bool:
        """Reads a file; what was known stays where it cannot be read."""
        try:
            found = json.loads(path.read_text(encoding="utf-8"))
        except FileNotFoundError:
            return True
        except (OSError, ValueError, RecursionError):
            return False
        things = tuple(_objects(path.parent.name, found))
        if not things:
            return False
        for kind, thing in things:
            self._intake(thing).put(kind, thing)
        self._paused[path] = fields.at(found, "paused") is True
        self._kept[path] = _Kept(mark, tuple((kind, _named(thing)) for kind, thing in things))
        return True

    def _forget(self, path: pathlib.Path) -> None:
        self._paused.pop(path, None)
        gone = self._kept.pop(path)
        # The ConfigMap of a pipeline is in the file of each Job that mounts it.
        left = {_name(kind, thing) for kept in self._kept.values() for kind, thing in kept.things}
        for kind, thing in gone.things:
            if _name(kind, thing) not in left:
                self._intake(thing).drop(kind, thing)

    def _intake(self, thing: Object) -> Intake:
        namespace = fields.text(thing, "metadata", "namespace")
        return self._intakes.setdefault(namespace, Intake(self._cache, namespace))

    def _place(self) -> None:
        """Says of each Job that stands in line how many slots it needs, and how many are taken."""
        everything = self._cache.facts()
        used = sum(_need(facts) for facts in everything if facts.job and not facts.job.suspended and facts.job.queue)
        for facts in everything:
            paused = self._paused.get(self._folder / "jobs" / f"{facts.name}.json", False)
            self._cache.set_around(facts.namespace, facts.name, slots=self._slots_of(facts, used), paused=paused)

    def _slots_of(self, facts: Facts, used: int) -> Reason | None:
        if facts.job is None or not facts.job.suspended:
            return None
        needs = _need(facts)
        if self._slots is None:
            return Reason("slots", {"needs": needs, "used": used})
        if needs > self._slots:
            return Reason("slots-never", {"needs": needs, "slots": self._slots}, "requester")
        return Reason("slots", {"needs": needs, "used": used, "slots": self._slots})

    def _note(self, troubles: t.Mapping[str, Reason]) -> None:
        now = datetime.datetime.now(datetime.UTC)
        before = self._troubles
        after = {
            what: before[what] if what in before and before[what].reason == reason else Trouble(what, reason, now)
            for what, reason in troubles.items()
        }
        if after != before:
            self._troubles = after
            self._cache.touch()


def _need(facts: Facts) -> int:
    """As :func:`htrflow_campaigns.local.quota.need`: one slot for each pod that a Job may have at once."""
    job = facts.job
    if job is None or job.ended:
        return 0
    return max(0, min(job.window, job.completions - job.done.count - job.failed.count))


def _listed(folder: pathlib.Path, inside: str) -> t.Iterator[tuple[pathlib.Path, _Mark]]:
    """The JSON files of a folder, or a file of this name in each of its folders."""
    try:
        entries = [entry.path for entry in os.scandir(folder) if inside or entry.name.endswith(".json")]
    except FileNotFoundError:
        return
    for entry in sorted(entries):
        path = pathlib.Path(entry, inside) if inside else pathlib.Path(entry)
        try:
            stat = path.stat()
        except (FileNotFoundError, NotADirectoryError):
            continue
        if not path.name.startswith("."):
            yield path, (stat.st_mtime_ns, stat.st_size, stat.st_ino)


def _objects(folder: str, found: t.Any) -> t.Iterator[tuple[Kind, Object]]:
    if folder == "jobs":
        things: list[tuple[Kind, t.Any]] = [("jobs", fields.at(found, "job"))]
    elif folder == "config-maps":
        things = [("configmaps", row) for row in fields.rows(found, "items")]
    else:
        things = [("pods", found)]
    for kind, thing in things:
        if fields.text(thing, "metadata", "name"):
            yield kind, thing


def _name(kind: Kind, thing: Object) -> tuple[str, str, str]:
    return kind, fields.text(thing, "metadata", "namespace"), fields.text(thing, "metadata", "name")


def _named(thing: Object) -> Object:
    """What is needed of an object to forget it."""
    kept = {key: fields.at(thing, "metadata", key) for key in ("name", "namespace", "uid", "labels", "annotations")}
    return {"metadata": kept}
