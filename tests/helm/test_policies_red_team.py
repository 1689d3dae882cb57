"""Attempts to get past the policies, each made of an object of the converter's, and what stops it."""

from __future__ import annotations

import base64
import functools
import json
import pathlib
import tempfile
import typing as t

import pytest
import yaml

from tests.helm import kyverno_cli, policy_files
from tests.helm.kyverno_cli import Object, Row

#: They take long together.
pytestmark = pytest.mark.slow

Tool = t.Callable[[str], pathlib.Path]
Change = t.Callable[[Object], object]

_QUEUE = "kueue.x-k8s.io/queue-name"
_DIGEST = "@sha256:" + 64 * "0"


def _containers(job: Object, kind: str = "containers") -> list[Object]:
    return t.cast(list[Object], job["spec"]["template"]["spec"].setdefault(kind, []))


def _without_the_queue(job: Object) -> None:
    del job["metadata"]["labels"][_QUEUE]


def _in_anothers_queue(job: Object) -> None:
    job["metadata"]["labels"][_QUEUE] = policy_files.QUEUES["team-b"]


def _from_a_repository_with_an_allowed_prefix(job: Object) -> None:
    _containers(job)[0]["image"] = f"{policy_files.REPOSITORIES[1]}-evil/htrflow-batch{_DIGEST}"


def _with_a_tag_and_a_digest(job: Object) -> None:
    _containers(job)[0]["image"] = f"docker.io/riksarkivet/htrflow-batch:latest{_DIGEST}"


def _with_an_init_container(job: Object) -> None:
    _containers(job, "initContainers").append({"name": "first", "image": "busybox"})


def _without_our_labels(job: Object) -> None:
    del job["metadata"]["labels"]
    _containers(job)[0]["image"] = "busybox"


def _as_a_warm_up_with_a_gpu(job: Object) -> None:
    _without_the_queue(job)
    job["metadata"]["labels"]["app"] = job["spec"]["template"]["metadata"]["labels"]["app"] = "htrflow-warmup"
    job["metadata"]["name"] = f"htr-warmup-{job['metadata']['name']}"


def _as_a_cron_job(job: Object) -> None:
    job["kind"], template = "CronJob", {"spec": job["spec"]}
    job["spec"] = {"schedule": "* * * * *", "jobTemplate": template}


def _as_a_pod(job: Object) -> None:
    job["kind"], job["apiVersion"], job["spec"] = "Pod", "v1", job["spec"]["template"]["spec"]
    job["spec"]["ephemeralContainers"] = [{"name": "debug", "image": "busybox"}]


def _steps(config_map: Object, change: t.Callable[[list[Object]], object]) -> None:
    pipeline = yaml.safe_load(config_map["data"]["pipeline.yaml"])
    change(pipeline["steps"])
    config_map["data"]["pipeline.yaml"] = json.dumps(pipeline)


def _with_a_number_as_revision(config_map: Object) -> None:
    settings = "steps: [{step: Segmentation, settings: {model: yolo, model_settings: {model: a, revision: %s}}}]"
    config_map["data"]["pipeline.yaml"] = settings % (40 * "1")


def _under_another_key(config_map: Object) -> None:
    config_map["data"] = {"recipe.yaml": config_map["data"]["pipeline.yaml"]}


def _in_binary_data(config_map: Object) -> None:
    text = config_map.pop("data")["pipeline.yaml"]
    config_map["binaryData"] = {"pipeline.yaml": base64.b64encode(text.encode()).decode()}


def _with_a_nested_model(config_map: Object) -> None:
    model = {"step": "Segmentation", "settings": {"model": "yolo", "model_settings": {"model": "a"}}}
    _steps(config_map, lambda steps: steps.append({"step": "OrderLines", "settings": {"then": [model]}}))


def _with_a_model_in_an_unusual_step(config_map: Object) -> None:
    settings = {"model": "yolo", "model_settings": {"model": "a"}}
    _steps(config_map, lambda steps: steps.append({"step": "ReadingOrderMarginalia", "settings": settings}))


