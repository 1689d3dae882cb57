"""``apply`` does on a real API server with Kueue what ``plan --delivery apply`` says that it does."""

from __future__ import annotations

import subprocess
import typing as t

import pytest

from htrflow_campaigns import git
from htrflow_campaigns.plan import change, kubernetes
from htrflow_campaigns.tree import from_folder
from tests.cmp_plugin.apply import teams
from tests.cmp_plugin.plan.planned import CASES, set_up
from tests.testbed.plugin.kubelet import Life

if t.TYPE_CHECKING:
    import pathlib

    from tests.cmp_plugin.conftest import Repo
    from tests.testbed.plugin.cluster import Cluster
    from tests.testbed.plugin.fake_nodes import FakeNodes
    from tests.testbed.plugin.namespace import Namespace

#: They take long together.
pytestmark = pytest.mark.slow

#: What ``apply`` calls it when it has done what the plan says.
_DONE = {
    "create": "created", "prune": "pruned", "pause": "paused", "resume": "resumed", "update": "updated",
    "replace": "replaced",
}  # fmt: skip
_NAMES = sorted(
    {path.name for path in CASES.glob("*-apply")} - {"namespace-apply"} | {"added", "added-paused", "resumed"}
)


@pytest.mark.parametrize("case", _NAMES)
def test_apply_does_what_the_plan_says(
    case: str, repo: Repo, cluster: Cluster, namespace: Namespace, fake_nodes: FakeNodes, tmp_path: pathlib.Path
) -> None:
    fake_nodes.play(lambda pod: Life() if pod["metadata"]["labels"]["app"] == "htrflow-warmup" else Life(running=None))
    set_up(case, repo, f"namespace: {namespace.name}\n")
    base = tmp_path / "base"
    subprocess.run(["git", "-C", str(repo.path), "worktree", "add", "--quiet", str(base), "HEAD"], check=True)
    kubeconfig = f"--kubeconfig={cluster.admin}"
    first = teams.run(["apply", str(base), kubeconfig])
    assert first.code == 0, first
    namespace.wait_for(lambda: namespace.job("htr-warmup-demo-v1")["status"].get("succeeded"), "models are loaded")
    if namespace.api.find("batch/v1/Job", "letters", namespace.name) and "paused Job/letters" not in first.lines:
        namespace.wait_for(lambda: namespace.job("letters")["status"].get("active"), "letters runs")
    with git.revision(repo.path, "HEAD") as before:
        deeds = kubernetes.outlook(change.compare(from_folder(repo.path), before), "apply").deeds
    refused = [deed for deed in deeds if deed.action == "refuse"]

    done = teams.run(["apply", str(repo.path), kubeconfig, "--prune"])

    changes = _changes(done)
    if any("apply stops before it sends anything" in deed.reason for deed in refused):
        assert (done.code, done.out) == (1, ""), done
    else:
        said = {f"{_DONE[deed.action]} {deed.kind}/{deed.name}" for deed in deeds if deed.action in _DONE}
        said |= {f"paused Job/{deed.name}" for deed in deeds if deed.reason == "paused from the start"}
        if any("the next run creates this one" in deed.reason for deed in deeds):
            assert done.code == 3, done
            done = teams.run(["apply", str(repo.path), kubeconfig, "--prune"])
            changes |= _changes(done)
        assert changes == said, done
        assert done.code == (3 if refused else 0)
        assert all(f"{deed.kind}/{deed.name}: " in done.err for deed in refused)


def _changes(done: teams.Outcome) -> set[str]:
    return {line for line in done.lines if not line.startswith("unchanged ")}
