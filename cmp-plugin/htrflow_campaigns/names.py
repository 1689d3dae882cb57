"""The names and labels of everything that is rendered, in one place."""

from __future__ import annotations

import re
import typing as t

from htrflow_campaigns import limits

LABEL_DOMAIN = "htrflow.riksarkivet.se"
MANAGED_BY_LABEL = f"{LABEL_DOMAIN}/managed-by"
CAMPAIGN_LABEL = f"{LABEL_DOMAIN}/campaign"
PIPELINE_LABEL = f"{LABEL_DOMAIN}/pipeline"
PART_LABEL = f"{LABEL_DOMAIN}/part"
PIPELINE_SHA256_ANNOTATION = f"{LABEL_DOMAIN}/pipeline-sha256"
RECIPE_SHA256_ANNOTATION = f"{LABEL_DOMAIN}/recipe-sha256"
SIZE_ANNOTATION = f"{LABEL_DOMAIN}/size"
#: On a campaign's ConfigMap: the Job that ``apply`` created of it.
JOB_UID_ANNOTATION = f"{LABEL_DOMAIN}/job-uid"
QUEUE_LABEL = "kueue.x-k8s.io/queue-name"
PRIORITY_LABEL = "kueue.x-k8s.io/priority-class"

#: The value of ``managed-by``: what ``apply --prune`` may delete.
MANAGED_BY = "converter"

_LABEL = re.compile("[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?")
_PIPELINE_ID = re.compile(r"[a-z0-9](?:[a-z0-9-]*[a-z0-9])?(?:\.[a-z0-9](?:[a-z0-9-]*[a-z0-9])?)*")
_LABEL_NAME = re.compile("[A-Za-z0-9](?:[A-Za-z0-9._-]{0,61}[A-Za-z0-9])?")


def is_dns_label(name: str) -> bool:
    return _LABEL.fullmatch(name) is not None


def is_subdomain(name: str) -> bool:
    return len(name) <= limits.SUBDOMAIN_CHARACTERS and _PIPELINE_ID.fullmatch(name) is not None


def is_pipeline_id(name: str) -> bool:
    return len(name) <= limits.PIPELINE_ID_CHARACTERS and is_subdomain(name)


def is_label_value(text: str) -> bool:
    return text == "" or _LABEL_NAME.fullmatch(text) is not None


def is_label_key(text: str) -> bool:
    prefix, slash, name = text.rpartition("/")
    return _LABEL_NAME.fullmatch(name) is not None and (not slash or is_subdomain(prefix))


class Reserved(t.NamedTuple):
    """Names a campaign may not have, in words, and whose they are."""

    pattern: re.Pattern[str]
    taken: str
    owner: str


#: `campaign-<name>-status` is a campaign's record, `<name>-part<n>` a part of a large campaign.
RESERVED_CAMPAIGN_NAMES = (
    Reserved(re.compile("htr-warmup-.*"), "start with htr-warmup-", "the Jobs that download models"),
    Reserved(re.compile(".*-part[0-9]+"), "end in -part and a number", "the parts of large campaigns"),
    Reserved(re.compile(".*-status"), "end in -status", "the records of campaigns"),
)


#: Run logs lie below ``status/``, synthetic manifests below ``sources/``, both beside the folders of the pipelines.
RESERVED_PIPELINE_IDS = ("status", "sources")


def job(campaign: str, part: int | None) -> str:
    """A campaign's Job, or that of its part ``part``, counted from 1."""
    return campaign if part is None else f"{campaign}-part{part}"


def campaign_config_map(job_name: str) -> str:
    return f"campaign-{job_name}"


def pipeline_config_map(pipeline: str) -> str:
    return f"htr-pipeline-{pipeline}"


def warmup_job(pipeline: str) -> str:
    return f"htr-warmup-{pipeline}"


def last_pod(job_name: str, completions: int) -> str:
    """The longest pod host name of an Indexed Job, which must be a DNS label."""
    return f"{job_name}-{completions - 1}"
