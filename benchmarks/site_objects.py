"""The objects of campaigns in their usual states, in the form and at the length in which an API server gives them."""

from __future__ import annotations

import dataclasses
import itertools
import json
import typing as t

NAMESPACE = "htr-batch"
#: Volumes of each campaign, and how many of a campaign run at once.
VOLUMES, WINDOW = 100, 20
PIPELINES = 20
#: Volumes that failed, of campaigns that have any.
FAILED = (3, 17)
#: Pods of a campaign that has ended: of its first volumes.
_KEPT = 40
_IMAGE = f"registry.example.org/htrflow-batch@sha256:{'0123456789abcdef' * 4}"
_STEPS = """\
steps:
- step: Segmentation
  settings: {model: yolo, model_settings: {model: Riksarkivet/yolov9-regions-1, revision: 7c44178d85926b4a096c55c89bf2}}
- step: Segmentation
  settings: {model: yolo, model_settings: {model: Riksarkivet/yolov9-lines-within-regions-1}}
- step: TextRecognition
  settings: {model: TrOCR, model_settings: {model: Riksarkivet/trocr-base-handwritten-hist-swe-2}}
"""
Object = dict[str, t.Any]
State = t.Literal["running", "complete", "partial", "queued", "removed"]
#: Of ten campaigns: how many pods there are of each is what makes 40 a campaign on average.
_STATES: t.Final[tuple[State, ...]] = (
    *("running",) * 4,
    *("complete",) * 3,
    "partial",
    "queued",
    "removed",
)


@dataclasses.dataclass
class Campaign:
    """One campaign. Of a running one, ``begun`` is the index of the first volume that has not ended."""

    number: int
    begun: int = _KEPT

    @property
    def name(self) -> str:
        return f"campaign-{self.number}"

    @property
    def pipeline(self) -> str:
        return f"p{self.number % PIPELINES}"

    @property
    def state(self) -> State:
        return _STATES[self.number % len(_STATES)]

    @property
    def pods(self) -> range:
        ends = {"running": min(self.begun + WINDOW, VOLUMES), "complete": _KEPT, "partial": _KEPT}
        return range(ends.get(self.state, 0))

    @property
    def ended(self) -> int:
        """How many volumes are done or failed: the first ones."""
        return {"running": self.begun, "queued": 0}.get(self.state, VOLUMES)

    @property
    def failed(self) -> tuple[int, ...]:
        some = FAILED if self.state == "partial" else FAILED[:1] if self.state == "running" else ()
        return tuple(index for index in some if index < self.ended)

    @property
    def done(self) -> str:
        """The indexes that are done, as a Job's status has them."""
        edges = [-1, *self.failed, self.ended]
        ranges = [(before + 1, after - 1) for before, after in itertools.pairwise(edges)]
        return ",".join(f"{a}-{b}" if a < b else str(a) for a, b in ranges if a <= b)


def volume_id(number: int, index: int) -> str:
    return f"R{number:04}-{index:06}"


def _labels(campaign: Campaign) -> dict[str, str]:
    return {
        "app": "htrflow-batch",
        "htrflow.riksarkivet.se/managed-by": "converter",
        "htrflow.riksarkivet.se/campaign": campaign.name,
        "htrflow.riksarkivet.se/pipeline": campaign.pipeline,
        "kueue.x-k8s.io/queue-name": NAMESPACE,
    }


def _moment(number: int) -> str:
    return f"2026-01-{1 + number % 28:02}T{number // 28 % 24:02}:{number // 672 % 60:02}:00Z"


def _managed(*paths: str) -> list[Object]:
    """Who set which field: a third of what a list of pods has."""
    fields: Object = {}
    for path in paths:
        inside = fields
        for part in path.split("/"):
            inside = inside.setdefault(f"f:{part}", {})
    return [
        {"manager": who, "operation": "Update", "apiVersion": "v1", "time": _moment(1), "fieldsType": "FieldsV1"}
        | {"fieldsV1": fields}
        for who in ("kube-controller-manager", "kubelet")
    ]


