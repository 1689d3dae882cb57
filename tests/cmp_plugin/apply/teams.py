"""A team without Argo CD: its campaigns repo, its namespace, and the real command between them."""

from __future__ import annotations

import contextlib
import dataclasses
import io
import json
import pathlib
import subprocess
import sys
import typing as t

from htrflow_campaigns import cli
from tests.cmp_plugin.conftest import PIPELINE, Repo
from tests.testbed.plugin.api import Object
from tests.testbed.plugin.namespace import Namespace
from tests.testbed.plugin.processes import heed_signals

MANAGED = "htrflow.riksarkivet.se/managed-by=converter"
JOB_UID = "htrflow.riksarkivet.se/job-uid"
LEASE = "htrflow-campaigns-apply"


@dataclasses.dataclass(frozen=True)
class Outcome:
    """How a run ended: its exit code and what it said."""

    code: int
    out: str
    err: str

    @property
    def lines(self) -> list[str]:
        return self.out.splitlines()

    def __str__(self) -> str:
        return f"exit code {self.code}\n{self.out}---\n{self.err}"


def run(arguments: list[str]) -> Outcome:
    """Runs a command in this process."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            code = cli.main(arguments)
        except SystemExit as wrong_usage:
            code = t.cast(int, wrong_usage.code)
    return Outcome(code, out.getvalue(), err.getvalue())


class Team:
    """``namespace`` and the repo for it. Its pipeline is ``demo-v1``, and it starts without campaigns."""

    def __init__(self, folder: pathlib.Path, namespace: Namespace, kubeconfig: pathlib.Path) -> None:
        folder.mkdir(parents=True)
        self.repo = Repo(folder)
        self.namespace, self.api, self.kubeconfig = namespace, namespace.api, kubeconfig
        self.settings()
        self.repo.write("pipelines/demo-v1.yaml", PIPELINE)

    def settings(self, **values: t.Any) -> None:
        """Writes ``converter.yaml``."""
        every = {
            "namespace": self.namespace.name,
            "results_url": "https://htr.example.org/results",
            "source_template": "https://iiif.example.org/{ref}/manifest",
            "window": 2,
            **values,
        }
        self.repo.write("converter.yaml", "".join(f"{key}: {json.dumps(value)}\n" for key, value in every.items()))

    def campaign(self, name: str, *volumes: str, **values: t.Any) -> None:
        """Writes a campaign of volumes that are named by their reference code."""
        every = {"pipeline": "demo-v1", **values, "volumes": list(volumes)}
        self.repo.write(f"campaigns/{name}.yaml", "".join(f"{k}: {json.dumps(v)}\n" for k, v in every.items()))

    def pipeline(self, id_: str, text: str = PIPELINE) -> None:
        self.repo.write(f"pipelines/{id_}.yaml", text)

    def remove(self, name: str) -> None:
        (self.repo.path / name).unlink()

    def arguments(self, *arguments: str, kubeconfig: pathlib.Path | None = None) -> list[str]:
        return ["apply", str(self.repo.path), f"--kubeconfig={kubeconfig or self.kubeconfig}", *arguments]

    def apply(self, *arguments: str, kubeconfig: pathlib.Path | None = None) -> Outcome:
        """Runs the command in this process."""
        return run(self.arguments(*arguments, kubeconfig=kubeconfig))

    def start(self, *arguments: str, kubeconfig: pathlib.Path | None = None) -> subprocess.Popen[str]:
        """Starts the command as a process of its own."""
        command = [sys.executable, "-m", "htrflow_campaigns", *self.arguments(*arguments, kubeconfig=kubeconfig)]
        pipe = subprocess.PIPE
        return subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=pipe, stderr=pipe, text=True, preexec_fn=heed_signals
        )

    def job(self, name: str) -> Object | None:
        return self.api.find("batch/v1/Job", name, self.namespace.name)

    def config_map(self, name: str) -> Object | None:
        return self.api.find("v1/ConfigMap", name, self.namespace.name)

    def record(self, job: str) -> dict[str, t.Any] | None:
        """What the record of a Job says."""
        found = self.config_map(f"campaign-{job}-status")
        return t.cast(dict[str, t.Any], json.loads(found["data"]["record.json"])) if found else None

    def uid(self, job: str) -> str:
        return t.cast(str, self.namespace.job(job)["metadata"]["uid"])

    def names(self) -> set[str]:
        """What is in the namespace of ours, by kind and name, with the records."""
        found = set()
        for kind in ("batch/v1/Job", "v1/ConfigMap"):
            for item in self.api.list(kind, self.namespace.name):
                if item["metadata"]["name"] != "kube-root-ca.crt":
                    found.add(f"{item['kind']}/{item['metadata']['name']}")
        return found

    def lease(self) -> Object | None:
        return self.api.find("coordination.k8s.io/v1/Lease", LEASE, self.namespace.name)

    def take_lease(self, holder: str = "anna@laptop", renewed: str = "2999-01-01T00:00:00.000000Z") -> Object:
        """Makes the Lease of another run."""
        spec = {"holderIdentity": holder, "acquireTime": renewed, "renewTime": renewed}
        metadata = {"name": LEASE, "namespace": self.namespace.name}
        item = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": metadata, "spec": spec}
        return self.api.apply(item)

    def wait(self, condition: t.Callable[[], t.Any], what: str, seconds: float = 30) -> t.Any:
        return self.api.wait_for(condition, what, seconds)

    def ended(self, job: str) -> str:
        """Waits until a Job has ended, and returns the condition that says so."""

        def condition() -> str:
            rows = self.namespace.job(job)["status"].get("conditions") or []
            return next((row["type"] for row in rows if row["type"] in ("Complete", "Failed")), "")

        return t.cast(str, self.wait(condition, f"the Job {job} has ended", 60))

    def gone(self, job: str) -> None:
        """Lets the TTL of a Job that has ended run out, and waits until Kubernetes has deleted it."""
        self.api.patch("batch/v1/Job", job, {"spec": {"ttlSecondsAfterFinished": 0}}, self.namespace.name)
        self.wait(lambda: self.job(job) is None, f"the Job {job} is gone", 60)

    def active(self, job: str) -> bool:
        """Whether the Workload of a Job is active."""
        workload = self.wait(lambda: self.namespace.workload(job), f"Kueue has made a Workload of {job}")
        return t.cast(bool, workload["spec"].get("active", True))

    def admitted(self, job: str) -> None:
        self.wait(lambda: self.namespace.job(job)["spec"]["suspend"] is False, f"Kueue lets {job} run")

    def stopped(self, job: str) -> None:
        self.wait(lambda: self.namespace.job(job)["spec"]["suspend"] is True, f"Kueue stops {job}")
