"""A pipeline: the ConfigMap with its steps, and the warm-up Job that downloads its models."""

from __future__ import annotations

from htrflow_campaigns import limits, names, recipe
from htrflow_campaigns.model import Converter, Pipeline
from htrflow_campaigns.objects import pod
from htrflow_campaigns.objects.pod import Object

_SCRIPT = """\
set -eu
mkdir -p "$HOME" "$TMPDIR" "$YOLO_CONFIG_DIR" "$HF_HOME"
exec python -m htrflow_batch.warmup
"""


def config_map(pipeline: Pipeline, converter: Converter) -> Object:
    size = pod.size_of(pipeline, converter)
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {
            "name": names.pipeline_config_map(pipeline.id),
            "namespace": converter.namespace,
            "labels": pod.labels(None, pipeline.id),
            "annotations": {
                names.PIPELINE_SHA256_ANNOTATION: recipe.pipeline_sha256(pipeline),
                **({names.SIZE_ANNOTATION: size.name} if size else {}),
            },
        },
        "data": {"pipeline.yaml": pipeline.yaml},
    }


def warmup_job(pipeline: Pipeline, converter: Converter) -> Object:
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {
            "name": names.warmup_job(pipeline.id),
            "namespace": converter.namespace,
            "labels": pod.labels("htrflow-warmup", pipeline.id),
        },
        "spec": {
            "backoffLimit": limits.WARMUP_BACKOFF_LIMIT,
            "podFailurePolicy": {"rules": [pod.DISRUPTION_RULE, pod.exit_rule("FailJob", "warmup")]},
            "template": {
                "metadata": {
                    "labels": {"app": "htrflow-warmup", names.PIPELINE_LABEL: pipeline.id},
                    "annotations": {names.RECIPE_SHA256_ANNOTATION: recipe.recipe_sha256(pipeline)},
                },
                "spec": _pod_spec(pipeline, converter),
            },
        },
    }


def _pod_spec(pipeline: Pipeline, converter: Converter) -> Object:
    return {
        "restartPolicy": "Never",
        "activeDeadlineSeconds": limits.WARMUP_SECONDS,
        "automountServiceAccountToken": False,
        "enableServiceLinks": False,
        "securityContext": pod.POD_SECURITY,
        "containers": [
            {
                "name": "warmup",
                "image": pipeline.image,
                "command": ["/bin/sh", "-c"],
                "args": [_SCRIPT],
                "env": _environment(pipeline, converter),
                "volumeMounts": [pod.PIPELINE_MOUNT, pod.cache_mount(pipeline, read_only=False), pod.WORK_MOUNT],
                "resources": {"requests": {"cpu": "2", "memory": "4Gi"}},
                "securityContext": pod.CONTAINER_SECURITY,
            }
        ],
        "volumes": [
            pod.config_volume("pipeline", names.pipeline_config_map(pipeline.id)),
            pod.cache_volume(converter),
            pod.work_volume(None),
        ],
        **pod.placement(converter, pod.size_of(pipeline, converter)),
    }


def _environment(pipeline: Pipeline, converter: Converter) -> list[Object]:
    token = converter.hf_token_secret
    return [
        pod.variable("PIPELINE_PATH", "/config/pipeline.yaml"),
        pod.variable("PIPELINE_ID", pipeline.id),
        pod.variable("CUDA_VISIBLE_DEVICES", ""),
        *pod.DIRECTORIES,
        *([pod.secret_variable("HF_TOKEN", token, "token")] if token else []),
    ]
