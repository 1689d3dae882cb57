"""A campaigns repo, and Argo CD's way to bring it to the cluster."""

from __future__ import annotations

import pathlib
import secrets
import typing as t

import pytest

from tests.cluster.argocd import ArgoCD
from tests.cluster.repos import Repo
from tests.helm.chart import Helm
from tests.testbed.plugin.cluster import Cluster
from tests.testbed.plugin.namespace import Namespace


@pytest.fixture(scope="session")
def place(cluster: Cluster) -> t.Iterator[Namespace]:
    """A namespace for dry runs, in which nothing is created: to make and delete one takes a server a while."""
    made = Namespace(cluster.api, f"test-{secrets.token_hex(4)}")
    made.create()
    yield made
    made.delete()


@pytest.fixture
def repo(namespace: Namespace, tmp_path: pathlib.Path) -> Repo:
    """A campaigns repo for the test's namespace, with a pipeline and no campaign."""
    return Repo(tmp_path / "repo", namespace.name)


@pytest.fixture
def argocd(cluster: Cluster, namespace: Namespace) -> ArgoCD:
    """An Application for the test's namespace."""
    return ArgoCD(cluster, namespace.name)


@pytest.fixture
def helm(tool: t.Callable[[str], pathlib.Path]) -> Helm:
    """helm, on the chart."""
    return Helm(tool("helm"))
