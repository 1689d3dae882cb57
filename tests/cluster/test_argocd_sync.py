"""What ``generate`` prints, brought to a cluster as Argo CD does it."""

from __future__ import annotations

import copy
import pathlib
import time
import typing as t

import pytest

from tests.cluster import observed
from tests.cluster.argocd import ArgoCD, SyncError
from tests.cluster.repos import Repo
from tests.cmp_plugin import rendered
from tests.testbed.plugin.api import Object
from tests.testbed.plugin.cluster import Cluster
from tests.testbed.plugin.fake_nodes import FakeNodes
from tests.testbed.plugin.kubelet import Life, index_of
from tests.testbed.plugin.namespace import Namespace

#: They take long together.
pytestmark = pytest.mark.slow

Flavor = t.Callable[[Namespace], None]

_POOL = {"example.org/pool": "letters"}
_TAINT = {"key": "example.org/gpu", "value": "present", "effect": "NoSchedule"}
_EVERYTHING = ["ConfigMap htr-pipeline-demo-v1", "Job htr-warmup-demo-v1", "ConfigMap campaign-a", "Job a"]


def _later(generated: list[Object]) -> list[Object]:
    """As a later version of the converter might print it: all pod templates and fixed fields of campaigns differ."""
    found = copy.deepcopy(generated)
    for item in found:
        if item["kind"] == "Job" and item["spec"].get("completionMode") == "Indexed":
            template = item["spec"]["template"]
            template["metadata"]["labels"]["later"] = "yes"
            template["spec"]["terminationGracePeriodSeconds"] += 1
            template["spec"]["containers"][0]["env"].append({"name": "LATER", "value": "yes"})
            item["spec"]["backoffLimitPerIndex"] += 1
            item["spec"]["podFailurePolicy"]["rules"].pop()
    return found


@pytest.fixture
def flavor(cluster: Cluster) -> t.Iterator[Flavor]:
    """Makes a flavor of a namespace's own, with node labels and a toleration."""
    made: list[str] = []

    def make(namespace: Namespace) -> None:
        spec = {"nodeLabels": _POOL, "tolerations": [{"key": _TAINT["key"], "operator": "Exists"}]}
        item = {
            "apiVersion": observed.KUEUE,
            "kind": "ResourceFlavor",
            "metadata": {"name": namespace.name},
            "spec": spec,
        }
        cluster.api.create(item)
        made.append(namespace.name)

    yield make
    for name in made:
        cluster.api.delete(f"{observed.KUEUE}/ResourceFlavor", name)


@pytest.fixture
def tolerant(namespace: Namespace, tmp_path: pathlib.Path) -> Repo:
    """A repo with a toleration of its own."""
    tolerations = [{"key": "example.org/htr", "operator": "Exists"}]
    return Repo(tmp_path / "repo", namespace.name, tolerations=tolerations)


@pytest.mark.slow
def test_a_second_sync_finds_no_difference_on_a_queued_a_running_and_a_finished_campaign(
    namespace: Namespace, fake_nodes: FakeNodes, tolerant: Repo, argocd: ArgoCD, flavor: Flavor
) -> None:
    repo = tolerant
    # Kueue adds the labels and the tolerations of the flavor to the Job's template.
    flavor(namespace)
    fake_nodes.add(namespace.name, _POOL, [_TAINT])
    namespace.quota(gpu=2, flavor=namespace.name)
    fake_nodes.play(lambda pod: Life(running=None) if index_of(pod) else Life())
    repo.campaign("a", 3, window=2)

    assert argocd.sync(repo.generated()) == _EVERYTHING
    namespace.wait_for(lambda: len(observed.running(namespace, "a")) == 2, "the first campaign runs")
    repo.campaign("b", 3, window=2)
    generated = repo.generated()
    assert argocd.sync(generated) == ["ConfigMap campaign-b", "Job b"]
    namespace.wait_for(lambda: observed.waiting(namespace) == ["b"], "the second waits")
    template = namespace.job("a")["spec"]["template"]["spec"]
    assert (template["nodeSelector"], len(template["tolerations"])) == (_POOL, 2)
    assert argocd.out_of_sync(generated) == []
    assert argocd.out_of_sync(_later(generated)) == []
    assert argocd.sync(_later(generated)) == []

    fake_nodes.play(Life())
    for pod in observed.pods(namespace, "a"):
        namespace.api.delete("v1/Pod", pod["metadata"]["name"], namespace.name)
    namespace.wait_for(lambda: observed.condition(namespace.job("a"), "Complete"), "the first campaign has ended", 90)
    namespace.wait_for(lambda: observed.condition(namespace.job("b"), "Complete"), "the second has ended", 90)
    assert argocd.out_of_sync(generated) == []
    assert argocd.out_of_sync(_later(generated)) == []


