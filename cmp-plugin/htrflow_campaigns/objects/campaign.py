"""A campaign: the ConfigMap with its volumes, and the Indexed Job that runs one pod on each."""

from __future__ import annotations

import typing as t

from htrflow_campaigns import limits, names, parts
from htrflow_campaigns.model import Campaign, Converter, Pipeline, Size
from htrflow_campaigns.objects import pod
from htrflow_campaigns.objects.pod import Object

#: Index 0 reads line 1. What stands before and after the line's tab reaches the wrapper unchanged: the shell expands
#: nothing inside the values of variables that it assigns or exports in quotes.
_SCRIPT = """\
set -eu
mkdir -p "$HOME" "$TMPDIR" "$YOLO_CONFIG_DIR"
line=$(sed -n "$((JOB_COMPLETION_INDEX + 1))p" /campaign/volumes.txt)
[ -n "$line" ] || { echo "no volume for index $JOB_COMPLETION_INDEX" >&2; exit 13; }
id=${line%%\t*}; src=${line#*\t}
export VOLUME_REF="$id"
case "$src" in images:*) export IMAGES="${src#images:}" ;; *) export IIIF_MANIFEST_URL="$src" ;; esac
exec python -m htrflow_batch
"""
_WAIT_SCRIPT = (
    'n=0; until [ -f {marker} ]; do n=$((n+{poll})); [ "$n" -le {seconds} ] || '
    '{{ echo "no warm-up marker at {marker} after {seconds}s: '
    "the pipeline's warm-up Job has not finished\" >&2; exit 13; }}; sleep {poll}; done"
)


class Part(t.NamedTuple):
    """One Job's worth of a campaign. ``number`` counts from 1 and is None when there is but one."""

    job: str
    number: int | None
    lines: t.Sequence[str]


def cut(campaign: Campaign) -> list[Part]:
    """The parts of a campaign: one, unless it is larger than one Job or ConfigMap can be."""
    pieces = parts.split(campaign.lines)
    numbers = range(1, len(pieces) + 1) if len(pieces) > 1 else [None]
    return [
        Part(names.job(campaign.name, number), number, lines) for number, lines in zip(numbers, pieces, strict=True)
    ]


def config_map(campaign: Campaign, part: Part, converter: Converter) -> Object:
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {
            "name": names.campaign_config_map(part.job),
            "namespace": converter.namespace,
            "labels": {**pod.labels(None, campaign.pipeline, campaign.name), **_part_label(part)},
        },
        "data": {"volumes.txt": "".join(f"{line}\n" for line in part.lines)},
    }


def job(campaign: Campaign, part: Part, pipeline: Pipeline, converter: Converter) -> Object:
    labels = pod.labels("htrflow-batch", campaign.pipeline, campaign.name)
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {
            "name": part.job,
            "namespace": converter.namespace,
            "labels": {
                **labels,
                **_part_label(part),
                names.QUEUE_LABEL: converter.queue,
                **({names.PRIORITY_LABEL: campaign.priority} if campaign.priority else {}),
            },
        },
        "spec": {
            "completionMode": "Indexed",
            "completions": len(part.lines),
            "parallelism": min(campaign.window or converter.window, converter.window),
            "backoffLimitPerIndex": limits.BACKOFF_LIMIT_PER_INDEX,
            "maxFailedIndexes": len(part.lines),
            "podFailurePolicy": {
                "rules": [
                    # A drained pod is charged no attempt, so this rule comes first.
                    pod.DISRUPTION_RULE,
                    pod.exit_rule("FailIndex", "wrapper"),
                    pod.exit_rule("FailIndex", "warmup-wait"),
                ]
            },
            "template": {
                "metadata": {
                    "labels": {
                        "app": "htrflow-batch",
                        names.CAMPAIGN_LABEL: campaign.name,
                        names.PIPELINE_LABEL: campaign.pipeline,
                    }
                },
                "spec": _pod_spec(campaign, part, pipeline, converter),
            },
        },
    }


def _part_label(part: Part) -> Object:
    return {} if part.number is None else {names.PART_LABEL: str(part.number)}


