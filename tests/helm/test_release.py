"""The chart in a real cluster: installed by helm, used by its identities, upgraded and uninstalled."""

from __future__ import annotations

import base64
import functools
import json
import secrets
import typing as t

import pytest
from cryptography.fernet import Fernet

from tests import tools
from tests.helm import chart
from tests.helm.chart import Helm, Object
from tests.helm.releases import Release
from tests.testbed.plugin import skipping
from tests.testbed.plugin.api import Api, ApiError
from tests.testbed.plugin.cluster import Cluster
from tests.testbed.plugin.namespace import Namespace

_KUEUE = "kueue.x-k8s.io/v1beta2"
_RECORD = json.dumps({"version": 1, "job": "example", "uid": "u", "phase": "", "volumes": 3})


@pytest.fixture(scope="module")
def release(cluster: Cluster) -> t.Iterator[Release]:
    skipping.require("helm")
    made = Release(Helm(tools.find("helm")), cluster)
    made.install()
    yield made
    made.uninstall()
    made.delete()


@pytest.fixture(scope="module")
def team(release: Release) -> str:
    """A team's namespace, with the ConfigMaps of a campaign and its record in it."""
    namespace = release.teams[0]
    for name, key, text in (
        ("campaign-example", "volumes.txt", "R0001203\thttps://iiif.example.org/manifest\n"),
        ("campaign-example-status", "record.json", _RECORD),
        ("htr-pipeline-demo-v1", "pipeline.yaml", "steps: []\n"),
    ):
        metadata = {"name": name, "namespace": namespace, "labels": {"htrflow.riksarkivet.se/pipeline": "demo-v1"}}
        release.cluster.api.create(
            {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {key: text, "other": "kept"}}
        )
    return namespace


# Objects


#: Argo CD and Kyverno are not in the test bed, and the namespaces of two-teams.yaml are another test's.
_DRY = [way for way in chart.WAYS if way != "two-teams"]


@pytest.fixture
def empty(cluster: Cluster) -> t.Iterator[str]:
    """The name of a namespace that enforces Pod Security *restricted*, and has nothing in it."""
    name = f"empty-{secrets.token_hex(4)}"
    labels = {"pod-security.kubernetes.io/enforce": "restricted"}
    cluster.api.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": labels}})
    yield name
    cluster.api.delete("v1/Namespace", name)


@pytest.mark.parametrize("way", _DRY)
def test_the_api_server_and_kueue_take_every_object(cluster: Cluster, empty: str, helm: Helm, way: str) -> None:
    objects = helm.template(way, namespace=empty)
    asked = [item for item in objects if not item["apiVersion"].startswith(("argoproj.io/", "policies.kyverno.io/"))]

    taken = [cluster.api.apply(item, dry_run=True) for item in asked]

    assert [chart.key(item) for item in taken] == [chart.key(item) for item in asked]
    assert len(asked) > 3


def test_a_pod_of_the_site_passes_pod_security_restricted(cluster: Cluster, empty: str, helm: Helm) -> None:
    objects = helm.template("full", namespace=empty)
    for item in objects:
        if item["kind"] == "ServiceAccount":
            cluster.api.create(item)
    pods = [
        {"apiVersion": "v1", "kind": "Pod", **item["spec"]["template"]}
        for item in objects
        if item["kind"] == "Deployment"
    ]
    for number, pod in enumerate(pods):
        pod["metadata"].update(name=f"site-{number}", namespace=empty)
        cluster.api.create(pod, dry_run=True)
        del pod["spec"]["containers"][0]["securityContext"]["capabilities"]
        with pytest.raises(ApiError, match="violates PodSecurity"):
            cluster.api.create(pod, dry_run=True)

    assert len(pods) == 2


def test_a_team_gets_its_queue_its_cache_and_a_namespace_that_refuses_what_restricted_refuses(release: Release) -> None:
    api = release.cluster.api
    for team in release.teams:
        pool = api.wait_for(functools.partial(_active, api, team), f"the ClusterQueue of {team} is active")
        assert pool["spec"]["namespaceSelector"] == {"matchLabels": {"kubernetes.io/metadata.name": team}}
        assert api.get("v1/PersistentVolumeClaim", "htr-test-data", team)
        assert api.get("v1/Namespace", team)["metadata"]["labels"]["pod-security.kubernetes.io/enforce"] == "restricted"


