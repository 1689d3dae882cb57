"""Campaigns as the API server and Kueue have them, and what is left of them when something is wrong with the server."""

from __future__ import annotations

import asyncio
import contextlib
import copy
import json
import pathlib
import time
import typing as t

import pytest
import yaml

from htrflow_status.model import Campaign
from htrflow_status.sources import records
from htrflow_status.sources.connection import ConfigurationError, Connection
from htrflow_status.sources.kubernetes import KubernetesSource, Timing
from htrflow_status.sources.reflector import Pauses
from tests.statuspage import object_cases
from tests.statuspage.api_proxy import ApiProxy
from tests.testbed.plugin.cluster import Cluster
from tests.testbed.plugin.fake_nodes import FakeNodes
from tests.testbed.plugin.kubelet import Life, index_of
from tests.testbed.plugin.namespace import Namespace

Object = dict[str, t.Any]
Generated = t.Callable[..., list[Object]]
Watched = t.Callable[..., KubernetesSource]

_CAMPAIGN = "example"
_QUICK = Timing(places=0.5, workload=1.0, pauses=Pauses(0.1, 0.5, 0.5))
_KUEUE = "kueue.x-k8s.io/v1beta2"


@pytest.fixture
def watched(cluster: Cluster) -> t.Iterator[Watched]:
    """Starts a source; by default as an identity that may do everything."""
    with contextlib.ExitStack() as stack:

        def start(
            *namespaces: str, connection: Connection | None = None, timing: Timing = _QUICK, ready: bool = True
        ) -> KubernetesSource:
            source = KubernetesSource(connection or Connection.of_kubeconfig(cluster.admin), namespaces, timing)
            stack.callback(source.close)
            source.start()
            if ready:
                cluster.api.wait_for(lambda: source.ready, "the source has read everything once")
            return source

        yield start


@pytest.fixture
def proxy(cluster: Cluster) -> t.Iterator[ApiProxy]:
    made = ApiProxy(cluster.admin)
    yield made
    made.close()


def test_a_campaign_is_queued_for_quota_then_runs_and_ends_with_most_of_its_volumes(
    namespace: Namespace, fake_nodes: FakeNodes, generated: Generated, watched: Watched
) -> None:
    said = '{"stage": "load", "permanent": true, "error": "no such page"}'
    fake_nodes.play(
        lambda pod: Life(exit_code=13, container="wrapper", message=said) if index_of(pod) == "1" else Life()
    )
    namespace.quota(gpu=2)
    source = watched(namespace.name)
    namespace.create_all(generated(namespace.name))

    queued = _until(namespace, source, lambda one: "never-fits" in _codes(one))
    assert queued.state == "queued"
    (short,) = (row for row in queued.waiting if row.code == "never-fits")
    assert short.facts == {"resource": "nvidia.com/gpu", "flavor": "testbed", "asked": "3", "most": "2"}
    assert [row.state for row in source.snapshot().volumes(queued)] == ["waiting"] * 3
    namespace.quota(gpu=10)

    ended = _until(namespace, source, lambda one: one.state not in ("queued", "running"), 60)
    assert ended.state == "partial volumes"
    assert (ended.counts.done, ended.counts.failed, ended.counts.waiting, ended.counts.running) == (2, 1, 0, 0)
    assert ended.problems == ()
    assert ended.finished is not None
    (failed,) = source.snapshot().volumes_in(ended, "failed", 10)
    _until(namespace, source, lambda one: bool(source.snapshot().attempts(one, failed.index)))
    (attempt,) = source.snapshot().attempts(ended, failed.index)
    assert (attempt.state, attempt.exit_code, attempt.stage, attempt.message) == ("failed", 13, "load", "no such page")
    assert attempt.node == "fake-node"


def test_a_campaign_behind_another_says_what_it_lacks_and_how_many_are_ahead(
    namespace: Namespace, fake_nodes: FakeNodes, generated: Generated, watched: Watched
) -> None:
    namespace.quota(gpu=4)
    objects = generated(namespace.name)
    source = watched(namespace.name)
    namespace.create_all(objects)
    running = _until(namespace, source, lambda one: one.counts.running == 3)
    assert (running.state, running.waiting, running.window) == ("running", (), 20)

    namespace.create_all(_copies(objects, "second"))
    _until(namespace, source, lambda one: "quota" in _codes(one), name="second")
    # Who is first is told by times, which have whole seconds.
    time.sleep(1.1)
    namespace.create_all(_copies(objects, "third"))

    third = _until(namespace, source, lambda one: _ahead(one) == 1, name="third")
    second = _until(namespace, source, lambda one: _ahead(one) == 0, name="second")
    assert second.state == "queued"
    assert {row.code: row.facts for row in second.waiting}["quota"] == {
        "resource": "nvidia.com/gpu",
        "flavor": "testbed",
        "missing": "2",
    }
    # Kueue knows that what is alike to the second does not fit either, and does not say so of the third.
    assert third.state == "queued"


