"""What a delivery and the cluster make of one object that is rendered otherwise than before.

Source: the table of deliveries in ``docs/rendered-objects.md``; for Argo CD, the ignored fields and *Pause, finish,
remove* in ``docs/argocd.md``; for ``apply``, :mod:`htrflow_campaigns.apply.decide`.
"""

from __future__ import annotations

import typing as t

from htrflow_campaigns import names
from htrflow_campaigns.model import Campaign
from htrflow_campaigns.objects.pod import Object

Action = t.Literal["create", "prune", "pause", "resume", "update", "replace", "refuse", "leave", "keep"]
Verdict = tuple[Action, str]

#: Fields of a campaign's Job that are fixed when it is created.
FIXED = ("template", "completions", "maxFailedIndexes", "backoffLimitPerIndex", "podFailurePolicy", "completionMode")

_HOOK = "argocd.argoproj.io/hook"
#: What becomes of objects in a namespace that converter.yaml no longer names.
LEFT_BEHIND: dict[str, Verdict] = {
    "argocd": ("prune", "it is created in the other namespace"),
    "apply": ("keep", "apply looks into no other namespace: it stays until somebody deletes it"),
}

_STOPS = "apply stops before it sends anything"
_AFTER_A_PRUNE = (
    "; while the Job of the old name has not ended, apply --prune only deletes that one and ends with exit code 3, and"
    " the next run creates this one"
)
_KEEP: Verdict = ("keep", "")


def judge(
    before: Object | None, after: Object | None, was: Campaign | None, is_: Campaign | None, delivery: str
) -> Verdict:
    """What becomes of an object, and why. The campaigns are those that it is rendered from, if it is one's."""
    if after is None:
        assert before is not None
        return "prune", _pruned(before, delivery)
    if before is None:
        return _created(after, was, is_, delivery)
    if after["kind"] == "ConfigMap":
        return _config_map(before, after, delivery) if before != after else _KEEP
    if not _is_campaigns(after):
        return ("replace", _replaced(delivery)) if before != after else _KEEP
    # With apply, a pause is not in the object.
    if suspended := _suspended(was, is_, delivery):
        return suspended
    if before == after:
        return _KEEP
    return _argocd_job(before, after) if delivery == "argocd" else _apply_job(before, after, is_)


def _is_campaigns(job: Object) -> bool:
    return bool(job["spec"].get("completionMode") == "Indexed")


def _pruned(before: Object, delivery: str) -> str:
    who = "" if delivery == "argocd" else "with apply --prune; "
    if before["kind"] == "Job" and _is_campaigns(before):
        return f"{who}its pods end; results in the bucket stay"
    return f"{who}its file is gone"


def _created(after: Object, was: Campaign | None, is_: Campaign | None, delivery: str) -> Verdict:
    if after["kind"] == "ConfigMap":
        return "create", ""
    if not _is_campaigns(after):
        return "create", "it downloads the pipeline's models into the cache"
    if delivery == "argocd" and _is_left_alone(after):
        return "leave", "finished: true — Argo CD does not create it"
    if is_ and is_.suspend:
        return "create", "paused from the start"
    if was is not None and is_ is not None:
        again = "it runs from its first volume, and skips every page that is already in the bucket"
        return "create", f"{again}{_AFTER_A_PRUNE if delivery == 'apply' else ''}"
    return "create", "Kueue starts it when its quota has room for the window"


def _config_map(before: Object, after: Object, delivery: str) -> Verdict:
    is_campaigns = names.CAMPAIGN_LABEL in after["metadata"]["labels"]
    sizes = [each["metadata"].get("annotations", {}).get(names.SIZE_ANNOTATION) for each in (before, after)]
    if delivery == "argocd" and before["data"] != after["data"]:
        return "refuse", "a ConfigMap of ours is immutable, so the API server refuses the change and the sync fails"
    if delivery == "apply" and is_campaigns and before["data"] != after["data"]:
        return "refuse", f"a campaign's list is fixed when it starts: {_STOPS}"
    if delivery == "apply" and (before["data"] != after["data"] or sizes[0] != sizes[1]):
        return "refuse", f"while a Job that uses the pipeline has not ended, {_STOPS}"
    return "update", "labels or annotations alone"


def _replaced(delivery: str) -> str:
    when = " once it has ended" if delivery == "apply" else ""
    return f"a Job's pods cannot be changed, so it is deleted and created{when}: the warm-up runs again"