def _template() -> Object:
    names = ("VOLUMES_FILE", "S3_BUCKET", "S3_ENDPOINT", "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY")
    secrets = [{"name": name, "valueFrom": {"secretKeyRef": {"name": "htr-batch-s3", "key": name}}} for name in names]
    plain = ("CAMPAIGN", "PIPELINE_ID", "PIPELINE_PATH", "WORKDIR_PATH", "RESULTS_URL", "MAX_SECONDS", "HF_HOME")
    values = [{"name": name, "value": f"/a/value/of/{name.lower()}"} for name in plain]
    index = {"fieldRef": {"apiVersion": "v1", "fieldPath": "metadata.annotations['job-completion-index']"}}
    safe = {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}, "readOnlyRootFilesystem": True}
    container = {
        "name": "wrapper",
        "image": _IMAGE,
        "command": ["/bin/sh", "-ec", 'line=$(sed -n "$((JOB_COMPLETION_INDEX + 1))p" /campaign/volumes.txt)\n' * 6],
        "env": [*secrets, *values, {"name": "JOB_COMPLETION_INDEX", "valueFrom": index}],
        "resources": {"limits": {"nvidia.com/gpu": "1", "memory": "16Gi"}, "requests": {"cpu": "2", "memory": "16Gi"}},
        "volumeMounts": [{"name": name, "mountPath": f"/{name}"} for name in ("campaign", "pipeline", "work", "data")],
        "terminationMessagePath": "/dev/termination-log",
        "terminationMessagePolicy": "FallbackToLogsOnError",
        "securityContext": safe,
    }
    return {
        "initContainers": [{**container, "name": "warmup-wait", "env": values[:3]}],
        "containers": [container],
        "restartPolicy": "Never",
        "securityContext": {"runAsNonRoot": True, "runAsUser": 1000, "seccompProfile": {"type": "RuntimeDefault"}},
        "volumes": [{"name": name, "emptyDir": {}} for name in ("campaign", "pipeline", "work", "data")],
        "tolerations": [{"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"}],
    }


_POD_SPEC = _template()
_POD_FIELDS = _managed(*(f"spec/containers/{n}/{f}" for n in range(4) for f in ("name", "image", "env", "resources")))


def job(campaign: Campaign) -> Object | None:
    if campaign.state == "removed":
        return None
    status: Object = {"completedIndexes": campaign.done}
    if campaign.failed:
        status["failedIndexes"] = ",".join(map(str, campaign.failed))
    if campaign.state in ("complete", "partial"):
        kind = "Complete" if campaign.state == "complete" else "Failed"
        at = _moment(campaign.number + 1)
        status["conditions"] = [{"type": kind, "status": "True", "lastTransitionTime": at, "reason": "FailedIndexes"}]
    elif campaign.state == "running":
        status |= {"active": WINDOW, "startTime": _moment(campaign.number)}
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {
            "name": campaign.name,
            "namespace": NAMESPACE,
            "uid": f"00000000-0000-0000-0001-{campaign.number:012}",
            "labels": _labels(campaign),
            "creationTimestamp": _moment(campaign.number),
            "managedFields": _managed("spec/template", "spec/completions"),
        },
        "spec": {
            "completionMode": "Indexed",
            "completions": VOLUMES,
            "parallelism": WINDOW,
            "suspend": campaign.state == "queued",
            "template": {"spec": _POD_SPEC},
        },
        "status": status,
    }


def owner(campaign: Campaign) -> list[Object]:
    """Whose the pods and the Workload of a campaign are."""
    uid = f"00000000-0000-0000-0001-{campaign.number:012}"
    return [{"apiVersion": "batch/v1", "kind": "Job", "name": campaign.name, "uid": uid, "controller": True}]


