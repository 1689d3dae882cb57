"""A real API server with Kueue takes the changes that the plan says it takes, and refuses the others."""

from __future__ import annotations

import pathlib
import re
import typing as t

import pytest
import yaml

from htrflow_campaigns import delivery, git, load
from htrflow_campaigns.plan import change, kubernetes, verdicts
from htrflow_campaigns.tree import from_folder
from tests.cmp_plugin.plan.planned import set_up
from tests.testbed.plugin.api import ApiError

if t.TYPE_CHECKING:
    from tests.cmp_plugin.conftest import Repo
    from tests.testbed.plugin.api import Api, Object
    from tests.testbed.plugin.fake_nodes import FakeNodes
    from tests.testbed.plugin.namespace import Namespace

APPLICATION = pathlib.Path(__file__).parents[3] / "cmp-plugin/argocd/application.yaml"
#: Each case, and what becomes of the objects that change.
CASES = {
    "paused": {"letters": "pause"},
    "resumed": {"letters": "resume"},
    "window": {"letters": "update"},
    "priority": {"letters": "update"},
    "priority-given": {"letters": "refuse"},
    "volumes-changed": {"campaign-letters": "refuse", "letters": "keep"},
    "pipeline-in-use-changed": {"htr-warmup-demo-v1": "replace", "letters": "keep"},
    "pipeline-seconds": {"letters": "keep"},
    "settings": {"htr-warmup-demo-v1": "replace", "letters": "update"},
    "renamed": {
        "campaign-brev": "create",
        "brev": "create",
        "campaign-letters": "prune",
        "letters": "prune",
    },
}


def test_the_fields_that_are_fixed_are_those_that_the_application_ignores() -> None:
    (rule,) = yaml.safe_load(APPLICATION.read_text("utf-8"))["spec"]["ignoreDifferences"]
    ignored = {expression.rpartition("| ")[2] for expression in rule["jqPathExpressions"]}
    fixed = {f".spec.{field}" for field in verdicts.FIXED} - {".spec.completionMode"}
    assert ignored == {*fixed, '.metadata.labels["kueue.x-k8s.io/queue-name"]'}


def sync(api: Api, deed: kubernetes.Deed) -> None:
    """Brings one object to the cluster as Argo CD does: what is ignored keeps the value that it has there."""
    before, after = deed.before, deed.after
    if after is None or deed.action == "replace":
        api.delete(f"{_version(before)}/{deed.kind}", deed.name, deed.namespace)
        if after is not None:
            _gone(api, deed)
    if before is None or deed.action == "replace":
        assert after is not None
        api.create(after)
    elif after is not None and deed.action != "keep":
        api.patch(f"{_version(after)}/{deed.kind}", deed.name, _patch(before, after), deed.namespace)


def _version(object_: Object | None) -> str:
    assert object_ is not None
    return str(object_["apiVersion"])


def _gone(api: Api, deed: kubernetes.Deed) -> None:
    api.wait_for(lambda: api.find(f"batch/v1/{deed.kind}", deed.name, deed.namespace) is None, f"{deed.name} is gone")


def _patch(before: Object, after: Object) -> Object:
    """What differs and is not ignored, as a merge patch."""
    labels = dict.fromkeys(before["metadata"]["labels"]) | after["metadata"]["labels"]
    if after["kind"] == "ConfigMap":
        return {"metadata": {"labels": labels}, "data": after["data"]}
    labels.pop("kueue.x-k8s.io/queue-name")
    return {"metadata": {"labels": labels}, "spec": {"parallelism": after["spec"]["parallelism"]}}


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES)
def test_the_cluster_does_what_the_plan_says(
    case: str, repo: Repo, namespace: Namespace, fake_nodes: FakeNodes
) -> None:
    set_up(case, repo, f"namespace: {namespace.name}\n")
    with git.revision(repo.path, "HEAD") as base:
        found = change.compare(from_folder(repo.path), base)
        delivered = delivery.ArgoCD().everything(load.load(base))
        namespace.create_all(object_ for file in delivered for object_ in file.objects)
    if case != "resumed":
        namespace.wait_for(lambda: namespace.job("letters").get("status", {}).get("active"), "letters runs")
    deeds = kubernetes.outlook(found, "argocd").deeds
    assert {deed.name: deed.action for deed in deeds} == CASES[case]
    for deed in deeds:
        if deed.action == "refuse":
            with pytest.raises(ApiError) as refusal:
                sync(namespace.api, deed)
            assert refusal.value.status in (403, 422)
            assert re.search("immutable|priority-class", str(refusal.value)), str(refusal.value)
        else:
            sync(namespace.api, deed)
    if case == "paused":
        namespace.wait_for(lambda: not namespace.job("letters")["status"].get("active"), "the pods of letters end")
    if case in ("resumed", "window", "settings"):
        window = namespace.job("letters")["spec"]["parallelism"]
        pods = min(window, 3)
        namespace.wait_for(lambda: namespace.job("letters")["status"].get("active") == pods, f"{pods} pods run")
