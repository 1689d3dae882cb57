"""A volume of 2 000 pages: what it holds at a time does not grow with it, nor do its logs flood the store."""

from __future__ import annotations

import dataclasses
import os
import pathlib
import subprocess
import time
import typing as t

import pytest

from tests.testbed.plugin.misbehaving_http import MisbehavingHttp
from tests.testbed.plugin.s3 import Store
from tests.wrapper import pods, volumes
from tests.wrapper.watched_store import WatchedStore

pytestmark = pytest.mark.slow

PAGES = 2000
#: From here on everything is warm: buffers have their size, and threads their arenas.
WARM = 200
#: What the store may get of each document over the whole run, in bytes, however fast or slow the run is.
MOST_BYTES = {"the run log": 3_000_000, "progress.json": 4_000_000, "iiif.json": 12_000_000}
_MIB = 1024 * 1024


@dataclasses.dataclass(frozen=True)
class Sample:
    """What was there at one moment. Memory is in bytes."""

    pages: int
    wrapper: int
    model: int
    descriptors: int
    files: int


def test_memory_open_files_and_files_on_disk_stay_the_same_over_2000_pages(
    s3: Store, misbehaving_http: MisbehavingHttp, tmp_path: pathlib.Path, record_property: t.Callable[..., None]
) -> None:
    pictures = [pods.picture(number) for number in range(2, 12)]
    bodies = [volumes.image(misbehaving_http.put(f"/p/{number}.jpg", pictures[number % 10])) for number in range(PAGES)]
    watched = WatchedStore(s3.url)
    pod = pods.Pod(s3, tmp_path, pods.serve_manifest(misbehaving_http, bodies), url=watched.url)
    began = time.monotonic()
    process = pod.start()
    samples: list[Sample] = []
    while process.poll() is None:
        if (sample := _sample(pod, process, watched)) is not None:
            samples.append(sample)
        time.sleep(0.25)
    took = time.monotonic() - began
    ended = pod.wait(process)
    watched.close()

    assert ended.code == 0, ended.log
    counts = pod.json("manifest.json")["counts"]
    assert (counts["done"], counts["failed"]) == (PAGES, 0)
    assert list((tmp_path / "work/pages").iterdir()) == []
    warm = [sample for sample in samples if sample.pages >= WARM]
    early, late = warm[: len(warm) // 8 or 1], warm[-(len(warm) // 8 or 1) :]
    assert len(warm) > 20
    for name, least in (("wrapper", 16 * _MIB), ("model", 8 * _MIB), ("descriptors", 16), ("files", 40)):
        first, last = (max(getattr(sample, name) for sample in some) for some in (early, late))
        record_property(f"{name} after {early[0].pages} pages and at the end", f"{first} {last}")
        # A little more than nothing: what is known of 1 800 pages more has its weight.
        assert last <= max(first * 1.15, first + least), f"{name}: {first} after {early[0].pages} pages, {last} at last"
    # The window of pages in flight, with those that are being fetched.
    assert max(sample.files for sample in samples) <= 32 + 8

    names = {"the run log": f"status/logs/demo-v1/{pod.volume}.txt", "progress.json": "", "iiif.json": ""}
    for name, key in names.items():
        written = f"htr-batch/{key}" if key else f"{pod.prefix}{name}"
        record_property(f"bytes and writes of {name}", f"{watched.sent[written]} {watched.written[written]}")
        print(f"{name}: {watched.written[written]} writes, {watched.sent[written]} bytes")
        assert 0 < watched.sent[written] < MOST_BYTES[name]
    record_property("pages a second", f"{PAGES / took:.1f}")
    print(f"{PAGES / took:.1f} pages a second; {warm[0]}; {warm[-1]}")


def _sample(pod: pods.Pod, process: subprocess.Popen[bytes], watched: WatchedStore) -> Sample | None:
    """None at a moment at which a process comes or goes."""
    try:
        children = pathlib.Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
        if not children:
            return None
        with watched.lock:
            pages = sum("/alto/" in key for key in watched.written)
        descriptors = sum(1 for _ in pathlib.Path(f"/proc/{process.pid}/fd").iterdir())
        files = sum(len(names) for _, _, names in os.walk(pod.folder / "work"))
        return Sample(pages, _resident(process.pid), _resident(int(children[0])), descriptors, files)
    except (OSError, IndexError):
        return None


def _resident(pid: int) -> int:
    return int(pathlib.Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