def pod(campaign: Campaign, index: int) -> Object:
    name = f"{campaign.name}-{index}"
    if index >= campaign.ended:
        phase, state = "Running", t.cast("Object", {"running": {"startedAt": "2026-01-29T10:00:05Z"}})
    else:
        bad = index in campaign.failed
        phase, words = "Failed" if bad else "Succeeded", '{"stage": "load", "error": "the manifest has no pages"}'
        ended: Object = {
            "exitCode": 13 if bad else 0,
            "startedAt": "2026-01-29T10:00:05Z",
            "message": words if bad else "",
        }
        state = {"terminated": {**ended, "finishedAt": "2026-01-29T11:00:00Z"}}
    return {
        "metadata": {
            "name": f"{name}-abcde",
            "namespace": NAMESPACE,
            "uid": f"00000000-{index:04}-0000-0002-{campaign.number:012}",
            "creationTimestamp": "2026-01-29T10:00:00Z",
            "labels": {**_labels(campaign), "batch.kubernetes.io/job-name": campaign.name},
            "annotations": {"batch.kubernetes.io/job-completion-index": str(index)},
            "ownerReferences": owner(campaign),
            "managedFields": _POD_FIELDS,
        },
        "spec": {**_POD_SPEC, "nodeName": f"gpu-{campaign.number % 40}"},
        "status": {"phase": phase, "containerStatuses": [{"name": "wrapper", "image": _IMAGE, "state": state}]},
    }


def workload(campaign: Campaign) -> Object | None:
    if campaign.state == "removed":
        return None
    if campaign.state == "queued":
        message = "couldn't assign flavors to pod set main: insufficient unused quota for nvidia.com/gpu"
        conditions = [{"type": "QuotaReserved", "status": "False", "reason": "Pending", "message": message}]
    else:
        conditions = [{"type": kind, "status": "True", "reason": kind} for kind in ("QuotaReserved", "Admitted")]
    metadata = {"name": f"job-{campaign.name}", "namespace": NAMESPACE, "uid": f"w-{campaign.number}"}
    spec = {"queueName": NAMESPACE, "podSets": [{"name": "main", "count": WINDOW, "template": {"spec": _POD_SPEC}}]}
    return {
        "metadata": {**metadata, "ownerReferences": owner(campaign)},
        "spec": spec,
        "status": {"conditions": conditions},
    }


def volumes(campaign: Campaign) -> Object:
    ids = (volume_id(campaign.number, index) for index in range(VOLUMES))
    text = "".join(f"{id_}\thttps://iiif.example.org/arkis!{id_}/manifest\n" for id_ in ids)
    return _config_map(f"campaign-{campaign.name}", campaign, {"volumes.txt": text})


def record(campaign: Campaign) -> Object | None:
    if campaign.state != "removed":
        return None
    told: Object = {"version": 1, "job": campaign.name, "uid": "gone", "phase": "Complete", "volumes": VOLUMES}
    told |= {"completedIndexes": f"0-{VOLUMES - 1}", "finished": _moment(campaign.number)}
    told |= {"pages": {"done": 19_990, "failed": 10}}
    return _config_map(f"campaign-{campaign.name}-status", campaign, {"record.json": json.dumps(told)})


def _config_map(name: str, campaign: Campaign, data: dict[str, str]) -> Object:
    return {"metadata": {"name": name, "namespace": NAMESPACE, "uid": name, "labels": _labels(campaign)}, "data": data}


def pipeline_of(number: int) -> tuple[Object, Object]:
    """A pipeline's ConfigMap and its warm-up Job."""
    labels = {"htrflow.riksarkivet.se/pipeline": f"p{number}"}
    metadata: Object = {"namespace": NAMESPACE, "uid": f"p{number}", "labels": labels, "creationTimestamp": _moment(0)}
    steps = {"metadata": {**metadata, "name": f"htr-pipeline-p{number}"}, "data": {"pipeline.yaml": _STEPS}}
    ended = {"conditions": [{"type": "Complete", "status": "True"}]}
    return steps, {"metadata": {**metadata, "name": f"warmup-p{number}"}, "spec": {}, "status": ended}
