"""One namespace of a cluster: plain objects in, plain objects out, with time-outs and further tries."""

from __future__ import annotations

import datetime
import email.utils
import json
import os
import pathlib
import re
import time
import typing as t
import urllib.parse

import urllib3
import yaml
from kubernetes import client, config, dynamic
from kubernetes.client.exceptions import ApiException

from htrflow_campaigns.objects.pod import Object

#: Who wrote a field, to the API server.
FIELD_MANAGER = "htrflow-campaigns"
_AS_US = {"fieldManager": FIELD_MANAGER}

#: Seconds to connect and to wait for an answer, and before each further try.
_TIMEOUT = (5, 60)
_WAITS = (1.0, 2.0, 4.0)
#: The longest ``Retry-After`` that is waited for, in seconds.
_LONGEST_WAIT = 60.0
_PAGE = 500
#: Characters of the API server's own words that a sentence repeats.
_SAID = 600

#: The API server repeats a whole pod template before it says what is wrong with it.
_VALUE = re.compile(r"Invalid value: [\[{].*[\]}]: ", re.DOTALL)
_METADATA_LIST = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"
_GONE, _NOT_FOUND, _TOO_MANY, _SERVER_ERROR = 410, 404, 429, 500


class Kind(t.NamedTuple):
    """A kind of object, and where the API has it."""

    name: str
    version: str
    plural: str


JOB = Kind("Job", "/apis/batch/v1", "jobs")
CONFIG_MAP = Kind("ConfigMap", "/api/v1", "configmaps")
LEASE = Kind("Lease", "/apis/coordination.k8s.io/v1", "leases")
WORKLOAD = Kind("Workload", "/apis/kueue.x-k8s.io/v1beta2", "workloads")


class ConfigurationError(Exception):
    """It is not known which cluster is meant, or as whom. The message is one sentence."""


class UnreachableError(Exception):
    """There is no answer. The message is one clause."""


