"""The codes of all reasons that the sources give, with the facts that each has: what a catalogue of texts must know."""

from __future__ import annotations

import typing as t

#: Why a campaign does not run, or not wholly. A fact after ``?`` may be missing.
WAITING: t.Final[t.Mapping[str, tuple[str, ...]]] = {
    "paused": (),
    "deactivated": ("why", "message"),
    "quota": ("resource", "flavor", "missing"),
    "never-fits": ("resource", "flavor", "asked", "most"),
    "resource-not-in-queue": ("resource",),
    "no-flavor": ("message",),
    "queue-missing": ("queue",),
    "queue-stopped": ("queue",),
    "cluster-queue-missing": ("queue",),
    "cluster-queue-stopped": ("queue",),
    "no-queue": (),
    "class-missing": ("class",),
    "not-taken-up": ("queue", "class"),
    "evaluating": (),
    "preempting": ("message",),
    "others-starting": ("message",),
    "held": ("message",),
    "inadmissible": ("message",),
    "checks": ("message",),
    "cannot-start": ("why", "message"),
    "evicted": ("why", "message"),
    "ahead": ("campaigns",),
    "ahead-unknown": ("why", "message"),
    "slots": ("needs", "used", "?slots"),
    "slots-never": ("needs", "slots"),
    "pods-missing": (),
    "pods-starting": ("pods",),
    "pods-models": ("pods",),
    "pods-unschedulable": ("pods", "message"),
    "pods-image": ("pods", "reason", "image", "message"),
    "pods-config": ("pods", "reason", "message"),
    "job-failed": ("why", "message"),
}
#: Why the models of a pipeline are not ready. ``why`` of ``warmup-waiting`` is a code of pods, with its facts.
WARMUP: t.Final[t.Mapping[str, tuple[str, ...]]] = {
    "warmup-missing": ("job",),
    "warmup-running": ("job",),
    "warmup-again": ("job", "message"),
    "warmup-failed": ("job", "message"),
    "warmup-waiting": ("job", "why", "?message", "?reason", "?image"),
}
#: What of a campaign cannot be read.
PROBLEMS: t.Final[t.Mapping[str, tuple[str, ...]]] = {
    "job-unreadable": ("field",),
    "indexes-unreadable": ("field",),
    "label-unreadable": ("label", "value"),
    "volumes-missing": ("config_map",),
    "volumes-differ": ("listed", "asked"),
    "pipeline-missing": ("config_map",),
    "pipeline-unreadable": ("config_map",),
    "pod-index-unreadable": ("pod",),
    "record-unreadable": ("config_map",),
}
#: What of a source cannot be read.
TROUBLES: t.Final[t.Mapping[str, tuple[str, ...]]] = {
    "forbidden": ("namespace", "kind", "message"),
    "kind-missing": ("namespace", "kind", "message"),
    "not-logged-in": ("namespace", "kind", "message", "status"),
    "server-busy": ("namespace", "kind", "message", "status"),
    "server-error": ("namespace", "kind", "message", "status"),
    "server-slow": ("message",),
    "server-unreachable": ("message",),
    "folder-unreadable": ("folder", "message"),
    "file-unreadable": ("file",),
}
