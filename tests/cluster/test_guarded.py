"""Campaigns in a cluster where Kyverno holds everything to the policies of the chart."""

from __future__ import annotations

import contextlib
import json
import pathlib
import re
import time
import typing as t

import pytest

from tests import tools
from tests.cluster import observed
from tests.cluster.argocd import ArgoCD, SyncError
from tests.cluster.repos import Repo
from tests.cmp_plugin.apply.teams import Team
from tests.cmp_plugin.conftest import IMAGE, PIPELINE
from tests.helm import admission, policy_files
from tests.helm.chart import Helm
from tests.helm.releases import Release
from tests.testbed.plugin import cluster as clusters
from tests.testbed.plugin import skipping
from tests.testbed.plugin.api import Api, ApiError, Object
from tests.testbed.plugin.cluster import Cluster
from tests.testbed.plugin.fake_nodes import FakeNodes, create_node
from tests.testbed.plugin.kubelet import Life
from tests.testbed.plugin.kyverno import Kyverno
from tests.testbed.plugin.namespace import CACHE, Namespace, provide_cache
from tests.testbed.plugin.run import Run

#: They take long together.
pytestmark = pytest.mark.slow

_ALLOWED = "registry.example.org"
_FOREIGN = IMAGE.replace(_ALLOWED, "registry.example.com")
_REFUSED = f"images from repositories that are not allowed: {_FOREIGN} — use an image from {_ALLOWED}"
_OF_JOBS = ("htr-image-digests", "htr-image-repositories", "htr-job-queue")


@pytest.fixture(scope="module")
def guarded(
    testbed_run: Run,
    pytestconfig: pytest.Config,
    request: pytest.FixtureRequest,
    tmp_path_factory: pytest.TempPathFactory,
) -> t.Iterator[tuple[Cluster, Kyverno | None]]:
    """A cluster of this module's own, since the chart's policy about identities holds everywhere, and its Kyverno."""
    if pytestconfig.getoption("cluster_of_kubeconfig"):
        yield request.getfixturevalue("guarded_cluster"), None
        return
    skipping.require(*skipping.BEHIND["guarded_cluster"])
    folder = tmp_path_factory.mktemp("guarded")
    state, kyverno = clusters.start_with_kyverno(testbed_run, folder)
    with contextlib.closing(kyverno), contextlib.closing(clusters.join(testbed_run, state, folder)) as joined:
        yield joined, kyverno


@pytest.fixture(scope="module")
def release(guarded: tuple[Cluster, Kyverno | None]) -> t.Iterator[Release]:
    """The chart with its policies, and two teams."""
    cluster = guarded[0]
    if cluster.api.find(admission.POLICY, "htr-image-digests"):
        pytest.skip("the cluster of KUBECONFIG has a release with policies")
    skipping.require("helm")
    values = {"policies.enabled": True, "policies.allowedRepositories": [_ALLOWED]}
    made = Release(Helm(tools.find("helm")), cluster, **values)
    made.install()
    if not cluster.is_ours:
        _keep_out_of_others(made)
    cluster.api.wait_for(lambda: _hold(cluster.api, made), "the policies hold")
    if not cluster.has_machines():
        create_node(cluster.api)
        claim = cluster.api.get("v1/PersistentVolumeClaim", CACHE, made.teams[0])
        provide_cache(cluster.api, made.teams[0], claim["spec"])
    yield made
    made.uninstall()
    made.delete()


def _keep_out_of_others(release: Release) -> None:
    """Lets the policy about identities hold for the teams alone: other tests have identities of that name."""
    constraints = {"namespaceSelector": admission.among(release.teams)}
    release.cluster.api.patch(admission.POLICY, "htr-apply-identity", {"spec": {"matchConstraints": constraints}})


def _hold(api: Api, release: Release) -> bool:
    """Whether each policy refuses a canary in every team, or at least says that it is ready.

    An answer of Kyverno names all policies of one webhook that refuse, and the API server hands on one such answer.
    """
    policies = api.list(admission.POLICY)
    ready = [item.get("status", {}).get("conditionStatus", {}).get("ready") for item in policies]
    if len(policies) <= len(policy_files.NAMES) or not all(ready):
        return False
    canaries = {bird["kind"]: bird for bird in policy_files.canaries()}
    return all(
        {*_OF_JOBS} <= _refusing(api, policy_files.changed(canaries["Job"], "canary", namespace=team))
        and _refusing(api, policy_files.changed(canaries["ConfigMap"], "canary", namespace=team))
        for team in release.teams
    )


def _refusing(api: Api, item: Object) -> set[str]:
    try:
        api.create(item, dry_run=True)
    except ApiError as error:
        return {*re.findall(r"Policy (\S+) failed", str(error))}
    return set()


@pytest.fixture
def nodes(release: Release) -> t.Iterator[FakeNodes]:
    """A kubelet for the first team."""
    release.cluster.require_no_machines()
    made = FakeNodes(release.cluster.api, release.teams[0])
    made.start()
    yield made
    made.stop()


@pytest.fixture
def team(release: Release, tmp_path: pathlib.Path) -> Team:
    """The first team, whose campaigns the chart's own account applies."""
    namespace = Namespace(release.cluster.api, release.teams[0])
    made = Team(tmp_path / "team", namespace, release.cluster.service_account(namespace.name, "htrflow-apply"))
    # What the chart calls the queue of a team that has given it no name.
    made.settings(queue=namespace.name)
    return made


