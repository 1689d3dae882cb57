"""State and results in which every text that somebody else may write is an attack on the reader's browser."""

from __future__ import annotations

import json
import pathlib
import typing as t
import xml.sax.saxutils

import yaml

from htrflow_status.model import Snapshot, Trouble
from htrflow_status.sources.cache import Cache
from htrflow_status.sources.intake import Intake
from tests.statuspage import local_data, object_cases

_RUN = "document.documentElement.setAttribute('data-ran','yes')"
#: It leaves an attribute on the page if any of it is taken for more than text.
TEXT = f'"\'></textarea><img src=x onerror="{_RUN}"><script>{_RUN}</script>{{{{7*7}}}}\u202egnp.exe'
ADDRESS = f"javascript:{_RUN}//https://example.org/"
_VOLUME, _OTHER = local_data.VOLUME, "R0001204"


class HostileSource:
    """A source whose Kubernetes objects say hostile things wherever an object can."""

    def __init__(self) -> None:
        self._cache = Cache()
        intake = Intake(self._cache, local_data.NAMESPACE)
        for thing in _objects():
            found = object_cases.filled(thing)
            found["metadata"]["namespace"] = local_data.NAMESPACE
            intake.put(object_cases.KINDS[found["kind"]], found)

    def snapshot(self) -> Snapshot:
        return self._cache.snapshot()

    def troubles(self) -> t.Sequence[Trouble]:
        return ()

    async def changed(self, version: str, seconds: float) -> str:
        return await self._cache.changed(version, seconds)


def _objects() -> list[object_cases.Object]:
    model = {"model": "TrOCR", "model_settings": {"model": TEXT, "model_kwargs": {"revision": TEXT}}}
    steps = yaml.safe_dump({"steps": [{"step": "TextRecognition", "settings": model}]})
    line = TEXT.replace("\n", " ")
    volumes = (
        f"{_VOLUME}\t{ADDRESS}\n{_OTHER}\timages:{ADDRESS} https://example.org/{line}\n{line}\thttps://example.org/a\n"
    )
    failed = {"exitCode": 1, "reason": TEXT, "message": json.dumps({"stage": TEXT, "permanent": False, "error": TEXT})}
    labels = {"kueue.x-k8s.io/priority-class": TEXT, "kueue.x-k8s.io/queue-name": TEXT}
    states = [{"name": "wrapper", "image": TEXT, "state": {"terminated": failed}}]
    return [
        {"kind": "ConfigMap", "data": {"volumes.txt": volumes}},
        {
            "kind": "ConfigMap",
            "metadata": {"name": "htr-pipeline-demo-v1", "uid": "steps-1", "labels": {}},
            "data": {"pipeline.yaml": steps},
        },
        {
            "kind": "Job",
            "metadata": {"labels": labels},
            "spec": {"template": {"spec": {"containers": [{"name": "wrapper", "image": TEXT}]}}},
            "status": {"failedIndexes": "1", "completedIndexes": "2", "active": 1},
        },
        {
            "kind": "Workload",
            "spec": {"queueName": TEXT},
            "status": {"conditions": [{"type": "QuotaReserved", "status": "False", "reason": TEXT, "message": TEXT}]},
        },
        {
            "kind": "Pod",
            "metadata": {
                "name": "letters-1-bbbbb",
                "uid": "pod-2",
                "labels": {"batch.kubernetes.io/job-completion-index": "1"},
                "annotations": {"batch.kubernetes.io/job-completion-index": "1"},
            },
            "spec": {"nodeName": TEXT},
            "status": {"phase": "Failed", "reason": TEXT, "message": TEXT, "containerStatuses": states},
        },
        {
            "kind": "Pod",
            "spec": {"nodeName": TEXT},
            "status": {
                "phase": "Pending",
                "conditions": [{"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": TEXT}],
            },
        },
    ]


def spoil(results: pathlib.Path) -> None:
    """Puts hostile text into everything that a volume's results say."""
    volume = results / local_data.NAMESPACE / local_data.PIPELINE / _VOLUME
    found = json.loads((volume / "progress.json").read_text(encoding="utf-8"))
    found |= {"state": "running", "stage": TEXT, "error": TEXT, "engine": TEXT, "image": TEXT}
    found["failed"] = [{"page": 5, "cause": TEXT, "reason": TEXT, "source": ADDRESS}]
    (volume / "progress.json").write_text(json.dumps(found), encoding="utf-8")
    for name in ("iiif.json", "manifest.json"):
        text = (volume / name).read_text(encoding="utf-8")
        (volume / name).write_text(json.dumps(_spoilt(json.loads(text))), encoding="utf-8")
    for file in (volume / "alto").iterdir():
        text = file.read_text(encoding="utf-8")
        file.write_text(text.replace("socken", xml.sax.saxutils.escape(TEXT, {'"': "&quot;"})), encoding="utf-8")
    log = results / local_data.NAMESPACE / "status/logs" / local_data.PIPELINE / f"{_VOLUME}.txt"
    lines = [f"=== attempt {TEXT}", f"2026-01-05T10:00:00.000Z ERROR [stream] {TEXT}", TEXT, "=== left out: 1 bytes"]
    log.write_text("\n".join([*lines, log.read_text(encoding="utf-8")]), encoding="utf-8")


def _spoilt(found: t.Any, key: str = "") -> t.Any:
    """Texts are hostile and images have no addresses; what a manifest is made of stays."""
    if isinstance(found, dict):
        body = found.get("type") == "Image"
        return {name: ADDRESS if body and name == "id" else _spoilt(value, name) for name, value in found.items()}
    if isinstance(found, list):
        return [_spoilt(one, key) for one in found]
    return TEXT if key in ("label", "value", "none", "sv", "en", "reason") and isinstance(found, str) else found
