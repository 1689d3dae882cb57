"""Measures the status site with 1 000 campaigns, beside a site that asks the API server for each page.

    python -m benchmarks.statuspage            measure, and print the tables
    python -m benchmarks.statuspage --write    write them into docs/benchmarks.md too

The API server, the store, the site's two programs and whoever asks are processes of their own and share the processors.
"""

from __future__ import annotations

import contextlib
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import typing as t

from benchmarks import site_results
from benchmarks.page import command_line, publish
from benchmarks.site_cluster import Cluster
from benchmarks.site_measured import TOP, Load, Loaded, server, under_load, without_cache
from benchmarks.site_objects import VOLUMES
from tests.testbed.plugin import s3
from tests.testbed.plugin.run import Run

_SHARES = (0.5, 0.95, 0.99)
Plain = tuple[dict[str, float], float, float]


def measure(load: Load) -> tuple[Loaded, Plain, dict[int, dict[str, float]]]:
    """The site under load, the one that lists, and what the state costs by the number of campaigns."""
    with tempfile.TemporaryDirectory() as name, contextlib.ExitStack() as ending:
        work = pathlib.Path(name)
        testbed = Run(work / "testbed", os.getpid())
        testbed.folder.mkdir()
        ending.callback(testbed.close)
        store = s3.Store(**s3.start_shared(testbed, work / "s3"))
        store.create_bucket()
        site_results.write(work / "s3" / "buckets" / store.bucket, load.campaigns)
        api = ending.enter_context(server("site_cluster", str(load.campaigns)))
        loaded = under_load(work, api, store, _store_pid(testbed), load)
        plain = without_cache(api)
    sizes = sorted({max(10, load.campaigns * part // 100) for part in (10, 50, 100)})
    return loaded, plain, {size: _state(size) for size in sizes}


def _store_pid(testbed: Run) -> int:
    """The process of the store, which its keeper started."""
    keeper = json.loads((testbed.folder / "processes").read_text(encoding="utf-8").splitlines()[-1])[1]
    for stat in pathlib.Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            if int(stat.read_text(encoding="utf-8").rpartition(") ")[2].split()[1]) == keeper:
                return int(stat.parent.name)
    raise ProcessLookupError("the store does not run")


def _state(campaigns: int) -> dict[str, float]:
    command = [sys.executable, "-m", "benchmarks.site_state", str(campaigns)]
    found = subprocess.run(command, cwd=TOP, stdout=subprocess.PIPE, check=True)
    return t.cast("dict[str, float]", json.loads(found.stdout))


def tables(loaded: Loaded, plain: Plain, states: t.Mapping[int, t.Mapping[str, float]]) -> str:
    lines = ["| page | requests | 50 % within | 95 % within | 99 % within |", "|---|---|---|---|---|"]
    everything = sorted(second for seconds in loaded.seconds.values() for second in seconds)
    first = "opened for the first time by a session, before the load"
    for kind, seconds in [*sorted(loaded.seconds.items()), ("all of them", everything), (first, loaded.first)]:
        within = " | ".join(f"{_percentile(seconds, share) * 1000:.0f} ms" for share in _SHARES)
        lines.append(f"| {kind} | {len(seconds)} | {within} |")
    lines += ["", "| program | share of one processor | peak memory |", "|---|---|---|"]
    for name, share in loaded.cpu.items():
        if name != "seconds":
            memory = f"{loaded.megabytes[name]:.0f} MB" if name in loaded.megabytes else ""
            lines.append(f"| {name} | {100 * share:.0f} % | {memory} |")
    lines += [
        "",
        f"Answers that were none: {loaded.wrong}. Events meanwhile: {loaded.events}. Lists asked of the API server: "
        f"{loaded.lists[0]} before the load, of 500 objects at most, and {loaded.lists[1]} during it. The site was "
        f"started and showed everything after {loaded.ready:.0f} s.",
        "",
        "| a page that lists | time | times the site's |",
        "|---|---|---|",
    ]
    medians, cpu, megabytes = plain
    for kind, second in medians.items():
        ratio = second / _percentile(loaded.seconds[kind], 0.5)
        lines.append(f"| {kind} | {second * 1000:.0f} ms | {ratio:.1f} |")
    lines += [
        f"| processor time for `/` | {cpu * 1000:.0f} ms | {cpu / loaded.cpu_of_page:.0f} |",
        f"| peak memory | {megabytes:.0f} MB | {megabytes / loaded.megabytes['web']:.1f} |",
        "",
        f"| state | {' | '.join(f'{size} campaigns' for size in states)} |",
        f"|---|{'---|' * len(states)}",
    ]
    for what in next(iter(states.values())):
        row = [f"{state[what]:.0f} MB" if "MB" in what else f"{state[what]:.3f} ms" for state in states.values()]
        lines.append(f"| {what.removesuffix(' (MB)')} | {' | '.join(row)} |")
    return "\n".join(lines)


def _percentile(ordered: t.Sequence[float], share: float) -> float:
    return ordered[min(len(ordered) - 1, int(len(ordered) * share))]


def main() -> None:
    parser = command_line(__doc__)
    parser.add_argument("--campaigns", type=int, default=1000)
    parser.add_argument("--rate", type=float, default=50.0, help="requests a second")
    parser.add_argument("--seconds", type=float, default=60.0, help="how long the load lasts")
    parser.add_argument("--settle", type=float, default=30.0, help="how long pages are open before it")
    options = parser.parse_args()
    load = Load(options.campaigns, options.rate, options.seconds, options.settle)
    text = tables(*measure(load))
    pods = sum(len(campaign.pods) for campaign in Cluster(load.campaigns).campaigns)
    size = (
        f"{load.campaigns} campaigns, {load.campaigns * VOLUMES} volumes, {pods} pods, {load.rate:g} requests a second"
    )
    publish("status site", f"{size} for {load.seconds:g} s", text, write=options.write)


if __name__ == "__main__":
    main()