class RefusedError(Exception):
    """The API server answered, and not as asked. The message is one line of its own words."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


def configured(kubeconfig: pathlib.Path | None, environment: t.Mapping[str, str] = os.environ) -> client.ApiClient:
    """A client as ``kubectl`` would have one: of ``kubeconfig``, of ``KUBECONFIG``, of ``~/.kube/config``, or the
    account of the pod in which this runs.

    Raises :class:`ConfigurationError`.
    """
    settings = client.Configuration()
    named = str(kubeconfig) if kubeconfig else environment.get("KUBECONFIG", "")
    usual = pathlib.Path("~/.kube/config").expanduser()
    try:
        if named or usual.is_file() or "KUBERNETES_SERVICE_HOST" not in environment:
            config.load_kube_config(named or str(usual), client_configuration=settings)  # type: ignore[no-untyped-call]
        else:
            config.load_incluster_config(settings)  # type: ignore[no-untyped-call]
    except (config.ConfigException, OSError, ValueError, KeyError, TypeError, yaml.YAMLError) as error:
        where = named or str(usual)
        reason = " ".join(str(error).split())
        raise ConfigurationError(
            f"{where} does not say how to reach a cluster ({reason}) — name a kubeconfig with --kubeconfig"
        ) from None
    # Further tries are counted here, not in urllib3, which makes some of its own.
    settings.retries = False
    return client.ApiClient(settings)


class Cluster:
    """The objects of one namespace."""

    def __init__(self, api: client.ApiClient, namespace: str) -> None:
        self.namespace = namespace
        self.host = api.configuration.host
        # Without discovery: the paths are known, and its cache would be a file that several users share.
        self._client = dynamic.DynamicClient(api, discoverer=lambda *_: None)  # type: ignore[no-untyped-call]
        self._weary: set[tuple[str, str]] = set()
        self._now: datetime.datetime | None = None

    @property
    def now(self) -> datetime.datetime:
        """The API server's clock, as of its last answer."""
        if self._now is None:
            raise UnreachableError("its answers have no Date, and no other clock counts")
        return self._now

    def get(self, kind: Kind, name: str) -> Object | None:
        """An object, or None if it is not there."""
        try:
            return self._request("GET", kind, name)
        except RefusedError as error:
            if error.status == _NOT_FOUND:
                return None
            raise

    def list(self, kind: Kind, selector: str = "", *, metadata_only: bool = False) -> t.List[Object]:  # noqa: UP006
        """All objects of a kind, or those with certain labels; with ``metadata_only`` just their ``metadata``."""
        accept = _METADATA_LIST if metadata_only else "application/json"
        found: list[Object] = []
        onward = ""
        while True:
            query = {"limit": str(_PAGE), "labelSelector": selector, "continue": onward}
            try:
                page = self._request("GET", kind, accept=accept, query=query)
            except RefusedError as error:
                # The list is older than the API server remembers: from the start.
                if error.status != _GONE or not onward:
                    raise
                found, onward = [], ""
                continue
            found += page["items"]
            onward = page["metadata"].get("continue", "")
            if not onward:
                return found

    def apply(self, kind: Kind, item: Object, *, dry_run: bool = False) -> Object:
        """Applies an object on the server's side. ``dry_run`` asks for the verdict alone."""
        query = {**_AS_US, "force": "true", "fieldValidation": "Strict"}
        query["dryRun"] = "All" if dry_run else ""
        name = item["metadata"]["name"]
        return self._request("PATCH", kind, name, item, content_type="application/apply-patch+yaml", query=query)

    def create(self, kind: Kind, item: Object) -> Object:
        return self._request("POST", kind, body=item, query=_AS_US)

    def replace(self, kind: Kind, item: Object) -> Object:
        """Writes an object over the version that ``item`` names."""
        return self._request("PUT", kind, item["metadata"]["name"], item, query=_AS_US)

    def patch(self, kind: Kind, name: str, change: Object) -> Object:
        """Changes some fields; refused if ``change`` names a ``resourceVersion`` and the object has another one."""
        merge = "application/merge-patch+json"
        return self._request("PATCH", kind, name, change, content_type=merge, query=_AS_US)

    def delete(self, kind: Kind, name: str, **preconditions: str) -> None:
        """Deletes an object, if it is there, and in the background what belongs to it."""
        body = {"propagationPolicy": "Background", "preconditions": preconditions}
        try:
            self._request("DELETE", kind, name, body)
        except RefusedError as error:
            if error.status != _NOT_FOUND:
                raise

    def _request(
        self,
        method: str,
        kind: Kind,
        name: str = "",
        body: Object | None = None,
        *,
        accept: str = "application/json",
        content_type: str = "application/json",
        query: t.Mapping[str, str] | None = None,
    ) -> Object:
        path = "/".join(
            [kind.version, "namespaces", *(urllib.parse.quote(part) for part in (self.namespace, kind.plural, name))]
        ).rstrip("/")
        what = (method, kind.plural)
        # What was in vain four times is tried but once for the next object.
        waits = iter(() if what in self._weary else _WAITS)
        while True:
            pause = 0.0
            try:
                found = self._once(method, path, body, accept, content_type, query or {})
                self._weary.discard(what)
                return found
            except ApiException as error:
                self._see_clock(error.headers or {})
                if not error.status:
                    raise UnreachableError(_line(error.reason or "no answer")) from None
                failure: Exception = RefusedError(error.status, _said(error))
                if error.status != _TOO_MANY and error.status < _SERVER_ERROR:
                    raise failure from None
                pause = _retry_after(error)
            except (urllib3.exceptions.HTTPError, OSError) as error:
                failure = UnreachableError(_reason(error))
            wait = next(waits, None)
            if wait is None:
                if isinstance(failure, RefusedError):
                    self._weary.add(what)
                raise failure
            time.sleep(max(wait, min(pause, _LONGEST_WAIT)))

    def _once(
        self, method: str, path: str, body: Object | None, accept: str, content_type: str, query: t.Mapping[str, str]
    ) -> Object:
        answer = self._client.request(
            method,
            path,
            body=body,
            query_params=[(key, value) for key, value in query.items() if value],
            header_params={"Accept": accept},
            content_type=content_type,
            serialize=False,
            _request_timeout=_TIMEOUT,
        )
        text = answer.data
        self._see_clock(answer.headers)
        try:
            found = json.loads(text)
        except ValueError:
            found = None
        if not isinstance(found, dict):
            raise UnreachableError("what answers there is no Kubernetes API")
        return found

    def _see_clock(self, headers: t.Mapping[str, str]) -> None:
        try:
            self._now = email.utils.parsedate_to_datetime(headers.get("Date", ""))
        except ValueError:
            self._now = None


def _said(error: ApiException) -> str:
    """What the API server says: the message of its Status, or the start of what it sent."""
    body = error.body.decode("utf-8", "replace") if isinstance(error.body, bytes) else error.body or ""
    try:
        found = json.loads(body)
    except ValueError:
        found = None
    message = found.get("message") if isinstance(found, dict) else None
    return _line(_VALUE.sub("", message) if message else f"{error.status} {error.reason}")


def _reason(error: Exception) -> str:
    """The innermost reason: urllib3 wraps one error into another."""
    reason: t.Any = error
    while isinstance(inner := getattr(reason, "reason", None) or (reason.args[-1:] or [None])[0], Exception):
        reason = inner
    return _line(str(reason))


def _line(text: str) -> str:
    line = " ".join("".join(sign if sign.isprintable() else " " for sign in text).split())
    return line if len(line) <= _SAID else f"{line[:_SAID]}…"


def _retry_after(error: ApiException) -> float:
    """Seconds; the form with a date is not used by Kubernetes."""
    text = str((error.headers or {}).get("Retry-After", ""))
    return float(text) if text.isascii() and text.isdigit() else 0.0
