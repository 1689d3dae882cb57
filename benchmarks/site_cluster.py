"""A cluster as the status site hears it: 1 000 campaigns in their usual states, and a server of their objects.

``python -m benchmarks.site_cluster CAMPAIGNS`` serves lists, watches and single objects on a free port of 127.0.0.1,
in the form and at the length in which an API server gives them: in pages where they are asked for, compressed where the
client takes it. Nothing is checked and nothing can be written. A real API server with its store would have to be filled
for hours, and answers the same.

``POST /_finish?volumes=N`` lets N volumes finish, which sends three events for each of them; ``GET /_requests`` counts
what was asked for.
"""

from __future__ import annotations

import collections
import dataclasses
import functools
import gzip
import http.server
import itertools
import json
import queue
import sys
import threading
import typing as t
import urllib.parse

NAMESPACE = "htr-batch"
#: Volumes of each campaign, and how many of a campaign run at once.
VOLUMES, WINDOW = 100, 20
PIPELINES = 20
#: Volumes that failed, of campaigns that have any.
FAILED = (3, 17)
#: Pods of a campaign that has ended: of its first volumes.
_KEPT = 40
_SMALLEST_TO_COMPRESS = 128 * 1024
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
        "command": ["/bin/sh", "-ec", "line=$(sed -n \"$((JOB_COMPLETION_INDEX + 1))p\" /campaign/volumes.txt)\n" * 6],
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


def _owner(campaign: Campaign) -> list[Object]:
    uid = f"00000000-0000-0000-0001-{campaign.number:012}"
    return [{"apiVersion": "batch/v1", "kind": "Job", "name": campaign.name, "uid": uid, "controller": True}]


