"""What is to be done, from what the repo asks for and what the cluster has. Nothing here asks or changes anything."""

from __future__ import annotations

import typing as t

import yaml

from htrflow_campaigns import names
from htrflow_campaigns.apply import live as lives
from htrflow_campaigns.apply import records
from htrflow_campaigns.apply.live import Live
from htrflow_campaigns.apply.wanted import Campaign, Part, Pipeline, Wanted
from htrflow_campaigns.objects.pod import Object

#: Volumes that a sentence names.
_NAMED = 3


class Verdict(t.NamedTuple):
    """What becomes of an object: it is sent, it is over and left alone, or it is not sent though the repo asks for it.

    ``sentence`` says why.
    """

    action: t.Literal["send", "over", "refuse"]
    sentence: str = ""


SEND = Verdict("send")


def stops(wanted: Wanted, live: Live) -> list[str]:
    """Why nothing at all may be sent, as sentences."""
    found = [sentence for pipeline in wanted.pipelines for sentence in _recipe(pipeline, live)]
    for campaign in wanted.campaigns:
        found += _volumes(campaign, live)
        for part in campaign.parts:
            job = live.jobs.get(part.name)
            if job and lives.is_ours(job):
                found += _job(part, campaign, job)
                found += _window(part, campaign, job, live)
    return list(dict.fromkeys(found))


def _recipe(pipeline: Pipeline, live: Live) -> t.Iterator[str]:
    name = names.pipeline_config_map(pipeline.id)
    known = live.config_maps.get(name)
    if known is None or not lives.is_ours(known):
        return
    size = [lives.annotation(one, names.SIZE_ANNOTATION) for one in (known, pipeline.config_map)]
    parts = []
    if _steps(known) != _steps(pipeline.config_map):
        parts.append("steps")
    if size[0] != size[1]:
        parts.append("size")
    users = [name_ for name_, job in live.jobs.items() if lives.mounts(job, name) and not lives.ended(job)]
    if parts and users:
        yield (
            f"the {' and '.join(parts)} of the pipeline {pipeline.id} changed, and {_list('Job', users)} not ended:"
            f" one id would stand for two recipes — undo the change in {pipeline.path}, and put the new recipe into a"
            " new file in pipelines/"
        )


def _steps(config_map: Object) -> t.Any:
    """The steps as they are meant: another version of this command may write the same ones in another way."""
    text = (config_map.get("data") or {}).get("pipeline.yaml", "")
    try:
        return yaml.load(text, getattr(yaml, "CSafeLoader", yaml.SafeLoader))  # noqa: S506
    except yaml.YAMLError:
        return text


def _volumes(campaign: Campaign, live: Live) -> t.Iterator[str]:
    wanted = {part.config_map["metadata"]["name"]: part for part in campaign.parts}
    fixed = "and a campaign's list is fixed when it starts"
    instead = f"undo the change in {campaign.path}, and put new volumes into a new file in campaigns/"
    for config_map in live.campaign_config_maps(campaign.name):
        part = wanted.get(config_map["metadata"]["name"])
        if part is None:
            yield f"the volumes of the campaign {campaign.name} are cut into other parts, {fixed} — {instead}"
        elif (config_map.get("data") or {}).get("volumes.txt") != part.config_map["data"]["volumes.txt"]:
            change = _change(lives.volumes(config_map), lives.volumes(part.config_map))
            yield f"the volumes of the campaign {campaign.name} have changed ({change}), {fixed} — {instead}"
        elif (before := lives.label(config_map, names.PIPELINE_LABEL)) != campaign.pipeline:
            yield _other_pipeline(campaign, before)


def _other_pipeline(campaign: Campaign, before: str) -> str:
    return (
        f"the campaign {campaign.name} started with the pipeline {before} and names {campaign.pipeline} — write"
        f" pipeline: {before} again in {campaign.path}, and run the volumes with the other pipeline in a new file in"
        " campaigns/"
    )