def test_a_campaign_that_is_evicted_says_why_and_goes_on_later(
    namespace: Namespace, fake_nodes: FakeNodes, generated: Generated, watched: Watched
) -> None:
    source = watched(namespace.name)
    namespace.create_all(generated(namespace.name))
    _until(namespace, source, lambda one: one.counts.running == 3)

    queue = f"{_KUEUE}/LocalQueue"
    namespace.api.patch(queue, "htr-batch", {"spec": {"stopPolicy": "HoldAndDrain"}}, namespace.name)
    stopped = _until(namespace, source, lambda one: one.state == "queued" and "queue-stopped" in _codes(one))

    assert {row.code: row.facts for row in stopped.waiting}["evicted"]["why"] == "LocalQueueStopped"
    assert stopped.counts.running == 0
    namespace.api.patch(queue, "htr-batch", {"spec": {"stopPolicy": "None"}}, namespace.name)
    assert _until(namespace, source, lambda one: one.counts.running == 3).state == "running"


def test_a_pause_is_seen_in_both_deliveries(
    namespace: Namespace, fake_nodes: FakeNodes, generated: Generated, watched: Watched
) -> None:
    source = watched(namespace.name)
    objects = generated(namespace.name)
    namespace.create_all(objects)
    _until(namespace, source, lambda one: one.counts.running == 3)

    workload = namespace.workload(_CAMPAIGN)
    assert workload is not None
    kind, name = f"{_KUEUE}/Workload", workload["metadata"]["name"]
    namespace.api.patch(kind, name, {"spec": {"active": False}}, namespace.name)
    assert _codes(_until(namespace, source, lambda one: one.state == "paused")) == {"paused"}
    namespace.api.patch(kind, name, {"spec": {"active": True}}, namespace.name)
    assert "paused" not in _codes(_until(namespace, source, lambda one: one.state == "running"))

    other = _copies(objects, "other")
    other[-1]["spec"]["parallelism"] = 0
    namespace.create_all(other)
    assert _codes(_until(namespace, source, lambda one: one.state == "paused", name="other")) == {"paused"}


def test_a_queue_and_a_class_that_do_not_exist_are_named(
    cluster: Cluster, namespace: Namespace, generated: Generated, watched: Watched, tmp_path: pathlib.Path
) -> None:
    objects = generated(namespace.name)
    source = watched(namespace.name)
    # The same as one who sees this namespace and nothing of the whole cluster.
    narrow = watched(namespace.name, connection=Connection.of_kubeconfig(_reader(cluster, namespace)))
    queue, priority = _copies(objects, "odd-queue"), _copies(objects, "odd-class")
    queue[-1]["metadata"]["labels"]["kueue.x-k8s.io/queue-name"] = "nobodys"
    priority[-1]["metadata"]["labels"]["kueue.x-k8s.io/priority-class"] = "nobodys"
    namespace.create_all([*queue, *priority])

    found = _until(namespace, source, lambda one: "queue-missing" in _codes(one), name="odd-queue")
    assert [row.facts for row in found.waiting if row.code == "queue-missing"] == [{"queue": "nobodys"}]
    found = _until(namespace, source, lambda one: "class-missing" in _codes(one), name="odd-class")
    assert [row.facts for row in found.waiting if row.code == "class-missing"] == [{"class": "nobodys"}]
    found = _until(namespace, narrow, lambda one: "not-taken-up" in _codes(one), name="odd-class")
    assert {row.code: row.facts for row in found.waiting}["not-taken-up"] == {"queue": "htr-batch", "class": "nobodys"}
    assert narrow.troubles() == ()


def test_a_namespace_that_is_forbidden_is_said_and_the_other_is_shown(
    cluster: Cluster, namespace: Namespace, generated: Generated, watched: Watched
) -> None:
    namespace.quota(gpu=0)
    namespace.create_all(generated(namespace.name))

    source = watched(namespace.name, "forbidden", connection=Connection.of_kubeconfig(_reader(cluster, namespace)))

    _until(namespace, source, lambda one: one.state == "queued")
    said = {trouble.what: trouble.reason for trouble in source.troubles()}
    assert set(said) == {f"forbidden/{kind}" for kind in ("jobs", "pods", "configmaps", "workloads")}
    assert {row.code for row in said.values()} == {"forbidden"}
    assert {row.facts["namespace"] for row in said.values()} == {"forbidden"}
    assert 'cannot list resource "jobs"' in str(said["forbidden/jobs"].facts["message"])