def _with_a_revision_beside_model_settings(config_map: Object) -> None:
    _steps(config_map, lambda steps: steps[0]["settings"].update(revision="main"))


def _with_a_floating_processor(config_map: Object) -> None:
    _steps(config_map, lambda steps: steps[2]["settings"]["model_settings"].pop("processor_kwargs"))


def _with_a_merge_key(config_map: Object) -> None:
    text = config_map["data"]["pipeline.yaml"]
    pinned = text.index("revision: ")
    config_map["data"]["pipeline.yaml"] = (
        f"{text[:pinned]}revision: main\n      <<: {{{text[pinned:].partition(chr(10))[0]}}}\n"
    )


def _without_our_name_and_labels(config_map: Object) -> None:
    del config_map["metadata"]["labels"], config_map["metadata"]["annotations"]
    _steps(config_map, lambda steps: steps[0]["settings"]["model_settings"].pop("revision"))


class _Attempt(t.NamedTuple):
    kind: str
    change: Change
    stopped_by: list[str]


_ATTEMPTS = (
    _Attempt("Job", _without_the_queue, ["job-queue"]),
    _Attempt("Job", _in_anothers_queue, ["job-queue"]),
    _Attempt("Job", _from_a_repository_with_an_allowed_prefix, ["image-repositories"]),
    _Attempt("Job", _with_a_tag_and_a_digest, ["image-digests"]),
    _Attempt("Job", _with_an_init_container, ["image-digests", "image-repositories"]),
    _Attempt("Job", _as_a_pod, ["image-digests", "image-repositories"]),
    _Attempt("Job", _as_a_cron_job, ["job-queue"]),
    _Attempt("Job", _as_a_warm_up_with_a_gpu, ["job-queue"]),
    _Attempt("Job", _without_our_labels, ["image-digests", "image-repositories", "job-queue"]),
    _Attempt("ConfigMap", _with_a_number_as_revision, ["models-pinned"]),
    _Attempt("ConfigMap", _under_another_key, ["pipeline-key"]),
    _Attempt("ConfigMap", _in_binary_data, ["configmap-text"]),
    _Attempt("ConfigMap", _with_a_nested_model, ["pipeline-form"]),
    _Attempt("ConfigMap", _with_a_model_in_an_unusual_step, ["models-pinned"]),
    _Attempt("ConfigMap", _with_a_revision_beside_model_settings, ["model-settings"]),
    _Attempt("ConfigMap", _with_a_floating_processor, ["processors-pinned"]),
    _Attempt("ConfigMap", _with_a_merge_key, ["pipeline-form"]),
    _Attempt("ConfigMap", _without_our_name_and_labels, ["models-pinned"]),
)
_OF = {"Job": "example", "ConfigMap": "htr-pipeline-demo-v1"}


@pytest.mark.parametrize("attempt", _ATTEMPTS, ids=lambda attempt: attempt.change.__name__.strip("_"))
def test_nothing_gets_past_the_policies(tool: Tool, attempt: _Attempt) -> None:
    planted, rows = _all(tool("kyverno"))

    assert policy_files.refused_by(rows, planted[attempt.change.__name__]) == attempt.stopped_by


@functools.cache
def _all(program: pathlib.Path) -> tuple[dict[str, str], list[Row]]:
    """The names of all planted objects, and what the policies say: one start of Kyverno for all attempts."""
    with tempfile.TemporaryDirectory() as folder:
        objects = policy_files.example(pathlib.Path(folder))
    names, planted = dict[str, str](), list[Object]()
    for attempt in _ATTEMPTS:
        name = _OF[attempt.kind]
        (original,) = (item for item in objects if (item["kind"], item["metadata"]["name"]) == (attempt.kind, name))
        item = policy_files.changed(original, name)
        attempt.change(item)
        names[attempt.change.__name__] = item["metadata"]["name"] = f"{item['metadata']['name']}.{len(planted)}"
        planted.append(item)
    return names, kyverno_cli.apply(program, policy_files.filled(), planted, policy_files.canaries())