def _change(before: list[str], after: list[str]) -> str:
    added = [volume for volume in after if volume not in {*before}]
    removed = [volume for volume in before if volume not in {*after}]
    changes = [f"{word} {_some(ids)}" for word, ids in (("added", added), ("removed", removed)) if ids]
    return ", ".join(changes) or ("another order" if before != after else "another source")


def _job(part: Part, campaign: Campaign, job: Object) -> t.Iterator[str]:
    if (before := lives.label(job, names.PIPELINE_LABEL)) != campaign.pipeline:
        yield _other_pipeline(campaign, before)
    elif lives.image(job) != lives.image(part.job):
        yield (
            f"the image of the pipeline {campaign.pipeline} changed, and the Job {part.name} has the one before: one id"
            f" would stand for two recipes — undo the change in pipelines/, and put the new image into a new file there"
        )
    if job["spec"].get("completions") != part.job["spec"]["completions"]:
        yield (
            f"the campaign {campaign.name} has another number of volumes, and a campaign's list is fixed when it starts"
            f" — undo the change in {campaign.path}, and put new volumes into a new file in campaigns/"
        )


def _window(part: Part, campaign: Campaign, job: Object, live: Live) -> t.Iterator[str]:
    before, after = lives.pods(job), lives.pods(part.job)
    paused = part.suspend or lives.uid(job) in live.inactive
    if before != after and not paused and not lives.ended(job):
        yield (
            f"the window of the campaign {campaign.name} changes from {before} to {after}, and Kueue would stop every"
            f" pod of the Job {part.name} and queue it again — leave the window as it was, or pause the campaign first"
            " (suspend: true), apply, and change it then"
        )


def pipelines(wanted: Wanted, live: Live) -> dict[str, Verdict]:
    """The verdict on each pipeline, by its id."""
    found = {}
    for one in wanted.pipelines:
        foreign = _foreign(live.config_maps, one.config_map) or _foreign(live.jobs, one.warmup)
        found[one.id] = Verdict("refuse", foreign) if foreign else SEND
    return found


def parts(wanted: Wanted, live: Live) -> tuple[dict[str, Verdict], list[str]]:
    """The verdict on each part of a campaign, by the name of its Job, and what is to be said without refusing it."""
    found: dict[str, Verdict] = {}
    said: list[str] = []
    for part in wanted.parts:
        job, known = live.jobs.get(part.name), live.config_maps.get(part.config_map["metadata"]["name"])
        foreign = _foreign(live.config_maps, part.config_map) or _foreign(live.jobs, part.job)
        if foreign:
            found[part.name] = Verdict("refuse", foreign)
        elif job and lives.is_going(job):
            sentence = "it is being deleted — run apply again when it is gone"
            found[part.name] = Verdict("refuse", f"Job/{part.name}: {sentence}")
        elif job:
            found[part.name] = SEND
        else:
            found[part.name], notice = _without_job(part, known, live.config_maps.get(records.name(part.name)))
            said += notice
    return found, said


def _foreign(known: t.Mapping[str, Object], item: Object) -> str:
    name = item["metadata"]["name"]
    if name not in known or lives.is_ours(known[name]):
        return ""
    return (
        f"{item['kind']}/{name}: it is there without the label {names.MANAGED_BY_LABEL}: {names.MANAGED_BY}, so it is"
        " somebody else's and not written over — delete it if nobody needs it, or give the file in the repo another"
        " name"
    )


def _without_job(part: Part, known: Object | None, record: Object | None) -> tuple[Verdict, list[str]]:
    """A Job that is not there is new, or was deleted when it had ended, which its record says."""
    if record is None:
        return SEND, []
    name = record["metadata"]["name"]
    try:
        content = records.read(record)
    except records.UnknownFormError as error:
        sentence = f"whether it is over cannot be known, since of ConfigMap/{name} {error} — delete that to run it"
        return Verdict("refuse", f"Job/{part.name}: {sentence}"), []
    if content.get("phase") not in ("Complete", "Failed"):
        return SEND, []
    created = lives.annotation(known, names.JOB_UID_ANNOTATION) if known else ""
    if created != content.get("uid") or not created:
        about = "another Job than the one that was created" if created else "a Job that apply did not create"
        return SEND, [
            f"ConfigMap/{name} is about {about} for this campaign — it is not believed, and the campaign runs"
        ]
    when = f" at {content['finished']}" if content.get("finished") else ""
    return Verdict("over", f"it ended as {content['phase']}{when}, as ConfigMap/{name} says, and is left alone"), []


