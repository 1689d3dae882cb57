"""Adds the last words of failed volumes to the records of their campaigns: Kubernetes deletes pods with their Job.

It is all that the site ever writes. It makes no record and removes nothing, changes the one key ``failedVolumes`` of
records about the Job that is there, and sends the ``resourceVersion`` that it read, since ``apply`` writes records too.
"""

from __future__ import annotations

import json
import logging
import threading
import typing as t
import urllib.parse

from htrflow_status.model import Attempt
from htrflow_status.sources import fields, objects, records
from htrflow_status.sources.connection import ApiError, Connection, UnreachableError
from htrflow_status.sources.objects import Facts

_LOG = logging.getLogger(__name__)
#: Seconds between two looks.
_PAUSE = 15.0
#: Of a record, so that its ConfigMap stays below the 1 MiB that Kubernetes takes.
_MOST_BYTES = 768 * 1024
#: ``message`` in schemas/record.schema.json.
_MOST_CHARACTERS = 4096
_CONFLICT = 409


class RecordWriter:
    """Writes what ``facts`` know, from :meth:`start` to :meth:`close`."""

    def __init__(self, facts: t.Callable[[], t.Sequence[Facts]], connection: Connection, pause: float = _PAUSE) -> None:
        self._facts, self._connection, self._pause = facts, connection, pause
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, name="records", daemon=True)
        self._refused: set[str] = set()

    def start(self) -> None:
        self._thread.start()

    def close(self) -> None:
        """Ends the thread."""
        self._stopped.set()
        self._thread.join(5)

    def _run(self) -> None:
        while not self._stopped.wait(self._pause):
            for facts in self._facts():
                if words := missing(facts):
                    self._add(facts, words)
                if self._stopped.is_set():
                    return

    def _add(self, facts: Facts, words: t.Mapping[int, Attempt]) -> None:
        name = records.config_map_of_job(facts.name)
        path = f"/api/v1/namespaces/{urllib.parse.quote(facts.namespace)}/configmaps/{urllib.parse.quote(name)}"
        try:
            found = self._connection.get(path)
            text = extended(fields.text(found, "data", records.KEY), facts, words)
            if text is None:
                return
            version = fields.text(found, "metadata", "resourceVersion")
            self._connection.patch(path, {"metadata": {"resourceVersion": version}, "data": {records.KEY: text}})
            self._refused.discard(path)
        except ApiError as error:
            # Somebody wrote meanwhile: the next look reads that.
            if error.status != _CONFLICT and path not in self._refused:
                self._refused.add(path)
                _LOG.warning("the record %s/%s cannot be written: %s", facts.namespace, name, error)
        except UnreachableError as error:
            _LOG.warning("the record %s/%s cannot be written: %s", facts.namespace, name, error)


def missing(facts: Facts) -> dict[int, Attempt]:
    """The last attempts of failed volumes whose record does not have them."""
    job, record = facts.job, facts.record
    if job is None or record is None or record.uid != job.uid:
        return {}
    found = {}
    for index in job.failed.all():
        if index in facts.pods and index not in record.words:
            own = [one for one in objects.attempts(facts, index) if one.state in ("failed", "evicted")]
            if own and own[-1].message:
                found[index] = own[-1]
    return found


def extended(text: str, facts: Facts, words: t.Mapping[int, Attempt]) -> str | None:
    """A record's text with these words, or None if it is of another Job, cannot be read, or has no room for more."""
    try:
        record = json.loads(text)
    except (ValueError, RecursionError):
        return None
    if not isinstance(record, dict) or facts.job is None or record.get("uid") != facts.job.uid:
        return None
    known = record.get("failedVolumes")
    volumes = dict(known) if isinstance(known, dict) else {}
    size = before = len(text.encode())
    for index, attempt in words.items():
        entry = _entry(attempt)
        size += len(json.dumps({str(index): entry}, ensure_ascii=False).encode())
        if size > _MOST_BYTES:
            break
        volumes.setdefault(str(index), entry)
    made = json.dumps({**record, "failedVolumes": volumes}, ensure_ascii=False)
    return made if size > before and volumes != known else None


def _entry(attempt: Attempt) -> dict[str, t.Any]:
    found = {
        "exitCode": attempt.exit_code,
        "stage": attempt.stage,
        "reason": attempt.reason,
        "message": attempt.message[:_MOST_CHARACTERS],
        "finished": attempt.finished.strftime("%Y-%m-%dT%H:%M:%SZ") if attempt.finished else None,
    }
    return {name: value for name, value in found.items() if value not in (None, "")}
