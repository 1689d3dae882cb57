"""A small client of the Kubernetes API for tests: plain objects in, plain objects out."""

from __future__ import annotations

import base64
import contextlib
import http.client
import json
import pathlib
import ssl
import tempfile
import time
import typing as t
import urllib.parse

import requests
import yaml

from tests.testbed.plugin.watch import Object as Object
from tests.testbed.plugin.watch import Watch

#: Of a resource: the path before the namespace, its plural, and whether it is in a namespace.
_Place = tuple[str, str, bool]

_TIMEOUT = (5, 60)
_PATCHES = {
    "merge": "application/merge-patch+json",
    "strategic": "application/strategic-merge-patch+json",
    "json": "application/json-patch+json",
}


class ApiError(Exception):
    """The API server refused. ``status`` is the HTTP status, ``reason`` Kubernetes' word for it."""

    def __init__(self, status: int, reason: str, message: str) -> None:
        super().__init__(message)
        self.status = status
        self.reason = reason


class Api:
    """The API as one identity sees it. Not to be shared between threads: see :meth:`again`."""

    def __init__(self, kubeconfig: pathlib.Path) -> None:
        """``kubeconfig`` names one cluster and one user, with a certificate, a token or a user to act as."""
        self.kubeconfig = kubeconfig
        self._certificate: tuple[str, str] | None = None
        self._places: dict[tuple[str, str], _Place] = {}
        self._files = tempfile.TemporaryDirectory(prefix="testbed-identity-")
        self._http = requests.Session()
        self._http.trust_env = False
        self.server = self._configure(_current(yaml.safe_load(kubeconfig.read_text(encoding="utf-8"))))

    def again(self) -> Api:
        """A client of the same identity, for another thread."""
        return Api(self.kubeconfig)

    def close(self) -> None:
        """Ends the connections."""
        self._http.close()
        self._files.cleanup()

    def request(self, method: str, path: str, **options: t.Any) -> t.Any:
        """One request; returns what the JSON of the answer says, or its text. Raises :class:`ApiError`."""
        answer = self._http.request(method, self.server + path, timeout=_TIMEOUT, **options)
        if not answer.ok:
            raise _error(answer)
        return answer.json() if "json" in answer.headers.get("Content-Type", "") else answer.text

    def create(self, item: Object, *, dry_run: bool = False) -> Object:
        """Creates an object. ``dry_run`` asks the server for its full verdict, and changes nothing."""
        options = {"fieldValidation": "Strict", **({"dryRun": "All"} if dry_run else {})}
        return t.cast(Object, self.request("POST", self._path(item), json=item, params=options))

    def apply(self, item: Object, *, manager: str = "testbed", force: bool = True, dry_run: bool = False) -> Object:
        """Applies an object on the server's side."""
        options: dict[str, str] = {"fieldManager": manager, "force": str(force).lower(), "fieldValidation": "Strict"}
        if dry_run:
            options["dryRun"] = "All"
        path = f"{self._path(item)}/{item['metadata']['name']}"
        headers = {"Content-Type": "application/apply-patch+yaml"}
        done = self.request("PATCH", path, data=json.dumps(item).encode(), params=options, headers=headers)
        return t.cast(Object, done)

    def get(self, kind: str, name: str, namespace: str = "", subresource: str = "") -> Object:
        """Reads an object. A kind is written ``batch/v1/Job``, or ``v1/Pod``."""
        return t.cast(Object, self.request("GET", self.path(kind, namespace, name, subresource)))

    def find(self, kind: str, name: str, namespace: str = "") -> Object | None:
        """Reads an object that may not be there."""
        try:
            return self.get(kind, name, namespace)
        except ApiError as error:
            if error.status == 404:
                return None
            raise

    def list(self, kind: str, namespace: str = "", **selectors: str) -> t.List[Object]:  # noqa: UP006
        """All objects of a kind, in one namespace or in all; ``labelSelector`` and ``fieldSelector`` pick some."""
        answer = self.request("GET", self.path(kind, namespace), params=selectors)
        version, _, name = kind.rpartition("/")
        return [{"apiVersion": version, "kind": name, **item} for item in answer["items"]]

    def patch(
        self,
        kind: str,
        name: str,
        change: t.Any,
        namespace: str = "",
        *,
        subresource: str = "",
        way: t.Literal["merge", "strategic", "json"] = "merge",
    ) -> Object:
        """Changes an object, or one of its subresources."""
        path = self.path(kind, namespace, name, subresource)
        headers = {"Content-Type": _PATCHES[way]}
        return t.cast(Object, self.request("PATCH", path, data=json.dumps(change).encode(), headers=headers))

    def delete(self, kind: str, name: str, namespace: str = "", **options: t.Any) -> None:
        """Deletes an object, if it is there, and what belongs to it in the background."""
        body = {"propagationPolicy": "Background", **options}
        with contextlib.suppress(_NotThereError):
            self.request("DELETE", self.path(kind, namespace, name), json=body)

    def watch(self, kind: str, namespace: str = "", **selectors: str) -> Watch:
        """What is there as ``ADDED``, and then each change until :meth:`Watch.close`."""
        return Watch(self._connect, self.path(kind, namespace), selectors, dict(self._http.headers))

    def path(self, kind: str, namespace: str = "", name: str = "", subresource: str = "") -> str:
        """The path of a resource or an object on the server."""
        version, _, plain = kind.rpartition("/")
        prefix, plural, namespaced = self._place(version, plain)
        inside = f"/namespaces/{namespace}" if namespaced and namespace else ""
        return prefix + inside + "".join(f"/{part}" for part in (plural, name, subresource) if part)

    def wait_for(self, condition: t.Callable[[], t.Any], what: str, seconds: float = 30) -> t.Any:
        """What ``condition`` returns, as soon as it is true."""
        limit = time.monotonic() + seconds
        while True:
            found = condition()
            if found:
                return found
            if time.monotonic() > limit:
                raise AssertionError(f"{what}: still not so after {seconds:.0f} s")
            time.sleep(0.1)

    def wait_until_served(self, kind: str) -> None:
        """Returns when the server serves the kind of a CustomResourceDefinition of this name."""

        def established() -> bool:
            found = self.get("apiextensions.k8s.io/v1/CustomResourceDefinition", kind)
            conditions: list[Object] = found.get("status", {}).get("conditions") or []
            return any(row["type"] == "Established" and row["status"] == "True" for row in conditions)

        self.wait_for(established, f"the kind {kind} is served")

    def _path(self, item: Object) -> str:
        return self.path(f"{item['apiVersion']}/{item['kind']}", item["metadata"].get("namespace", ""))

    def _place(self, version: str, kind: str) -> _Place:
        prefix = f"/apis/{version}" if "/" in version else f"/api/{version}"
        if (version, kind) not in self._places:
            for row in self.request("GET", prefix)["resources"]:
                if "/" not in row["name"]:
                    self._places[version, row["kind"]] = prefix, row["name"], row["namespaced"]
        return self._places[version, kind]

    def _configure(self, current: tuple[Object, Object]) -> str:
        cluster, user = current
        if "exec" in user or "auth-provider" in user:
            raise ValueError(
                f"{self.kubeconfig}: a user with a certificate or a token is needed, not one with a plugin"
            )
        self._http.verify = self._file(cluster, "certificate-authority") or True
        certificate, key = self._file(user, "client-certificate"), self._file(user, "client-key")
        if certificate and key:
            self._http.cert = self._certificate = (certificate, key)
        if "token" in user:
            self._http.headers["Authorization"] = f"Bearer {user['token']}"
        if "as" in user:
            self._http.headers["Impersonate-User"] = user["as"]
        if user.get("as-groups"):
            # The header may occur several times, which requests cannot write: names of groups have no comma.
            if len(user["as-groups"]) > 1:
                raise ValueError("only one group to act as")
            self._http.headers["Impersonate-Group"] = user["as-groups"][0]
        return t.cast(str, cluster["server"]).rstrip("/")

    def _connect(self) -> http.client.HTTPConnection:
        url = urllib.parse.urlsplit(self.server)
        if url.scheme == "http":
            return http.client.HTTPConnection(url.hostname or "", url.port)
        authorities = self._http.verify if isinstance(self._http.verify, str) else None
        context = ssl.create_default_context(cafile=authorities)
        if self._certificate:
            context.load_cert_chain(*self._certificate)
        return http.client.HTTPSConnection(url.hostname or "", url.port, context=context)

    def _file(self, entry: Object, key: str) -> str | None:
        if f"{key}-data" in entry:
            file = pathlib.Path(self._files.name, key)
            file.touch(mode=0o600)
            file.write_bytes(base64.b64decode(entry[f"{key}-data"]))
            return str(file)
        return str(self.kubeconfig.parent / entry[key]) if key in entry else None


class _NotThereError(ApiError):
    pass


def _current(config: Object) -> tuple[Object, Object]:
    context = next(row["context"] for row in config["contexts"] if row["name"] == config["current-context"])
    cluster = next(row["cluster"] for row in config["clusters"] if row["name"] == context["cluster"])
    user = next(row["user"] for row in config["users"] if row["name"] == context["user"])
    return cluster, user or {}


def _error(answer: requests.Response) -> ApiError:
    kind = _NotThereError if answer.status_code == 404 else ApiError
    try:
        status = answer.json()
        return kind(answer.status_code, status.get("reason", ""), status.get("message", answer.text))
    except requests.JSONDecodeError:
        return kind(answer.status_code, answer.reason, answer.text)