def held(
    wanted: Wanted, live: Live, verdicts: t.Mapping[str, Verdict], pipelines: t.Collection[str]
) -> dict[str, Verdict]:
    """The parts that wait for another campaign, which would write the same results, by the name of their Job.

    ``verdicts`` are those on the parts so far; of a pipeline that is not in ``pipelines`` none is sent.
    """
    running = _running(wanted, live)
    found: dict[str, Verdict] = {}
    for part in wanted.parts:
        if verdicts[part.name].action != "send" or part.name in live.jobs or part.pipeline not in pipelines:
            continue
        shared: dict[str, list[str]] = {}
        own = lives.volumes(part.config_map)
        for volume in own:
            for other in running.get((part.pipeline, volume), ()):
                if other != part.campaign:
                    shared.setdefault(other, []).append(volume)
        if shared:
            others = " and ".join(f"{other} ({_some(ids)})" for other, ids in shared.items())
            sentence = f"it waits, since {others} has not ended and writes the same results — run apply again then"
            found[part.name] = Verdict("refuse", f"Job/{part.name}: {sentence}")
        else:
            for volume in own:
                running.setdefault((part.pipeline, volume), []).append(part.campaign)
    return found


def _running(wanted: Wanted, live: Live) -> dict[tuple[str, str], list[str]]:
    """The campaigns of which a Job has not ended, by pipeline and volume."""
    found: dict[tuple[str, str], list[str]] = {}
    campaigns = {lives.label(job, names.CAMPAIGN_LABEL) for job in live.campaign_jobs() if not lives.ended(job)}
    for campaign in sorted(campaigns):
        for config_map in live.campaign_config_maps(campaign):
            for volume in lives.volumes(config_map):
                found.setdefault((lives.label(config_map, names.PIPELINE_LABEL), volume), []).append(campaign)
    return found


def warmup(live: Object | None, fits: bool) -> t.Literal["apply", "replace", "refuse"]:
    """What becomes of a warm-up; ``fits`` says whether the API server would take the change."""
    if live is None or (fits and lives.ended(live) != "Failed"):
        return "apply"
    return "replace" if lives.ended(live) else "refuse"


def adopted(job: Object, live: Object | None) -> Object:
    """A Job to send, with what Kueue added to the live one.

    When Kueue admits a Job it adds the tolerations of its flavor. The list is one value to the API server, and fixed
    while the Job runs; ``spec.suspend``, which is Kueue's as well, is never sent at all.

    With the uid it is refused when the live Job is gone meanwhile, and not created and run a second time.
    """
    if live is None:
        return job
    job = {**job, "metadata": {**job["metadata"], "uid": lives.uid(live)}}
    pod = job["spec"]["template"]["spec"]
    ours, theirs = pod.get("tolerations"), live["spec"]["template"]["spec"].get("tolerations") or []
    if not ours or not all(row in theirs for row in ours):
        return job
    template = {**job["spec"]["template"], "spec": {**pod, "tolerations": theirs}}
    return {**job, "spec": {**job["spec"], "template": template}}


def with_job(config_map: Object, uid: str) -> Object:
    """A campaign's ConfigMap that names the Job created of it."""
    metadata = config_map["metadata"]
    annotations = {**metadata.get("annotations", {}), **({names.JOB_UID_ANNOTATION: uid} if uid else {})}
    return {**config_map, "metadata": {**metadata, "annotations": annotations}}


def _some(ids: t.Sequence[str]) -> str:
    more = f" and {len(ids) - _NAMED} more" if len(ids) > _NAMED else ""
    return ", ".join(ids[:_NAMED]) + more


def _list(kind: str, found: t.Sequence[str]) -> str:
    several = len(found) > 1
    return f"the {kind}{'s' if several else ''} {_some(sorted(found))} {'have' if several else 'has'}"