def test_a_later_converter_pauses_a_campaign_and_leaves_its_template_as_it_is(
    namespace: Namespace, fake_nodes: FakeNodes, repo: Repo, argocd: ArgoCD
) -> None:
    repo.campaign("a", 3)
    argocd.sync(repo.generated())
    namespace.wait_for(lambda: len(observed.running(namespace, "a")) == 3, "the campaign runs")

    repo.campaign("a", 3, suspend=True)
    assert argocd.sync(_later(repo.generated())) == ["Job a"]

    namespace.wait_for(lambda: not observed.pods(namespace, "a"), "its pods are gone")
    spec = namespace.job("a")["spec"]
    assert (spec["parallelism"], spec["backoffLimitPerIndex"], len(spec["podFailurePolicy"]["rules"])) == (0, 3, 3)
    assert "later" not in spec["template"]["metadata"]["labels"]
    namespace.wait_for(lambda: observed.runs(namespace, "a"), "Kueue has admitted it without pods")
    assert argocd.out_of_sync(_later(repo.generated())) == []


@pytest.mark.slow
@pytest.mark.parametrize("own", [True, False], ids=["tolerations-of-its-own", "none-of-its-own"])
def test_what_kueue_adds_after_argo_cd_has_looked_stops_a_sync_only_where_git_has_tolerations_as_well(
    own: bool, namespace: Namespace, tolerant: Repo, argocd: ArgoCD, flavor: Flavor, tmp_path: pathlib.Path
) -> None:
    chosen = tolerant if own else Repo(tmp_path / "plain", namespace.name)
    flavor(namespace)
    namespace.quota(gpu=0, flavor=namespace.name)
    chosen.campaign("a", 3)
    argocd.sync(chosen.generated())
    namespace.wait_for(lambda: observed.waiting(namespace) == ["a"], "the campaign waits")
    chosen.campaign("a", 3, suspend=True)
    found = argocd.look(chosen.generated())
    namespace.quota(gpu=100, flavor=namespace.name)
    namespace.wait_for(lambda: observed.runs(namespace, "a"), "the campaign runs")

    if own:
        # A list of tolerations is written as a whole.
        with pytest.raises(SyncError, match="field is immutable"):
            argocd.carry_out(found)
        assert namespace.job("a")["spec"]["parallelism"] > 0
        assert argocd.sync(chosen.generated()) == ["Job a"]
    else:
        argocd.carry_out(found)
    assert namespace.job("a")["spec"]["parallelism"] == 0


@pytest.mark.slow
def test_a_priority_that_is_taken_out_of_a_campaigns_file_fails_every_sync(
    namespace: Namespace, repo: Repo, argocd: ArgoCD
) -> None:
    namespace.quota(gpu=0)
    repo.campaign("a", 1, priority="htr-bulk")
    argocd.sync(repo.generated())
    repo.campaign("a", 1)

    for _ in range(2):
        with pytest.raises(SyncError, match="WorkloadPriorityClass cannot be removed from a workload"):
            argocd.sync(repo.generated())


@pytest.mark.slow
def test_a_changed_volume_list_fails_the_sync_and_changes_nothing(
    namespace: Namespace, repo: Repo, argocd: ArgoCD
) -> None:
    namespace.quota(gpu=0)
    repo.campaign("a", ["V0001", "V0002"])
    repo.campaign("b", ["V0001", "V0002"])
    argocd.sync(repo.generated())
    before = namespace.api.get("v1/ConfigMap", "campaign-a", namespace.name)["data"]
    repo.campaign("a", ["V0001", "V0003"])
    repo.campaign("b", ["V0001", "V0002"], priority="htr-bulk")

    with pytest.raises(
        SyncError, match='"campaign-a" is invalid: data: Forbidden: field is immutable when `immutable`'
    ):
        argocd.sync(repo.generated())

    assert namespace.api.get("v1/ConfigMap", "campaign-a", namespace.name)["data"] == before
    assert namespace.job("b")["metadata"]["labels"]["kueue.x-k8s.io/priority-class"] == "htr-bulk"