def _active(api: Api, team: str) -> Object | None:
    pool = api.get(f"{_KUEUE}/ClusterQueue", f"{team}-cq")
    active = {row["type"]: row["status"] for row in pool.get("status", {}).get("conditions", [])}.get("Active")
    return pool if active == "True" else None


def test_a_campaign_of_the_default_window_is_admitted_in_the_default_quota(
    release: Release, generated: t.Callable[..., list[Object]]
) -> None:
    namespace, api = release.teams[1], release.cluster.api
    job = chart.one(generated(namespace, queue=namespace), "Job", "example")
    job["spec"].update(completions=20, maxFailedIndexes=20)
    assert job["spec"]["parallelism"] == 20
    api.wait_for(lambda: _active(api, namespace), "the ClusterQueue is active")

    uid = api.create(job)["metadata"]["uid"]
    selector = f"kueue.x-k8s.io/job-uid={uid}"

    def conditions() -> dict[str, str]:
        found = api.list(f"{_KUEUE}/Workload", namespace, labelSelector=selector)
        return {row["type"]: row["status"] for item in found for row in item.get("status", {}).get("conditions", [])}

    api.wait_for(lambda: conditions().get("Admitted") == "True", "the campaign is admitted")
    api.delete("batch/v1/Job", "example", namespace)


def test_a_queue_of_another_namespace_gets_nothing_of_a_teams_quota(
    release: Release, namespace: Namespace, generated: t.Callable[..., list[Object]]
) -> None:
    api = release.cluster.api
    queue = {"clusterQueue": f"{release.teams[0]}-cq"}
    metadata = {"name": "stolen", "namespace": namespace.name}
    api.create({"apiVersion": _KUEUE, "kind": "LocalQueue", "metadata": metadata, "spec": queue})
    job = chart.one(generated(namespace.name, queue="stolen"), "Job", "example")
    api.create(job)

    def refused() -> bool:
        workload = namespace.workload("example") or {}
        rows = workload.get("status", {}).get("conditions", [])
        return any(row["type"] == "QuotaReserved" and "namespace doesn't match" in row["message"] for row in rows)

    namespace.wait_for(refused, "Kueue says that the namespace is another's")


# Rights


def _may(api: Api, rows: t.Iterable[str], namespace: str) -> dict[str, bool]:
    """Of each row, such as ``get batch/jobs`` or ``get apps/deployments/scale``, whether the identity may do it."""
    answers = dict[str, bool]()
    for row in rows:
        verb, what = row.split()
        group, _, resource = what.partition("/")
        resource, _, subresource = resource.partition("/")
        attributes = {
            "namespace": namespace,
            "verb": verb,
            "group": "" if group == "core" else group,
            "resource": resource,
            "subresource": subresource,
        }
        kind, version = "SelfSubjectAccessReview", "authorization.k8s.io/v1"
        review = api.create(
            {"apiVersion": version, "kind": kind, "metadata": {}, "spec": {"resourceAttributes": attributes}}
        )
        answers[row] = review["status"]["allowed"]
    return answers


def _rights(api: Api, namespace: str) -> list[Object]:
    """The rules that hold for an identity, but for those of asking who it is and what it may."""
    kind, version = "SelfSubjectRulesReview", "authorization.k8s.io/v1"
    review = api.create({"apiVersion": version, "kind": kind, "metadata": {}, "spec": {"namespace": namespace}})
    assert not review["status"]["incomplete"]
    asking = ["authentication.k8s.io"], ["authorization.k8s.io"]
    return [rule for rule in review["status"]["resourceRules"] if rule["apiGroups"] not in asking]


