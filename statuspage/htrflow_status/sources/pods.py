"""What a pod says: the attempt at a volume that it is, and why it does not run yet."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import re
import sys
import typing as t

from htrflow_batch import redact
from htrflow_campaigns import names
from htrflow_status.model import Attempt, Moment, Reason
from htrflow_status.sources import fields
from htrflow_status.sources.fields import Object

JOB_LABEL = "batch.kubernetes.io/job-name"
INDEX_LABEL = "batch.kubernetes.io/job-completion-index"
#: The index of a pod that has none that can be read.
NO_INDEX = -1

# Kubernetes cuts last words after 4096 bytes, which leaves JSON without its end.
_ERROR = re.compile(r'"error":\s*"((?:[^"\\]|\\.)*)')
_STAGE = re.compile(r'"stage":\s*"([a-z]+)"')
_MOST_CHARACTERS = 2000
_IMAGE = ("ErrImagePull", "ImagePullBackOff", "InvalidImageName", "ErrImageNeverPull", "RegistryUnavailable")
_CONFIG = ("CreateContainerConfigError", "CreateContainerError", "RunContainerError", "StartError")
_EVICTED = ("Evicted", "Preempting", "Preempted", "NodeLost", "NodeShutdown", "Shutdown", "Terminated")
_LOOKING = "warmup-wait"


@dataclasses.dataclass(frozen=True, slots=True)
class Pod:
    """A pod of a Job. ``waiting`` says why it does not run, if it is to."""

    namespace: str
    uid: str
    job: str
    #: Empty where the pod does not say so.
    job_uid: str
    index: int
    created: Moment | None
    attempt: Attempt
    waiting: Reason | None = None

    @property
    def live(self) -> bool:
        return self.attempt.state in ("waiting", "running")


def is_warmup(pod: Object) -> bool:
    return not fields.text(pod, "metadata", "labels", names.CAMPAIGN_LABEL)


def read(pod: Object) -> Pod:
    """Reads a pod, whatever is in it."""
    job = fields.owner(pod, "Job") or {}
    index = fields.digits(fields.text(pod, "metadata", "annotations", INDEX_LABEL))
    if index is None:
        index = fields.digits(fields.text(pod, "metadata", "labels", INDEX_LABEL))
    name = fields.text(pod, "metadata", "labels", JOB_LABEL) or fields.text(job, "name")
    attempt = _attempt(pod)
    return Pod(
        namespace=sys.intern(fields.text(pod, "metadata", "namespace")),
        uid=fields.text(pod, "metadata", "uid") or fields.text(pod, "metadata", "name"),
        job=sys.intern(name),
        job_uid=sys.intern(fields.text(job, "uid")),
        index=NO_INDEX if index is None else index,
        created=fields.moment(pod, "metadata", "creationTimestamp"),
        attempt=attempt,
        waiting=_waiting(pod) if attempt.state == "waiting" else None,
    )


def last_words(message: str) -> tuple[str, str]:
    """The stage and the sentence of a container's last words: the wrapper's JSON, also cut off, or anything else."""
    with contextlib.suppress(ValueError):
        found = json.loads(message)
        if isinstance(found, dict) and isinstance(found.get("error"), str):
            return fields.text(found, "stage"), sentence(found["error"])
    if message.lstrip().startswith("{") and (cut := _ERROR.search(message)):
        stage = _STAGE.search(message)
        with contextlib.suppress(ValueError):
            return stage[1] if stage else "", sentence(json.loads(f'"{cut[1]}"') + "…")
    lines = message.strip().splitlines()
    return "", sentence(lines[-1]) if lines else ""


def _attempt(pod: Object) -> Attempt:
    statuses = fields.rows(pod, "status", "containerStatuses")
    init = fields.rows(pod, "status", "initContainerStatuses")
    ended = _ended(init) or _ended(statuses)
    main = fields.at(statuses[0], "state") if statuses else None
    code = fields.number(ended, "exitCode")
    if code is None:
        code = fields.number(main, "terminated", "exitCode")
    stage, message = last_words(fields.text(ended, "message"))
    state, reason = _state(pod, ended, main)
    message = message or sentence(fields.text(pod, "status", "message"))
    finished = fields.moment(ended, "finishedAt") or fields.moment(main, "terminated", "finishedAt")
    return Attempt(
        pod=fields.text(pod, "metadata", "name"),
        state=state,
        started=fields.moment(main, "running", "startedAt")
        or fields.moment(main, "terminated", "startedAt")
        or fields.moment(pod, "status", "startTime"),
        finished=finished if state not in ("waiting", "running") else None,
        exit_code=code,
        stage=sys.intern(stage),
        message=message,
        reason=sys.intern(reason),
        node=sys.intern(fields.text(pod, "spec", "nodeName")),
    )


def _ended(statuses: list[Object]) -> Object | None:
    """How the first container ended that did not end well."""
    found = (fields.at(row, "state", "terminated") for row in statuses)
    return next((row for row in found if isinstance(row, t.Mapping) and row.get("exitCode") != 0), None)


_State = t.Literal["waiting", "running", "succeeded", "failed", "evicted"]


def _state(pod: Object, ended: Object | None, main: t.Any) -> tuple[_State, str]:
    phase, reason = fields.text(pod, "status", "phase"), fields.text(pod, "status", "reason")
    disruption = fields.condition(pod, "DisruptionTarget")
    if phase == "Succeeded":
        return "succeeded", reason
    if phase == "Failed":
        if fields.is_true(disruption) or reason in _EVICTED:
            return "evicted", reason or fields.text(disruption, "reason")
        return "failed", reason or fields.text(ended, "reason")
    if phase == "Running" or isinstance(fields.at(main, "running"), t.Mapping):
        return "running", reason
    return "waiting", reason


def _waiting(pod: Object) -> Reason:
    scheduled = fields.condition(pod, "PodScheduled")
    if scheduled is not None and not fields.is_true(scheduled):
        message = sentence(fields.text(scheduled, "message"))
        return Reason("pods-unschedulable", {"message": message}, "platform")
    for row in (*fields.rows(pod, "status", "initContainerStatuses"), *fields.rows(pod, "status", "containerStatuses")):
        why = fields.text(row, "state", "waiting", "reason")
        message = sentence(fields.text(row, "state", "waiting", "message"))
        if why in _IMAGE:
            facts = {"reason": why, "image": fields.text(row, "image"), "message": message}
            return Reason("pods-image", facts, "platform")
        if why in _CONFIG:
            return Reason("pods-config", {"reason": why, "message": message}, "platform")
        if fields.text(row, "name") == _LOOKING and isinstance(fields.at(row, "state", "running"), t.Mapping):
            return Reason("pods-models")
    return Reason("pods-starting")


def sentence(text: str) -> str:
    """A message as people may see it: one line, without secrets, and of a length that fits."""
    shown = redact.url(" ".join(text.split()))
    return shown if len(shown) <= _MOST_CHARACTERS else f"{shown[:_MOST_CHARACTERS]}…"
