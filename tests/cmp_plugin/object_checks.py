"""What the Kubernetes API server refuses, or the platform forbids, and the Kubernetes schemas let pass.

Each check takes every object of one render and yields a sentence for each fault.
"""

from __future__ import annotations

import collections
import decimal
import json
import re
import typing as t

Object = dict[str, t.Any]

MIB = 1024 * 1024
_LABEL = re.compile("[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?")
_SUBDOMAIN = re.compile(r"[a-z0-9]([a-z0-9-]*[a-z0-9])?(\.[a-z0-9]([a-z0-9-]*[a-z0-9])?)*")
_LABEL_VALUE = re.compile("([A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?)?")
_QUANTITY = re.compile("([0-9]+(?:[.][0-9]+)?)(m|[kMGTP]?|[KMGTP]i)")
_UNITS = ["", "k", "M", "G", "T", "P"]
_CREDENTIAL = re.compile("TOKEN|SECRET|PASSW|ACCESS_KEY|CREDENTIAL|PRIVATE")
#: Fields with a fixed set of values, wherever they stand in an object.
_ENUMS = {
    "action": {"Ignore", "FailIndex", "FailJob", "Count"},
    "completionMode": {"Indexed", "NonIndexed"},
    "effect": {"NoSchedule", "PreferNoSchedule", "NoExecute"},
    "fsGroupChangePolicy": {"Always", "OnRootMismatch"},
    "imagePullPolicy": {"Always", "IfNotPresent", "Never"},
    "medium": {"", "Memory"},
    "operator": {"In", "NotIn", "Exists", "Equal"},
    "podReplacementPolicy": {"Failed", "TerminatingOrFailed"},
    "restartPolicy": {"Never", "OnFailure"},
    "terminationMessagePolicy": {"File", "FallbackToLogsOnError"},
}


def named(found: Object) -> str:
    return f"{found['kind']} {found['metadata'].get('name')}"


def jobs(objects: t.Iterable[Object]) -> t.Iterator[Object]:
    return (found for found in objects if found["kind"] == "Job")


def pod_spec(job: Object) -> Object:
    return t.cast(Object, job["spec"]["template"]["spec"])


def containers(job: Object) -> list[Object]:
    """Every container of a Job's pods, the ones that run first included."""
    return [*pod_spec(job).get("initContainers", []), *pod_spec(job)["containers"]]


def _fields(value: t.Any, path: str = "") -> t.Iterator[tuple[str, str, t.Any]]:
    """Every key below ``value`` with its path and what it holds; data, labels and annotations are not looked into."""
    if isinstance(value, dict):
        for key, item in value.items():
            yield f"{path}.{key}", key, item
            if key not in ("data", "labels", "annotations", "matchLabels"):
                yield from _fields(item, f"{path}.{key}")
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from _fields(item, f"{path}[{index}]")


def enums(objects: t.Sequence[Object]) -> t.Iterator[str]:
    for found in objects:
        for path, key, value in _fields(found):
            if key in _ENUMS and value not in _ENUMS[key]:
                yield f"{named(found)}: {path} is {value!r}"


def names(objects: t.Sequence[Object]) -> t.Iterator[str]:
    """Names of objects and of what they refer to, and the host name of an Indexed Job's last pod."""
    for found in objects:
        metadata = found["metadata"]
        if not _SUBDOMAIN.fullmatch(metadata.get("name", "")) or len(metadata["name"]) > 253:
            yield f"{named(found)}: the name is no DNS subdomain"
        if not _LABEL.fullmatch(metadata.get("namespace", "")):
            yield f"{named(found)}: the namespace is no DNS label"
        for path, key, value in _fields(found):
            if key in ("claimName", "secretName", "runtimeClassName") and not _SUBDOMAIN.fullmatch(value):
                yield f"{named(found)}: {path} is {value!r}"
    for job in jobs(objects):
        # The Job's name becomes a label of its pods.
        last = f"-{job['spec']['completions'] - 1}" if job["spec"].get("completionMode") == "Indexed" else ""
        pod = f"{job['metadata']['name']}{last}"
        if len(pod) > 63 or (last and not _LABEL.fullmatch(pod)):
            yield f"{named(job)}: the last pod would be called {pod}, with {len(pod)} characters"
        for container in containers(job):
            if not _LABEL.fullmatch(container["name"]):
                yield f"{named(job)}: a container is called {container['name']!r}"


