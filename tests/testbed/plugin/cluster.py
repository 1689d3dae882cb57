"""A cluster: ours, or the one of a kubeconfig."""

from __future__ import annotations

import os
import pathlib
import secrets
import subprocess
import typing as t

import pytest
import yaml

from tests import tools
from tests.testbed.plugin import skipping
from tests.testbed.plugin.api import Api
from tests.testbed.plugin.control_plane import ControlPlane, write_kubeconfig
from tests.testbed.plugin.fake_nodes import FAKE
from tests.testbed.plugin.kueue import Kueue
from tests.testbed.plugin.kyverno import Kyverno
from tests.testbed.plugin.namespace import furnish
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

    def has_machines(self) -> bool:
        """Whether the cluster has nodes with a kubelet, which would run the pods of tests."""
        return any(FAKE not in node["metadata"].get("labels", {}) for node in self.api.list("v1/Node"))

    def require_no_machines(self) -> None:
        """Skips the test that runs when the cluster has machines."""
        if self.has_machines():
            pytest.skip("a cluster with real nodes has kubelets of its own")

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


def start(run: Run, folder: pathlib.Path) -> dict[str, t.Any]:
    """Starts a cluster in a folder, and returns what :func:`join` needs."""
    state, kueue = start_with_kueue(run, folder)
    kueue.close()
    return state


def start_with_kueue(
    run: Run, folder: pathlib.Path, settings: t.Mapping[str, t.Any] | None = None
) -> tuple[dict[str, t.Any], Kueue]:
    """As :func:`start`, with the Kueue, whose ``settings`` replace keys of the configuration that comes with it."""
    control_plane = ControlPlane(run, folder)
    control_plane.start()
    (folder / "kueue").mkdir()
    kueue = Kueue(run, folder / "kueue", control_plane, settings)
    try:
        kueue.start()
        furnish(kueue.api)
    except BaseException:
        kueue.close()
        raise
    return {"folder": str(folder), "server": control_plane.server}, kueue


def start_guarded(run: Run, folder: pathlib.Path) -> dict[str, t.Any]:
    """As :func:`start`, with Kyverno's admission controller."""
    state, kyverno = start_with_kyverno(run, folder)
    kyverno.close()
    return state


def start_with_kyverno(run: Run, folder: pathlib.Path) -> tuple[dict[str, t.Any], Kyverno]:
    """As :func:`start_guarded`, with the Kyverno."""
    state = start(run, folder)
    (folder / "kyverno").mkdir()
    kyverno = Kyverno(run, folder / "kyverno", ControlPlane(run, folder, state["server"]))
    try:
        kyverno.start()
    except BaseException:
        kyverno.close()
        raise
    return state, kyverno


def join(run: Run, state: t.Mapping[str, t.Any], folder: pathlib.Path) -> Cluster:
    """The cluster that a process of the run started; ``folder`` is for files of this process."""
    control_plane = ControlPlane(run, pathlib.Path(state["folder"]), state["server"])
    return Cluster(control_plane.admin, folder, control_plane)


def of_kubeconfig(folder: pathlib.Path) -> Cluster:
    """The cluster that ``KUBECONFIG`` names, with what the chart brings to it."""
    given = os.environ.get("KUBECONFIG", "")
    if not pathlib.Path(given).is_file():
        pytest.fail("--cluster-of-kubeconfig needs KUBECONFIG with the path of one file", pytrace=False)
    admin = pathlib.Path(given).resolve()
    skipping.require("kubectl")
    found = Cluster(admin, folder, None)
    furnish(found.api)
    return found
