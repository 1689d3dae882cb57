"""What the tests of ``apply`` share."""

from __future__ import annotations

import pathlib
import secrets
import typing as t

import pytest

from tests.cmp_plugin.apply.api_proxy import Proxy
from tests.cmp_plugin.apply.teams import Team
from tests.testbed.plugin.cluster import Cluster
from tests.testbed.plugin.namespace import Namespace


@pytest.fixture
def namespace(cluster: Cluster) -> t.Iterator[Namespace]:
    """A namespace of the test's own. On a cluster that ends with the run nobody deletes it: that takes the API server
    longer than most of these tests.
    """
    made = Namespace(cluster.api, f"test-{secrets.token_hex(4)}")
    made.create()
    yield made
    if not cluster.is_ours:
        made.delete()


@pytest.fixture
def team(cluster: Cluster, namespace: Namespace, tmp_path: pathlib.Path) -> Team:
    """A team with a namespace of its own, and an administrator's rights."""
    return Team(tmp_path / "repo", namespace, cluster.admin)


@pytest.fixture
def proxy(cluster: Cluster, tmp_path: pathlib.Path) -> t.Iterator[Proxy]:
    """A way to the cluster's API server on which nothing goes wrong yet."""
    made = Proxy(cluster.admin, tmp_path)
    yield made
    made.close()
