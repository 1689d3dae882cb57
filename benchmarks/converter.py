"""Measures the converter beside what a platform team would use for the same objects: Helm and Kustomize.

    python -m benchmarks.converter            measure, and print the tables
    python -m benchmarks.converter --write    write them into docs/benchmarks.md too

Every program runs as a process of its own on the same repo, in the same run; what counts are the ratios. Helm reads the
same campaign files and makes the same number of objects, without checking anything. Kustomize has no templates: it is
given a base Job and, for each campaign, a ready list of volumes and a patch.
"""

from __future__ import annotations

import json
import os
import pathlib
import shutil
import subprocess
import tempfile
import typing as t
import venv

from benchmarks.measure import Run, Stopped, measure
from benchmarks.page import command_line, publish
from benchmarks.yaml_readers import measure_readers
from tests import tools

TOP = pathlib.Path(__file__).parent.parent
VOLUMES = 200
SIZES = (100, 1000, 5000)
_IMAGE = "registry.example.org/htrflow-batch@sha256:" + "0123456789abcdef" * 4


def installed_converter(folder: pathlib.Path) -> pathlib.Path:
    """The command, installed from its lock file as the plugin's image installs it, with compiled byte code."""
    venv.create(folder, with_pip=True)
    pip = [str(folder / "bin" / "pip"), "--quiet", "--disable-pip-version-check", "install", "--compile"]
    subprocess.run([*pip, "--require-hashes", "-r", str(TOP / "requirements" / "converter.lock")], check=True)
    subprocess.run([*pip, "--no-deps", str(TOP)], check=True)
    return folder / "bin" / "htrflow-campaigns"


def write_repo(folder: pathlib.Path, campaigns: int) -> None:
    """A repo of ``campaigns`` campaigns with 200 volumes each: half of them bare codes, half with their manifests."""
    for name in ("campaigns", "pipelines"):
        (folder / name).mkdir(parents=True)
    (folder / "converter.yaml").write_text(
        "results_url: https://htr.example.org/results\nsource_template: https://iiif.example.org/{ref}/manifest\n"
    )
    steps = [
        ("Segmentation", "yolo", "regions"),
        ("Segmentation", "yolo", "lines"),
        ("TextRecognition", "TrOCR", "text"),
    ]
    (folder / "pipelines" / "demo-v1.yaml").write_text(
        f"image: {_IMAGE}\nsteps:\n"
        + "".join(
            f"  - step: {step}\n    settings:\n      model: {model}\n      model_settings: {{model: example/{name}}}\n"
            for step, model, name in steps
        )
    )
    for number in range(campaigns):
        refs = [f"R{number * VOLUMES + index:07d}" for index in range(VOLUMES)]
        if number % 2:
            rows = "".join(f"  - {ref}\n" for ref in refs)
        else:
            rows = "".join(f"  - id: {ref}\n    manifest: https://iiif.example.org/{ref}/manifest\n" for ref in refs)
        (folder / "campaigns" / f"campaign-{number:05d}.yaml").write_text(f"pipeline: demo-v1\nvolumes:\n{rows}")


def write_chart(folder: pathlib.Path, repo: pathlib.Path) -> None:
    shutil.copytree(TOP / "benchmarks" / "chart", folder)
    shutil.copytree(repo / "campaigns", folder / "campaigns")


def write_kustomization(folder: pathlib.Path, generated: pathlib.Path) -> None:
    """A base Job, and an overlay for each campaign that names its Job, its number of volumes and its list."""
    objects = [json.loads(line) for line in generated.read_bytes().splitlines()]
    jobs = {o["metadata"]["name"]: o for o in objects if o["kind"] == "Job" and "completions" in o["spec"]}
    lists = {o["metadata"]["name"]: o["data"]["volumes.txt"] for o in objects if "volumes.txt" in o.get("data", {})}
    base = {**next(iter(jobs.values()))}
    base["metadata"] = {**base["metadata"], "name": "campaign"}
    _write(folder / "base" / "job.yaml", base)
    _write(folder / "base" / "kustomization.yaml", {"resources": ["job.yaml"]})
    for name, job in jobs.items():
        (folder / name).mkdir()
        (folder / name / "volumes.txt").write_text(lists[f"campaign-{name}"])
        patch = [
            {"op": "replace", "path": "/metadata/name", "value": name},
            {"op": "replace", "path": "/spec/completions", "value": job["spec"]["completions"]},
            {"op": "replace", "path": "/spec/maxFailedIndexes", "value": job["spec"]["completions"]},
        ]
        generator = {"name": f"campaign-{name}", "files": ["volumes.txt"], "options": {"disableNameSuffixHash": True}}
        overlay = {
            "resources": ["../base"],
            "configMapGenerator": [generator],
            "patches": [{"target": {"kind": "Job"}, "patch": json.dumps(patch)}],
        }
        _write(folder / name / "kustomization.yaml", overlay)
    _write(folder / "kustomization.yaml", {"resources": sorted(jobs)})


def _write(file: pathlib.Path, data: object) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps(data))


def check_same_objects(ours: Run, helm: Run, campaigns: int) -> None:
    """Helm's chart makes what we make: as many Jobs, and the same lists of volumes."""
    lists = sorted(
        o["data"]["volumes.txt"]
        for o in map(json.loads, ours.output.read_bytes().splitlines())
        if "volumes.txt" in o.get("data", {})
    )
    text = helm.output.read_text()
    assert text.count("\nkind: Job\n") == campaigns
    assert len(lists) == campaigns
    for volumes in (lists[0], lists[-1]):
        assert "".join(f"    {line}\n" for line in volumes.splitlines()) in text


