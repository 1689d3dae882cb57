"""What Argo CD takes for a difference between git and the cluster, by the rules of the shipped Application."""

from __future__ import annotations

import copy
import pathlib
import typing as t

import jq  # type: ignore[import-not-found]
import pytest
import yaml

from tests.cmp_plugin import rendered
from tests.cmp_plugin.plugin_server import sandbox
from tests.cmp_plugin.rendered import Object

APPLICATION = sandbox.TOP / "cmp-plugin" / "argocd" / "application.yaml"

#: What the API server lets nobody change in a Job, and `maxFailedIndexes`, which must not exceed `completions`.
FIXED = {"template", "completions", "maxFailedIndexes", "backoffLimitPerIndex", "podFailurePolicy"}
#: Fixed too; it tells campaigns from warm-ups, so it cannot be ignored, and it is the same for every campaign.
TELLS = {"completionMode"}
FREE = {"parallelism"}


def expressions() -> list[str]:
    (rule,) = yaml.safe_load(APPLICATION.read_text("utf-8"))["spec"]["ignoreDifferences"]
    assert (rule["group"], rule["kind"]) == ("batch", "Job")
    assert rule.keys() == {"group", "kind", "jqPathExpressions"}
    return t.cast(list[str], rule["jqPathExpressions"])


def normalised(job: Object) -> Object:
    """``job`` as Argo CD compares it: each expression is deleted, and must give one object."""
    for expression in expressions():
        (job,) = jq.compile(f"del({expression})").input_value(job).all()
    return job


def jobs(repo: pathlib.Path) -> tuple[Object, Object]:
    """A campaign's Job and a warm-up Job."""
    found = [found for found in rendered.generated(repo) if found["kind"] == "Job"]
    indexed = [job for job in found if "completionMode" in job["spec"]]
    others = [job for job in found if "completionMode" not in job["spec"]]
    return indexed[0], others[0]


@pytest.fixture(params=["example", "features"])
def both(request: pytest.FixtureRequest) -> tuple[Object, Object]:
    return jobs(rendered.EXAMPLE if request.param == "example" else rendered.FEATURES)


def admitted(job: Object) -> Object:
    """``job`` in the cluster after Kueue has let it run, with what the API server adds."""
    live = copy.deepcopy(job)
    live["metadata"] |= {"uid": "0b2c", "resourceVersion": "42", "generation": 2}
    spec = live["spec"]
    spec |= {"suspend": False, "podReplacementPolicy": "Failed", "backoffLimit": 2147483647, "manualSelector": False}
    spec["selector"] = {"matchLabels": {"batch.kubernetes.io/controller-uid": "0b2c"}}
    template = spec["template"]
    template["metadata"]["labels"] |= {"batch.kubernetes.io/controller-uid": "0b2c", "kueue.x-k8s.io/podset": "main"}
    template["metadata"].setdefault("annotations", {})["kueue.x-k8s.io/workload"] = "job-letters-1a2b3"
    pod_spec = template["spec"]
    pod_spec["nodeSelector"] = {**pod_spec.get("nodeSelector", {}), "nvidia.com/gpu.product": "NVIDIA-A100"}
    pod_spec["tolerations"] = [*pod_spec.get("tolerations", []), {"key": "nvidia.com/gpu", "operator": "Exists"}]
    pod_spec["schedulingGates"] = [{"name": "kueue.x-k8s.io/topology"}]
    pod_spec["schedulerName"] = "default-scheduler"
    live["status"] = {"active": 2, "conditions": [{"type": "Suspended", "status": "False"}]}
    return live


def differs(target: t.Any, live: t.Any) -> bool:
    """Whether Argo CD calls ``live`` out of sync. It compares what ``target`` sets, and lists as a whole."""
    if isinstance(target, dict):
        return not isinstance(live, dict) or any(differs(value, live.get(key)) for key, value in target.items())
    return bool(target != live)


def test_every_field_of_a_campaigns_job_is_known_to_be_fixed_or_free(both: tuple[Object, Object]) -> None:
    campaign, _ = both
    assert campaign["spec"].keys() == FIXED | TELLS | FREE


def test_a_campaign_stays_as_it_is_when_everything_that_is_fixed_is_rendered_otherwise(
    both: tuple[Object, Object],
) -> None:
    campaign, _ = both
    later = copy.deepcopy(campaign)
    for field in FIXED:
        later["spec"][field] = {"rendered": "by another version"}
    later["metadata"]["labels"]["kueue.x-k8s.io/queue-name"] = "another"
    assert differs(later, campaign)
    assert not differs(normalised(later), normalised(campaign))


def test_a_campaign_that_kueue_has_admitted_is_in_sync(both: tuple[Object, Object]) -> None:
    campaign, _ = both
    assert not differs(normalised(campaign), normalised(admitted(campaign)))


def test_a_pause_is_a_difference(both: tuple[Object, Object]) -> None:
    campaign, _ = both
    paused = copy.deepcopy(campaign)
    paused["spec"]["parallelism"] = 0
    assert differs(normalised(paused), normalised(admitted(campaign)))
    assert differs(normalised(campaign), normalised(admitted(paused)))


def test_a_changed_priority_is_a_difference(both: tuple[Object, Object]) -> None:
    campaign, _ = both
    raised = copy.deepcopy(campaign)
    raised["metadata"]["labels"]["kueue.x-k8s.io/priority-class"] = "htr-interactive-2"
    assert differs(normalised(raised), normalised(admitted(campaign)))


def test_every_difference_of_a_warm_up_counts_and_it_is_replaced(both: tuple[Object, Object]) -> None:
    _, warmup = both
    assert normalised(warmup) == warmup
    assert warmup["metadata"]["annotations"]["argocd.argoproj.io/sync-options"] == "Force=true,Replace=true"
    for field in warmup["spec"]:
        later = copy.deepcopy(warmup)
        later["spec"][field] = {"rendered": "by another version"}
        assert differs(normalised(later), normalised(warmup)), field


def test_a_sync_writes_nothing_of_what_kueue_owns_but_the_template_as_it_stands(both: tuple[Object, Object]) -> None:
    campaign, _ = both
    live = admitted(campaign)
    ignored = {field for field in live["spec"] if field not in normalised(live)["spec"]}
    # With RespectIgnoreDifferences, a sync writes the ignored fields with the values that they had at the comparison.
    # spec.suspend must not be among them: Kueue may have changed it since.
    assert ignored == FIXED


def test_what_is_no_job_of_a_campaign_passes_through() -> None:
    template: Object = {"spec": {"completionMode": "NonIndexed", "template": {"spec": {}}}}
    odd: Object
    for odd in ({}, {"spec": {}}, template, {"metadata": {"labels": None}}):
        assert normalised(odd) == odd
