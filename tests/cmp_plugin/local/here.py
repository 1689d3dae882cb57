"""Runs what the converter renders on this machine, with scripts in place of the programs of the containers."""

from __future__ import annotations

import contextlib
import copy
import dataclasses
import json
import math
import pathlib
import shlex
import time
import typing as t

from htrflow_campaigns.local import repo as local_repo
from htrflow_campaigns.local.data import Data
from htrflow_campaigns.local.repo import Wanted
from htrflow_campaigns.local.runner import Runner, Settings
from tests.cmp_plugin.conftest import Repo
from tests.cmp_plugin.local.cases import WAIT, WARMUP, WRAPPER, Case, End, Object

SECRETS = {"htr-batch-s3": {"S3_BUCKET": "results"}}
#: Seconds before the first retry. Kubernetes has 10.
PAUSE = 0.05


class Here:
    """A runner in a folder, which can be left and started again."""

    def __init__(self, folder: pathlib.Path, slots: int = 4, secrets: t.Mapping[str, t.Mapping[str, str]] = SECRETS):
        self._folder, self._settings = folder, Settings(slots, secrets, {}, PAUSE)
        self.data = Data(folder)
        self.runner = Runner(self.data, self._settings)

    def again(self, *, slots: int | None = None) -> None:
        """Starts another runner, as if this one had been killed."""
        left = self.runner
        self.data.close()
        if slots is not None:
            self._settings = dataclasses.replace(self._settings, slots=slots)
        self.data = Data(self._folder)
        self.runner = Runner(self.data, self._settings)
        # Somebody has to wait for the processes, and a runner that was killed has init for that.
        for pod in left._pods.values():
            while pod.ended is None:
                pod.stop()
                pod.poll()

    def until(self, condition: t.Callable[[], object], seconds: float = 10) -> None:
        """Goes on until the condition holds."""
        limit = time.monotonic() + seconds
        while not condition():
            assert time.monotonic() < limit, {name: job.status for name, job in self.runner.jobs.items()}
            if not self.runner.step():
                time.sleep(0.005)

    def idle(self, seconds: float = 10) -> None:
        """Goes on until there is nothing left to do."""
        self.until(lambda: self.runner.idle, seconds)

    def pods(self, job: str, index: int | None = None) -> list[Object]:
        """The pods of a Job or of one index, in the order in which they were made."""
        found = self.data.pods(job)
        if index is not None:
            found = [pod for pod in found if index_of(pod) == index]
        return sorted(found, key=self._begun)

    def _begun(self, pod: Object) -> float:
        file = self._folder / "pods" / pod["metadata"]["name"] / "began"
        return file.stat().st_mtime if file.exists() else math.inf

    def running(self, job: str) -> list[int]:
        """The indexes whose pods run."""
        return sorted(index_of(pod) for pod in self.data.pods(job) if pod["status"]["phase"] == "Running")

    def close(self) -> None:
        """Ends everything."""
        self.runner.stop(lambda: True)
        self.data.end_processes()
        self.data.close()


@contextlib.contextmanager
def here(folder: pathlib.Path, slots: int = 4, **settings: t.Any) -> t.Iterator[Here]:
    made = Here(folder, slots, **settings)
    try:
        yield made
    finally:
        made.close()


def index_of(pod: Object) -> int:
    return int(pod["metadata"]["annotations"].get("batch.kubernetes.io/job-completion-index", 0))


def scripted(wanted: Wanted, scripts: t.Mapping[str, t.Mapping[str, str]]) -> Wanted:
    """The same, with a script of a shell for each container: ``scripts`` are by Job and container.

    One that is not named ends well.
    """
    jobs = copy.deepcopy(wanted.jobs)
    for name, job in jobs.items():
        spec = job["spec"]["template"]["spec"]
        for container in [*spec.get("initContainers", []), *spec["containers"]]:
            script = scripts.get(name, {}).get(container["name"], "exit 0")
            container["command"], container["args"] = ["/bin/sh", "-c", f": >>began; {script}"], []
    return dataclasses.replace(wanted, jobs=jobs)


def script_of(case: Case, folder: pathlib.Path) -> dict[str, str]:
    """The scripts of a case's containers. What was begun is counted in ``folder``, which survives a pod."""
    folder.mkdir(parents=True, exist_ok=True)
    place = shlex.quote(str(folder))
    count = f'i=${{JOB_COMPLETION_INDEX:-0}}; n=$(ls {place} | grep -c "^$i-"); '
    main = WARMUP if case.warmup else WRAPPER
    said: dict[str, list[str]] = {container: [] for container in (WAIT, main)}
    for index, ends in enumerate(case.ends):
        for number, end in enumerate(ends):
            said[end.container or main].append(f"{index}-{number}) {_end(end)};;")
    begun = f": >{place}/$i-$n; "
    wait = f'{count}case "$i-$n" in {" ".join(said[WAIT])} esac'
    # The count is of pods, and a pod whose first container fails has no other.
    wait = wait.replace("exit", f"{begun}exit") if said[WAIT] else "exit 0"
    return {WAIT: wait, main: f'{count}{begun}case "$i-$n" in {" ".join(said[main])} esac'}


def _end(end: End) -> str:
    return "exec sleep 1000" if end.code is None else f"exit {end.code}"


def alive(pid: int) -> bool:
    """Whether a process is there that is not only waited for."""
    with contextlib.suppress(OSError, IndexError):
        return pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    return False


def wanted_of(repo_: Repo, **scripts: str) -> Wanted:
    """What a repo asks for, each campaign with its script; warm-ups end well."""
    found, problems, _ = local_repo.read(repo_.path)
    assert found is not None, problems
    return scripted(found, {name.replace("_", "-"): {WRAPPER: script} for name, script in scripts.items()})


def campaign(repo_: Repo, name: str, volumes: int = 1, **fields: t.Any) -> None:
    lines = "".join(f"{key}: {json.dumps(value)}\n" for key, value in fields.items() if value is not None)
    listed = "".join(f"  - {name}-{number}\n" for number in range(volumes))
    repo_.write(f"campaigns/{name}.yaml", f"pipeline: demo-v1\n{lines}volumes:\n{listed}")


def folder_of(machine: Here, job: str, index: int = 0) -> pathlib.Path:
    (pod,) = machine.pods(job, index)
    return machine.data.folder / "pods" / str(pod["metadata"]["name"])