def test_a_place_in_the_queue_that_may_not_be_seen_is_said(
    cluster: Cluster, namespace: Namespace, fake_nodes: FakeNodes, generated: Generated, watched: Watched
) -> None:
    namespace.quota(gpu=4)
    objects = generated(namespace.name)
    source = watched(namespace.name, connection=Connection.of_kubeconfig(_reader(cluster, namespace)))
    namespace.create_all(objects)
    _until(namespace, source, lambda one: one.state == "running")
    namespace.create_all(_copies(objects, "second"))

    found = _until(namespace, source, lambda one: "ahead-unknown" in _codes(one), name="second")

    assert {row.code: row.facts for row in found.waiting}["ahead-unknown"]["why"] == "forbidden"


def test_a_job_that_is_gone_leaves_its_record(
    namespace: Namespace, fake_nodes: FakeNodes, generated: Generated, watched: Watched
) -> None:
    fake_nodes.play(Life())
    source = watched(namespace.name)
    namespace.create_all(generated(namespace.name))
    _until(namespace, source, lambda one: one.state == "succeeded", 60)
    job = namespace.job(_CAMPAIGN)
    labels = {key: value for key, value in job["metadata"]["labels"].items() if "managed-by" not in key}
    record = {"version": 1, "job": _CAMPAIGN, "uid": job["metadata"]["uid"], "phase": "Complete", "volumes": 3}
    content = json.dumps({**record, "completedIndexes": "0-2"})
    name = records.config_map_of_job(_CAMPAIGN)
    metadata = {"name": name, "namespace": namespace.name, "labels": labels}
    namespace.api.create(
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {records.KEY: content}}
    )

    namespace.api.delete("batch/v1/Job", _CAMPAIGN, namespace.name)
    found = _until(namespace, source, lambda one: one.removed)

    assert (found.state, found.counts.done, found.campaign) == ("succeeded", 3, _CAMPAIGN)
    assert {row.state for row in source.snapshot().volumes(found)} == {"done"}
    namespace.api.delete("v1/ConfigMap", name, namespace.name)
    namespace.wait_for(lambda: not source.snapshot().campaigns(), "the campaign is gone with its record")


def test_after_a_cut_a_watch_goes_on_where_it_was(
    namespace: Namespace, generated: Generated, watched: Watched, proxy: ApiProxy
) -> None:
    namespace.quota(gpu=0)
    source = watched(namespace.name, connection=Connection(proxy.url))
    objects = generated(namespace.name)
    namespace.create_all(objects)
    _until(namespace, source, lambda one: one.state == "queued")
    lists, before = dict(source.lists), len(proxy.watches("jobs"))

    for number in range(5):
        proxy.cut()
        namespace.create_all(_copies(objects, f"more-{number}"))
    for number in range(5):
        _until(namespace, source, lambda one: one.counts.total == 3, name=f"more-{number}")

    namespace.wait_for(lambda: len(proxy.watches("jobs")) > before, "the watch was begun again")
    assert source.lists == lists
    namespace.wait_for(lambda: not source.troubles(), "nothing is wrong any more")


def test_a_version_that_the_server_has_forgotten_makes_a_new_list(
    namespace: Namespace, generated: Generated, watched: Watched, proxy: ApiProxy
) -> None:
    namespace.quota(gpu=0)
    source = watched(namespace.name, connection=Connection(proxy.url))
    objects = generated(namespace.name)
    namespace.create_all(objects)
    namespace.create_all(_copies(objects, "other"))
    _until(namespace, source, lambda one: one.state == "queued")
    _until(namespace, source, lambda one: one.state == "queued", name="other")

    # The server answers that itself for a kind that it has not had from its first version on.
    proxy.forget, proxy.gone = {"workloads"}, {"jobs"}
    proxy.down()
    namespace.api.delete("batch/v1/Job", "other", namespace.name)
    namespace.wait_for(lambda: not namespace.api.find("batch/v1/Job", "other", namespace.name), "the Job is gone")
    proxy.up()

    namespace.wait_for(lambda: source.snapshot().campaign(namespace.name, "other") is None, "the site knows it")
    assert source.lists[f"{namespace.name}/jobs"] == 2
    namespace.wait_for(lambda: source.lists[f"{namespace.name}/workloads"] == 2, "so with Workloads")
    assert source.lists[f"{namespace.name}/pods"] == 1
    namespace.wait_for(lambda: not source.troubles(), "nothing is wrong any more")