def pod(campaign: Campaign, index: int) -> Object:
    name = f"{campaign.name}-{index}"
    if index >= campaign.ended:
        phase, state = "Running", {"running": {"startedAt": "2026-01-29T10:00:05Z"}}
    else:
        bad = index in campaign.failed
        phase, words = "Failed" if bad else "Succeeded", '{"stage": "load", "error": "the manifest has no pages"}'
        ended = {"exitCode": 13 if bad else 0, "startedAt": "2026-01-29T10:00:05Z", "message": words if bad else ""}
        state = {"terminated": {**ended, "finishedAt": "2026-01-29T11:00:00Z"}}
    return {
        "metadata": {
            "name": f"{name}-abcde",
            "namespace": NAMESPACE,
            "uid": f"00000000-{index:04}-0000-0002-{campaign.number:012}",
            "creationTimestamp": "2026-01-29T10:00:00Z",
            "labels": {**_labels(campaign), "batch.kubernetes.io/job-name": campaign.name},
            "annotations": {"batch.kubernetes.io/job-completion-index": str(index)},
            "ownerReferences": _owner(campaign),
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
        "metadata": {**metadata, "ownerReferences": _owner(campaign)},
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
    told = {"version": 1, "job": campaign.name, "uid": "gone", "phase": "Complete", "volumes": VOLUMES}
    told |= {"completedIndexes": f"0-{VOLUMES - 1}", "finished": _moment(campaign.number)}
    told |= {"pages": {"done": 19_990, "failed": 10}}
    return _config_map(f"campaign-{campaign.name}-status", campaign, {"record.json": json.dumps(told)})


def _config_map(name: str, campaign: Campaign, data: dict[str, str]) -> Object:
    return {"metadata": {"name": name, "namespace": NAMESPACE, "uid": name, "labels": _labels(campaign)}, "data": data}


def _pipeline(number: int) -> tuple[Object, Object]:
    labels = {"htrflow.riksarkivet.se/pipeline": f"p{number}"}
    metadata = {"namespace": NAMESPACE, "uid": f"p{number}", "labels": labels}
    steps = {"metadata": {**metadata, "name": f"htr-pipeline-p{number}"}, "data": {"pipeline.yaml": _STEPS}}
    ended = {"conditions": [{"type": "Complete", "status": "True"}]}
    return steps, {"metadata": {**metadata, "name": f"warmup-p{number}"}, "spec": {}, "status": ended}


class Cluster:
    """The objects, and who watches them."""

    def __init__(self, campaigns: int) -> None:
        self.campaigns = [Campaign(number) for number in range(campaigns)]
        self.requests: collections.Counter[str] = collections.Counter()
        self._watching: dict[str, list[queue.Queue[bytes]]] = collections.defaultdict(list)
        self._version, self._lock = 1000, threading.Lock()
        self._turn = itertools.cycle(row for row in self.campaigns if row.state == "running")

    def objects(self, kind: str, campaign: str = "") -> t.Iterator[Object]:
        """All objects of a kind, or those with a campaign's label."""
        chosen = [row for row in self.campaigns if campaign in ("", row.name)]
        pipelines = [] if campaign else [_pipeline(number) for number in range(PIPELINES)]
        match kind:
            case "jobs":
                yield from (made for row in chosen if (made := job(row)))
                yield from (warmup for _, warmup in pipelines)
            case "workloads":
                yield from (made for row in chosen if (made := workload(row)))
            case "pods":
                yield from (pod(row, index) for row in chosen for index in row.pods)
            case "configmaps":
                yield from map(volumes, chosen)
                yield from (made for row in chosen if (made := record(row)))
                yield from (steps for steps, _ in pipelines)

    def finish(self, count: int) -> None:
        """Lets volumes finish, each of another campaign, whose next volume begins."""
        with self._lock:
            for campaign in itertools.islice(self._turn, count):
                if campaign.begun + WINDOW >= VOLUMES:
                    continue
                campaign.begun += 1
                self._tell("pods", "MODIFIED", pod(campaign, campaign.begun - 1))
                self._tell("jobs", "MODIFIED", job(campaign) or {})
                self._tell("pods", "ADDED", pod(campaign, campaign.begun + WINDOW - 1))

    def watch(self, kind: str) -> queue.Queue[bytes]:
        with self._lock:
            self._watching[kind].append(events := queue.Queue())
            return events

    def _tell(self, kind: str, change: str, thing: Object) -> None:
        self._version += 1
        thing["metadata"]["resourceVersion"] = str(self._version)
        line = json.dumps({"type": change, "object": thing}).encode() + b"\n"
        for events in self._watching[kind]:
            events.put(line)


class _Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def __init__(self, cluster: Cluster, *arguments: t.Any) -> None:
        self._cluster = cluster
        super().__init__(*arguments)

    def do_GET(self) -> None:
        path, _, query = self.path.partition("?")
        asked = dict(urllib.parse.parse_qsl(query))
        kind = path.rpartition("/")[2]
        if path == "/_requests":
            return self._send(dict(self._cluster.requests))
        if asked.get("watch"):
            self._cluster.requests[f"watch {kind}"] += 1
            return self._watch(kind)
        if kind in ("jobs", "workloads", "pods", "configmaps"):
            self._cluster.requests[f"list {kind}"] += 1
            return self._list(kind, asked)
        self._cluster.requests[f"get {kind}"] += 1
        if kind == "pendingworkloads":
            waiting = [row for row in self._cluster.campaigns if row.state == "queued"]
            items = [
                {"metadata": {"ownerReferences": _owner(row)}, "positionInClusterQueue": place}
                for place, row in enumerate(waiting)
            ]
            return self._send({"items": items})
        return self._send({"metadata": {"resourceVersion": "1"}, "items": []})

    def do_POST(self) -> None:
        count = int(dict(urllib.parse.parse_qsl(self.path.partition("?")[2]))["volumes"])
        self._cluster.finish(count)
        self._send({})

    def _list(self, kind: str, asked: t.Mapping[str, str]) -> None:
        name, _, value = asked.get("labelSelector", "").partition("=")
        first, limit = int(asked.get("continue", "0")), int(asked.get("limit", "0")) or sys.maxsize
        things = self._cluster.objects(kind, value if name.endswith("/campaign") else "")
        items = list(itertools.islice(things, first, first + limit))
        more = {"continue": str(first + limit)} if len(items) == limit else {}
        self._send({"kind": "List", "metadata": {"resourceVersion": "1000", **more}, "items": items})

    def _send(self, answer: Object) -> None:
        content = json.dumps(answer, separators=(",", ":")).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        # As an API server does.
        if len(content) > _SMALLEST_TO_COMPRESS and "gzip" in self.headers.get("Accept-Encoding", ""):
            content = gzip.compress(content, 1)
            self.send_header("Content-Encoding", "gzip")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def _watch(self, kind: str) -> None:
        events = self._cluster.watch(kind)
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        self.wfile.flush()
        while True:
            line = events.get()
            self.wfile.write(f"{len(line):x}\r\n".encode() + line + b"\r\n")

    def log_message(self, *arguments: object) -> None:
        """Says nothing: what is asked for is counted."""


def main() -> None:
    cluster = Cluster(int(sys.argv[1]))
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(_Handler, cluster))
    server.daemon_threads = True
    print(f"http://127.0.0.1:{server.server_port}", flush=True)
    server.serve_forever()


if __name__ == "__main__":
    main()
