"""What the state of the status site costs: ``python -m benchmarks.site_state CAMPAIGNS`` prints it as JSON.

Fills the cache with the objects of a cluster, and measures memory, one pod event, and each way of reading.
"""

from __future__ import annotations

import functools
import gc
import json
import pathlib
import resource
import statistics
import sys
import time
import typing as t

from benchmarks.site_cluster import Cluster
from benchmarks.site_objects import NAMESPACE, VOLUMES, WINDOW, Campaign, Object, pod, volume_id
from htrflow_status.sources.cache import Cache
from htrflow_status.sources.intake import Intake

_EVENTS = 2000


def measure(campaigns: int) -> dict[str, float]:
    """Megabytes by name, and milliseconds: the median of many."""
    gc.collect()
    before = _memory()
    cluster, cache = Cluster(campaigns), Cache()
    intake = Intake(cache, NAMESPACE)
    for kind in ("configmaps", "jobs", "workloads", "pods"):
        intake.replace(kind, cluster.objects(kind))
    gc.collect()
    found = {"memory (MB)": _memory() - before}
    found["all campaigns, the first time"] = _timed(cache.snapshot().campaigns)
    running = [campaign for campaign in cluster.campaigns if campaign.state == "running"]
    places = [(running[n % len(running)], n // len(running) % WINDOW) for n in range(_EVENTS)]
    waiting, works = ([_event(*place, phase) for place in places] for phase in ("Pending", "Running"))
    found["one pod event"] = _median(functools.partial(intake.put, "pods", event) for event in waiting)
    found["all campaigns after an event"] = _median(_after(cache, intake, event) for event in works[:200])
    shot = cache.snapshot()
    one = shot.campaigns()[0]
    last = volume_id(0, VOLUMES - 1)
    found["the volumes of a campaign"] = _median([lambda: shot.volumes(one)] * 200)
    found["a volume by its id"] = _median([lambda: shot.volume(one, last)] * 200)
    found["a search for one volume"] = _median([lambda: shot.find(last)] * 20)
    found["a search for what is everywhere"] = _median([lambda: shot.find("R", 6)] * 20)
    return found


def _event(campaign: Campaign, place: int, phase: str) -> Object:
    return {**pod(campaign, campaign.begun + place), "status": {"phase": phase}}


def _after(cache: Cache, intake: Intake, event: t.Any) -> t.Callable[[], object]:
    intake.put("pods", event)
    return cache.snapshot().campaigns


def _median(works: t.Iterable[t.Callable[[], object]]) -> float:
    return statistics.median(_timed(work) for work in works)


def _timed(work: t.Callable[[], object]) -> float:
    began = time.perf_counter()
    work()
    return (time.perf_counter() - began) * 1e3


def _memory() -> float:
    """Megabytes that this process has in memory now."""
    pages = int(pathlib.Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    return pages * resource.getpagesize() / 1e6


if __name__ == "__main__":
    json.dump(measure(int(sys.argv[1])), sys.stdout)
