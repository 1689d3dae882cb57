"""Measures ``apply`` beside ``kubectl apply`` of the same objects, on a real API server with Kueue.

    python -m benchmarks.apply            measure, and print the table
    python -m benchmarks.apply --write    write it into docs/benchmarks.md too

Both run as processes of their own on the same cluster, which the test bed starts, one after the other, each in
namespaces of its own whose quota is nothing: campaigns are queued, and no pod runs. kubectl sends what
``htrflow-campaigns render`` has written, with server-side apply as our command does. It looks at nothing first: neither
at what is there, nor at whether the API server would take a Job.
"""

from __future__ import annotations

import contextlib
import os
import pathlib
import subprocess
import sys
import tempfile
import typing as t

from benchmarks.converter import write_repo
from benchmarks.measure import Run, Stopped, measure
from benchmarks.page import command_line, publish
from tests import tools
from tests.testbed.plugin import cluster as clusters
from tests.testbed.plugin.cluster import Cluster
from tests.testbed.plugin.namespace import Namespace
from tests.testbed.plugin.run import Run as Testbed

SIZES = (10, 100, 500)
_PROGRAMS = ("apply", "kubectl apply")
_TIMES = ("everything is new", "nothing has changed", "one campaign is new")

Results = dict[tuple[int, str, str], Run | Stopped]


@contextlib.contextmanager
def started() -> t.Iterator[Cluster]:
    """A cluster that ends with this process."""
    with tempfile.TemporaryDirectory(prefix="benchmark-") as name:
        folder = pathlib.Path(name)
        (folder / "cluster").mkdir()
        with contextlib.closing(Testbed(folder, os.getpid())) as testbed:
            state = clusters.start(testbed, folder / "cluster")
            with contextlib.closing(clusters.join(testbed, state, folder)) as joined:
                yield joined


def measure_size(cluster: Cluster, campaigns: int, work: pathlib.Path) -> Results:
    """Both programs on a repo of so many campaigns."""
    found: Results = {}
    for program in _PROGRAMS:
        namespace = Namespace(cluster.api, f"{program.replace(' ', '-')}-{campaigns}")
        namespace.create()
        namespace.quota(gpu=0)
        repo = work / namespace.name
        write_repo(repo, campaigns + 1)
        with (repo / "converter.yaml").open("a", encoding="utf-8") as stream:
            stream.write(f"namespace: {namespace.name}\n")
        last = max((repo / "campaigns").iterdir())
        aside = last.rename(work / last.name)
        for time in _TIMES:
            if time == _TIMES[-1]:
                aside.rename(last)
            found[campaigns, time, program] = _run(program, cluster, repo, work)
    return found


def _run(program: str, cluster: Cluster, repo: pathlib.Path, work: pathlib.Path) -> Run | Stopped:
    ours = [sys.executable, "-m", "htrflow_campaigns"]
    identity = f"--kubeconfig={cluster.admin}"
    if program == "apply":
        return measure([*ours, "apply", repo, identity], work / "printed")
    rendered = work / f"{repo.name}-rendered"
    subprocess.run([*ours, "render", str(repo), "--out", str(rendered)], check=True, stdout=subprocess.DEVNULL)
    send = ["apply", "--server-side", "--recursive", f"--filename={rendered}"]
    return measure([tools.get("kubectl"), identity, *send], work / "printed")


def table(found: Results) -> str:
    """One row a run."""
    lines = [
        "| campaigns of 200 volumes | | program | time | CPU | peak memory | times `kubectl apply` |",
        "|---|---|---|---|---|---|---|",
    ]
    for size, time, program in sorted(found, key=lambda row: (row[0], _TIMES.index(row[1]), row[2])):
        run, reference = found[size, time, program], found[size, time, _PROGRAMS[-1]]
        if isinstance(run, Stopped) or isinstance(reference, Stopped):
            lines.append(f"| {size} | {time} | {program} | {run.why if isinstance(run, Stopped) else ''} | | | |")
            continue
        row = [f"{run.wall:.1f} s", f"{run.cpu:.1f} s", f"{run.megabytes:.0f} MB", f"{run.wall / reference.wall:.1f}"]
        lines.append(f"| {size} | {time} | {program} | {' | '.join(row)} |")
    return "\n".join(lines)


def main() -> None:
    parser = command_line(__doc__)
    parser.add_argument("--campaigns", type=int, nargs="+", default=SIZES, help="how many campaigns to measure with")
    options = parser.parse_args()
    found: Results = {}
    with started() as cluster, tempfile.TemporaryDirectory() as work:
        for size in options.campaigns:
            found |= measure_size(cluster, size, pathlib.Path(work))
    publish("apply", "", table(found), write=options.write)


if __name__ == "__main__":
    main()
