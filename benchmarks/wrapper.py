"""Measures the wrapper beside htrflow's own command, which reads and writes local files.

    python -m benchmarks.wrapper            measure, and print the tables
    python -m benchmarks.wrapper --write    write them into docs/benchmarks.md too

Both read the same pages with the same models on the same machine, in turns. The wrapper gets the pages over HTTP and
brings the results to an S3 server; both servers run on the same processors.
"""

from __future__ import annotations

import concurrent.futures
import dataclasses
import datetime
import json
import os
import pathlib
import re
import sys
import tempfile
import typing as t

import yaml

from benchmarks.page import command_line, publish
from benchmarks.watched import Watched
from tests.models import drawing, hub, pipeline
from tests.testbed.plugin import s3
from tests.testbed.plugin.misbehaving_http import MisbehavingHttp
from tests.testbed.plugin.run import Run as Testbed
from tests.wrapper.pods import Pod

TOP = pathlib.Path(__file__).parent.parent
PAGES, ROUNDS = 100, 4
BATCHES = (1, 4, 16)
_QUALITY = 90
#: Seeds from here on are of no page that the models learnt from.
_UNSEEN = 2_000_000
_DONE = re.compile(r"^(\S+Z) INFO  \[\w+\] page \d+ done:", re.MULTILINE)
_WAITED = re.compile(r"the model worked for [0-9.]+ s and waited for [0-9.]+ s \(([0-9.]+) %\)")
_WRAPPER = "wrapper"
_ELSE = "all else: threads, queues, the main loop, resuming and verifying"


@dataclasses.dataclass(frozen=True)
class Measured:
    """One run. ``start`` is what it took before the first page could begin, ``rate`` the pages a second after that.

    ``whole`` is from beginning to end, in seconds. ``cpu`` is the processor time of a page in seconds: of the program
    that runs the models, and of the one beside it. ``waited`` is the share of time without work for the models, in
    percent.
    """

    start: float
    rate: float
    whole: float
    cpu: tuple[float, float]
    waited: float | None = None


def draw(number: int, path: pathlib.Path) -> None:
    drawing.page(_UNSEEN + number).image.save(path, "JPEG", quality=_QUALITY)


def draw_all(folder: pathlib.Path, pages: int) -> list[pathlib.Path]:
    folder.mkdir()
    paths = [folder / f"page_{number:04}.jpg" for number in range(1, pages + 1)]
    with concurrent.futures.ProcessPoolExecutor() as pool:
        list(pool.map(draw, range(1, pages + 1), paths))
    return paths


class Bench:
    """The pages, the models, and the two servers."""

    def __init__(self, work: pathlib.Path, pages: int) -> None:
        self._work, self._count = work, 0
        self.images = draw_all(work / "pages", pages)
        self._home = work / "hf"
        self._steps = pipeline.steps(hub.lay_out(self._home))["steps"]
        (work / "s3").mkdir()
        (work / "testbed").mkdir()
        self._testbed = Testbed(work / "testbed", os.getpid())
        self._store = s3.Store(**s3.start_shared(self._testbed, work / "s3"))
        self._store.create_bucket()
        self._http = MisbehavingHttp()
        self._http.serve("/pages/", work / "pages")

    def close(self) -> None:
        self._http.close()
        self._testbed.close()

    def command(self, batch: int) -> Measured:
        """``htrflow pipeline``, which exports both formats after each batch."""
        folder = self._folder()
        exports = [
            {"step": "Export", "settings": {"dest": str(folder / name), "format": name}} for name in ("alto", "page")
        ]
        steps = folder / "pipeline.yaml"
        steps.write_text(yaml.safe_dump({"steps": [*self._steps, *exports]}))
        program = pathlib.Path(sys.executable).with_name("htrflow")
        run = Watched(
            [program, "pipeline", steps, self.images[0].parent, "--batch-output", str(batch)],
            folder / "printed",
            {**os.environ, **self._variables(folder)},
        )
        written = sorted(path.stat().st_mtime for path in (folder / "page").rglob("*.xml"))
        assert len(written) == len(self.images), f"{len(written)} pages came out"
        return _measured(run, written, batch)

    def wrapper(self, parts: pathlib.Path | None = None) -> Measured:
        """The wrapper. ``parts`` is a file for what its parts took, if they are to be timed."""
        folder = self._folder()
        pod = Pod(
            self._store,
            folder,
            volume=f"R{self._count:07}",
            engine="",
            steps=yaml.safe_dump({"steps": self._steps}).encode(),
        )
        images = " ".join(f"{self._http.url}/pages/{path.name}" for path in self.images)
        environment = {**pod.environment(IMAGES=images), **self._variables(folder)}
        module = "htrflow_batch"
        if parts:
            module = "benchmarks.timed_wrapper"
            environment |= {"TIMED": str(parts), "ENGINE": "benchmarks.timed_engine"}
        run = Watched([sys.executable, "-m", module], folder / "printed", environment)
        printed = pod.printed()
        done = sorted(datetime.datetime.fromisoformat(moment).timestamp() for moment in _DONE.findall(printed))
        counts = pod.json("manifest.json")["counts"]
        assert counts["text"] + counts["low_confidence"] == len(self.images) == len(done), counts
        waited = _WAITED.search(printed)
        assert waited
        return dataclasses.replace(_measured(run, done, 8), waited=float(waited[1]))

    def _folder(self) -> pathlib.Path:
        self._count += 1
        folder = self._work / f"run-{self._count}"
        folder.mkdir()
        return folder

    def _variables(self, folder: pathlib.Path) -> dict[str, str]:
        return {
            "HF_HOME": str(self._home),
            "HF_HUB_OFFLINE": "1",
            "YOLO_CONFIG_DIR": str(folder),
            "YOLO_OFFLINE": "true",
            "TQDM_DISABLE": "1",
            "PYTHONUTF8": "1",
        }


