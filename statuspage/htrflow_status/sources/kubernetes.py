"""Campaigns from the Kubernetes API, of several namespaces, by list and watch."""

from __future__ import annotations

import dataclasses
import threading
import time
import typing as t
import urllib.parse

from htrflow_campaigns import names
from htrflow_status.model import Reason, Snapshot, Trouble
from htrflow_status.sources import fields
from htrflow_status.sources.cache import Cache
from htrflow_status.sources.connection import ApiError, Connection, UnreachableError
from htrflow_status.sources.intake import Intake, Kind
from htrflow_status.sources.objects import Facts
from htrflow_status.sources.reflector import PAUSES, Pauses, Reflector

#: Every object of ours has it, and so have records.
_SELECTOR = names.PIPELINE_LABEL
_PATHS: t.Mapping[Kind, tuple[str, str]] = {
    "jobs": ("/apis/batch/v1", _SELECTOR),
    "configmaps": ("/api/v1", _SELECTOR),
    "pods": ("/api/v1", _SELECTOR),
    "workloads": ("/apis/kueue.x-k8s.io/v1beta2", ""),
}
_CLASSES = "/apis/kueue.x-k8s.io/v1beta2/workloadpriorityclasses"
_PENDING = "/apis/visibility.kueue.x-k8s.io/v1beta2/namespaces/{}/localqueues/{}/pendingworkloads"
#: Kueue makes a Workload at once, or says nothing at all of why it does not.
_WORKLOAD_SECONDS = 15.0
_MOST_PENDING = "1000"


@dataclasses.dataclass(frozen=True, slots=True)
class Timing:
    """Seconds. ``places`` is between two looks at the places in the queues, which cannot be watched."""

    places: float = 15.0
    workload: float = _WORKLOAD_SECONDS
    pauses: Pauses = PAUSES


class KubernetesSource:
    """A :class:`htrflow_status.model.Source`. Its threads run from :meth:`start` to :meth:`close`."""

    def __init__(self, connection: Connection, namespaces: t.Sequence[str], timing: Timing | None = None) -> None:
        self._connection, self._timing, self._cache = connection, timing or Timing(), Cache()
        pauses = self._timing.pauses
        self._reflectors = []
        for namespace in dict.fromkeys(namespaces):
            intake, quoted = Intake(self._cache, namespace), urllib.parse.quote(namespace, safe="")
            for kind, (prefix, selector) in _PATHS.items():
                path = f"{prefix}/namespaces/{quoted}/{kind}"
                self._reflectors.append(
                    Reflector(
                        connection,
                        kind,
                        path,
                        intake,
                        self._cache.touch,
                        selector=selector,
                        namespace=namespace,
                        pauses=pauses,
                    )
                )
        # Of the whole cluster, so it may be forbidden: then a class that is not there can only be suspected.
        self._classes = Reflector(
            connection, "workloadpriorityclasses", _CLASSES, Intake(self._cache, ""), self._cache.touch, pauses=pauses
        )
        self._stopped = threading.Event()
        self._looking = threading.Thread(target=self._look, name="places in the queues", daemon=True)

    def start(self) -> None:
        for reflector in (*self._reflectors, self._classes):
            reflector.start()
        self._looking.start()

    def close(self) -> None:
        """Ends the threads."""
        self._stopped.set()
        for reflector in (*self._reflectors, self._classes):
            reflector.stop()
        for reflector in (*self._reflectors, self._classes):
            reflector.join(5)
        self._looking.join(5)
        self._connection.close()

    @property
    def ready(self) -> bool:
        """Whether everything was read once, or is known not to be readable."""
        return all(reflector.synced or reflector.trouble for reflector in self._reflectors)

    @property
    def lists(self) -> t.Mapping[str, int]:
        """Lists that were asked for since the start, by namespace and kind."""
        return {f"{one.namespace}/{one.kind}": one.lists for one in self._reflectors}

    def facts(self) -> list[Facts]:
        """What is known of every Job, for whoever writes records."""
        return self._cache.facts()

    def snapshot(self) -> Snapshot:
        return self._cache.snapshot()

    def troubles(self) -> t.Sequence[Trouble]:
        """One for each part that cannot be read, and a single one where it is the server."""
        found: dict[str, Trouble] = {}
        for reflector in self._reflectors:
            if trouble := reflector.trouble:
                known = found.setdefault(trouble.what, trouble)
                if trouble.since < known.since:
                    found[trouble.what] = trouble
        return tuple(found.values())

    async def changed(self, version: str, seconds: float) -> str:
        return await self._cache.changed(version, seconds)

    def _look(self) -> None:
        while not self._stopped.wait(self._timing.places if self.ready else min(1.0, self._timing.places)):
            waiting = [
                facts for facts in self._cache.facts() if facts.job and facts.job.suspended and not facts.job.ended
            ]
            with self._cache.at_once():
                for facts in waiting:
                    self._see_overdue(facts)
            queues: dict[tuple[str, str], list[Facts]] = {}
            for facts in waiting:
                if facts.job and facts.workload and facts.workload.pending:
                    queues.setdefault((facts.namespace, facts.job.queue), []).append(facts)
            for (namespace, queue), rows in queues.items():
                if self._stopped.is_set():
                    return
                self._place(namespace, queue, rows)

    def _see_overdue(self, facts: Facts) -> None:
        created = facts.job.created if facts.job else None
        age = time.time() - created.timestamp() if created else 0.0
        self._cache.set_around(
            facts.namespace, facts.name, overdue=facts.workload is None and age > self._timing.workload
        )

    def _place(self, namespace: str, queue: str, rows: t.Sequence[Facts]) -> None:
        places, unknown = self._pending(namespace, queue)
        with self._cache.at_once():
            for facts in rows:
                place = places.get(facts.name)
                reason = unknown if place is None else Reason("ahead", {"campaigns": place})
                self._cache.set_around(facts.namespace, facts.name, place=reason)

    def _pending(self, namespace: str, queue: str) -> tuple[dict[str, int], Reason | None]:
        """How many are ahead of each Job in a queue's cluster queue; or why that is not known."""
        path = _PENDING.format(urllib.parse.quote(namespace, safe=""), urllib.parse.quote(queue, safe=""))
        try:
            found = self._connection.get(path, limit=_MOST_PENDING)
        except ApiError as error:
            why = {401: "forbidden", 403: "forbidden", 404: "absent"}.get(error.status, "refused")
            return {}, Reason("ahead-unknown", {"why": why, "message": str(error)}, "platform")
        except UnreachableError as error:
            return {}, Reason("ahead-unknown", {"why": "unreachable", "message": str(error)}, "platform")
        places = {}
        for row in fields.rows(found, "items"):
            place = fields.number(row, "positionInClusterQueue")
            owners = fields.rows(row, "metadata", "ownerReferences")
            for owner in owners:
                if fields.text(owner, "kind") == "Job" and place is not None:
                    places[fields.text(owner, "name")] = place
        return places, None
