"""A small client of the Kubernetes API for tests: plain objects in, plain objects out."""

from __future__ import annotations

import contextlib
import json
import pathlib
import time
import typing as t

import requests

from tests.testbed.plugin.identity import Identity
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
        """``kubeconfig`` is as :class:`Identity` takes it."""
        self.kubeconfig = kubeconfig
        self._identity = Identity(kubeconfig)
        self.server = self._identity.server
        self._places: dict[tuple[str, str], _Place] = {}
        self._http = requests.Session()
        self._http.trust_env = False
        self._http.verify, self._http.cert = self._identity.authority or True, self._identity.certificate
        self._http.headers.update(self._identity.headers)

    def again(self) -> Api:
        """A client of the same identity, for another thread."""
        return Api(self.kubeconfig)

    def close(self) -> None:
        """Ends the connections."""
        self._http.close()
        self._identity.close()

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
        return Watch(self._identity.connect, self.path(kind, namespace), selectors, self._identity.headers)

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


class _NotThereError(ApiError):
    pass


def _error(answer: requests.Response) -> ApiError:
    kind = _NotThereError if answer.status_code == 404 else ApiError
    try:
        status = answer.json()
        return kind(answer.status_code, status.get("reason", ""), status.get("message", answer.text))
    except requests.JSONDecodeError:
        return kind(answer.status_code, answer.reason, answer.text)
