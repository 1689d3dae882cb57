"""What a namespace has: read once, when the Lease is held, and then looked at as plain values."""

from __future__ import annotations

import dataclasses
import typing as t

from htrflow_campaigns import names
from htrflow_campaigns.apply import records
from htrflow_campaigns.apply.cluster import CONFIG_MAP, JOB, WORKLOAD, Cluster, Kind, RefusedError
from htrflow_campaigns.apply.wanted import Wanted
from htrflow_campaigns.objects.pod import Object

_MANAGED = f"{names.MANAGED_BY_LABEL}={names.MANAGED_BY}"
_JOB_UID = "kueue.x-k8s.io/job-uid"


class UnreadableError(Exception):
    """Something that has to be known may not be read. The message is a sentence for each."""


@dataclasses.dataclass(frozen=True, slots=True)
class Live:
    """Jobs and ConfigMaps by name.

    Of the ConfigMaps there are those that the repo names, those of campaigns that run, and records. ``inactive`` are
    the uids of Jobs whose Workload is inactive, which is how a campaign is paused.
    """

    jobs: t.Mapping[str, Object] = dataclasses.field(default_factory=dict)
    config_maps: t.Mapping[str, Object] = dataclasses.field(default_factory=dict)
    inactive: frozenset[str] = frozenset()

    def campaign_jobs(self) -> t.Iterator[Object]:
        """The Jobs of campaigns that are ours."""
        return (job for job in self.jobs.values() if is_ours(job) and label(job, names.CAMPAIGN_LABEL))

    def campaign_config_maps(self, campaign: str) -> t.Iterator[Object]:
        """The ConfigMaps with the volumes of a campaign, that are ours."""
        return (
            one for one in self.config_maps.values() if is_ours(one) and label(one, names.CAMPAIGN_LABEL) == campaign
        )


def read(cluster: Cluster, wanted: Wanted, keep: t.Callable[[], None]) -> Live:
    """Reads a namespace; ``keep`` is called again and again. Raises :class:`UnreadableError`."""
    try:
        jobs = {_name(job): job for job in cluster.list(JOB)}
    except RefusedError as error:
        raise UnreadableError(f"the Jobs cannot be read: {error}") from None
    try:
        known = {_name(item): item for item in cluster.list(CONFIG_MAP, metadata_only=True)}
    except RefusedError as error:
        raise UnreadableError(f"the ConfigMaps cannot be read: {error}") from None
    config_maps: dict[str, Object] = {}
    refused = []
    for name in sorted(_needed(wanted, jobs, known) & {*known}):
        keep()
        try:
            found = cluster.get(CONFIG_MAP, name)
        except RefusedError as error:
            refused.append(f"ConfigMap/{name} cannot be read: {error}")
            continue
        if found is not None:
            config_maps[name] = found
    if refused:
        raise UnreadableError("\n".join(refused))
    return Live(jobs, config_maps, _inactive(cluster))


def _needed(wanted: Wanted, jobs: t.Mapping[str, Object], known: t.Mapping[str, Object]) -> set[str]:
    campaigns = {one.name for one in wanted.campaigns}
    needed = {name for kind, name in wanted.names if kind == CONFIG_MAP.name}
    needed |= {records.name(part.name) for part in wanted.parts}
    for job in jobs.values():
        if is_ours(job) and (campaign := label(job, names.CAMPAIGN_LABEL)):
            needed.add(records.name(_name(job)))
            campaigns.add(campaign)
    return needed | {
        name for name, item in known.items() if is_ours(item) and label(item, names.CAMPAIGN_LABEL) in campaigns
    }


def _inactive(cluster: Cluster) -> frozenset[str]:
    try:
        workloads = cluster.list(WORKLOAD)
    except RefusedError:
        # Said when pauses are carried out, which cannot be done then.
        return frozenset()
    return frozenset(label(one, _JOB_UID) for one in workloads if not is_active(one))


def managed(cluster: Cluster, kind: Kind) -> list[Object]:
    """The metadata of all objects of a kind that are ours."""
    return cluster.list(kind, _MANAGED, metadata_only=True)


def workloads(cluster: Cluster, job: Object) -> list[Object]:
    """The Workloads of a Job that have not finished: one, or none while Kueue has made none."""
    found = cluster.list(WORKLOAD, f"{_JOB_UID}={uid(job)}")
    return [one for one in found if not _condition(one, "Finished")]


def is_active(workload: Object) -> bool:
    return t.cast(bool, workload.get("spec", {}).get("active", True))


def is_ours(item: Object) -> bool:
    """Whether the converter made an object, or may write over it."""
    return label(item, names.MANAGED_BY_LABEL) == names.MANAGED_BY


def label(item: Object, key: str) -> str:
    return t.cast(str, (item["metadata"].get("labels") or {}).get(key, ""))


def annotation(item: Object, key: str) -> str:
    return t.cast(str, (item["metadata"].get("annotations") or {}).get(key, ""))


def uid(item: Object) -> str:
    return t.cast(str, item["metadata"]["uid"])


def ended(job: Object) -> str:
    """``Complete`` or ``Failed``, and nothing while a Job has not ended."""
    return records.ending(job)[0]


def is_going(item: Object) -> bool:
    """Whether an object is being deleted."""
    return "deletionTimestamp" in item["metadata"]


def volumes(config_map: Object) -> list[str]:
    """The ids of the volumes of a campaign's ConfigMap."""
    text = (config_map.get("data") or {}).get("volumes.txt", "")
    return [line.partition("\t")[0] for line in text.splitlines()]


def pods(job: Object) -> int:
    """How many pods Kueue counts for a Job."""
    return min(int(job["spec"].get("parallelism", 1)), int(job["spec"].get("completions", 1)))


def mounts(job: Object, config_map: str) -> bool:
    """Whether the pods of a Job mount a ConfigMap."""
    rows = job["spec"]["template"]["spec"].get("volumes") or []
    return any((row.get("configMap") or {}).get("name") == config_map for row in rows)


def image(job: Object) -> str:
    """The image of a Job's first container."""
    return t.cast(str, job["spec"]["template"]["spec"]["containers"][0]["image"])


def _name(item: Object) -> str:
    return t.cast(str, item["metadata"]["name"])


def _condition(item: Object, kind: str) -> bool:
    rows = (item.get("status") or {}).get("conditions") or []
    return any(row["type"] == kind and row["status"] == "True" for row in rows)