def texts(objects: t.Sequence[Object]) -> t.Iterator[str]:
    """Labels, annotations, selectors, environment and data are texts, and labels have the form of labels."""
    for found in objects:
        for path, key, value in [*_fields(found), ("data", "data", found.get("data", {}))]:
            if key in ("labels", "annotations", "nodeSelector", "data"):
                for name, text in (value or {}).items():
                    if not isinstance(text, str):
                        yield f"{named(found)}: {path}.{name} is {text!r} and not a text"
                    elif key in ("labels", "nodeSelector") and not _LABEL_VALUE.fullmatch(text):
                        yield f"{named(found)}: {path}.{name} is {text!r}"
                    if key in ("labels", "annotations", "nodeSelector") and not _is_qualified(name):
                        yield f"{named(found)}: {path} has the key {name!r}"
            elif key == "env":
                for variable in value:
                    if not isinstance(variable.get("value", ""), str):
                        yield f"{named(found)}: {path} {variable['name']} is {variable['value']!r} and not a text"


def _is_qualified(key: str) -> bool:
    prefix, slash, name = key.rpartition("/")
    return bool(name) and _LABEL_VALUE.fullmatch(name) is not None and (not slash or bool(_SUBDOMAIN.fullmatch(prefix)))


def job_numbers(objects: t.Sequence[Object]) -> t.Iterator[str]:
    for job in jobs(objects):
        spec, pod, name = job["spec"], pod_spec(job), named(job)
        completions = spec.get("completions", 1)
        if not 1 <= completions <= 10_000:
            yield f"{name}: {completions} completions"
        if spec.get("maxFailedIndexes", 0) > completions:
            yield f"{name}: maxFailedIndexes is above completions"
        if spec.get("parallelism", 1) < 0:
            yield f"{name}: parallelism is negative"
        indexed = spec.get("completionMode") == "Indexed"
        if ("backoffLimitPerIndex" in spec) != indexed or ("maxFailedIndexes" in spec) != indexed:
            yield f"{name}: limits for each index go with an Indexed Job, and only with one"
        for path, key, value in _fields({"spec": spec}):
            is_time = key in ("activeDeadlineSeconds", "terminationGracePeriodSeconds", "ttlSecondsAfterFinished")
            if is_time and not 1 <= value < 2**31:
                yield f"{name}: {path} is {value}"
        if pod.get("restartPolicy") != "Never":
            yield f"{name}: a Job with a podFailurePolicy has restartPolicy Never"
        if "activeDeadlineSeconds" in spec or "activeDeadlineSeconds" not in pod:
            yield f"{name}: the time limit belongs to the pod, which keeps its message, and not to the Job"


def pod_failure_policies(objects: t.Sequence[Object]) -> t.Iterator[str]:
    for job in jobs(objects):
        rules = job["spec"].get("podFailurePolicy", {}).get("rules", [])
        known = {container["name"] for container in containers(job)}
        if not 1 <= len(rules) <= 20:
            yield f"{named(job)}: {len(rules)} rules"
        for number, rule in enumerate(rules, 1):
            where = f"{named(job)}: rule {number}"
            if ("onExitCodes" in rule) == ("onPodConditions" in rule):
                yield f"{where} needs one of onExitCodes and onPodConditions"
            if rule["action"] == "FailIndex" and "backoffLimitPerIndex" not in job["spec"]:
                yield f"{where}: FailIndex without backoffLimitPerIndex"
            codes = rule.get("onExitCodes", {"operator": "In", "values": [1]})
            if codes.get("containerName", next(iter(known))) not in known:
                yield f"{where} names the container {codes['containerName']}, which is not there"
            values = codes["values"]
            if (
                values != sorted(set(values))
                or not 1 <= len(values) <= 255
                or (codes["operator"] == "In" and 0 in values)
            ):
                yield f"{where}: the exit codes {values} are not sorted, unique and above 0"
        if rules and rules[0]["action"] != "Ignore":
            yield f"{named(job)}: a drained pod is charged an attempt unless the rule Ignore stands first"


def go_json(found: Object) -> str:
    """``found`` as Go writes JSON, and as client-side apply therefore keeps it in an annotation."""
    text = json.dumps(found, ensure_ascii=False, separators=(",", ":"))
    return re.sub("[<>&\u2028\u2029]", lambda match: f"\\u{ord(match[0]):04x}", text)


def sizes(objects: t.Sequence[Object]) -> t.Iterator[str]:
    for found in objects:
        data = sum(len(str(text).encode()) for text in found.get("data", {}).values())
        if data > MIB:
            yield f"{named(found)}: {data} bytes of data"
        annotations = found["metadata"].get("annotations", {})
        options = annotations.get("argocd.argoproj.io/sync-options", "").split(",")
        # Argo CD does not apply what it skips, and the other delivery applies on the server's side.
        if annotations.get("argocd.argoproj.io/hook") == "Skip" or "ServerSideApply=true" in options:
            continue
        kept = sum(len(f"{key}{value}".encode()) for key, value in annotations.items()) + len(go_json(found).encode())
        if kept > 256 * 1024 - len("kubectl.kubernetes.io/last-applied-configuration") - 1:
            yield f"{named(found)}: {kept} bytes of annotations after a client-side apply"


