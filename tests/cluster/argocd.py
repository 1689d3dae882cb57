"""What a sync of Argo CD does, with the kubectl that it applies objects with and the shipped Application's settings.

Argo CD itself does not run here. What it decides is as its source has it: it compares and applies an object as
``kubectl apply`` does, on the server's side where an annotation says so; it leaves out the ignored fields when it
compares, and writes them as they are in the cluster (``RespectIgnoreDifferences``); it applies what is out of sync and
nothing else (``ApplyOutOfSyncOnly``); it replaces what says ``Force=true,Replace=true``; it neither applies nor prunes
what says ``hook: Skip``; and it prunes what it tracks and git does not have.
"""

from __future__ import annotations

import copy
import json
import re
import subprocess
import typing as t

import yaml

from tests.cmp_plugin.test_argocd_comparison import APPLICATION, normalised
from tests.testbed.plugin.api import Object
from tests.testbed.plugin.cluster import Cluster

_NAME = "campaigns"
_TRACKING = "argocd.argoproj.io/tracking-id"
_HOOK, _OPTIONS = "argocd.argoproj.io/hook", "argocd.argoproj.io/sync-options"
_LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"
_MANAGER = "argocd-controller"
#: What changes with every write, or is no part of what git says.
_OF_THE_SERVER = ("resourceVersion", "generation", "managedFields", "uid", "creationTimestamp")
_KINDS = ("v1/ConfigMap", "batch/v1/Job")
_POLICY = yaml.safe_load(APPLICATION.read_text("utf-8"))["spec"]["syncPolicy"]

Key = tuple[str, str]


class SyncError(Exception):
    """The API server refused some of the objects; the message is what kubectl says."""


class Difference(t.NamedTuple):
    """What a sync applies, as it writes it, what it prunes, and what there was when it looked."""

    apply: list[Object]
    prune: list[Key]
    there: set[Key]

    def names(self) -> list[str]:
        """What is applied and what is pruned."""
        return [" ".join(_key(item)) for item in self.apply] + [f"pruned {' '.join(key)}" for key in self.prune]