def _pod_spec(campaign: Campaign, part: Part, pipeline: Pipeline, converter: Converter) -> Object:
    size = pod.size_of(pipeline, converter)
    deadline = pipeline.max_seconds or converter.max_seconds
    return {
        "restartPolicy": "Never",
        "activeDeadlineSeconds": deadline,
        "terminationGracePeriodSeconds": limits.GRACE_SECONDS,
        "automountServiceAccountToken": False,
        "enableServiceLinks": False,
        "securityContext": pod.POD_SECURITY,
        "containers": [
            {
                "name": "wrapper",
                "image": pipeline.image,
                "command": ["/bin/sh", "-c"],
                "args": [_SCRIPT],
                "env": _environment(campaign, pipeline, converter, size),
                "volumeMounts": [
                    {"name": "campaign", "mountPath": "/campaign", "readOnly": True},
                    pod.PIPELINE_MOUNT,
                    pod.cache_mount(pipeline, read_only=True),
                    pod.WORK_MOUNT,
                    {"name": "s3", "mountPath": "/secrets/s3", "readOnly": True},
                ],
                "resources": _resources(size),
                "securityContext": pod.CONTAINER_SECURITY,
            }
        ],
        "volumes": [
            pod.config_volume("campaign", names.campaign_config_map(part.job)),
            pod.config_volume("pipeline", names.pipeline_config_map(pipeline.id)),
            pod.cache_volume(converter),
            pod.work_volume(size),
            {"name": "s3", "secret": {"secretName": converter.s3_secret, "defaultMode": 0o440}},
        ],
        "initContainers": [_warmup_wait(pipeline, converter, deadline)],
        **pod.placement(converter, size),
    }


def _warmup_wait(pipeline: Pipeline, converter: Converter, deadline: int) -> Object:
    # The gate gives up before the kubelet would kill the pod without a word.
    seconds = max(1, min(converter.warmup_wait_seconds, deadline - limits.MARKER_MARGIN_SECONDS))
    script = _WAIT_SCRIPT.format(
        marker=f"/data/warmup/{pipeline.id}.done", seconds=seconds, poll=limits.MARKER_POLL_SECONDS
    )
    return {
        "name": "warmup-wait",
        "image": pipeline.image,
        "command": ["/bin/sh", "-c", script],
        "volumeMounts": [pod.cache_mount(pipeline, read_only=True)],
        "resources": {"requests": {"cpu": "10m", "memory": "16Mi"}, "limits": {"memory": "64Mi"}},
        "terminationMessagePolicy": "FallbackToLogsOnError",
        "securityContext": pod.CONTAINER_SECURITY,
    }


def _resources(size: Size | None) -> Object:
    if size is None:
        return {
            "requests": {"cpu": "4", "memory": "8Gi", "nvidia.com/gpu": "1"},
            "limits": {"cpu": "4", "memory": "16Gi", "nvidia.com/gpu": "1"},
        }
    amounts = {"cpu": size.cpu, "memory": size.memory}
    if size.gpu:
        amounts["nvidia.com/gpu"] = str(size.gpu)
    return {"requests": amounts, "limits": {**amounts}}


def _environment(campaign: Campaign, pipeline: Pipeline, converter: Converter, size: Size | None) -> list[Object]:
    failures = "metadata.annotations['batch.kubernetes.io/job-index-failure-count']"
    return [
        pod.variable("PIPELINE_PATH", "/config/pipeline.yaml"),
        pod.variable("PIPELINE_ID", pipeline.id),
        pod.variable("CAMPAIGN", campaign.name),
        pod.variable("S3_PREFIX", f"{converter.namespace}/"),
        *([pod.variable("RESULTS_URL", converter.results_url)] if converter.results_url else []),
        pod.variable("IMAGE_DIGEST", pipeline.image),
        pod.variable("HF_HUB_OFFLINE", "1"),
        {"name": "INDEX_FAILURE_COUNT", "valueFrom": {"fieldRef": {"fieldPath": failures}}},
        pod.variable("BACKOFF_LIMIT_PER_INDEX", str(limits.BACKOFF_LIMIT_PER_INDEX)),
        *pod.DIRECTORIES,
        pod.secret_variable("S3_BUCKET", converter.s3_secret, "S3_BUCKET"),
        pod.secret_variable("S3_ENDPOINT", converter.s3_secret, "S3_ENDPOINT", optional=True),
        pod.variable("AWS_SHARED_CREDENTIALS_FILE", "/secrets/s3/credentials"),
        pod.variable("MANIFEST_MAX_BYTES", str(converter.manifest_max_bytes)),
        pod.variable("FETCH_MAX_BYTES", str(converter.fetch_max_bytes)),
        *([pod.variable("LOOKAHEAD_BYTES", str(pod.lookahead_bytes(size)))] if size else []),
    ]
