"""What the status site's state costs: ``python benchmarks/statuspage_state.py [campaigns [volumes [pods]]]``.

Fills the cache with campaigns, each with its ConfigMap, Workload and pods, as the API server gives them, and measures
memory, one pod event, and each way of reading. The same with a tenth of everything shows what depends on the size.
"""

from __future__ import annotations

import functools
import gc
import pathlib
import resource
import statistics
import sys
import time
import typing as t

sys.path.insert(0, str(pathlib.Path(__file__).parents[1]))

from htrflow_status.model import Snapshot
from htrflow_status.sources.cache import Cache
from htrflow_status.sources.intake import Intake

_NAMESPACE = "htr-batch"
_PIPELINES = 20
_RUNNING = 20


def main() -> None:
    campaigns, volumes, pods = [int(word) for word in sys.argv[1:4]] or [1000, 100_000, 40_000]
    for part in (10, 1):
        _measure(campaigns // part, volumes // part, pods // part)


def _measure(campaigns: int, volumes: int, pods: int) -> None:
    gc.collect()
    before = _memory()
    began = time.perf_counter()
    cache = Cache()
    intake = Intake(cache, _NAMESPACE)
    each, each_pods = volumes // campaigns, pods // campaigns
    intake.replace("configmaps", _all_config_maps(campaigns, each))
    intake.replace("jobs", (_job(number, each) for number in range(campaigns)))
    intake.replace("workloads", (_workload(number) for number in range(campaigns)))
    intake.replace(
        "pods", (_pod(number, index, "Running") for number in range(campaigns) for index in range(each_pods))
    )
    print(f"\n{campaigns} campaigns, {volumes} volumes, {pods} pods: filled in {time.perf_counter() - began:.1f} s")
    gc.collect()
    print(f"  memory                          {_memory() - before:8.1f} MB")
    events = [_pod(number % campaigns, number % each_pods, "Succeeded") for number in range(2000)]
    _show("one pod event, with its reading", [_timed(functools.partial(intake.put, "pods", pod)) for pod in events])
    events = [_pod(number % campaigns, number % each_pods, "Running") for number in range(2000)]
    snapshots = []
    for pod in events:
        intake.put("pods", pod)
        snapshots.append(_timed(lambda: cache.snapshot().campaign(_NAMESPACE, "campaign-0")))
    _show("snapshot() and campaign()", snapshots)
    fresh = cache.snapshot()
    _show("campaigns(), the first time", [_timed(fresh.campaigns)])

    def after_event() -> Snapshot:
        intake.put("pods", _pod(0, 0, "Running" if next(flip) else "Failed"))
        return cache.snapshot()

    flip = iter([number % 2 == 0 for number in range(200)])
    _show("campaigns() after an event", [_timed(after_event().campaigns) for _ in range(100)])
    shot = cache.snapshot()
    one = shot.campaigns()[0]
    _show(f"volumes() of all {each}", [_timed(lambda: shot.volumes(one)) for _ in range(100)])
    _show("volume() by its id", [_timed(lambda: shot.volume(one, f"R0-{each - 1:06}")) for _ in range(100)])
    _show("volumes_in(running)", [_timed(lambda: shot.volumes_in(one, "running", 20)) for _ in range(100)])
    _show("find() of one volume", [_timed(lambda: shot.find(f"R0-{each - 1:06}")) for _ in range(20)])
    _show("find() of what is everywhere", [_timed(lambda: shot.find("R")) for _ in range(5)])
    relist = [_pod(number, index, "Running") for number in range(campaigns) for index in range(each_pods)]
    _show("a new list of all pods", [_timed(lambda: intake.replace("pods", relist))])


def _all_config_maps(campaigns: int, each: int) -> t.Iterator[dict[str, t.Any]]:
    yield from (_config_map(number, each) for number in range(campaigns))
    for number in range(_PIPELINES):
        steps = "steps:\n- step: Segmentation\n  settings: {model: yolo, model_settings: {model: a/b, revision: c}}\n"
        yield {"metadata": {"name": f"htr-pipeline-p{number}", "uid": f"p{number}"}, "data": {"pipeline.yaml": steps}}


def _labels(number: int) -> dict[str, str]:
    return {
        "htrflow.riksarkivet.se/campaign": f"campaign-{number}",
        "htrflow.riksarkivet.se/pipeline": f"p{number % _PIPELINES}",
        "kueue.x-k8s.io/queue-name": "htr-batch",
    }


def _config_map(number: int, each: int) -> dict[str, t.Any]:
    lines = (
        f"R{number}-{index:06}\thttps://lbiiif.example.org/arkis!R{number}{index:06}/manifest\n"
        for index in range(each)
    )
    name = f"campaign-campaign-{number}"
    return {"metadata": {"name": name, "namespace": _NAMESPACE, "uid": name}, "data": {"volumes.txt": "".join(lines)}}


def _job(number: int, each: int) -> dict[str, t.Any]:
    metadata = {"name": f"campaign-{number}", "namespace": _NAMESPACE, "uid": f"j{number}", "labels": _labels(number)}
    metadata["creationTimestamp"] = "2026-01-05T10:00:00Z"
    spec = {"completions": each, "parallelism": _RUNNING, "suspend": False, "template": {"spec": {"containers": []}}}
    return {"metadata": metadata, "spec": spec, "status": {"completedIndexes": f"{each // 2}-{each - 10}"}}


def _owner(number: int) -> list[dict[str, t.Any]]:
    return [{"kind": "Job", "name": f"campaign-{number}", "uid": f"j{number}", "controller": True}]


def _workload(number: int) -> dict[str, t.Any]:
    metadata = {
        "name": f"job-{number}",
        "namespace": _NAMESPACE,
        "uid": f"w{number}",
        "ownerReferences": _owner(number),
    }
    return {"metadata": metadata, "status": {"conditions": [{"type": "Admitted", "status": "True"}]}}


def _pod(number: int, index: int, phase: str) -> dict[str, t.Any]:
    name = f"campaign-{number}-{index}-abcde"
    metadata = {
        "name": name,
        "namespace": _NAMESPACE,
        "uid": f"0000-{number}-{index}-11111111-2222",
        "creationTimestamp": "2026-01-05T10:00:00Z",
        "labels": {**_labels(number), "batch.kubernetes.io/job-name": f"campaign-{number}"},
        "annotations": {"batch.kubernetes.io/job-completion-index": str(index)},
        "ownerReferences": _owner(number),
    }
    state: dict[str, dict[str, t.Any]] = {"running": {"startedAt": "2026-01-05T10:00:05Z"}}
    if phase != "Running":
        message = '{"stage": "stream", "permanent": false, "error": "the store was away for a while"}'
        state = {
            "terminated": {"exitCode": int(phase == "Failed"), "finishedAt": "2026-01-05T11:00:00Z", "message": message}
        }
    status = {"phase": phase, "containerStatuses": [{"name": "wrapper", "state": state}]}
    return {"metadata": metadata, "spec": {"nodeName": f"gpu-{number % 40}"}, "status": status}


def _timed(work: t.Callable[[], object]) -> float:
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


def _show(what: str, seconds: list[float]) -> None:
    middle, high = statistics.median(seconds) * 1e3, sorted(seconds)[int(len(seconds) * 0.99)] * 1e3
    print(f"  {what:32}{middle:8.3f} ms   99 %: {high:8.3f} ms")


def _memory() -> float:
    """Megabytes that this process has in memory now."""
    pages = int(pathlib.Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    return pages * resource.getpagesize() / 1e6


if __name__ == "__main__":
    main()