def _suspended(was: Campaign | None, is_: Campaign | None, delivery: str) -> Verdict | None:
    """The verdict on a Job that is paused or resumed."""
    suspended = bool(was and was.suspend), bool(is_ and is_.suspend)
    if suspended == (False, True):
        how = "parallelism becomes 0" if delivery == "argocd" else "its Workload becomes inactive"
        return "pause", f"{how}: Kueue takes its pods away and gives the quota back; finished volumes stay finished"
    if suspended == (True, False):
        how = "parallelism is its window again" if delivery == "argocd" else "its Workload becomes active"
        return "resume", f"{how}: it is queued, and goes on where it left off"
    return None


def _argocd_job(before: Object, after: Object) -> Verdict:
    if _is_left_alone(after):
        return "keep", "finished: true — Argo CD no longer applies it, nor prunes or counts it"
    if _is_left_alone(before):
        return "update", "no longer finished: if it was deleted, it is created and goes through every volume again"
    if priority := _priority(before, after):
        return priority
    if before["spec"]["parallelism"] != after["spec"]["parallelism"]:
        if _has_other_pods(before, after):
            return "update", "another number of pods: Kueue stops all of its pods and queues it again"
        return "update", "it has fewer volumes than either window, so its pods stay as they are"
    if _unignored(before) == _unignored(after):
        return "keep", "what differs is fixed when a campaign's Job is created: it goes on as it is"
    return "update", "labels or annotations alone"


def _apply_job(before: Object, after: Object, campaign: Campaign | None) -> Verdict:
    was, is_ = before["spec"], after["spec"]
    image = [spec["template"]["spec"]["containers"][0]["image"] for spec in (was, is_)]
    if image[0] != image[1] or was["completions"] != is_["completions"] or _has_other_pipeline(before, after):
        return "refuse", f"its image, its pipeline and how many volumes it has are fixed: {_STOPS}"
    if _has_other_pods(before, after) and not (campaign and campaign.suspend):
        return "refuse", f"Kueue would stop all of its pods for another window: {_STOPS}, unless it has ended"
    if any(was.get(key) != is_.get(key) for key in FIXED):
        return "refuse", "a running Job's pods cannot be changed: apply ends with exit code 3, and it runs as it is"
    if before["metadata"]["labels"].get(names.QUEUE_LABEL) != after["metadata"]["labels"].get(names.QUEUE_LABEL):
        return "refuse", "the queue of a campaign that runs is fixed; one that waits takes it"
    if priority := _priority(before, after):
        return priority
    return "update", "nothing of its pods changes"


def _priority(before: Object, after: Object) -> Verdict | None:
    was, is_ = (each["metadata"]["labels"].get(names.PRIORITY_LABEL) for each in (before, after))
    if was == is_:
        return None
    if was and is_:
        other = before["spec"]["parallelism"] != after["spec"]["parallelism"] and _has_other_pods(before, after)
        more = ", and another number of pods: Kueue stops all of its pods and queues it again" if other else ""
        return "update", f"another place in the queue{more}"
    verb = "removed from" if was else "added to"
    return "refuse", f"a priority cannot be {verb} a campaign that runs; one that waits takes it"


def _has_other_pipeline(before: Object, after: Object) -> bool:
    was, is_ = (each["metadata"]["labels"].get(names.PIPELINE_LABEL) for each in (before, after))
    return bool(was != is_)


def _has_other_pods(before: Object, after: Object) -> bool:
    """Whether another number of pods runs at once, which is what Kueue counts. How many volumes there are is fixed."""
    volumes = before["spec"]["completions"]
    return bool(min(before["spec"]["parallelism"], volumes) != min(after["spec"]["parallelism"], volumes))


def _unignored(job: Object) -> Object:
    """A campaign's Job as Argo CD compares it."""
    metadata, spec = job["metadata"], job["spec"]
    labels = {key: value for key, value in metadata["labels"].items() if key != names.QUEUE_LABEL}
    spec = {key: value for key, value in spec.items() if key not in FIXED}
    return {**job, "metadata": {**metadata, "labels": labels}, "spec": spec}


def _is_left_alone(job: Object) -> bool:
    return bool(job["metadata"].get("annotations", {}).get(_HOOK) == "Skip")
