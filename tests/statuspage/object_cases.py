"""Cases of Kubernetes objects: files with short forms of objects, and what a source must make of them."""

from __future__ import annotations

import copy
import pathlib
import typing as t

import yaml

from htrflow_status.model import Campaign, Reason, Snapshot
from htrflow_status.sources.cache import Cache
from htrflow_status.sources.intake import Intake, Kind

Object = dict[str, t.Any]
NAMESPACE = "htr-batch"
FOLDER = pathlib.Path(__file__).parent / "objects"
CASES = sorted(FOLDER.glob("*.yaml"), key=lambda file: file.stem)

_BASE = FOLDER / "base"
KINDS: t.Mapping[str, Kind] = {
    "Job": "jobs",
    "Workload": "workloads",
    "Pod": "pods",
    "ConfigMap": "configmaps",
    "WorkloadPriorityClass": "workloadpriorityclasses",
}


def base(kind: str) -> Object:
    """A whole object of a kind, as an API server gives it."""
    return t.cast(Object, yaml.safe_load((_BASE / f"{kind.lower()}.yaml").read_text(encoding="utf-8")))


def filled(thing: Object) -> Object:
    """The object of a short form: that of the base, with the fields of the form in their place."""
    return t.cast(
        Object, _merged(base(thing["kind"]) if (_BASE / f"{thing['kind'].lower()}.yaml").exists() else {}, thing)
    )


def read(things: t.Iterable[Object], namespace: str = NAMESPACE) -> Cache:
    """A cache of these objects."""
    cache = Cache()
    intake = Intake(cache, namespace)
    for thing in things:
        intake.put(KINDS[thing["kind"]], thing)
    return cache


def shown(snapshot: Snapshot, campaign: Campaign) -> Object:
    """What a campaign is, in the form in which a case expects it."""
    counts = campaign.counts
    found: Object = {
        "state": campaign.state,
        "counts": f"{counts.waiting} {counts.running} {counts.done} {counts.failed}",
        "waiting": [reason(row) for row in campaign.waiting],
        "problems": [reason(row) for row in campaign.problems],
        "warmup": reason(campaign.pipeline.warmup) if campaign.pipeline.warmup else None,
        "volumes": {row.id: row.state for row in snapshot.volumes(campaign)},
        "models": [f"{model.name}@{model.revision}" for model in campaign.pipeline.models],
        "part": campaign.part,
        "removed": campaign.removed,
    }
    attempts: dict[int, list[Object]] = {}
    for index in range(counts.total):
        for row in snapshot.attempts(campaign, index):
            words = {"state": row.state, "code": row.exit_code, "stage": row.stage, "reason": row.reason}
            words |= {"message": row.message, "node": row.node}
            attempts.setdefault(index, []).append(
                {key: value for key, value in words.items() if value not in ("", None)}
            )
    found["attempts"] = attempts
    return found


def reason(row: Reason) -> str:
    """A reason on one line: its code, who can do something, and its facts."""
    facts = " ".join(f"{key}={value}" for key, value in sorted(row.facts.items()))
    return " ".join(part for part in (row.code, f"({row.owner})", facts) if part)


def _merged(below: t.Any, above: t.Any) -> t.Any:
    if not (isinstance(below, dict) and isinstance(above, dict)):
        return copy.deepcopy(above)
    both = {key: _merged(below[key], above[key]) if key in below else copy.deepcopy(above[key]) for key in above}
    return {**{key: value for key, value in below.items() if key not in above}, **both}
