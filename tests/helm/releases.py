"""A release that a real helm has installed into a real cluster."""

from __future__ import annotations

import secrets
import typing as t

from tests.helm import chart
from tests.helm.chart import Helm, Object
from tests.testbed.plugin.api import Api
from tests.testbed.plugin.cluster import Cluster

#: The flavor that the test bed has; it is shared, so this release makes none.
_FLAVOR = "testbed"


class Release:
    """Two teams in namespaces that the release makes, and the site in one that was there."""

    def __init__(self, helm: Helm, cluster: Cluster, **more: t.Any) -> None:
        """``more`` are values by their path with dots."""
        mark = secrets.token_hex(3)
        self.cluster, self._helm = cluster, helm
        self._accounts = dict[tuple[str, str], Api]()
        self.namespace = f"htr-{mark}"
        #: The first has the chart's default quota and window.
        self.teams = (f"letters-{mark}", f"maps-{mark}")
        quota = [{"flavor": _FLAVOR, "nominal": {"cpu": 80, "memory": "160Gi", "gpu": 20}}]
        self._settings: dict[str, t.Any] = {
            "results.sessionSecret": "",
            "shared.create": False,
            "flavors": [{"name": _FLAVOR}],
            "namespaces.create": True,
            "cohort": f"htrflow-{mark}",
            "teams": [{"namespace": team, "quota": quota} for team in self.teams],
            "apply.enabled": True,
            "web.writeRecords": True,
            **more,
        }

    def install(self) -> None:
        labels = {"pod-security.kubernetes.io/enforce": "restricted"}
        self.cluster.api.create(
            {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": self.namespace, "labels": labels}}
        )
        self._run("install", "htr", str(chart.CHART), *self._helm.arguments(["default"], self._settings))

    def upgrade(self, **settings: t.Any) -> None:
        """With the values of the release as it is, and a few others."""
        self._run("upgrade", "htr", str(chart.CHART), "--reuse-values", *self._helm.arguments([], settings))

    def uninstall(self) -> None:
        self._run("uninstall", "htr")

    def as_account(self, namespace: str, name: str) -> Api:
        """The API as a ServiceAccount of the release sees it."""
        account = (namespace, name)
        if account not in self._accounts:
            self._accounts[account] = Api(self.cluster.service_account(*account))
        return self._accounts[account]

    def objects(self) -> list[Object]:
        """The objects as helm keeps them."""
        return chart.objects(self._run("get", "manifest", "htr"))

    def delete(self) -> None:
        """Deletes what the release leaves behind."""
        for api in self._accounts.values():
            api.close()
        for namespace in (self.namespace, *self.teams):
            self.cluster.api.delete("v1/Namespace", namespace)

    def _run(self, *arguments: str) -> str:
        done = self._helm.run(*arguments, f"--namespace={self.namespace}", f"--kubeconfig={self.cluster.admin}")
        assert done.returncode == 0, done.stderr
        return done.stdout
