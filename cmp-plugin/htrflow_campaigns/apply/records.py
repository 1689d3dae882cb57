"""A campaign's record: what stays of a Job that is gone, in the ConfigMap ``campaign-<job>-status``.

It has no label ``managed-by``, so no prune removes it. Its form is ``schemas/record.schema.json``. It has two writers,
this one and the status site: each changes what it knows, keeps the rest, and sends the ``resourceVersion`` that it
read.
"""

from __future__ import annotations

import json
import typing as t

from htrflow_campaigns import names
from htrflow_campaigns.apply.cluster import CONFIG_MAP, Cluster, RefusedError
from htrflow_campaigns.objects.pod import Object

KEY = "record.json"
VERSION = 1
_LABELS = (names.CAMPAIGN_LABEL, names.PIPELINE_LABEL, names.PART_LABEL)
_CONFLICT = 409


class UnknownFormError(Exception):
    """What stands in place of a record is none that this version can read. The message is one clause."""


def name(job: str) -> str:
    """The name of the record of a Job."""
    return f"{names.campaign_config_map(job)}-status"


def read(config_map: Object) -> Object:
    """What a record says. Raises :class:`UnknownFormError`."""
    try:
        found = json.loads((config_map.get("data") or {})[KEY])
    except (KeyError, ValueError, RecursionError):
        raise UnknownFormError(f"its {KEY} is missing or no JSON") from None
    if not isinstance(found, dict) or found.get("version") != VERSION:
        raise UnknownFormError(f"its {KEY} is of another version than {VERSION}")
    return found


def ending(job: Object) -> tuple[str, str]:
    """The condition that ended a Job, ``Complete`` or ``Failed``, and since when; nothing while it has not ended."""
    status = job.get("status") or {}
    for row in status.get("conditions") or []:
        if row["type"] in ("Complete", "Failed") and row["status"] == "True":
            return row["type"], status.get("completionTime") or row.get("lastTransitionTime") or ""
    return "", ""


def of_job(job: Object, known: Object | None) -> Object:
    """The record of a Job. What another writer added to ``known`` stays if that is about the same Job."""
    metadata, spec, status = job["metadata"], job["spec"], job.get("status") or {}
    labels = metadata.get("labels") or {}
    container = spec["template"]["spec"]["containers"][0]
    phase, finished = ending(job)
    facts = {
        "version": VERSION,
        "job": metadata["name"],
        "uid": metadata["uid"],
        "phase": phase,
        "volumes": spec.get("completions", 1),
        "completedIndexes": status.get("completedIndexes", ""),
        "failedIndexes": status.get("failedIndexes", ""),
        "created": metadata["creationTimestamp"],
        "started": status.get("startTime"),
        "finished": finished,
        "window": spec.get("parallelism", 1),
        "priority": labels.get(names.PRIORITY_LABEL, ""),
        "image": container["image"],
        "results": _results(container, labels.get(names.PIPELINE_LABEL, "")),
    }
    times = ("started", "finished")
    same = known if known and known.get("uid") == metadata["uid"] else {}
    kept = {key: value for key, value in same.items() if key not in times}
    return {**kept, **{key: value for key, value in facts.items() if key not in times or value}}


def _results(container: Object, pipeline: str) -> str:
    """Where browsers find the results of the pipeline, and nothing if the Job was not told."""
    # A dollar sign is written twice in the value of a variable.
    values = {row["name"]: row.get("value", "").replace("$$", "$") for row in container.get("env") or []}
    if not (site := values.get("RESULTS_URL")):
        return ""
    return f"{site}/{values.get('S3_PREFIX', '')}{pipeline}"


def write(cluster: Cluster, job: Object, found: Object | None) -> bool:
    """Brings the record of a Job up to date; ``found`` is its ConfigMap as last read. Says whether it changed.

    Raises :class:`UnknownFormError`, and what :class:`Cluster` does.
    """
    own = name(job["metadata"]["name"])
    for _ in range(3):
        known = read(found) if found else None
        record = of_job(job, known)
        if record == known:
            return False
        try:
            _send(cluster, own, job, found, record)
            return True
        except RefusedError as error:
            if error.status != _CONFLICT:
                raise
        # The site wrote meanwhile.
        found = cluster.get(CONFIG_MAP, own)
    raise RefusedError(_CONFLICT, f"{own} changes all the time")


def _send(cluster: Cluster, own: str, job: Object, found: Object | None, record: Object) -> None:
    labels = {key: value for key, value in (job["metadata"].get("labels") or {}).items() if key in _LABELS}
    metadata: Object = {"labels": labels}
    data = {KEY: json.dumps(record, ensure_ascii=False)}
    if found:
        version = {"resourceVersion": t.cast(str, found["metadata"]["resourceVersion"])}
        cluster.patch(CONFIG_MAP, own, {"metadata": {**metadata, **version}, "data": data})
    else:
        metadata |= {"name": own, "namespace": cluster.namespace}
        cluster.create(CONFIG_MAP, {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data})