def test_a_campaign_passes_every_policy_from_apply_to_its_end_and_its_record(
    team: Team, nodes: FakeNodes, release: Release
) -> None:
    nodes.play(Life())
    team.campaign("letters", "R1", "R2", "R3")
    team.campaign("maps", "R4", suspend=True)

    first = team.apply("--prune")

    assert (first.code, first.err) == (0, ""), first
    assert team.ended("letters") == "Complete"
    assert team.ended("htr-warmup-demo-v1") == "Complete"
    team.campaign("maps", "R4")
    second = team.apply("--prune")
    assert (second.code, second.err) == (0, ""), second
    assert {"recorded Job/letters: it ended as Complete", "resumed Job/maps"} <= {*second.lines}
    assert team.ended("maps") == "Complete"
    # The other identity that writes here.
    site, name = release.as_account(release.namespace, "htrflow-web"), "campaign-letters-status"
    record = json.dumps({**(team.record("letters") or {}), "failedVolumes": []})
    site.patch("v1/ConfigMap", name, {"data": {"record.json": record}}, team.namespace.name)
    team.remove("campaigns/letters.yaml")
    team.remove("campaigns/maps.yaml")
    third = team.apply("--prune", "--allow-empty")
    assert (third.code, third.err) == (0, ""), third
    assert team.job("letters") is None


def test_apply_says_what_a_policy_says_and_goes_on_with_what_is_good(team: Team) -> None:
    team.pipeline("foreign-v1", PIPELINE.replace(IMAGE, _FOREIGN))
    team.campaign("good", "R5")
    team.campaign("bad", "R6", pipeline="foreign-v1")

    ended = team.apply()

    assert ended.code == 3, ended
    assert "created Job/good" in ended.lines
    assert f"Policy htr-image-repositories failed: {_REFUSED}" in ended.err
    assert team.job("bad") is None
    team.remove("campaigns/bad.yaml")
    team.remove("pipelines/foreign-v1.yaml")
    team.remove("campaigns/good.yaml")
    assert team.apply("--prune", "--allow-empty").code == 0


def test_a_sync_of_argo_cd_passes_every_policy_and_then_finds_no_difference(
    release: Release, tmp_path: pathlib.Path
) -> None:
    there = release.teams[1]
    repo, argocd = Repo(tmp_path / "repo", there, queue=there), ArgoCD(release.cluster, there)
    repo.campaign("letters")

    argocd.sync(repo.generated())

    assert argocd.out_of_sync(repo.generated()) == []
    pipeline = repo.path / "pipelines/demo-v1.yaml"
    (repo.path / "pipelines/foreign-v1.yaml").write_text(pipeline.read_text().replace(IMAGE, _FOREIGN))
    with pytest.raises(SyncError, match="Policy htr-image-repositories failed") as refused:
        argocd.sync(repo.generated())
    assert _REFUSED in str(refused.value)


def test_an_apply_identity_is_told_that_it_is_in_anothers_namespace(release: Release) -> None:
    here, there = release.teams

    def as_account(home: str) -> Api:
        # With rights that no Role of the chart gives: what this shows is not what RBAC refuses.
        return Api(release.cluster.kubeconfig(f"system:serviceaccount:{home}:htrflow-apply", ["system:masters"]))

    item = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "namespace": here}, "data": {}}
    with (
        contextlib.closing(as_account(here)) as own,
        contextlib.closing(as_account(there)) as neighbour,
        contextlib.closing(as_account("elsewhere")) as stray,
    ):
        own.create(item)
        outside = f"{there}:htrflow-apply writes only to the namespace {there}, and this is for {here} — write"
        with pytest.raises(ApiError, match=outside):
            neighbour.patch("v1/ConfigMap", "a", {"data": {"key": "value"}}, here)
        with pytest.raises(ApiError, match="elsewhere:htrflow-apply is the apply identity of no team — name its"):
            stray.delete("v1/ConfigMap", "a", here)
        own.delete("v1/ConfigMap", "a", here)


def test_while_kyverno_does_not_answer_campaigns_stand_still_and_then_they_go_on(
    guarded: tuple[Cluster, Kyverno | None], team: Team, nodes: FakeNodes
) -> None:
    cluster, kyverno = guarded
    if kyverno is None:
        pytest.skip("the Kyverno of a cluster of others is not to be stopped")
    team.campaign("letters", "R1", "R2", "R3", window=2)
    assert team.apply().code == 0
    team.wait(lambda: observed.running(team.namespace, "letters")[1:], "two volumes run")
    first, second = [pod["metadata"]["name"] for pod in observed.pods(team.namespace, "letters")]
    team.campaign("maps", "R4")
    kyverno.stop()

    nodes.end(first)
    team.wait(lambda: team.namespace.job("letters")["status"].get("succeeded") == 1, "a volume has ended")
    refused = team.apply()
    time.sleep(5)

    assert refused.code == 1, refused
    assert 'failed calling webhook "vpol.validate.kyverno.svc-fail' in refused.err
    assert refused.err.endswith("nothing reached the cluster\n")
    assert team.job("maps") is None
    assert {pod["metadata"]["name"] for pod in observed.pods(team.namespace, "letters")} <= {first, second}
    # Elsewhere nobody asks Kyverno.
    cluster.api.create({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "namespace": "default"}})

    nodes.play(Life())
    nodes.end(second)
    kyverno.resume()
    assert team.ended("letters") == "Complete"
    assert team.apply().code == 0
    assert team.ended("maps") == "Complete"
    team.remove("campaigns/letters.yaml")
    team.remove("campaigns/maps.yaml")
    assert team.apply("--prune", "--allow-empty").code == 0
