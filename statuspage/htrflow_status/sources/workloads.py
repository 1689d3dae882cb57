"""What Kueue says of a Job in its Workload: why it waits.

The words are those of Kueue 0.19, ``apis/kueue/v1beta2/workload_types.go`` for reasons and
``pkg/scheduler/flavorassigner`` and ``pkg/controller/core/workload_controller.go`` for messages. A message that is
worded in another way still becomes a reason, with the message as a fact.
"""

from __future__ import annotations

import dataclasses
import re
import typing as t

from htrflow_status.model import Moment, Reason
from htrflow_status.sources import fields
from htrflow_status.sources.fields import Object

_UNUSED = re.compile(r"insufficient unused quota for (\S+) in flavor (\S+), (\S+) more needed")
_NEVER = re.compile(
    r"insufficient quota for (\S+) in flavor (\S+), previously considered podsets requests \((\S+)\)"
    r" \+ current podset request \((\S+)\) > maximum capacity \((\S+)\)"
)
_UNCOVERED = re.compile(r"resource (\S+) unavailable in ClusterQueue")
_QUEUE = re.compile(r"(LocalQueue|ClusterQueue) (\S*) ?(doesn't exist|is inactive|is stopped)")
#: Who stopped a Job, where its Workload was evicted: a person who paused it, or Kueue by a rule.
_PAUSED = "Deactivated"
_OTHERS = {
    "WaitingForPreemptedWorkloads": "preempting",
    "WaitingForPodsReady": "others-starting",
    "PendingEvaluation": "evaluating",
    "Pending": "evaluating",
    "AdmissionGated": "held",
    "OnHold": "held",
    "TopologyPlacementFailed": "no-flavor",
    "NoMatchingFlavor": "no-flavor",
}


@dataclasses.dataclass(frozen=True, slots=True)
class Workload:
    """The Workload of a Job. ``paused`` says that someone set it inactive; ``admitted`` that the Job may run.

    ``pending`` says that it stands in the queue, so that it has a place there.
    """

    namespace: str
    uid: str
    job: str
    job_uid: str
    created: Moment | None
    paused: bool
    admitted: bool
    pending: bool
    over: bool
    reasons: tuple[Reason, ...]


def read(workload: Object) -> Workload:
    """Reads a Workload, whatever is in it."""
    owner = fields.owner(workload, "Job")
    evicted, finished = fields.condition(workload, "Evicted"), fields.condition(workload, "Finished")
    reserved = fields.is_true(fields.condition(workload, "QuotaReserved"))
    admitted = fields.is_true(fields.condition(workload, "Admitted"))
    inactive = fields.at(workload, "spec", "active") is False
    why = fields.text(evicted, "reason") if fields.is_true(evicted) else ""
    by_rule = why.startswith(_PAUSED) and why != _PAUSED
    over = fields.is_true(finished)
    reasons: list[Reason] = []
    if inactive and by_rule:
        facts = {"why": why.removeprefix("DeactivatedDueTo"), "message": fields.text(evicted, "message")}
        reasons.append(Reason("deactivated", facts, "platform"))
    elif inactive:
        reasons.append(Reason("paused", {}, "requester"))
    elif over:
        if fields.text(finished, "reason") in ("FailedToStart", "OutOfSync"):
            facts = {"why": fields.text(finished, "reason"), "message": fields.text(finished, "message")}
            reasons.append(Reason("cannot-start", facts, "platform"))
    else:
        if why:
            reasons.append(Reason("evicted", {"why": why, "message": fields.text(evicted, "message")}))
        if not reserved:
            reasons += _unreserved(workload)
        elif not admitted:
            condition = fields.condition(workload, "Admitted")
            reasons.append(Reason("checks", {"message": fields.text(condition, "message")}, "platform"))
    return Workload(
        namespace=fields.text(workload, "metadata", "namespace"),
        uid=fields.text(workload, "metadata", "uid"),
        job=fields.text(owner, "name"),
        job_uid=fields.text(owner, "uid"),
        created=fields.moment(workload, "metadata", "creationTimestamp"),
        paused=inactive and not by_rule,
        admitted=admitted,
        pending=not (inactive or over or reserved),
        over=over,
        reasons=tuple(reasons),
    )


def _unreserved(workload: Object) -> list[Reason]:
    condition = fields.condition(workload, "QuotaReserved")
    reason, message = fields.text(condition, "reason"), fields.text(condition, "message")
    if queue := _QUEUE.search(message):
        kind = "queue" if queue[1] == "LocalQueue" else "cluster-queue"
        name = queue[2] or fields.text(workload, "spec", "queueName")
        what = "stopped" if queue[3].startswith("is") else "missing"
        return [Reason(f"{kind}-{what}", {"queue": name}, "platform")]
    if found := [*_quota(message)]:
        return found
    if not message:
        return [Reason("evaluating")]
    code = _OTHERS.get(reason, "inadmissible")
    owner: t.Literal["platform", "nobody"] = "platform" if code in ("no-flavor", "held", "inadmissible") else "nobody"
    return [Reason(code, {"message": message} if code != "evaluating" else {}, owner)]


def _quota(message: str) -> t.Iterator[Reason]:
    """Which resources are short: of each flavor that was tried, one reason a resource."""
    for resource, flavor, before, asked, most in _NEVER.findall(message):
        total = asked if before in ("0", "") else f"{before} + {asked}"
        yield Reason("never-fits", {"resource": resource, "flavor": flavor, "asked": total, "most": most}, "requester")
    for resource, flavor, missing in _UNUSED.findall(message):
        yield Reason("quota", {"resource": resource, "flavor": flavor, "missing": missing})
    for resource in dict.fromkeys(_UNCOVERED.findall(message)):
        yield Reason("resource-not-in-queue", {"resource": resource}, "platform")