_VERBS = ("get", "list", "watch", "create", "update", "patch", "delete", "deletecollection")
_RESOURCES = (
    "batch/jobs",
    "batch/cronjobs",
    "core/pods",
    "core/pods/exec",
    "core/pods/log",
    "core/configmaps",
    "core/secrets",
    "core/serviceaccounts",
    "core/serviceaccounts/token",
    "core/namespaces",
    "core/persistentvolumeclaims",
    "core/events",
    "apps/deployments",
    "coordination.k8s.io/leases",
    "kueue.x-k8s.io/workloads",
    "kueue.x-k8s.io/workloads/status",
    "kueue.x-k8s.io/localqueues",
    "kueue.x-k8s.io/clusterqueues",
    "visibility.kueue.x-k8s.io/localqueues/pendingworkloads",
    "rbac.authorization.k8s.io/roles",
    "rbac.authorization.k8s.io/rolebindings",
    "networking.k8s.io/networkpolicies",
)
_READ = ("get", "list", "watch")
_WEB = {
    "batch/jobs": _READ,
    "core/pods": _READ,
    "core/configmaps": (*_READ, "patch"),
    "kueue.x-k8s.io/workloads": _READ,
    "kueue.x-k8s.io/localqueues": ("get",),
    "visibility.kueue.x-k8s.io/localqueues/pendingworkloads": ("get",),
}
_APPLY = {
    "batch/jobs": (*_READ, "create", "update", "patch", "delete"),
    "core/configmaps": (*_READ, "create", "update", "patch", "delete"),
    "kueue.x-k8s.io/workloads": (*_READ, "update", "patch"),
    "coordination.k8s.io/leases": ("get", "create", "update", "patch", "delete"),
    "core/pods": ("get", "list"),
}
_ALL = [f"{verb} {resource}" for resource in _RESOURCES for verb in _VERBS]


def _allowed(table: t.Mapping[str, t.Sequence[str]]) -> set[str]:
    return {f"{verb} {resource}" for resource, verbs in table.items() for verb in verbs}


def test_the_site_may_read_what_it_shows_of_every_team_and_nothing_else(release: Release) -> None:
    api = release.as_account(release.namespace, "htrflow-web")
    for team in release.teams:
        assert {row for row, allowed in _may(api, _ALL, team).items() if allowed} == _allowed(_WEB)
    classes = {"apiGroups": ["kueue.x-k8s.io"], "resources": ["workloadpriorityclasses"], "verbs": ["list", "watch"]}
    for elsewhere in (release.namespace, "default", "kube-system"):
        assert _rights(api, elsewhere) == [classes]
    everywhere = _may(api, [f"{verb} kueue.x-k8s.io/workloadpriorityclasses" for verb in _VERBS], "")
    assert {row.split()[0] for row, allowed in everywhere.items() if allowed} == {"list", "watch"}


def test_the_apply_identity_may_write_its_own_teams_campaigns_and_no_queue(release: Release) -> None:
    mine, others = release.teams
    api = release.as_account(mine, "htrflow-apply")

    assert {row for row, allowed in _may(api, _ALL, mine).items() if allowed} == _allowed(_APPLY)
    for elsewhere in (others, release.namespace, "default"):
        assert _rights(api, elsewhere) == []


def test_the_apply_identity_delivers_what_the_converter_renders_and_is_refused_a_queue(
    release: Release, generated: t.Callable[..., list[Object]]
) -> None:
    mine, others = release.teams
    api = release.as_account(mine, "htrflow-apply")
    for item in generated(mine, queue=mine):
        api.apply(item, dry_run=True)

    queue = {"apiVersion": _KUEUE, "kind": "LocalQueue", "spec": {"clusterQueue": f"{others}-cq"}}
    with pytest.raises(ApiError) as refused:
        api.create({**queue, "metadata": {"name": "theirs", "namespace": mine}}, dry_run=True)
    assert refused.value.status == 403


def test_the_results_proxy_has_no_right_at_all(release: Release) -> None:
    api = release.as_account(release.namespace, "htrflow-results")
    for namespace in (release.namespace, *release.teams):
        assert _rights(api, namespace) == []


# Records


@pytest.fixture
def site(release: Release, team: str) -> Api:
    """The site's identity, as soon as the policy holds for it."""
    api = release.as_account(release.namespace, "htrflow-web")

    def holds() -> bool:
        try:
            api.patch("v1/ConfigMap", "htr-pipeline-demo-v1", {"data": {"probe": "x"}}, team)
        except ApiError as error:
            return "the records of campaigns alone" in str(error)
        return False

    release.cluster.api.wait_for(holds, "the policy for records holds")
    release.cluster.api.patch("v1/ConfigMap", "htr-pipeline-demo-v1", {"data": {"probe": None}}, team)
    return api


