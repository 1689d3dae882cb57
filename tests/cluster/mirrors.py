"""Rules that mirror one of Kubernetes or Kueue: a repo that breaks each, and the object that it would become."""

from __future__ import annotations

import typing as t

from htrflow_campaigns import limits
from tests.cluster.repos import Repo
from tests.testbed.plugin.api import Object

Write = t.Callable[[Repo], None]
Put = t.Callable[[dict[str, Object]], Object]

_SIZE = {"gpu": 1, "cpu": 4, "memory": "16Gi"}
_KUEUE = "kueue.x-k8s.io"


class Mirror(t.NamedTuple):
    """A rule, a repo that breaks it, the object that would be made of it, and what the API server says of that."""

    rule: str
    what: str
    write: Write
    put: Put
    refusal: str


def _setting(**settings: t.Any) -> Write:
    def write(repo: Repo) -> None:
        Repo(repo.path, "htr-batch", **settings)

    return write


def _namespace(repo: Repo) -> None:
    Repo(repo.path, "Htr_Batch")


def _size(**amounts: t.Any) -> Write:
    return _setting(sizes={"one": {**_SIZE, **amounts}}, default_size="one")


def _campaign(name: str, volumes: int = 1, **keys: t.Any) -> Write:
    return lambda repo: repo.campaign(name, volumes, **keys)


def another_pipeline(name: str) -> Write:
    def write(repo: Repo) -> None:
        text = (repo.path / "pipelines/demo-v1.yaml").read_text(encoding="utf-8")
        (repo.path / f"pipelines/{name}.yaml").write_text(text, encoding="utf-8")

    return write


def _large_pipeline(repo: Repo) -> None:
    file = repo.path / "pipelines/demo-v1.yaml"
    steps = "".join(f"  - step: OrderLines\n    settings: {{note: {'x' * 100_000}}}\n" for _ in range(11))
    file.write_text(file.read_text(encoding="utf-8") + steps, encoding="utf-8")


def _in_spec(field: str, value: t.Any) -> Put:
    def put(objects: dict[str, Object]) -> Object:
        job = objects["Job letters"]
        job["spec"][field] = value
        return job

    return put


def _in_pod(field: str, value: t.Any) -> Put:
    def put(objects: dict[str, Object]) -> Object:
        job = objects["Job letters"]
        job["spec"]["template"]["spec"][field] = value
        return job

    return put


def _amount(resource: str, value: t.Any) -> Put:
    def put(objects: dict[str, Object]) -> Object:
        job = objects["Job letters"]
        for amounts in job["spec"]["template"]["spec"]["containers"][0]["resources"].values():
            amounts[resource] = value
        return job

    return put


def _workdir(value: str) -> Put:
    def put(objects: dict[str, Object]) -> Object:
        job = objects["Job letters"]
        (work,) = (row for row in job["spec"]["template"]["spec"]["volumes"] if row["name"] == "work")
        work["emptyDir"]["sizeLimit"] = value
        return job

    return put


def _label(key: str, value: str) -> Put:
    def put(objects: dict[str, Object]) -> Object:
        job = objects["Job letters"]
        job["metadata"]["labels"][key] = value
        return job

    return put


def _named(key: str, name: str, volumes: int = 1) -> Put:
    def put(objects: dict[str, Object]) -> Object:
        item = objects[key]
        item["metadata"]["name"] = name
        if "completionMode" in item.get("spec", {}):
            item["spec"] |= {"completions": volumes, "maxFailedIndexes": volumes}
        return item

    return put


def _other(version: str, kind: str, name: str, **body: t.Any) -> Put:
    """An object that is not ours, whose name ``converter.yaml`` gives."""

    def put(objects: dict[str, Object]) -> Object:
        namespace = objects["Job letters"]["metadata"]["namespace"]
        metadata = (
            {"name": name} if kind in ("Namespace", "WorkloadPriorityClass") else {"name": name, "namespace": namespace}
        )
        return {"apiVersion": version, "kind": kind, "metadata": metadata, **body}

    return put


