"""What the site adds to the records of campaigns, on a real API server."""

from __future__ import annotations

import contextlib
import json
import pathlib
import typing as t

import jsonschema
import pytest

from htrflow_status.model import Attempt
from htrflow_status.sources import jobs, record_writer, records
from htrflow_status.sources.connection import ApiError, Connection
from htrflow_status.sources.kubernetes import KubernetesSource
from htrflow_status.sources.objects import Facts
from htrflow_status.sources.record_writer import RecordWriter
from tests.testbed.plugin.api import Object
from tests.testbed.plugin.cluster import Cluster
from tests.testbed.plugin.fake_nodes import FakeNodes
from tests.testbed.plugin.kubelet import Life, index_of
from tests.testbed.plugin.namespace import Namespace

_NAME = records.config_map_of_job("example")
_SCHEMA = pathlib.Path(__file__).parents[2] / "schemas/record.schema.json"
_SAID = '{"stage": "load", "permanent": true, "error": "no such page"}'


def record(namespace: Namespace, **fields: t.Any) -> None:
    """The record of the campaign in a namespace, as ``apply`` leaves it; ``fields`` are others."""
    job = namespace.job("example")
    content = {"version": 1, "job": "example", "uid": job["metadata"]["uid"], "phase": "", "volumes": 3, **fields}
    labels = {key: value for key, value in job["metadata"]["labels"].items() if "managed-by" not in key}
    metadata = {"name": _NAME, "namespace": namespace.name, "labels": labels}
    data = {records.KEY: json.dumps(content), "other": "stays"}
    namespace.api.create({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data})


def content(namespace: Namespace) -> str:
    """The text of the record."""
    return str(namespace.api.get("v1/ConfigMap", _NAME, namespace.name)["data"][records.KEY])


@pytest.fixture
def written(cluster: Cluster) -> t.Iterator[t.Callable[..., None]]:
    """Starts a source of a namespace and a writer."""
    with contextlib.ExitStack() as stack:

        def start(namespace: str) -> None:
            source = KubernetesSource(Connection.of_kubeconfig(cluster.admin), [namespace])
            stack.callback(source.close)
            source.start()
            writer = RecordWriter(source.facts, Connection.of_kubeconfig(cluster.admin), pause=0.1)
            stack.callback(writer.close)
            writer.start()

        yield start


def test_the_last_words_of_failed_volumes_are_added_and_all_else_stays(
    namespace: Namespace,
    fake_nodes: FakeNodes,
    generated: t.Callable[..., list[Object]],
    written: t.Callable[..., None],
) -> None:
    fake_nodes.play(lambda pod: Life(exit_code=13, container="wrapper", message=_SAID) if _fails(pod) else Life())
    namespace.create_all(generated(namespace.name))
    before = {"exitCode": 1, "message": "of the first attempt"}
    record(namespace, failedVolumes={"1": before}, pages={"done": 6, "failed": 1})
    written(namespace.name)

    namespace.wait_for(lambda: '"2": {' in content(namespace), "the other failed volume is in the record", 40)

    found = json.loads(content(namespace))
    assert set(found["failedVolumes"]) == {"1", "2"}
    assert found["failedVolumes"]["1"] == before
    last = found["failedVolumes"]["2"]
    assert (last["exitCode"], last["stage"], last["message"]) == (13, "load", "no such page")
    assert found["pages"] == {"done": 6, "failed": 1}
    assert namespace.api.get("v1/ConfigMap", _NAME, namespace.name)["data"]["other"] == "stays"
    jsonschema.validate(found, json.loads(_SCHEMA.read_text(encoding="utf-8")))


def test_who_wrote_meanwhile_is_not_overwritten(cluster: Cluster, namespace: Namespace) -> None:
    metadata = {"name": "one", "namespace": namespace.name}
    made = namespace.api.create({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"a": "1"}})
    namespace.api.apply({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"b": "2"}})
    old = {"metadata": {"resourceVersion": made["metadata"]["resourceVersion"]}, "data": {"a": "3"}}
    connection = Connection.of_kubeconfig(cluster.admin)

    with contextlib.closing(connection), pytest.raises(ApiError) as refused:
        connection.patch(f"/api/v1/namespaces/{namespace.name}/configmaps/one", old)

    assert refused.value.status == 409
    assert namespace.api.get("v1/ConfigMap", "one", namespace.name)["data"] == {"a": "1", "b": "2"}


def test_a_record_of_another_job_or_one_that_cannot_be_read_is_left_alone() -> None:
    words = {0: Attempt(pod="p", state="failed", message="no such page")}
    facts = _facts("uid-1")

    for text in ("", "{", "null", '{"uid": "uid-2"}', "[" * 100_000):
        assert record_writer.extended(text, facts, words) is None
    assert record_writer.extended('{"uid": "uid-1"}', facts, words)


def test_a_record_stays_below_what_a_config_map_holds() -> None:
    words = {index: Attempt(pod="p", state="failed", message="å" * 10_000) for index in range(2000)}
    text = json.dumps({"uid": "uid-1"})

    longer = record_writer.extended(text, _facts("uid-1"), words)

    assert longer is not None
    assert 700_000 < len(longer.encode()) < 800_000
    assert record_writer.extended(longer, _facts("uid-1"), {5000: words[0]}) is None


def _facts(uid: str) -> Facts:
    return Facts("demo", "letters", job=jobs.read({"metadata": {"uid": uid, "name": "letters"}}))


def _fails(pod: Object) -> bool:
    return index_of(pod) in ("1", "2")