def _measured(run: Watched, done: t.Sequence[float], first: int) -> Measured:
    """``done`` is when each page came out, and ``first`` how many came out together at first."""
    count = len(done) - first
    begin, end = done[first - 1], done[-1]
    rate = count / (end - begin)
    own, child = run.between(begin, end)
    models, beside = (child, own) if child else (own, 0.0)
    start = begin - run.started - first / rate
    return Measured(start, rate, run.ended - run.started, (models / count, beside / count))


def fastest(runs: t.Sequence[Measured]) -> Measured:
    """The run that others on the machine disturbed least."""
    return max(runs, key=lambda run: run.rate)


def measure_all(bench: Bench, rounds: int) -> dict[str, list[Measured]]:
    found: dict[str, list[Measured]] = {}
    for number in range(rounds):
        for batch in BATCHES:
            found.setdefault(f"`htrflow pipeline --batch-output {batch}`", []).append(bench.command(batch))
        found.setdefault(_WRAPPER, []).append(bench.wrapper())
        said = ", ".join(f"{runs[-1].rate:.2f}" for runs in found.values())
        print(f"round {number + 1}: {said} pages a second", file=sys.stderr, flush=True)
    return found


def tables(found: dict[str, list[Measured]], parts: dict[str, float], model: dict[str, float], pages: int) -> str:
    ours = fastest(found[_WRAPPER])
    lines = [
        "| program | start and models | pages a second | the wrapper's to it | in all | CPU a page | models wait |",
        "|---|---|---|---|---|---|---|",
    ]
    for name, runs in found.items():
        run, slowest = fastest(runs), min(each.rate for each in runs)
        row = [
            f"{min(each.start for each in runs):.1f} s",
            f"{run.rate:.2f} (slowest round {slowest:.2f})",
            f"{ours.rate / run.rate:.2f}",
            f"{min(each.whole for each in runs):.1f} s",
            " + ".join(f"{part * 1000:.0f}" for part in min(each.cpu for each in runs) if part) + " ms",
            "" if run.waited is None else f"{max(each.waited or 0.0 for each in runs):.1f} %",
        ]
        lines.append(f"| {name} | {' | '.join(row)} |")
    spent = parts["whole"] - parts["start"]
    rows = {name: seconds for name, seconds in parts.items() if name not in ("whole", "start")}
    rows[_ELSE] = spent - sum(rows.values())
    in_model = {name.removeprefix("ours: "): value for name, value in model.items() if name.startswith("ours")}
    lines += ["", "| our own work, from the first page on | CPU a page |", "|---|---|"]
    for name, seconds in sorted(rows.items(), key=lambda row: -row[1]):
        lines.append(f"| {name} | {seconds / pages * 1000:.2f} ms |")
    for name, seconds in in_model.items():
        lines.append(f"| in the process with the models: {name} | {seconds / pages * 1000:.2f} ms |")
    whole = spent + sum(in_model.values())
    lines.append(f"| **together** | **{whole / pages * 1000:.1f} ms** |")
    return "\n".join(lines)


def main() -> None:
    parser = command_line(__doc__)
    parser.add_argument("--pages", type=int, default=PAGES, help="how many pages each run reads")
    parser.add_argument("--rounds", type=int, default=ROUNDS, help="how often each program runs")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as work:
        bench = Bench(pathlib.Path(work), options.pages)
        try:
            found = measure_all(bench, options.rounds)
            parts = pathlib.Path(work) / "parts"
            bench.wrapper(parts)
            ours = json.loads(parts.read_text())
            model = json.loads(parts.with_name("parts.model").read_text())
        finally:
            bench.close()
    text = tables(found, ours, model, options.pages)
    publish("wrapper", f"{options.pages} pages, {options.rounds} rounds", text, write=options.write)


if __name__ == "__main__":
    main()
