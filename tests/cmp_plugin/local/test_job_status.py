"""The runner and Kubernetes' Job controller make the same status of the same ends of pods."""

from __future__ import annotations

import dataclasses
import pathlib
import typing as t

import pytest

from tests.cmp_plugin.local import cases
from tests.cmp_plugin.local.cases import CASES, Case, Object
from tests.cmp_plugin.local.here import Here, here, script_of, scripted
from tests.testbed.plugin.fake_nodes import FakeNodes
from tests.testbed.plugin.kubelet import Life
from tests.testbed.plugin.namespace import Namespace

_INDEX = "batch.kubernetes.io/job-completion-index"
_FAILURES = "batch.kubernetes.io/job-index-failure-count"
_WORKLOAD = "kueue.x-k8s.io/v1beta2/Workload"
_ENDED = ("Succeeded", "Failed")
_SECONDS = 75


@pytest.mark.parametrize("case", CASES, ids=lambda case: t.cast(Case, case).name)
def test_the_runner_ends_a_job_as_the_table_says(case: Case, tmp_path: pathlib.Path) -> None:
    wanted = scripted(cases.rendered(tmp_path / "repo", [case]), {case.job: script_of(case, tmp_path / "begun")})
    with here(tmp_path / "data", cases.SLOTS) as machine:
        machine.runner.want(wanted)
        if case.meanwhile:
            machine.until(lambda: _all_there(machine, case, tmp_path / "begun"))
        if case.meanwhile == "disrupt":
            machine.again()
            machine.runner.want(wanted)
        if case.meanwhile.startswith("pause"):
            machine.runner.want(dataclasses.replace(wanted, paused=frozenset([case.job])))
            machine.until(lambda: not machine.runner.jobs[case.job].active)
        if case.meanwhile == "pause and resume":
            machine.runner.want(wanted)
        machine.idle()

        assert cases.status_of(machine.runner.jobs[case.job].object) == cases.expected(case)
        pods = [machine.pods(case.job, index) for index in range(len(case.ends))]
        assert [[pod["metadata"]["annotations"].get(_FAILURES) for pod in found] for found in pods] == case.counts


@pytest.mark.slow
def test_the_job_controller_ends_every_job_as_the_table_says(
    namespace: Namespace, fake_nodes: FakeNodes, tmp_path: pathlib.Path
) -> None:
    lives = _Lives()
    fake_nodes.play(lives)
    namespace.quota(gpu=cases.SLOTS)
    namespace.create_all(cases.rendered(tmp_path, CASES, namespace.name).jobs.values())
    waiting = [case for case in CASES if case.meanwhile]
    for case in waiting:
        _interfere(namespace, fake_nodes, case)

    def jobs() -> dict[str, Object]:
        return {job["metadata"]["name"]: job for job in namespace.api.list("batch/v1/Job", namespace.name)}

    def ended() -> bool:
        found = jobs()
        return all(_conditions(found[case.job]) == {row[:2] for row in case.conditions} for case in CASES)

    namespace.wait_for(ended, "all Jobs have ended", _SECONDS)
    assert {name: cases.status_of(job) for name, job in jobs().items()} == {
        case.job: cases.expected(case) for case in CASES
    }
    assert {case.job: lives.counts[case.job] for case in CASES} == {case.job: case.counts for case in CASES}


class _Lives:
    """Gives each pod the end that its case has for it, and notes the failures that it was told of."""

    def __init__(self) -> None:
        self._cases = {case.job: case for case in CASES}
        self.counts: dict[str, list[list[str | None]]] = {case.job: [[] for _ in case.ends] for case in CASES}

    def __call__(self, pod: Object) -> Life:
        job = pod["metadata"]["labels"]["job-name"]
        annotations = pod["metadata"].get("annotations", {})
        index = int(annotations.get(_INDEX, 0))
        ends, counts = self._cases[job].ends[index], self.counts[job][index]
        end = ends[min(len(counts), len(ends) - 1)]
        counts.append(annotations.get(_FAILURES))
        return Life(running=None) if end.code is None else Life(exit_code=end.code, container=end.container)


def _interfere(namespace: Namespace, nodes: FakeNodes, case: Case) -> None:
    namespace.wait_for(lambda: _all_are(namespace, case), f"the pods of {case.job} run")
    if case.meanwhile == "disrupt":
        drained, pressed = _pods(namespace, case)
        nodes.evict(drained["metadata"]["name"])
        nodes.evict_under_pressure(pressed["metadata"]["name"])
        return
    workload = namespace.workload(case.job)
    assert workload is not None
    name = workload["metadata"]["name"]
    namespace.api.patch(_WORKLOAD, name, {"spec": {"active": False}}, namespace.name)
    namespace.wait_for(lambda: not _running(_pods(namespace, case)), f"no pod of {case.job} runs")
    if case.meanwhile == "pause and resume":
        namespace.api.patch(_WORKLOAD, name, {"spec": {"active": True}}, namespace.name)


def _pods(namespace: Namespace, case: Case) -> list[Object]:
    return [pod for pod in namespace.pods() if pod["metadata"]["labels"].get("job-name") == case.job]


def _running(pods: t.Iterable[Object]) -> list[int]:
    return sorted(int(pod["metadata"]["annotations"][_INDEX]) for pod in pods if pod["status"]["phase"] == "Running")


def _all_are(namespace: Namespace, case: Case) -> bool:
    """Whether those pods run that go on for ever, and all others have ended."""
    pods = _pods(namespace, case)
    forever = [index for index, ends in enumerate(case.ends) if ends[0] == cases.FOREVER]
    others = [pod for pod in pods if pod["status"].get("phase") in _ENDED]
    return len(pods) == len(case.ends) and len(others) + len(forever) == len(pods) and _running(pods) == forever


def _all_there(machine: Here, case: Case, folder: pathlib.Path) -> bool:
    pods = machine.data.pods(case.job)
    forever = [index for index, ends in enumerate(case.ends) if ends[0] == cases.FOREVER]
    others = [pod for pod in pods if pod["status"]["phase"] in _ENDED]
    begun = len([*folder.iterdir()]) == len(case.ends)
    return begun and len(others) + len(forever) == len(case.ends) and machine.running(case.job) == forever


def _conditions(job: Object) -> set[tuple[str, ...]]:
    return {(row["type"], row["status"]) for row in job["status"].get("conditions", [])}
