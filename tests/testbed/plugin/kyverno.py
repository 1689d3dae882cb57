"""Kyverno's admission controller as its chart installs it, but for its Deployment: it is a process of this machine."""

from __future__ import annotations

import json
import pathlib

from tests import tools
from tests.testbed.plugin import processes
from tests.testbed.plugin.api import Api, ApiError, Object
from tests.testbed.plugin.control_plane import ControlPlane
from tests.testbed.plugin.run import Run
from tests.tools.kyverno import NAMESPACE

_PROGRAM = "kyverno-admission-controller"
_KIND = "CustomResourceDefinition"
_ADMISSION = "admissionregistration.k8s.io/v1"
#: What Kyverno registers when it is ready to be asked about policies.
_ABOUT_POLICIES = "kyverno-policy-validating-webhook-cfg"


class Kyverno:
    """One admission controller, with its files in one folder."""

    def __init__(self, run: Run, folder: pathlib.Path, control_plane: ControlPlane) -> None:
        self._run, self._folder, self._control_plane = run, folder, control_plane
        self.api = Api(control_plane.admin)
        self._webhook_port, self._metrics_port = processes.free_ports(2)

    def start(self) -> None:
        """Returns when the API server asks Kyverno about policies; each policy begins to hold a moment later."""
        manifests = tools.find(_PROGRAM).parents[1] / "share/manifests.json"
        objects: list[Object] = json.loads(manifests.read_text(encoding="utf-8"))
        self.api.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}})
        for item in objects:
            self.api.create(self._at_home(item))
        for item in objects:
            if item["kind"] == _KIND:
                self.api.wait_until_served(item["metadata"]["name"])
        self._deployment = next(item for item in objects if item["kind"] == "Deployment")
        self.resume()

    def stop(self) -> None:
        """Ends the process. What the API server has to ask it, it refuses from then on."""
        self._process.stop()

    def resume(self) -> None:
        """Starts the process; returns as :meth:`start` does."""
        self._process = self._spawn()
        self._process.wait_until(self._ready)

    def close(self) -> None:
        """Ends the connections; Kyverno goes on."""
        self.api.close()

    def _at_home(self, item: Object) -> Object:
        """The object, changed so that the API server finds Kyverno on this machine."""
        if item["kind"] == "Service":
            return {**item, "spec": {"type": "ExternalName", "externalName": "localhost"}}
        return item

    def _spawn(self) -> processes.Process:
        (container,) = self._deployment["spec"]["template"]["spec"]["containers"]
        own = {
            "servicePort": self._webhook_port,
            "webhookServerHost": "127.0.0.1",
            "webhookServerPort": self._webhook_port,
            "metricsPort": self._metrics_port,
            "controllerRuntimeMetricsAddress": "0",
            # Off by default; the documentation of the policies has an exception.
            "enablePolicyException": "true",
            "exceptionNamespace": NAMESPACE,
        }
        kept = [flag for flag in container["args"] if flag.lstrip("-").partition("=")[0] not in own]
        identity = self._folder / "kyverno.kubeconfig"
        self._control_plane.account_kubeconfig(identity, NAMESPACE, _PROGRAM)
        flags = [*kept, *(f"--{name}={value}" for name, value in own.items()), f"--kubeconfig={identity}"]
        environment = {row["name"]: row.get("value", "") for row in container["env"]}
        environment |= {"KYVERNO_NAMESPACE": NAMESPACE, "KYVERNO_POD_NAME": _PROGRAM}
        command: list[str | pathlib.Path] = [tools.find(_PROGRAM), *flags]
        return self._run.started(processes.start("kyverno", command, self._folder, self._run.owner, environment))

    def _ready(self) -> bool:
        if not self.api.find(f"{_ADMISSION}/ValidatingWebhookConfiguration", _ABOUT_POLICIES):
            return False
        try:
            self.api.create(_policy(), dry_run=True)
        except ApiError:
            return False
        return True


def _policy() -> Object:
    resources = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["configmaps"]}
    return {
        "apiVersion": "policies.kyverno.io/v1",
        "kind": "ValidatingPolicy",
        "metadata": {"name": "probe"},
        "spec": {"matchConstraints": {"resourceRules": [resources]}, "validations": [{"expression": "true"}]},
    }