def test_a_bookmark_moves_the_place_from_which_a_watch_goes_on(
    cluster: Cluster, namespace: Namespace, watched: Watched, proxy: ApiProxy
) -> None:
    # The server sends a bookmark two seconds before it ends a watch.
    timing = Timing(places=60, pauses=Pauses(0.1, 0.5, 0.5, watch=(4, 4)))
    watched(namespace.name, connection=Connection(proxy.url), timing=timing)
    namespace.wait_for(lambda: proxy.watches("jobs"), "the first watch has begun")
    # Jobs elsewhere: nothing of them is seen, but for the version.
    for number in range(3):
        metadata = {"name": f"elsewhere-{namespace.name}-{number}", "namespace": "default"}
        job = {"apiVersion": "batch/v1", "kind": "Job", "metadata": metadata, "spec": _plain_job()}
        cluster.api.create(job)
        cluster.api.delete("batch/v1/Job", metadata["name"], "default")

    namespace.wait_for(lambda: len(proxy.watches("jobs")) > 1, "the next watch has begun")

    first, second, *_ = proxy.watches("jobs")
    assert first["allowWatchBookmarks"] == "true"
    assert int(second["resourceVersion"]) > int(first["resourceVersion"])
    assert [name for name, query in proxy.asked if "watch" not in query].count("jobs") == 1


def test_what_is_known_stays_while_the_server_is_down_and_goes_on_when_it_is_back(
    namespace: Namespace, generated: Generated, watched: Watched, proxy: ApiProxy
) -> None:
    namespace.quota(gpu=0)
    source = watched(namespace.name, connection=Connection(proxy.url))
    objects = generated(namespace.name)
    namespace.create_all(objects)
    known = _until(namespace, source, lambda one: one.state == "queued")
    version = source.snapshot().version

    proxy.down()
    namespace.create_all(_copies(objects, "meanwhile"))
    (trouble,) = namespace.wait_for(source.troubles, "the site says that the server is down")

    assert (trouble.what, trouble.reason.code) == ("server", "server-unreachable")
    found = source.snapshot().campaign(namespace.name, _CAMPAIGN)
    assert found is not None
    assert (found.state, found.counts) == (known.state, known.counts)
    assert source.snapshot().version != version, "whoever waits for news is told"
    proxy.up()
    _until(namespace, source, lambda one: one.counts.total == 3, name="meanwhile")
    namespace.wait_for(lambda: not source.troubles(), "nothing is wrong any more")


def test_a_server_that_is_slow_is_said_to_be_slow(namespace: Namespace, watched: Watched, proxy: ApiProxy) -> None:
    proxy.delay = 2.0
    connection = Connection(proxy.url, read_seconds=0.3, silent_seconds=0.3)
    source = watched(namespace.name, connection=connection, ready=False)

    (trouble,) = namespace.wait_for(source.troubles, "the site says that the server is slow")

    assert (trouble.what, trouble.reason.code) == ("server", "server-slow")
    assert source.snapshot().campaigns() == ()


def test_a_renewed_token_is_used_without_a_restart(
    cluster: Cluster, namespace: Namespace, generated: Generated, watched: Watched, tmp_path: pathlib.Path
) -> None:
    namespace.quota(gpu=0)
    namespace.create_all(generated(namespace.name))
    config = yaml.safe_load(_reader(cluster, namespace).read_text(encoding="utf-8"))
    authority = pathlib.Path(config["clusters"][0]["cluster"]["certificate-authority"]).read_text()
    (tmp_path / "ca.crt").write_text(authority)
    (tmp_path / "token").write_text("of yesterday")
    host, _, port = config["clusters"][0]["cluster"]["server"].removeprefix("https://").partition(":")
    environ = {"KUBERNETES_SERVICE_HOST": host, "KUBERNETES_SERVICE_PORT": port}

    source = watched(namespace.name, connection=Connection.in_cluster(environ, tmp_path))
    assert [(row.what, row.reason.code) for row in source.troubles()] == [("server", "not-logged-in")]
    (tmp_path / "token").write_text(config["users"][0]["user"]["token"])

    _until(namespace, source, lambda one: one.state == "queued")
    namespace.wait_for(lambda: not source.troubles(), "nothing is wrong any more")


