"""The fixtures ``cluster`` and ``namespace``."""

from __future__ import annotations

import os
import pathlib
import secrets
import shutil
import subprocess
import tempfile
import typing as t

import pytest
import yaml

from tests import tools
from tests.testbed.plugin import skipping
from tests.testbed.plugin.api import Api
from tests.testbed.plugin.control_plane import ControlPlane, write_kubeconfig
from tests.testbed.plugin.kueue import Kueue
from tests.testbed.plugin.namespace import Namespace, furnish
from tests.testbed.plugin.run import Run


class Cluster:
    """A Kubernetes cluster with Kueue."""

    def __init__(self, admin: pathlib.Path, folder: pathlib.Path, control_plane: ControlPlane | None) -> None:
        #: A kubeconfig that may do everything.
        self.admin = admin
        #: A client that may do everything.
        self.api = Api(admin)
        self._folder, self._control_plane = folder, control_plane

    @property
    def is_ours(self) -> bool:
        """Whether the test bed started the cluster, so that it has no real nodes."""
        return self._control_plane is not None

    def kubeconfig(self, user: str, groups: t.Sequence[str] = ()) -> pathlib.Path:
        """A kubeconfig of any user: with a certificate, or on a cluster of others acting as that user."""
        file = self._folder / f"{secrets.token_hex(6)}.kubeconfig"
        if self._control_plane:
            self._control_plane.kubeconfig(file, user, groups)
            return file
        config = yaml.safe_load(self.admin.read_text(encoding="utf-8"))
        for row in config["users"]:
            row["user"].update({"as": user, "as-groups": list(groups)})
        file.touch(mode=0o600)
        file.write_text(yaml.safe_dump(config), encoding="utf-8")
        return file

    def service_account(self, namespace: str, name: str) -> pathlib.Path:
        """A kubeconfig of a service account that exists, with a token as its pods have."""
        path = self.api.path("v1/ServiceAccount", namespace, name, "token")
        body = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {"expirationSeconds": 3600}}
        token = self.api.request("POST", path, json=body)["status"]["token"]
        file = self._folder / f"{secrets.token_hex(6)}.kubeconfig"
        authority = self._folder / "authority.crt"
        authority.write_text(self.api.get("v1/ConfigMap", "kube-root-ca.crt", namespace)["data"]["ca.crt"])
        write_kubeconfig(file, self.api.server, authority, {"token": token})
        return file

    def kubectl(self, *arguments: str, kubeconfig: pathlib.Path | None = None, stdin: str = "") -> str:
        """What ``kubectl`` prints; raises :class:`subprocess.CalledProcessError`."""
        command = [str(tools.find("kubectl")), f"--kubeconfig={kubeconfig or self.admin}", *arguments]
        done = subprocess.run(command, input=stdin, capture_output=True, text=True, check=True, timeout=120)
        return done.stdout

    def close(self) -> None:
        """Ends the connections."""
        self.api.close()


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
    with tempfile.TemporaryDirectory(prefix="testbed-cluster-") as folder:
        if pytestconfig.getoption("cluster_of_kubeconfig"):
            found = _of_kubeconfig(pathlib.Path(folder))
        else:
            skipping.require(*skipping.BEHIND["cluster"])
            state = testbed_run.once("cluster", lambda place: _start(testbed_run, place))
            control_plane = ControlPlane(testbed_run, pathlib.Path(state["folder"]), state["server"])
            found = Cluster(control_plane.admin, pathlib.Path(folder), control_plane)
        try:
            yield found
        finally:
            found.close()


@pytest.fixture
def namespace(cluster: Cluster) -> t.Iterator[Namespace]:
    """A namespace of the test's own, with all that the chart brings to one, and room for many pods."""
    made = Namespace(cluster.api, f"test-{secrets.token_hex(4)}")
    made.create()
    yield made
    made.delete()


def _start(run: Run, folder: pathlib.Path) -> dict[str, t.Any]:
    control_plane = ControlPlane(run, folder)
    control_plane.start()
    api = Api(control_plane.admin)
    try:
        (folder / "kueue").mkdir()
        Kueue(run, folder / "kueue", control_plane, api).start()
        furnish(api)
    finally:
        api.close()
    return {"folder": str(folder), "server": control_plane.server}


def _of_kubeconfig(folder: pathlib.Path) -> Cluster:
    given = os.environ.get("KUBECONFIG", "")
    if not pathlib.Path(given).is_file():
        pytest.fail("--cluster-of-kubeconfig needs KUBECONFIG with the path of one file", pytrace=False)
    admin = pathlib.Path(given).resolve()
    if not shutil.which("kubectl"):
        skipping.require("kubectl")
    found = Cluster(admin, folder, None)
    furnish(found.api)
    return found