class ArgoCD:
    """One Application for one namespace."""

    def __init__(self, cluster: Cluster, namespace: str) -> None:
        self._cluster, self._namespace = cluster, namespace
        assert _POLICY["automated"] == {"prune": True, "selfHeal": False, "allowEmpty": False}
        assert {"ApplyOutOfSyncOnly=true", "RespectIgnoreDifferences=true"} <= {*_POLICY["syncOptions"]}

    def sync(self, generated: t.Sequence[Object]) -> list[str]:
        """Brings the cluster in step, and returns what it applied and pruned. Raises :class:`SyncError`."""
        return self.carry_out(self.look(generated))

    def out_of_sync(self, generated: t.Sequence[Object]) -> list[str]:
        """What a sync would apply or prune."""
        return self.look(generated).names()

    def look(self, generated: t.Sequence[Object]) -> Difference:
        """Compares git with the cluster."""
        live = self._live()
        return Difference(self._different(generated, live), self._pruned(generated, live), {*live})

    def carry_out(self, found: Difference) -> list[str]:
        """Applies and prunes what was found. Raises :class:`SyncError`."""
        refusals = []
        for way in (_client_side, _server_side, _replaced):
            for kind in ("ConfigMap", "Job"):
                rows = [item for item in found.apply if way(item) and item["kind"] == kind]
                refusals += self._write(rows, way, found.there) if rows else []
        for kind, name in found.prune:
            self._cluster.api.delete(_version(kind), name, self._namespace)
        if refusals:
            raise SyncError("\n".join(refusals))
        return found.names()

    def _live(self) -> dict[Key, Object]:
        rows = [row for kind in _KINDS for row in self._cluster.api.list(kind, self._namespace)]
        return {(row["kind"], row["metadata"]["name"]): row for row in rows}

    def _different(self, generated: t.Sequence[Object], live: dict[Key, Object]) -> list[Object]:
        """The objects of git that differ from the cluster, as a sync would write them."""
        wanted = [_as_written(self._tracked(item), live.get(_key(item))) for item in generated if not _skipped(item)]
        predicted = self._predicted([item for item in wanted if _key(item) in live])
        return [
            item
            for item in wanted
            if _key(item) not in live
            or _key(item) not in predicted
            or _compared(predicted[_key(item)]) != _compared(live[_key(item)])
        ]

    def _predicted(self, wanted: t.Sequence[Object]) -> dict[Key, Object]:
        """What kubectl would make of the objects; those that it may not change are missing."""
        found: dict[Key, Object] = {}
        for options, rows in (
            ([], [item for item in wanted if not _server_side(item)]),
            (["--server-side", "--force-conflicts"], [item for item in wanted if _server_side(item)]),
        ):
            command = ["apply", "--dry-run=server", "--output=json", *options]
            done = [self._kubectl(*command, stdin=rows)] if rows else []
            if done and done[0].returncode:
                # It prints nothing when one of them is refused.
                done = [self._kubectl(*command, stdin=[row]) for row in rows]
            for result in done:
                text = json.loads(result.stdout or '{"kind": "List", "items": []}')
                found |= {_key(item): item for item in (text["items"] if text["kind"] == "List" else [text])}
        return found

    def _write(self, objects: list[Object], way: t.Callable[[Object], bool], there: set[Key]) -> list[str]:
        if way is _replaced:
            old = [item for item in objects if _key(item) in there]
            new = [item for item in objects if _key(item) not in there]
            commands = [(["replace", "--force"], old), (["create"], new)]
        else:
            options = ["--server-side", "--force-conflicts"] if way is _server_side else []
            commands = [(["apply", *options], objects)]
        done = [self._kubectl(*command, stdin=rows) for command, rows in commands if rows]
        return [result.stderr for result in done if result.returncode]

    def _pruned(self, generated: t.Sequence[Object], live: dict[Key, Object]) -> list[Key]:
        kept = {_key(item) for item in generated}
        return [key for key, item in live.items() if key not in kept and self._is_tracked(item)]

    def _tracked(self, item: Object) -> Object:
        made = copy.deepcopy(item)
        made["metadata"].setdefault("annotations", {})[_TRACKING] = self._tracking_id(item)
        return made

    def _is_tracked(self, item: Object) -> bool:
        deleted = item["metadata"].get("deletionTimestamp")
        return not deleted and item["metadata"].get("annotations", {}).get(_TRACKING) == self._tracking_id(item)

    def _tracking_id(self, item: Object) -> str:
        group = "batch" if item["kind"] == "Job" else ""
        return f"{_NAME}:{group}/{item['kind']}:{self._namespace}/{item['metadata']['name']}"

    def _kubectl(self, *arguments: str, stdin: t.Sequence[Object]) -> subprocess.CompletedProcess[str]:
        text = json.dumps({"apiVersion": "v1", "kind": "List", "items": [*stdin]})
        manager = [] if arguments[0] == "replace" else [f"--field-manager={_MANAGER}"]
        try:
            out = self._cluster.kubectl(*arguments, *manager, "--filename=-", stdin=text)
        except subprocess.CalledProcessError as error:
            return subprocess.CompletedProcess(error.cmd, error.returncode, error.stdout, error.stderr)
        return subprocess.CompletedProcess([*arguments], 0, out, "")


def _as_written(target: Object, live: Object | None) -> Object:
    """The target with the ignored fields as they are in the cluster."""
    if live is None or target["kind"] != "Job":
        return target
    return t.cast(Object, _merged(normalised(target), _difference(normalised(live), live)))


def _difference(before: t.Any, after: t.Any) -> Object:
    """The JSON merge patch that makes the one of the other; here only fields come back that were taken away."""
    found: Object = {}
    for key, value in after.items():
        if key not in before:
            found[key] = value
        elif isinstance(value, dict) and (inner := _difference(before[key], value)):
            found[key] = inner
    return found


def _merged(item: t.Any, patch: t.Any) -> t.Any:
    if not isinstance(patch, dict) or not isinstance(item, dict):
        return patch
    return {**item, **{key: _merged(item.get(key), value) for key, value in patch.items()}}


def _compared(item: Object) -> Object:
    made = normalised(item) if item["kind"] == "Job" else item
    metadata = {key: value for key, value in made["metadata"].items() if key not in _OF_THE_SERVER}
    notes = {key: value for key, value in metadata.get("annotations", {}).items() if key != _LAST_APPLIED}
    return {
        **{key: value for key, value in made.items() if key != "status"},
        "metadata": {**metadata, "annotations": notes},
    }


def _key(item: Object) -> Key:
    return item["kind"], item["metadata"]["name"]


def _version(kind: str) -> str:
    return next(row for row in _KINDS if row.endswith(f"/{kind}"))


def _note(item: Object, key: str) -> str:
    return t.cast(str, item["metadata"].get("annotations", {}).get(key, ""))


def _skipped(item: Object) -> bool:
    return _note(item, _HOOK) == "Skip"


def _server_side(item: Object) -> bool:
    return "ServerSideApply=true" in re.split(",", _note(item, _OPTIONS))


def _replaced(item: Object) -> bool:
    return _note(item, _OPTIONS) == "Force=true,Replace=true"


def _client_side(item: Object) -> bool:
    return not _server_side(item) and not _replaced(item)