def _text(objects: dict[str, Object]) -> Object:
    config_map = objects["ConfigMap htr-pipeline-demo-v1"]
    config_map["data"]["pipeline.yaml"] += "x" * limits.CONFIG_MAP_BYTES
    return config_map


_CLAIM = {"spec": {"accessModes": ["ReadWriteMany"], "resources": {"requests": {"storage": "1Gi"}}}}
_SECRET = "S3_Keys"  # noqa: S105
_LONG = "a" * (limits.NAME_CHARACTERS + 1)
_VALUE_AND_EXISTS = [{"key": "gpu", "operator": "Exists", "value": "yes"}]
_SECONDS = [{"key": "gpu", "operator": "Exists", "effect": "NoSchedule", "tolerationSeconds": 60}]
_BAD_KEY = [{"key": "nvidia.com/gpu/x", "operator": "Exists"}]
_BAD_VALUE = [{"key": "gpu", "operator": "Equal", "value": "a b"}]
_NO_KEY = [{"operator": "Equal", "value": "gpu"}]

MIRRORS = (
    Mirror("HTR105", "window", _setting(window=-1), _in_spec("parallelism", -1), "greater than or equal to 0"),
    Mirror("HTR105", "window-of-64-bits", _setting(window=2**31), _in_spec("parallelism", 2**31), "int32"),
    Mirror(
        "HTR105",
        "seconds",
        _setting(max_seconds=0),
        _in_pod("activeDeadlineSeconds", 0),
        "must be between 1 and 2147483647",
    ),
    Mirror(
        "HTR105",
        "seconds-of-64-bits",
        _setting(max_seconds=2**31),
        _in_pod("activeDeadlineSeconds", 2**31),
        "must be between 1 and 2147483647",
    ),
    Mirror(
        "HTR105",
        "ttl",
        _setting(ttl_seconds_after_finished=-1),
        _in_spec("ttlSecondsAfterFinished", -1),
        "greater than or equal to 0",
    ),
    Mirror("HTR105", "gpu", _size(gpu=-1), _amount("nvidia.com/gpu", "-1"), "greater than or equal to 0"),
    Mirror("HTR103", "part-of-a-gpu", _size(gpu=0.5), _amount("nvidia.com/gpu", "0.5"), "must be an integer"),
    Mirror("HTR110", "window", _campaign("letters", window="3"), _in_spec("parallelism", "3"), "int32"),
    Mirror("HTR201", "namespace", _namespace, _other("v1", "Namespace", "Htr_Batch"), "RFC 1123"),
    Mirror("HTR201", "queue", _setting(queue="Letters_Q"), _label(f"{_KUEUE}/queue-name", "Letters_Q"), "RFC 1123"),
    Mirror(
        "HTR201", "long-queue", _setting(queue=_LONG), _label(f"{_KUEUE}/queue-name", _LONG), "no more than 63|63 bytes"
    ),
    Mirror(
        "HTR201",
        "class",
        _setting(priority_classes=["Bulk_1"]),
        _other(f"{_KUEUE}/v1beta2", "WorkloadPriorityClass", "Bulk_1", value=1),
        "RFC 1123",
    ),
    Mirror("HTR201", "secret", _setting(s3_secret=_SECRET), _other("v1", "Secret", _SECRET), "RFC 1123"),
    Mirror(
        "HTR201",
        "claim",
        _setting(data_pvc="Model_Cache"),
        _other("v1", "PersistentVolumeClaim", "Model_Cache", **_CLAIM),
        "RFC 1123",
    ),
    Mirror(
        "HTR201", "runtime-class", _setting(runtime_class="NVIDIA"), _in_pod("runtimeClassName", "NVIDIA"), "RFC 1123"
    ),
    Mirror(
        "HTR204", "no-key", _setting(tolerations=_NO_KEY), _in_pod("tolerations", _NO_KEY), "operator must be Exists"
    ),
    Mirror(
        "HTR206",
        "value-with-exists",
        _setting(tolerations=_VALUE_AND_EXISTS),
        _in_pod("tolerations", _VALUE_AND_EXISTS),
        "value must be empty when `operator` is 'Exists'",
    ),
    Mirror(
        "HTR206",
        "seconds-without-noexecute",
        _setting(tolerations=_SECONDS),
        _in_pod("tolerations", _SECONDS),
        "effect must be 'NoExecute' when `tolerationSeconds` is set",
    ),
    Mirror(
        "HTR207",
        "key",
        _setting(node_selector={"a/b/c": "x"}),
        _in_pod("nodeSelector", {"a/b/c": "x"}),
        "a valid label key must",
    ),
    Mirror(
        "HTR207",
        "value",
        _setting(node_selector={"zone": "a b"}),
        _in_pod("nodeSelector", {"zone": "a b"}),
        "a valid label must be",
    ),
    Mirror(
        "HTR207",
        "toleration-key",
        _setting(tolerations=_BAD_KEY),
        _in_pod("tolerations", _BAD_KEY),
        "a valid label key must",
    ),
    Mirror(
        "HTR207",
        "toleration-value",
        _setting(tolerations=_BAD_VALUE),
        _in_pod("tolerations", _BAD_VALUE),
        "valid label must be",
    ),
    Mirror("HTR209", "unit", _size(memory="16GB"), _amount("memory", "16GB"), "quantities must match"),
    Mirror("HTR209", "space", _size(memory="16 Gi"), _amount("memory", "16 Gi"), "quantities must match"),
    Mirror("HTR209", "words", _size(cpu="four"), _amount("cpu", "four"), "quantities must match"),
    Mirror("HTR209", "negative", _size(cpu="-1"), _amount("cpu", "-1"), "greater than or equal to 0"),
    Mirror("HTR209", "workdir", _size(workdir="2GB"), _workdir("2GB"), "quantities must match"),
    Mirror("HTR301", "upper-case", _campaign("Letters"), _named("Job letters", "Letters"), "RFC 1123"),
    Mirror("HTR301", "underscore", _campaign("brev_1802"), _named("Job letters", "brev_1802"), "RFC 1123"),
    Mirror("HTR301", "dash-at-the-end", _campaign("letters-"), _named("Job letters", "letters-"), "RFC 1123"),
    # Kubernetes takes such a Job, and then none of its pods.
    Mirror(
        "HTR301",
        "dot",
        _campaign("letters.1"),
        _named("Job letters", "letters.1"),
        "will not able to create pod with invalid DNS label: letters.1-0",
    ),
    Mirror("HTR301", "too-long", _campaign(_LONG), _named("Job letters", _LONG), "63"),
    Mirror(
        "HTR303",
        "one-volume",
        _campaign("a" * 62),
        _named("Job letters", "a" * 62),
        "not able to create pod|must be no more than 63",
    ),
    Mirror(
        "HTR303",
        "eleven-volumes",
        _campaign("a" * 61, 11),
        _named("Job letters", "a" * 61, 11),
        "will not able to create pod with invalid DNS label: a+-10",
    ),
    Mirror(
        "HTR401",
        "upper-case",
        another_pipeline("Demo"),
        _named("ConfigMap htr-pipeline-demo-v1", "htr-pipeline-Demo"),
        "RFC 1123",
    ),
    Mirror(
        "HTR401",
        "underscore",
        another_pipeline("demo_v1"),
        _named("Job htr-warmup-demo-v1", "htr-warmup-demo_v1"),
        "RFC 1123",
    ),
    Mirror(
        "HTR401",
        "two-dots",
        another_pipeline("demo..v1"),
        _named("Job htr-warmup-demo-v1", "htr-warmup-demo..v1"),
        "RFC 1123",
    ),
    Mirror(
        "HTR401",
        "too-long",
        another_pipeline("p" * 53),
        _named("Job htr-warmup-demo-v1", f"htr-warmup-{'p' * 53}"),
        "63",
    ),
    Mirror("HTR412", "steps", _large_pipeline, _text, "must have at most 1048576 bytes|Too long"),
)
