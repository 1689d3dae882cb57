"""The fixtures. Each imports what it needs when a test asks for it: every run of tests loads this plugin."""

from __future__ import annotations

import contextlib
import pathlib
import secrets
import tempfile
import typing as t

import pytest

from tests import tools
from tests.testbed.plugin import skipping
from tests.testbed.plugin.run import Run

if t.TYPE_CHECKING:
    from tests.testbed.plugin.browser import Browser
    from tests.testbed.plugin.cluster import Cluster
    from tests.testbed.plugin.fake_nodes import FakeNodes
    from tests.testbed.plugin.misbehaving_http import MisbehavingHttp
    from tests.testbed.plugin.namespace import Namespace
    from tests.testbed.plugin.s3 import OwnStore, Store

_KIND = "apiextensions.k8s.io/v1/CustomResourceDefinition"
_POLICIES = "validatingpolicies.policies.kyverno.io"


def pytest_addoption(parser: pytest.Parser) -> None:
    """Adds the option that points the tests at another cluster."""
    parser.addoption(
        "--cluster-of-kubeconfig",
        dest="cluster_of_kubeconfig",
        action="store_true",
        help="run tests of the cluster on the one that KUBECONFIG names, which has Kueue; its user may do everything",
    )


@pytest.fixture(scope="session")
def cluster(testbed_run: Run, pytestconfig: pytest.Config) -> t.Iterator[Cluster]:
    """A cluster with Kueue, and with what the chart brings to a whole cluster. Tests share it."""
    with _cluster(testbed_run, pytestconfig, "cluster") as found:
        yield found


@pytest.fixture(scope="session")
def guarded_cluster(testbed_run: Run, pytestconfig: pytest.Config) -> t.Iterator[Cluster]:
    """Another such cluster, with Kyverno's admission controller. Tests share it, each with policies of its own."""
    with _cluster(testbed_run, pytestconfig, "guarded_cluster") as found:
        if not found.is_ours and not found.api.find(_KIND, _POLICIES):
            pytest.skip("the cluster of KUBECONFIG has no Kyverno")
        yield found


@contextlib.contextmanager
def _cluster(run: Run, config: pytest.Config, fixture: str) -> t.Iterator[Cluster]:
    skipping.require("kubectl")
    foreign = config.getoption("cluster_of_kubeconfig")
    if not foreign:
        skipping.require(*skipping.BEHIND[fixture])
    from tests.testbed.plugin import cluster as clusters

    with tempfile.TemporaryDirectory(prefix="testbed-cluster-") as name:
        folder = pathlib.Path(name)
        if foreign:
            found = clusters.of_kubeconfig(folder)
            config.stash[skipping.FOREIGN] = found.api.request("GET", "/version")["gitVersion"]
        else:
            start = clusters.start_guarded if fixture == "guarded_cluster" else clusters.start
            found = clusters.join(run, run.once(fixture, lambda place: start(run, place)), folder)
        with contextlib.closing(found):
            yield found


@pytest.fixture
def namespace(cluster: Cluster) -> t.Iterator[Namespace]:
    """A namespace of the test's own, with all that the chart brings to one, and room for many pods."""
    from tests.testbed.plugin.namespace import Namespace

    made = Namespace(cluster.api, f"test-{secrets.token_hex(4)}")
    made.create()
    yield made
    made.delete()


@pytest.fixture(scope="session")
def fake_node(testbed_run: Run, cluster: Cluster) -> None:
    """A node that has room for every pod, and no kubelet."""
    cluster.require_no_machines()
    from tests.testbed.plugin.fake_nodes import create_node

    testbed_run.once("nodes", lambda folder: create_node(cluster.api))


@pytest.fixture
def fake_nodes(fake_node: None, cluster: Cluster, namespace: Namespace) -> t.Iterator[FakeNodes]:
    """A kubelet of that node; the pods of the test's namespace run for ever until told otherwise."""
    from tests.testbed.plugin.fake_nodes import FakeNodes

    nodes = FakeNodes(cluster.api, namespace.name)
    nodes.start()
    yield nodes
    nodes.stop()


@pytest.fixture
def s3(testbed_run: Run) -> Store:
    """A store with a bucket of the test's own; other tests have theirs on the same server."""
    skipping.require(*skipping.BEHIND["s3"])
    from tests.testbed.plugin.s3 import Store, start_shared

    store = Store(**testbed_run.once("s3", lambda folder: start_shared(testbed_run, folder)))
    store.create_bucket()
    return store


@pytest.fixture
def own_s3(testbed_run: Run, tmp_path: pathlib.Path) -> t.Iterator[OwnStore]:
    """A store of the test's own, with a bucket."""
    skipping.require(*skipping.BEHIND["own_s3"])
    from tests.testbed.plugin.s3 import OwnStore

    store = OwnStore(testbed_run, tmp_path / "s3")
    store.create_bucket()
    yield store
    store.close()


@pytest.fixture
def misbehaving_http() -> t.Iterator[MisbehavingHttp]:
    """A server of the test's own, on a free port."""
    from tests.testbed.plugin.misbehaving_http import MisbehavingHttp

    site = MisbehavingHttp()
    yield site
    site.close()


@pytest.fixture(scope="session")
def _chromium() -> t.Iterator[t.Any]:
    skipping.require(*skipping.BEHIND["browser"])
    from playwright.sync_api import sync_playwright

    from tests.testbed.plugin import browser

    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=tools.find("chromium"), args=browser.FLAGS)
        yield chromium
        chromium.close()


@pytest.fixture
def browser(_chromium: t.Any) -> t.Iterator[Browser]:
    """A browser with no page open."""
    from tests.testbed.plugin.browser import Browser

    yield Browser(_chromium)
    for context in _chromium.contexts:
        context.close()