def duplicates(objects: t.Sequence[Object]) -> t.Iterator[str]:
    keys = [(found["kind"], found["metadata"].get("namespace"), found["metadata"].get("name")) for found in objects]
    for key, count in collections.Counter(keys).items():
        if count > 1:
            yield f"{' '.join(map(str, key))} is there {count} times"


def references(objects: t.Sequence[Object]) -> t.Iterator[str]:
    """Every mount has its volume, every volume is mounted, and every ConfigMap is rendered too."""
    rendered = {
        (f["metadata"].get("namespace"), f["metadata"].get("name")) for f in objects if f["kind"] == "ConfigMap"
    }
    for job in jobs(objects):
        volumes = [volume["name"] for volume in pod_spec(job).get("volumes", [])]
        mounted = set()
        for container in containers(job):
            mounts = container.get("volumeMounts", [])
            mounted |= {mount["name"] for mount in mounts}
            for kind, used in {
                "mount path": [mount["mountPath"] for mount in mounts],
                "variable": [variable["name"] for variable in container.get("env", [])],
            }.items():
                if len(used) != len(set(used)):
                    yield f"{named(job)}: {container['name']} has a {kind} twice"
            for mount in mounts:
                if mount.get("subPath", "").startswith("/") or ".." in mount.get("subPath", "").split("/"):
                    yield f"{named(job)}: the sub-path {mount['subPath']} leaves its volume"
        if set(volumes) != mounted or len(volumes) != len(set(volumes)):
            yield f"{named(job)}: the volumes {volumes} and the mounts {sorted(mounted)} differ"
        for volume in pod_spec(job).get("volumes", []):
            config_map = volume.get("configMap", {}).get("name")
            if config_map and (job["metadata"].get("namespace"), config_map) not in rendered:
                yield f"{named(job)}: there is no ConfigMap {config_map}"


def amount(text: str) -> decimal.Decimal | None:
    """What a Kubernetes quantity amounts to in base units, or None when it is no quantity."""
    match = _QUANTITY.fullmatch(text)
    if match is None:
        return None
    number, unit = decimal.Decimal(match[1]), match[2]
    if unit == "m":
        return number / 1000
    factor = 1024 if unit.endswith("i") else 1000
    return number * decimal.Decimal(factor) ** _UNITS.index(unit.rstrip("i").replace("K", "k"))


def resources(objects: t.Sequence[Object]) -> t.Iterator[str]:
    """Every container asks for CPU and memory, at most its limit, and for as many GPUs as it may use."""
    for job in jobs(objects):
        for container in containers(job):
            where = f"{named(job)}: {container['name']}"
            requests = container.get("resources", {}).get("requests", {})
            limits = container.get("resources", {}).get("limits", {})
            if not {"cpu", "memory"} <= requests.keys():
                yield f"{where} does not say what it needs"
            for name, text in [*requests.items(), *limits.items()]:
                if not amount(text):
                    yield f"{where}: {name} is {text!r}"
                elif "/" in name and (requests.get(name) != limits.get(name) or not text.isdigit()):
                    yield f"{where}: {name} is a whole number, the same as request and limit"
            for name in requests.keys() & limits.keys():
                if (amount(requests[name]) or 0) > (amount(limits[name]) or 0):
                    yield f"{where}: the request for {name} is above its limit"


def credentials(objects: t.Sequence[Object]) -> t.Iterator[str]:
    """The one credential in an environment is the warm-up's token, and it comes from a Secret."""
    for job in jobs(objects):
        for container in containers(job):
            for variable in container.get("env", []):
                name, value = variable["name"], variable.get("value", "")
                is_token = (
                    name == "HF_TOKEN" and container["name"] == "warmup" and "secretKeyRef" in variable["valueFrom"]
                )
                if _CREDENTIAL.search(name) and not name.endswith("_FILE") and not is_token:
                    yield f"{named(job)}: {container['name']} has the variable {name}"
                if re.search("//[^/]*@", str(value)):
                    yield f"{named(job)}: {container['name']} has a password in {name}"


def not_ours(objects: t.Sequence[Object]) -> t.Iterator[str]:
    """What Kueue, Argo CD or the API server sets, and what would make Argo CD wait for queued Jobs."""
    for found in objects:
        metadata, spec = found["metadata"], found.get("spec", {})
        fields = {"status": found, "ownerReferences": metadata, "generateName": metadata, "finalizers": metadata}
        fields |= dict.fromkeys(("suspend", "selector", "manualSelector", "managedBy"), spec)
        for key, holder in fields.items():
            if key in holder:
                yield f"{named(found)}: {key} is not ours to set"
        for key, value in metadata.get("annotations", {}).items():
            if "sync-wave" in key or (key.endswith("/hook") and value != "Skip"):
                yield f"{named(found)}: {key}: {value}"