def test_whoever_waits_for_news_has_them_at_once(namespace: Namespace, generated: Generated, watched: Watched) -> None:
    namespace.quota(gpu=0)
    source = watched(namespace.name, timing=Timing(places=60))
    objects = generated(namespace.name)

    async def wait() -> tuple[float, str, str]:
        version = source.snapshot().version
        assert await source.changed("another", 30) == version
        assert await source.changed(version, 0.05) == version
        waiting = [asyncio.create_task(source.changed(version, 30)) for _ in range(3)]
        await asyncio.sleep(0.05)
        began = time.monotonic()
        await asyncio.to_thread(namespace.create_all, _copies(objects, "new"))
        versions = await asyncio.gather(*waiting)
        return time.monotonic() - began, version, versions[0]

    took, before, after = asyncio.run(wait())
    assert took < 5
    assert after != before


@pytest.mark.parametrize("content", ["", "{}", "a: [", "current-context: x\ncontexts: []", "\x00"])
def test_a_kubeconfig_that_cannot_be_used_is_refused_in_a_sentence(tmp_path: pathlib.Path, content: str) -> None:
    file = tmp_path / "kubeconfig"
    file.write_text(content)

    with pytest.raises(ConfigurationError, match="names no cluster and user that can be used"):
        Connection.of_kubeconfig(file)
    with pytest.raises(ConfigurationError, match="KUBERNETES_SERVICE_HOST"):
        Connection.in_cluster({}, tmp_path)


def _until(
    namespace: Namespace,
    source: KubernetesSource,
    condition: t.Callable[[Campaign], bool],
    seconds: float = 30,
    name: str = _CAMPAIGN,
) -> Campaign:
    """The campaign, as soon as a condition is true of it."""

    def found() -> Campaign | None:
        campaign = source.snapshot().campaign(namespace.name, name)
        return campaign if campaign and condition(campaign) else None

    try:
        return t.cast(Campaign, namespace.wait_for(found, f"the campaign {name}", seconds))
    except AssertionError as error:
        campaign = source.snapshot().campaign(namespace.name, name)
        shown = object_cases.shown(source.snapshot(), campaign) if campaign else None
        raise AssertionError(f"{error}: {shown}, {source.troubles()}") from None


def _codes(campaign: Campaign) -> set[str]:
    return {row.code for row in campaign.waiting} - {"warmup-running", "warmup-missing", "warmup-waiting"}


def _ahead(campaign: Campaign) -> object:
    return next((row.facts["campaigns"] for row in campaign.waiting if row.code == "ahead"), None)


def _copies(objects: list[Object], name: str) -> list[Object]:
    """The ConfigMap and the Job of the campaign, for one of another name."""
    kept = [copy.deepcopy(item) for item in objects if item["metadata"]["name"] in (_CAMPAIGN, f"campaign-{_CAMPAIGN}")]
    for item in sorted(kept, key=lambda item: item["kind"]):
        item["metadata"]["name"] = item["metadata"]["name"].replace(_CAMPAIGN, name)
        item["metadata"]["labels"]["htrflow.riksarkivet.se/campaign"] = name
    return sorted(kept, key=lambda item: item["kind"])


def _plain_job() -> Object:
    pod = {"restartPolicy": "Never", "containers": [{"name": "main", "image": "registry.example.org/none"}]}
    return {"suspend": True, "template": {"spec": pod}}


def _reader(cluster: Cluster, namespace: Namespace) -> pathlib.Path:
    """A kubeconfig of a service account that may list and watch in one namespace, as the site's own does."""
    verbs = ["get", "list", "watch"]
    rules = [
        {"apiGroups": [""], "resources": ["pods", "configmaps"], "verbs": verbs},
        {"apiGroups": ["batch"], "resources": ["jobs"], "verbs": verbs},
        {"apiGroups": ["kueue.x-k8s.io"], "resources": ["workloads"], "verbs": verbs},
    ]
    metadata = {"name": "site", "namespace": namespace.name}
    rbac = "rbac.authorization.k8s.io"
    subject = {"kind": "ServiceAccount", "name": "default", "namespace": namespace.name}
    cluster.api.apply({"apiVersion": f"{rbac}/v1", "kind": "Role", "metadata": metadata, "rules": rules})
    reference = {"apiGroup": rbac, "kind": "Role", "name": "site"}
    binding = {"apiVersion": f"{rbac}/v1", "kind": "RoleBinding", "metadata": metadata}
    cluster.api.apply({**binding, "subjects": [subject], "roleRef": reference})
    return cluster.service_account(namespace.name, "default")