@pytest.mark.slow
def test_a_finished_campaign_is_left_as_it_is_and_not_created_again(
    namespace: Namespace, fake_nodes: FakeNodes, repo: Repo, argocd: ArgoCD
) -> None:
    fake_nodes.play(Life())
    repo.campaign("a", 2)
    argocd.sync(repo.generated())
    namespace.wait_for(lambda: observed.condition(namespace.job("a"), "Complete"), "the campaign has ended", 60)
    uid = namespace.job("a")["metadata"]["uid"]

    repo.campaign("a", 2, finished=True)
    assert argocd.sync(repo.generated()) == []
    assert namespace.job("a")["metadata"]["uid"] == uid

    namespace.api.delete("batch/v1/Job", "a", namespace.name)
    namespace.wait_for(lambda: not namespace.api.find("batch/v1/Job", "a", namespace.name), "the Job is gone")
    assert argocd.sync(repo.generated()) == []
    # Without the line, the next sync of anything runs every volume again.
    repo.campaign("a", 2)
    assert argocd.sync(repo.generated()) == ["Job a"]


@pytest.mark.slow
def test_when_its_file_is_gone_so_are_a_campaigns_job_pods_workload_and_config_map(
    namespace: Namespace, fake_nodes: FakeNodes, repo: Repo, argocd: ArgoCD
) -> None:
    repo.campaign("a", 2)
    repo.campaign("b", 2)
    argocd.sync(repo.generated())
    namespace.wait_for(lambda: len(observed.running(namespace, "a")) == 2, "the campaign runs")
    namespace.wait_for(lambda: len(observed.running(namespace, "b")) == 2, "the other runs")
    other = observed.running(namespace, "b")
    namespace.wait_for(lambda: observed.gpus(namespace) == 4, "both use quota")

    repo.remove("a")
    assert argocd.sync(repo.generated()) == ["pruned ConfigMap campaign-a", "pruned Job a"]

    def left() -> list[str]:
        kinds = ("batch/v1/Job", "v1/ConfigMap", observed.WORKLOAD, "v1/Pod")
        names = [item["metadata"]["name"] for kind in kinds for item in namespace.api.list(kind, namespace.name)]
        return [name for name in names if name in ("a", "campaign-a") or name.startswith(("a-", "job-a-"))]

    namespace.wait_for(lambda: not left(), "nothing is left of the campaign")
    namespace.wait_for(lambda: observed.gpus(namespace) == 2, "its quota is free")
    assert observed.running(namespace, "b") == other


@pytest.mark.slow
def test_a_changed_warm_up_is_replaced(namespace: Namespace, fake_nodes: FakeNodes, repo: Repo, argocd: ArgoCD) -> None:
    repo.campaign("a", 1)
    argocd.sync(repo.generated())
    before = namespace.job("htr-warmup-demo-v1")["metadata"]["uid"]
    generated = repo.generated()
    (warmup,) = (item for item in generated if item["metadata"]["name"] == "htr-warmup-demo-v1")
    warmup["spec"]["template"]["spec"]["activeDeadlineSeconds"] += 1

    assert argocd.sync(generated) == ["Job htr-warmup-demo-v1"]

    assert namespace.job("htr-warmup-demo-v1")["metadata"]["uid"] != before
    assert argocd.out_of_sync(generated) == []


@pytest.mark.slow
@pytest.mark.parametrize("name", ["over-900-kib", "ampersands"])
def test_large_config_maps_are_in_sync_once_they_are_applied(
    name: str, namespace: Namespace, argocd: ArgoCD, tmp_path: pathlib.Path
) -> None:
    namespace.quota(gpu=0)
    generated = rendered.generated(rendered.REPOS[name](tmp_path / "repo"))
    for item in generated:
        item["metadata"]["namespace"] = namespace.name

    argocd.sync(generated)

    # Kueue takes the Jobs up, which changes them.
    time.sleep(1)
    assert argocd.out_of_sync(generated) == []
