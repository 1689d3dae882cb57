"""etcd, an API server, the controllers and the scheduler of Kubernetes as processes of this machine."""

from __future__ import annotations

import pathlib
import typing as t

import requests
import yaml

from tests import tools
from tests.testbed.plugin import certificates, processes
from tests.testbed.plugin.run import Run

_ADMIN = ("testbed-admin", ["system:masters"])
#: Those that need no node: the kubelets here are not real, so what heals nodes would remove them.
_CONTROLLERS = (
    "clusterrole-aggregation-controller",
    "cronjob-controller",
    "endpointslice-controller",
    "garbage-collector-controller",
    "job-controller",
    "namespace-controller",
    "persistentvolume-binder-controller",
    "persistentvolumeclaim-protection-controller",
    "resourcequota-controller",
    "root-ca-certificate-publisher-controller",
    "serviceaccount-controller",
    "ttl-after-finished-controller",
)


class ControlPlane:
    """The files and processes of one control plane, all in one folder."""

    def __init__(self, run: Run, folder: pathlib.Path, server: str = "") -> None:
        """``server`` is the address of a control plane that :meth:`start` of another process has started there."""
        self._run, self._folder = run, folder
        self._authority = certificates.Authority(folder, "cluster-ca")
        self.server = server

    @property
    def admin(self) -> pathlib.Path:
        """The kubeconfig of an identity that may do everything."""
        return self._folder / "admin.kubeconfig"

    def start(self) -> None:
        """Returns when the API server answers; the controllers and the scheduler are then starting."""
        etcd_port, etcd_peer, api_port, controllers, scheduler = processes.free_ports(5)
        self.server = f"https://127.0.0.1:{api_port}"
        etcd = self._etcd(etcd_port, etcd_peer)
        self._write_files()
        api = self._api_server(etcd_port, api_port)
        etcd.wait_until(lambda: processes.listens(etcd_port))
        api.wait_until(self._ready)
        self._spawn("kube-controller-manager", *self._controller_flags(controllers))
        config = {
            "apiVersion": "kubescheduler.config.k8s.io/v1",
            "kind": "KubeSchedulerConfiguration",
            "leaderElection": {"leaderElect": False},
            "clientConnection": {"kubeconfig": str(self.admin), "qps": 200, "burst": 400},
        }
        (self._folder / "scheduler.yaml").write_text(yaml.safe_dump(config), encoding="utf-8")
        self._spawn("kube-scheduler", f"--config={self._folder / 'scheduler.yaml'}", *_loopback(scheduler))

    def kubeconfig(self, file: pathlib.Path, user: str, groups: t.Iterable[str] = ()) -> None:
        """Writes a kubeconfig with a certificate for ``user``."""
        certificate, key = file.with_suffix(".crt"), file.with_suffix(".key")
        self._authority.client(certificate, key, user, groups)
        credentials = {"client-certificate": str(certificate), "client-key": str(key)}
        write_kubeconfig(file, self.server, self._authority.certificate, credentials)

    def account_kubeconfig(self, file: pathlib.Path, namespace: str, name: str) -> None:
        """Writes a kubeconfig with a certificate for a service account, whether it exists or not."""
        groups = ("system:serviceaccounts", f"system:serviceaccounts:{namespace}", "system:authenticated")
        self.kubeconfig(file, f"system:serviceaccount:{namespace}:{name}", groups)

    def _etcd(self, port: int, peer: int) -> processes.Process:
        client, other = f"http://127.0.0.1:{port}", f"http://127.0.0.1:{peer}"
        return self._spawn(
            "etcd",
            f"--data-dir={self._folder / 'etcd'}",
            f"--listen-client-urls={client}",
            f"--advertise-client-urls={client}",
            f"--listen-peer-urls={other}",
            f"--initial-advertise-peer-urls={other}",
            f"--initial-cluster=default={other}",
            # Nothing here has to outlive a crash.
            "--unsafe-no-fsync",
        )

    def _write_files(self) -> None:
        names = ("127.0.0.1", "localhost", "kubernetes", "kubernetes.default.svc", "10.96.0.1")
        self._authority.server(self._folder / "api.crt", self._folder / "api.key", *names)
        certificates.signing_key(self._folder / "tokens.key")
        proxies = certificates.Authority(self._folder, "proxy-ca")
        proxies.client(self._folder / "proxy.crt", self._folder / "proxy.key", "front-proxy-client")
        self.kubeconfig(self.admin, *_ADMIN)

    def _api_server(self, etcd: int, port: int) -> processes.Process:
        folder = self._folder
        return self._spawn(
            "kube-apiserver",
            f"--etcd-servers=http://127.0.0.1:{etcd}",
            f"--secure-port={port}",
            "--bind-address=127.0.0.1",
            "--advertise-address=127.0.0.1",
            "--endpoint-reconciler-type=none",
            f"--tls-cert-file={folder / 'api.crt'}",
            f"--tls-private-key-file={folder / 'api.key'}",
            f"--client-ca-file={self._authority.certificate}",
            "--authorization-mode=RBAC",
            "--service-cluster-ip-range=10.96.0.0/16",
            f"--service-account-key-file={folder / 'tokens.key'}",
            f"--service-account-signing-key-file={folder / 'tokens.key'}",
            "--service-account-issuer=https://kubernetes.default.svc.cluster.local",
            # The API server calls the visibility API of Kueue for its clients.
            f"--requestheader-client-ca-file={folder / 'proxy-ca.crt'}",
            "--requestheader-allowed-names=front-proxy-client",
            "--requestheader-username-headers=X-Remote-User",
            "--requestheader-group-headers=X-Remote-Group",
            "--requestheader-extra-headers-prefix=X-Remote-Extra-",
            f"--proxy-client-cert-file={folder / 'proxy.crt'}",
            f"--proxy-client-key-file={folder / 'proxy.key'}",
        )

    def _controller_flags(self, port: int) -> list[str]:
        return [
            f"--kubeconfig={self.admin}",
            f"--authentication-kubeconfig={self.admin}",
            f"--authorization-kubeconfig={self.admin}",
            f"--controllers={','.join(_CONTROLLERS)}",
            "--leader-elect=false",
            f"--root-ca-file={self._authority.certificate}",
            "--kube-api-qps=300",
            "--kube-api-burst=600",
            *_loopback(port),
        ]

    def _ready(self) -> bool:
        try:
            answer = requests.get(
                f"{self.server}/readyz",
                verify=str(self._authority.certificate),
                cert=(str(self.admin.with_suffix(".crt")), str(self.admin.with_suffix(".key"))),
                timeout=5,
            )
        except requests.RequestException:
            return False
        return answer.ok

    def _spawn(self, name: str, *arguments: str) -> processes.Process:
        process = processes.start(name, [tools.find(name), *arguments], self._folder, self._run.owner)
        return self._run.started(process)


def write_kubeconfig(
    file: pathlib.Path,
    server: str,
    authority: pathlib.Path | None = None,
    user: t.Mapping[str, t.Any] | None = None,
) -> None:
    """Writes a kubeconfig with one cluster and one user; without ``user``, the server asks nobody who he is."""
    cluster = {"server": server} | ({"certificate-authority": str(authority)} if authority else {})
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "testbed", "cluster": cluster}],
        "users": [{"name": "user", "user": dict(user or {})}],
        "contexts": [{"name": "testbed", "context": {"cluster": "testbed", "user": "user"}}],
        "current-context": "testbed",
    }
    file.touch(mode=0o600)
    file.write_text(yaml.safe_dump(config), encoding="utf-8")


def _loopback(port: int) -> list[str]:
    return ["--bind-address=127.0.0.1", f"--secure-port={port}"]