def test_the_site_may_write_into_a_record(site: Api, team: str) -> None:
    words = {"1": {"exitCode": 13, "stage": "load", "reason": "", "message": "no such model"}}
    record = json.dumps({**json.loads(_RECORD), "failedVolumes": words})

    site.patch("v1/ConfigMap", "campaign-example-status", {"data": {"record.json": record}}, team)

    found = site.get("v1/ConfigMap", "campaign-example-status", team)
    assert found["data"] == {"record.json": record, "other": "kept"}


@pytest.mark.parametrize(
    ("name", "change", "said"),
    [
        ("htr-pipeline-demo-v1", {"data": {"pipeline.yaml": "steps: [evil]\n"}}, "the records of campaigns alone"),
        ("campaign-example", {"data": {"volumes.txt": "x\thttps://example.org/\n"}}, "the records of campaigns alone"),
        ("campaign-example", {"data": {"record.json": "{}"}}, "the records of campaigns alone"),
        ("kube-root-ca.crt", {"data": {"ca.crt": ""}}, "the records of campaigns alone"),
        ("campaign-example-status", {"data": {"other": "changed"}}, "the key record.json of a record alone"),
        ("campaign-example-status", {"data": {"new": "x"}}, "the key record.json of a record alone"),
        ("campaign-example-status", {"data": {"record.json": None}}, "the key record.json of a record alone"),
        ("campaign-example-status", {"data": {"other": None}}, "the key record.json of a record alone"),
        ("campaign-example-status", {"binaryData": {"record.json2": "eA=="}}, "the key record.json of a record alone"),
        ("campaign-example-status", {"immutable": True}, "the key record.json of a record alone"),
        ("campaign-example-status", {"metadata": {"labels": {"app": "x"}}}, "changes no label, annotation"),
        ("campaign-example-status", {"metadata": {"annotations": {"a": "x"}}}, "changes no label, annotation"),
        ("campaign-example-status", {"metadata": {"finalizers": ["example.org/x"]}}, "changes no label, annotation"),
    ],
)
def test_the_site_may_write_into_nothing_else(site: Api, team: str, name: str, change: Object, said: str) -> None:
    before = site.get("v1/ConfigMap", name, team)

    with pytest.raises(ApiError, match=said):
        site.patch("v1/ConfigMap", name, change, team)

    assert site.get("v1/ConfigMap", name, team) == before


def test_the_policy_for_records_holds_nobody_else(release: Release, site: Api, team: str) -> None:
    release.as_account(team, "htrflow-apply").patch(
        "v1/ConfigMap", "campaign-example", {"data": {"other": "new"}}, team
    )

    assert site.get("v1/ConfigMap", "campaign-example", team)["data"]["other"] == "new"


# Upgrades


def _session(release: Release) -> str:
    return t.cast(str, release.cluster.api.get("v1/Secret", "htrflow-session", release.namespace)["data"]["keys"])


def test_the_session_key_is_a_key_and_stays_through_upgrades(release: Release) -> None:
    before = _session(release)
    (key,) = base64.b64decode(before).decode().splitlines()
    assert Fernet(key).decrypt(Fernet(key).encrypt(b"session")) == b"session"

    objects = {chart.key(item): item for item in release.objects()}
    release.upgrade(**{"web.replicas": 2})
    after = {chart.key(item): item for item in release.objects()}

    assert _session(release) == before
    assert after.keys() - objects.keys() == {("PodDisruptionBudget", release.namespace, "htrflow-web")}
    assert objects.keys() - after.keys() == set()


def test_models_and_the_teams_namespaces_outlive_the_release(cluster: Cluster) -> None:
    skipping.require("helm")
    made = Release(Helm(tools.find("helm")), cluster)
    made.install()
    made.uninstall()

    for team in made.teams:
        claim = cluster.api.get("v1/PersistentVolumeClaim", "htr-test-data", team)
        assert "deletionTimestamp" not in claim["metadata"]
        assert "deletionTimestamp" not in cluster.api.get("v1/Namespace", team)["metadata"]
        assert cluster.api.find("networking.k8s.io/v1/NetworkPolicy", "htrflow-campaign", team) is None
    made.delete()
