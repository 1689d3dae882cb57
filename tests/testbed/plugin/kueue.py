"""Kueue as its own manifests install it, but for its Deployment: it runs as a process of this machine."""

from __future__ import annotations

import base64
import json
import pathlib
import typing as t

import requests
import yaml

from tests import tools
from tests.testbed.plugin import certificates, processes
from tests.testbed.plugin.api import Api, ApiError, Object
from tests.testbed.plugin.control_plane import ControlPlane
from tests.testbed.plugin.run import Run

NAMESPACE = "kueue-system"
_USER = f"system:serviceaccount:{NAMESPACE}:kueue-controller-manager"
_GROUPS = ("system:serviceaccounts", f"system:serviceaccounts:{NAMESPACE}", "system:authenticated")
_WEBHOOKS, _VISIBILITY = "kueue-webhook-service", "kueue-visibility-server"
#: What must be there before the rest.
_FIRST = ("Namespace", "CustomResourceDefinition")


class Kueue:
    """One Kueue, with its files in one folder."""

    def __init__(self, run: Run, folder: pathlib.Path, control_plane: ControlPlane, api: Api) -> None:
        self._run, self._folder, self._control_plane, self._api = run, folder, control_plane, api
        ports = processes.free_ports(4)
        self._webhook_port, self._visibility_port, self._health_port, self._metrics_port = ports
        self._authority = certificates.Authority(folder, "kueue-ca")

    def start(self) -> None:
        """Returns when a Job can be created through Kueue's webhooks and its visibility API answers."""
        objects: list[Object] = json.loads((tools.find("kueue").parents[1] / "share/manifests.json").read_text())
        secret = self._write_certificates()
        for item in objects:
            if item["kind"] in _FIRST:
                self._api.create(self._at_home(item))
        for item in objects:
            if item["kind"] == "CustomResourceDefinition":
                self._established(item["metadata"]["name"])
        for item in objects:
            if item["kind"] == "Secret":
                self._api.create({**item, "data": secret})
            elif item["kind"] not in (*_FIRST, "Deployment"):
                self._api.create(self._at_home(item))
        process = self._spawn(next(item for item in objects if item["kind"] == "ConfigMap"))
        process.wait_until(self._ready)

    def _at_home(self, item: Object) -> Object:
        """The object, changed so that the API server finds Kueue on this machine."""
        match item["kind"]:
            case "Service":
                spec = {"type": "ExternalName", "externalName": "localhost"}
                return {**item, "spec": spec}
            case "CustomResourceDefinition" if item["spec"].get("conversion"):
                self._redirect(item["spec"]["conversion"]["webhook"]["clientConfig"])
            case "MutatingWebhookConfiguration" | "ValidatingWebhookConfiguration":
                for webhook in item["webhooks"]:
                    self._redirect(webhook["clientConfig"])
            case "APIService":
                item["spec"]["service"]["port"] = self._visibility_port
        return item

    def _redirect(self, client: Object) -> None:
        client["service"]["port"] = self._webhook_port
        client["caBundle"] = base64.b64encode(self._authority.certificate.read_bytes()).decode()

    def _write_certificates(self) -> dict[str, str]:
        # Kueue renews a certificate that it did not make as long as it is valid for this name: it leaves it alone.
        certificate, key = self._folder / "tls.crt", self._folder / "tls.key"
        self._authority.server(certificate, key, f"{_WEBHOOKS}.{NAMESPACE}.svc")
        files = {
            "ca.crt": self._authority.certificate,
            "ca.key": self._authority.key,
            "tls.crt": certificate,
            "tls.key": key,
        }
        return {name: base64.b64encode(file.read_bytes()).decode() for name, file in files.items()}

    def _spawn(self, shipped: Object) -> processes.Process:
        config: Object = yaml.safe_load(shipped["data"]["controller_manager_config.yaml"])
        config["health"] = {"healthProbeBindAddress": f"127.0.0.1:{self._health_port}"}
        config["metrics"] = {"bindAddress": f"127.0.0.1:{self._metrics_port}"}
        config["webhook"] = {"host": "127.0.0.1", "port": self._webhook_port, "certDir": str(self._folder)}
        config["leaderElection"] = {"leaderElect": False}
        config["visibilityServer"] = {"bindAddress": "127.0.0.1", "bindPort": self._visibility_port}
        file = self._folder / "kueue.yaml"
        file.write_text(yaml.safe_dump(config), encoding="utf-8")
        identity = self._folder / "kueue.kubeconfig"
        self._control_plane.kubeconfig(identity, _USER, _GROUPS)
        command = [tools.find("kueue"), f"--config={file}", f"--kubeconfig={identity}", "--zap-log-level=2"]
        return self._run.started(processes.start("kueue", command, self._folder, self._run.owner))

    def _ready(self) -> bool:
        try:
            if not requests.get(f"http://127.0.0.1:{self._health_port}/readyz", timeout=5).ok:
                return False
            self._api.create(_job(), dry_run=True)
            self._api.request("GET", "/apis/visibility.kueue.x-k8s.io/v1beta2")
        except (requests.RequestException, ApiError):
            return False
        return True

    def _established(self, name: str) -> None:
        def established() -> bool:
            found = self._api.get("apiextensions.k8s.io/v1/CustomResourceDefinition", name)
            conditions: list[Object] = found.get("status", {}).get("conditions", [])
            return any(row["type"] == "Established" and row["status"] == "True" for row in conditions)

        self._api.wait_for(established, f"the kind {name} is served")


def _job() -> dict[str, t.Any]:
    pod = {"restartPolicy": "Never", "containers": [{"name": "main", "image": "registry.example.org/none"}]}
    labels = {"kueue.x-k8s.io/queue-name": "none"}
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": "probe", "namespace": "default", "labels": labels},
        "spec": {"template": {"spec": pod}},
    }