def change_one(repo: pathlib.Path) -> None:
    """Makes ``repo`` a git repository in which one campaign is paused since the last commit."""
    git = ["git", "-C", str(repo), "-c", "user.name=a", "-c", "user.email=a@example.org", "-c", "commit.gpgsign=false"]
    for arguments in (["init", "--quiet"], ["add", "--all"], ["commit", "--quiet", "--message=campaigns"]):
        subprocess.run([*git, *arguments], check=True)
    file = next(repo.glob("campaigns/*.yaml"))
    file.write_text(f"suspend: true\n{file.read_text()}")


Results = dict[tuple[str, int], Run | Stopped]


def measure_all(sizes: t.Sequence[int], work: pathlib.Path) -> tuple[dict[str, Run], dict[str, Run], Results]:
    helm, kubectl = tools.get("helm"), tools.get("kubectl")
    converter = installed_converter(work / "venv")
    example = work / "example"
    subprocess.run([converter, "init", example], check=True, stdout=subprocess.DEVNULL)
    start = {
        "python -c pass": measure([work / "venv" / "bin" / "python", "-c", "pass"], work / "out", 9),
        "generate": measure([converter, "generate", example], work / "out", 9),
        "validate": measure([converter, "validate", example], work / "out", 9),
    }
    (one := work / "one").mkdir()
    write_repo(one / "repo", 1)
    write_chart(one / "chart", one / "repo")
    start["helm template, one campaign"] = measure([helm, "template", one / "chart"], work / "out", 9)
    write_repo(work / "read", 100)
    (work / "read" / "large").mkdir()
    rows = "".join(f"- id: R{n:07d}\n  manifest: https://iiif.example.org/R{n:07d}/manifest\n" for n in range(40_000))
    (work / "read" / "large" / "large.yaml").write_text(f"pipeline: demo-v1\nvolumes:\n{rows}")
    readers = measure_readers(work / "venv" / "bin" / "python", work / "read", work / "out")
    found: Results = {}
    for size in sizes:
        folder = work / str(size)
        folder.mkdir()
        repo = folder / "repo"
        write_repo(repo, size)
        os.environ["HTRFLOW_CAMPAIGNS_MAX_MIB"] = "1000"
        repeat = 3 if size <= 1000 else 1
        ours = measure([converter, "generate", repo], folder / "ours.ndjson", repeat)
        assert isinstance(ours, Run), ours
        found["generate", size] = ours
        found["validate", size] = measure([converter, "validate", repo], folder / "validated", repeat)
        write_chart(folder / "chart", repo)
        helms = measure([helm, "template", folder / "chart"], folder / "helm.yaml", repeat)
        found["helm template", size] = helms
        if isinstance(helms, Run):
            check_same_objects(ours, helms, size)
        write_kustomization(folder / "kustomize", ours.output)
        overlays, output = folder / "kustomize", folder / "kustomize.yaml"
        found["kubectl kustomize", size] = measure([kubectl, "kustomize", overlays], output)
        shutil.rmtree(folder / "kustomize")
        change_one(repo)
        planning: list[str | pathlib.Path] = [converter, "plan", repo, "--base", "HEAD"]
        found["plan, one campaign changed", size] = measure(planning, folder / "plan.md", repeat)
    assert all(isinstance(run, Run) for run in start.values()), start
    return t.cast("dict[str, Run]", start), readers, found


def tables(start: dict[str, Run], readers: dict[str, Run], found: Results, sizes: t.Sequence[int]) -> str:
    ours = start["generate"]
    lines = ["| start-up on the example repo | time | CPU | times `generate` |", "|---|---|---|---|"]
    for name, begun in start.items():
        lines.append(
            f"| {name} | {begun.wall * 1000:.0f} ms | {begun.cpu * 1000:.0f} ms | {begun.wall / ours.wall:.2f} |"
        )
    lines += [
        "",
        f"| campaigns of {VOLUMES} volumes | program | time | CPU | peak memory | time a campaign | times `generate` |",
    ]
    lines += ["|---|---|---|---|---|---|---|"]
    for size in sizes:
        reference = found["generate", size]
        assert isinstance(reference, Run), reference
        for (name, of), run in found.items():
            if of != size:
                continue
            if isinstance(run, Stopped):
                lines.append(f"| {size} | {name} | {run.why} | | | | |")
                continue
            row = [
                f"{run.wall:.2f} s",
                f"{run.cpu:.2f} s",
                f"{run.megabytes:.0f} MB",
                f"{run.wall / size * 1000:.2f} ms",
            ]
            lines.append(f"| {size} | {name} | {' | '.join(row)} | {run.wall / reference.wall:.1f} |")
    lines += [
        "",
        f"| reading YAML | 100 campaigns of {VOLUMES} volumes | times the converter | peak memory, 40 000 volumes |",
    ]
    lines += ["|---|---|---|---|"]
    first = next(iter(readers.values()))
    for name, reading in readers.items():
        ratio = f"{reading.wall / first.wall:.1f}"
        lines.append(f"| {name} | {reading.wall:.2f} s | {ratio} | {reading.megabytes:.0f} MB |")
    return "\n".join(lines)


def main() -> None:
    parser = command_line(__doc__)
    parser.add_argument("--campaigns", type=int, nargs="+", default=SIZES, help="how many campaigns to measure with")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as work:
        start, readers, found = measure_all(options.campaigns, pathlib.Path(work))
    text = tables(start, readers, found, options.campaigns)
    publish("measured", "", text, write=options.write)


if __name__ == "__main__":
    main()
