"""What Argo CD says about a Job, by the shipped health rule."""

from __future__ import annotations

import typing as t

import lupa.lua51 as lupa
import pytest

from tests.cmp_plugin.plugin_server import sandbox
from tests.cmp_plugin.rendered import Object

SCRIPT = (sandbox.TOP / "cmp-plugin" / "argocd" / "health.lua").read_text("utf-8")

PROGRESS = [
    ("created", {"completions": 3, "parallelism": 2}, None, "Progressing", "starting: 0 of 3 succeeded"),
    ("queued", {"completions": 3, "parallelism": 2, "suspend": True}, None, "Suspended", "queued: 0 of 3 succeeded"),
    (
        "queued again after an eviction",
        {"completions": 3, "parallelism": 2, "suspend": True},
        {"succeeded": 1, "conditions": [{"type": "Suspended", "status": "True", "message": "Job suspended"}]},
        "Suspended",
        "queued: 1 of 3 succeeded",
    ),
    (
        "running after kueue has let it",
        {"completions": 30, "parallelism": 2, "suspend": False},
        {"active": 2, "succeeded": 10, "conditions": [{"type": "Suspended", "status": "False"}]},
        "Progressing",
        "running: 10 of 30 succeeded, 2 active",
    ),
    (
        "running with failures",
        {"completions": 30, "parallelism": 2},
        {"active": 2, "succeeded": 10, "failedIndexes": "3,5-7"},
        "Progressing",
        "running: 10 of 30 succeeded, 2 active, failed indexes: 3,5-7",
    ),
    (
        "running with more failures than fit",
        {"completions": 3000, "parallelism": 2},
        {"active": 2, "failedIndexes": ",".join(str(index) for index in range(0, 400, 2))},
        "Progressing",
        "running: 0 of 3000 succeeded, 2 active, failed indexes: many",
    ),
    (
        "paused",
        {"completions": 3, "parallelism": 0, "suspend": True},
        {"succeeded": 1, "conditions": [{"type": "Suspended", "status": "True"}]},
        "Suspended",
        "paused: 1 of 3 succeeded",
    ),
    (
        "paused and admitted",
        {"completions": 3, "parallelism": 0, "suspend": False},
        {"succeeded": 1, "conditions": [{"type": "Suspended", "status": "False"}]},
        "Suspended",
        "paused: 1 of 3 succeeded",
    ),
    (
        "complete",
        {"completions": 3, "parallelism": 2},
        {
            "succeeded": 3,
            "conditions": [{"type": "SuccessCriteriaMet", "status": "True"}, {"type": "Complete", "status": "True"}],
        },
        "Healthy",
        "complete: 3 of 3 succeeded",
    ),
    (
        "finished with one failure in a thousand",
        {"completions": 1000, "parallelism": 20},
        {
            "succeeded": 999,
            "failed": 4,
            "failedIndexes": "7",
            "conditions": [
                {"type": "FailureTarget", "status": "True", "reason": "FailedIndexes"},
                {"type": "Failed", "status": "True", "reason": "FailedIndexes", "message": "Job has failed indexes"},
            ],
        },
        "Degraded",
        "finished: 999 of 1000 succeeded, 1 failed, failed indexes: 7",
    ),
    (
        "nothing came out",
        {"completions": 2, "parallelism": 2},
        {
            "failedIndexes": "0,1",
            "conditions": [{"type": "Failed", "status": "True", "reason": "FailedIndexes"}],
        },
        "Degraded",
        "failed: 0 of 2 succeeded",
    ),
    (
        "stopped before every index was tried",
        {"completions": 10, "parallelism": 2},
        {
            "succeeded": 4,
            "failedIndexes": "1-3",
            "conditions": [{"type": "Failed", "status": "True", "message": "Job was active too long"}],
        },
        "Degraded",
        "failed: 4 of 10 succeeded, failed indexes: 1-3 (Job was active too long)",
    ),
    (
        "failed without a word",
        {},
        {"conditions": [{"type": "Failed", "status": "True"}]},
        "Degraded",
        "failed: 0 succeeded (no reason given)",
    ),
    (
        "about to fail",
        {"completions": 3, "parallelism": 2},
        {"succeeded": 1, "failedIndexes": "0", "conditions": [{"type": "FailureTarget", "status": "True"}]},
        "Progressing",
        "stopping: 1 of 3 succeeded, failed indexes: 0",
    ),
    ("a warm-up that runs", {"backoffLimit": 2}, {"active": 1}, "Progressing", "running: 0 succeeded, 1 active"),
    (
        "a warm-up that is done",
        {"backoffLimit": 2, "completions": 1, "parallelism": 1},
        {"succeeded": 1, "conditions": [{"type": "Complete", "status": "True"}]},
        "Healthy",
        "complete: 1 of 1 succeeded",
    ),
]  # fmt: skip


class Lua:
    """Lua 5.1 with the libraries that Argo CD gives a health script: base, package, table and a part of os."""

    def __init__(self) -> None:
        self._runtime = lupa.LuaRuntime(unpack_returned_tuples=True)
        for library in ("string", "math", "io", "debug", "coroutine"):
            self._runtime.globals()[library] = None
        self._runtime.execute('getmetatable("").__index = nil')

    def health(self, script: str, job: Object) -> tuple[str, str]:
        self._runtime.globals()["obj"] = self._table(job)
        result: t.Any = self._runtime.execute(script)
        return result["status"], result["message"]

    def _table(self, value: t.Any) -> t.Any:
        if isinstance(value, dict):
            return self._runtime.table_from({key: self._table(item) for key, item in value.items()})
        if isinstance(value, list):
            return self._runtime.table_from([self._table(item) for item in value])
        return value


@pytest.mark.parametrize(("case", "spec", "status", "health", "message"), PROGRESS, ids=[case[0] for case in PROGRESS])
def test_a_jobs_health_says_where_it_stands(
    case: str, spec: Object, status: Object | None, health: str, message: str
) -> None:
    job = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "letters"}, "spec": spec}
    if status is not None:
        job["status"] = status
    assert Lua().health(SCRIPT, job) == (health, message)


def test_the_test_takes_away_what_argo_cd_does_not_give() -> None:
    with pytest.raises(lupa.LuaError):
        Lua().health('return {status = "Healthy", message = ("x"):upper()}', {})
