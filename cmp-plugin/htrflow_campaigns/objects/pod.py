"""What the pods of campaigns and of warm-ups have in common."""

from __future__ import annotations

import typing as t

from htrflow_campaigns import names, quantities, recipe
from htrflow_campaigns.model import Converter, Pipeline, Size

Object = dict[str, t.Any]

_WORKDIR = "2Gi"
_USER = 1000

DISRUPTION_RULE: Object = {"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget"}]}


def exit_rule(action: str, container: str) -> Object:
    """What becomes of exit code 13, with which a container says that another attempt would end the same way."""
    return {"action": action, "onExitCodes": {"containerName": container, "operator": "In", "values": [13]}}


def size_of(pipeline: Pipeline, converter: Converter) -> Size | None:
    """The size that a pipeline's pods have: its own, or the default one."""
    return converter.sizes.get(pipeline.size or converter.default_size)


def variable(name: str, value: str) -> Object:
    """An environment variable whose value arrives as it is: Kubernetes replaces ``$(NAME)`` in values, and ``$$``."""
    return {"name": name, "value": value.replace("$", "$$")}


def secret_variable(name: str, secret: str, key: str, *, optional: bool = False) -> Object:
    reference: Object = {"name": secret, "key": key}
    return {"name": name, "valueFrom": {"secretKeyRef": {**reference, "optional": True} if optional else reference}}


DIRECTORIES: list[Object] = [
    variable("HF_HOME", "/data/hf"),
    variable("HOME", "/work/home"),
    variable("TMPDIR", "/work/tmp"),
    variable("YOLO_CONFIG_DIR", "/work/ultralytics"),
    variable("WORKDIR_PATH", "/work"),
]

#: Pod Security *restricted*, for a pod and for each of its containers.
POD_SECURITY: Object = {
    "runAsNonRoot": True,
    "runAsUser": _USER,
    "runAsGroup": _USER,
    "fsGroup": _USER,
    "fsGroupChangePolicy": "OnRootMismatch",
    "seccompProfile": {"type": "RuntimeDefault"},
}
CONTAINER_SECURITY: Object = {
    "allowPrivilegeEscalation": False,
    "readOnlyRootFilesystem": True,
    "runAsNonRoot": True,
    "capabilities": {"drop": ["ALL"]},
    "seccompProfile": {"type": "RuntimeDefault"},
}

PIPELINE_MOUNT: Object = {"name": "pipeline", "mountPath": "/config"}
WORK_MOUNT: Object = {"name": "work", "mountPath": "/work"}


def cache_mount(pipeline: Pipeline, *, read_only: bool) -> Object:
    """This recipe's directory of the model cache, and no other."""
    mount: Object = {"name": "data", "mountPath": "/data"}
    if read_only:
        mount["readOnly"] = True
    return {**mount, "subPath": f"{pipeline.id}-{recipe.recipe_sha256(pipeline)}"}


def cache_volume(converter: Converter) -> Object:
    return {"name": "data", "persistentVolumeClaim": {"claimName": converter.data_pvc}}


def work_volume(size: Size | None) -> Object:
    return {"name": "work", "emptyDir": {"medium": "Memory", "sizeLimit": size.workdir if size else _WORKDIR}}


def config_volume(name: str, config_map: str) -> Object:
    return {"name": name, "configMap": {"name": config_map}}


def lookahead_bytes(size: Size) -> int:
    """How many bytes of pages may lie in the workdir: half of it, since results pass through it as well."""
    return int((quantities.parse(size.workdir) or 0) / 2)


def placement(converter: Converter, size: Size | None) -> Object:
    """Where the pods run. Warm-ups and campaigns share it, so that both reach the cache."""
    labels = converter.flavors.get(size.flavor, {}) if size and size.flavor else {}
    found: Object = {
        "runtimeClassName": converter.runtime_class,
        "nodeSelector": {**converter.node_selector, **labels},
        "tolerations": list(converter.tolerations),
    }
    return {key: value for key, value in found.items() if value}


def labels(app: str | None, pipeline: str, campaign: str | None = None) -> Object:
    """The labels of an object of ours, in the order of the documentation."""
    found = {
        "app": app,
        names.MANAGED_BY_LABEL: names.MANAGED_BY,
        names.CAMPAIGN_LABEL: campaign,
        names.PIPELINE_LABEL: pipeline,
    }
    return {key: value for key, value in found.items() if value is not None}
