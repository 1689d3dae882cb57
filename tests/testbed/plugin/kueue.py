"""Kueue as its own manifests install it, but for its Deployment: it runs as a process of this machine."""

from __future__ import annotations

import base64
import concurrent.futures
import json
import pathlib
import typing as t

import requests
import yaml

from tests import tools
from tests.testbed.plugin import processes
from tests.testbed.plugin.api import Api, ApiError, Object
from tests.testbed.plugin.control_plane import ControlPlane
from tests.testbed.plugin.run import Run

NAMESPACE = "kueue-system"
_ACCOUNT = "kueue-controller-manager"
_SECRET = "kueue-webhook-server-cert"  # noqa: S105
#: What must be there before the rest.
_FIRST = ("Namespace", "CustomResourceDefinition")


class Kueue:
    """One Kueue, with its files in one folder."""

    def __init__(
        self,
        run: Run,
        folder: pathlib.Path,
        control_plane: ControlPlane,
        settings: t.Mapping[str, t.Any] | None = None,
    ) -> None:
        """``settings`` replace keys of the configuration that comes with Kueue."""
        self._run, self._folder, self._control_plane = run, folder, control_plane
        self.api = Api(control_plane.admin)
        self._settings = settings or {}
        ports = processes.free_ports(4)
        self._webhook_port, self._visibility_port, self._health_port, self._metrics_port = ports
        self._certificates = folder / "certificates"

    def start(self) -> None:
        """Returns when a Job can be created through Kueue's webhooks and its visibility API answers."""
        objects: list[Object] = json.loads((tools.find("kueue").parents[1] / "share/manifests.json").read_text())
        self._create([item for item in objects if item["kind"] in _FIRST])
        self._create([item for item in objects if item["kind"] not in (*_FIRST, "Deployment")])
        for item in objects:
            if item["kind"] == "CustomResourceDefinition":
                self.api.wait_until_served(item["metadata"]["name"])
        self._shipped = next(item for item in objects if item["kind"] == "ConfigMap")
        self._process = self._spawn(self._shipped)
        self._process.wait_until(self._mount_certificates)
        self._process.wait_until(self._ready)

    def restart(self, settings: t.Mapping[str, t.Any]) -> None:
        """Ends the process and starts it with other settings. Raises :class:`processes.StartError`."""
        self._process.stop()
        self._settings = settings
        self._process = self._spawn(self._shipped)
        self._process.wait_until(self._ready)

    def close(self) -> None:
        """Ends the connections; Kueue goes on."""
        self.api.close()

    def _create(self, objects: list[Object]) -> None:
        at_once = 4

        def create(part: int) -> None:
            api = self.api.again()
            for item in objects[part::at_once]:
                api.create(self._at_home(item))
            api.close()

        with concurrent.futures.ThreadPoolExecutor(at_once) as pool:
            list(pool.map(create, range(at_once)))

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
        # Kueue adds the authority of its certificates.
        client["service"]["port"] = self._webhook_port

    def _mount_certificates(self) -> bool:
        """Copies what Kueue put into its Secret to where a kubelet would mount that, and says whether it did."""
        data = self.api.get("v1/Secret", _SECRET, NAMESPACE).get("data", {})
        if "tls.crt" not in data:
            return False
        self._certificates.mkdir(exist_ok=True)
        for name in sorted(data):
            (self._certificates / name).write_bytes(base64.b64decode(data[name]))
        return True

    def _spawn(self, shipped: Object) -> processes.Process:
        config: Object = yaml.safe_load(shipped["data"]["controller_manager_config.yaml"])
        config["health"] = {"healthProbeBindAddress": f"127.0.0.1:{self._health_port}"}
        config["metrics"] = {"bindAddress": f"127.0.0.1:{self._metrics_port}"}
        config["webhook"] = {"host": "127.0.0.1", "port": self._webhook_port, "certDir": str(self._certificates)}
        config["leaderElection"] = {"leaderElect": False}
        config["visibilityServer"] = {"bindAddress": "127.0.0.1", "bindPort": self._visibility_port}
        config |= self._settings
        file = self._folder / "kueue.yaml"
        file.write_text(yaml.safe_dump(config), encoding="utf-8")
        identity = self._folder / "kueue.kubeconfig"
        self._control_plane.account_kubeconfig(identity, NAMESPACE, _ACCOUNT)
        flags = [f"--config={file}", f"--kubeconfig={identity}", "--zap-log-level=2"]
        command: list[str | pathlib.Path] = [tools.find("kueue"), *flags]
        return self._run.started(processes.start("kueue", command, self._folder, self._run.owner))

    def _ready(self) -> bool:
        try:
            if not requests.get(f"http://127.0.0.1:{self._health_port}/readyz", timeout=5).ok:
                return False
            self.api.create(_job(), dry_run=True)
            self.api.request("GET", "/apis/visibility.kueue.x-k8s.io/v1beta2")
        except (requests.RequestException, ApiError):
            return False
        return True


def _job() -> dict[str, t.Any]:
    pod = {"restartPolicy": "Never", "containers": [{"name": "main", "image": "registry.example.org/none"}]}
    labels = {"kueue.x-k8s.io/queue-name": "none"}
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": "probe", "namespace": "default", "labels": labels},
        "spec": {"template": {"spec": pod}},
    }
