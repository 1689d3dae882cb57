"""How far campaigns are: their Jobs' status, and what their volumes' pods say in the store."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import typing as t

from htrflow_batch.errors import AttemptError
from htrflow_batch.keys import Keys
from htrflow_batch.store import Store
from htrflow_campaigns import names
from htrflow_campaigns.local import quota, repo
from htrflow_campaigns.local.job import Job


@dataclasses.dataclass(frozen=True, slots=True)
class Volume:
    """One volume of a campaign. ``state`` is waiting, running, done or failed. Pages are None where nobody knows."""

    id: str
    state: str
    done: int = 0
    failed: int = 0
    total: int | None = None
    error: str = ""
    folder: str = ""


@dataclasses.dataclass(frozen=True, slots=True)
class Campaign:
    """A campaign's Job with its volumes. ``state`` is in words; ``note`` says more where there is more to say."""

    name: str
    state: str
    note: str
    volumes: tuple[Volume, ...]

    @property
    def pages(self) -> tuple[int, int, int]:
        """Done, failed, and known of at all."""
        return (
            sum(volume.done for volume in self.volumes),
            sum(volume.failed for volume in self.volumes),
            sum(volume.total or 0 for volume in self.volumes),
        )

    @property
    def ended(self) -> int:
        """How many volumes are done or failed."""
        return sum(volume.state in ("done", "failed") for volume in self.volumes)


class Reader:
    """Reads the overview. What no pod changes is read once: a campaign may have thousands of volumes that wait."""

    def __init__(self, store: Store, prefix: str) -> None:
        self._store, self._prefix = store, prefix
        self._known: dict[tuple[str, int], Volume] = {}

    def campaign(
        self, job: Job, lines: t.Sequence[str], *, slots: int, paused: bool, words: t.Mapping[int, str]
    ) -> Campaign:
        """A campaign by its Job and the lines of its ``volumes.txt``. ``words`` are the last words of failed pods."""
        pipeline = job.object["metadata"]["labels"][names.PIPELINE_LABEL]
        completed, failed = job.completed, job.failed
        volumes = []
        for index, line in enumerate(lines):
            state = "done" if index in completed else "failed" if index in failed else "waiting"
            if index in job.active:
                state = "running"
            volumes.append(self._volume(job, pipeline, index, line.partition("\t")[0], state, words.get(index, "")))
        state, note = _state(job, volumes, slots, paused)
        return Campaign(job.name, state, note, tuple(volumes))

    def _volume(self, job: Job, pipeline: str, index: int, name: str, state: str, error: str) -> Volume:
        place = (job.object["metadata"]["uid"], index)
        known = self._known.get(place)
        if known and known.state == state:
            return known
        try:
            keys = Keys(self._prefix, pipeline, name)
        except AttemptError as refused:
            return Volume(name, state, error=str(refused))
        document = self._document(keys.manifest if state == "done" else keys.progress)
        counts = document.get("counts", {})
        volume = Volume(
            name,
            state,
            done=int(counts.get("done", 0)),
            failed=int(counts.get("failed", 0)),
            total=counts.get("total"),
            error=error if state == "failed" else "",
            folder=keys.folder,
        )
        if state in ("waiting", "failed") or (document and state == "done"):
            self._known[place] = volume
        else:
            self._known.pop(place, None)
        return volume

    def _document(self, key: str) -> dict[str, t.Any]:
        with contextlib.suppress(AttemptError, ValueError):
            found = self._store.get(key)
            document = json.loads(found.content) if found else None
            if isinstance(document, dict):
                return document
        return {}


def campaigns(jobs: t.Iterable[Job]) -> list[Job]:
    """The Jobs of campaigns, by name."""
    return sorted((job for job in jobs if not repo.is_warmup(job.object)), key=lambda job: job.name)


def _state(job: Job, volumes: t.Sequence[Volume], slots: int, paused: bool) -> tuple[str, str]:
    if job.condition("Complete"):
        return ("partially succeeded" if any(volume.failed for volume in volumes) else "succeeded"), ""
    if failed := job.condition("Failed"):
        some = job.completed
        return ("partially failed" if some else "failed"), "" if some else str(failed["message"])
    if paused:
        return "paused", "suspend: true in its file"
    if job.suspended:
        need = quota.need(job)
        if need > slots:
            return "queued", f"asks for {need} slots and there are {slots} — lower its window, or use --slots {need}"
        return "queued", "waits for its turn"
    return "running", ""


def sentence(message: str) -> str:
    """What a pod said at its end: the sentence in the wrapper's JSON, or the last line of anything else."""
    with contextlib.suppress(ValueError, TypeError, KeyError):
        return str(json.loads(message)["error"])
    lines = message.strip().splitlines()
    return lines[-1] if lines else ""
