"""Every object that is rendered holds what the Kubernetes schemas do not check, and each of our checks can fail."""

from __future__ import annotations

import copy
import pathlib
import typing as t

import pytest

from tests.cmp_plugin import object_checks, rendered
from tests.cmp_plugin.pod_security import pod_security
from tests.cmp_plugin.rendered import DELIVERIES, FEATURES, REPOS, Deliver, Object

Check = t.Callable[[t.Sequence[Object]], t.Iterator[str]]

CHECKS: dict[str, Check] = {
    "enums": object_checks.enums,
    "names": object_checks.names,
    "texts": object_checks.texts,
    "job-numbers": object_checks.job_numbers,
    "pod-failure-policies": object_checks.pod_failure_policies,
    "sizes": object_checks.sizes,
    "duplicates": object_checks.duplicates,
    "references": object_checks.references,
    "resources": object_checks.resources,
    "credentials": object_checks.credentials,
    "not-ours": object_checks.not_ours,
    "pod-security": pod_security,
}
_DELETED = object()


@pytest.mark.parametrize("deliver", DELIVERIES.values(), ids=DELIVERIES)
@pytest.mark.parametrize("make", REPOS.values(), ids=REPOS)
def test_every_rendered_object_passes_every_check(
    make: t.Callable[[pathlib.Path], pathlib.Path], deliver: Deliver, tmp_path: pathlib.Path
) -> None:
    objects = deliver(make(tmp_path / "repo"))
    assert {found["kind"] for found in objects} == {"ConfigMap", "Job"}
    assert [fault for check in CHECKS.values() for fault in check(objects)] == []


class Plant(t.NamedTuple):
    """One fault: what ``value`` at ``path`` of one good object makes the check say."""

    check: str
    kind: str
    name: str
    path: str
    value: t.Any
    says: str


_WRAPPER = "spec.template.spec.containers.0"
_RULES = "spec.podFailurePolicy.rules"
_SECURITY = f"{_WRAPPER}.securityContext"
_POD = "spec.template.spec"


def _job(check: str, path: str, value: t.Any, says: str) -> Plant:
    return Plant(check, "Job", "letters", path, value, says)


def _config_map(check: str, path: str, value: t.Any, says: str) -> Plant:
    return Plant(check, "ConfigMap", "campaign-letters", path, value, says)


def _warmup(check: str, path: str, value: t.Any, says: str) -> Plant:
    return Plant(check, "Job", "htr-warmup-default-size", path, value, says)


PLANTS = [
    _job("enums", f"{_RULES}.0.action", "Explode", ".action is 'Explode'"),
    _job("enums", f"{_RULES}.1.onExitCodes.operator", "Within", ".operator is 'Within'"),
    _job("enums", "spec.completionMode", "indexed", ".completionMode is 'indexed'"),
    _job("enums", f"{_POD}.restartPolicy", "Always", ".restartPolicy is 'Always'"),
    _job("enums", f"{_POD}.volumes.3.emptyDir.medium", "memory", ".medium is 'memory'"),
    _job("enums", f"{_POD}.tolerations.0.effect", "NoRun", ".effect is 'NoRun'"),
    _job("enums", f"{_POD}.securityContext.fsGroupChangePolicy", "Once", ".fsGroupChangePolicy is 'Once'"),
    _job("enums", f"{_POD}.initContainers.0.terminationMessagePolicy", "Logs", ".terminationMessagePolicy is 'Logs'"),
    _job("names", "metadata.name", "Letters", "no DNS subdomain"),
    _job("names", "metadata.name", "l" * 62, "with 64 characters"),
    _job("names", "spec.completions", 10**56, "the last pod would be called letters-9"),
    _job("names", "metadata.namespace", "a.b", "the namespace is no DNS label"),
    _job("names", f"{_WRAPPER}.name", "Wrapper", "a container is called 'Wrapper'"),
    _job("names", f"{_POD}.volumes.2.persistentVolumeClaim.claimName", "_", ".claimName is '_'"),
    _warmup("names", "metadata.name", "w" * 64, "with 64 characters"),
    _config_map("names", "metadata.name", "c" * 254, "no DNS subdomain"),
    _config_map("texts", "data", {"n": 1}, "data.n is 1 and not a text"),
    _config_map("texts", "metadata.labels", {"a": True}, ".a is True and not a text"),
    _config_map("texts", "metadata.annotations", {"a": 1e3}, ".a is 1000.0 and not a text"),
    _config_map("texts", "metadata.labels", {"a": "x" * 64}, f".a is '{'x' * 64}'"),
    _config_map("texts", "metadata.labels", {"a b": "x"}, "has the key 'a b'"),
    _config_map("texts", "metadata.annotations", {"A.se/b/c": "x"}, "has the key 'A.se/b/c'"),
    _job("texts", f"{_WRAPPER}.env.0.value", 13, "PIPELINE_PATH is 13 and not a text"),
    _job("texts", f"{_POD}.nodeSelector", {"zone": 2}, ".zone is 2 and not a text"),
    _job("job-numbers", "spec.completions", 10_001, "10001 completions"),
    _job("job-numbers", "spec.completions", 0, "0 completions"),
    _job("job-numbers", "spec.maxFailedIndexes", 6, "maxFailedIndexes is above completions"),
    _job("job-numbers", "spec.parallelism", -1, "parallelism is negative"),
    _job("job-numbers", "spec.completionMode", "NonIndexed", "go with an Indexed Job"),
    _job("job-numbers", f"{_POD}.activeDeadlineSeconds", 0, ".activeDeadlineSeconds is 0"),
    _job("job-numbers", "spec.ttlSecondsAfterFinished", 2**31, ".ttlSecondsAfterFinished is 2147483648"),
    _job("job-numbers", "spec.activeDeadlineSeconds", 60, "belongs to the pod"),
    _job("job-numbers", f"{_POD}.restartPolicy", _DELETED, "has restartPolicy Never"),
    _job("pod-failure-policies", _RULES, [], "0 rules"),
    _job("pod-failure-policies", _RULES, [{"action": "Ignore", "onPodConditions": []}] * 21, "21 rules"),
    _job("pod-failure-policies", f"{_RULES}.0.onPodConditions", _DELETED, "rule 1 needs one of"),
    _job(
        "pod-failure-policies", f"{_RULES}.1.onExitCodes.containerName", "warmup", "rule 2 names the container warmup"
    ),
    _job("pod-failure-policies", f"{_RULES}.1.onExitCodes.values", [13, 1], "[13, 1] are not sorted"),
    _job("pod-failure-policies", f"{_RULES}.1.onExitCodes.values", [13, 13], "[13, 13] are not sorted"),
    _job("pod-failure-policies", f"{_RULES}.1.onExitCodes.values", [0, 13], "[0, 13] are not sorted"),
    _job("pod-failure-policies", f"{_RULES}.0.action", "Count", "unless the rule Ignore stands first"),
    _warmup("pod-failure-policies", f"{_RULES}.1.action", "FailIndex", "FailIndex without backoffLimitPerIndex"),
    _config_map("sizes", "data", {"volumes.txt": "å" * (512 * 1024 + 1)}, "1048578 bytes of data"),
    _config_map("sizes", "metadata.annotations", {"a": "x" * 262_144}, "bytes of annotations"),
    _config_map("sizes", "data", {"volumes.txt": "x" * 262_144}, "bytes of annotations"),
    _config_map("sizes", "data", {"volumes.txt": "&" * 44_000}, "bytes of annotations"),
    _config_map("duplicates", "metadata.name", "campaign-paused", "ConfigMap archive-htr campaign-paused is there 2"),
    _job("references", f"{_POD}.volumes.4.name", "s4", "differ"),
    _job("references", f"{_WRAPPER}.volumeMounts.0.name", "campaigns", "differ"),
    _job("references", f"{_WRAPPER}.volumeMounts.1.mountPath", "/campaign", "has a mount path twice"),
    _job("references", f"{_WRAPPER}.volumeMounts.2.subPath", "a/../..", "leaves its volume"),
    _job("references", f"{_WRAPPER}.env.1.name", "PIPELINE_PATH", "has a variable twice"),
    _config_map("references", "metadata.name", "campaign-letter", "there is no ConfigMap campaign-letters"),
    _job("resources", f"{_WRAPPER}.resources", _DELETED, "does not say what it needs"),
    _job("resources", f"{_WRAPPER}.resources.limits.memory", "16 GB", "memory is '16 GB'"),
    _job("resources", f"{_WRAPPER}.resources.limits.cpu", "500m", "the request for cpu is above its limit"),
    _job("resources", f"{_WRAPPER}.resources.limits", {"nvidia.com/gpu": "2"}, "the same as request and limit"),
    _job("resources", f"{_WRAPPER}.resources.requests.cpu", "0", "cpu is '0'"),
    _job("credentials", f"{_WRAPPER}.env.0.name", "AWS_SECRET_ACCESS_KEY", "has the variable AWS_SECRET_ACCESS_KEY"),
    _job("credentials", f"{_WRAPPER}.env.4.value", "https://me:pw@a.se/", "has a password in RESULTS_URL"),
    _job("credentials", f"{_WRAPPER}.env.0", {"name": "HF_TOKEN", "valueFrom": {"secretKeyRef": {}}}, "HF_TOKEN"),
    _warmup("credentials", f"{_WRAPPER}.env.8.valueFrom", {"configMapKeyRef": {}}, "has the variable HF_TOKEN"),
    _job("not-ours", "spec.suspend", True, "suspend is not ours to set"),
    _job("not-ours", "spec.selector", {}, "selector is not ours to set"),
    _job("not-ours", "status", {}, "status is not ours to set"),
    _job("not-ours", "metadata.ownerReferences", [], "ownerReferences is not ours to set"),
    _job("not-ours", "metadata.generateName", "l-", "generateName is not ours to set"),
    _job("not-ours", "metadata.annotations", {"argocd.argoproj.io/hook": "Sync"}, "hook: Sync"),
    _job("not-ours", "metadata.annotations", {"argocd.argoproj.io/sync-wave": "1"}, "sync-wave: 1"),
    _job("pod-security", f"{_POD}.hostNetwork", True, "hostNetwork is set"),
    _job("pod-security", f"{_POD}.hostPID", True, "hostPID is set"),
    _job("pod-security", f"{_POD}.hostIPC", True, "hostIPC is set"),
    _job("pod-security", f"{_POD}.volumes.3", {"name": "work", "hostPath": {"path": "/"}}, "that reaches the node"),
    _job("pod-security", f"{_POD}.securityContext.sysctls", [{}], "sysctls are set"),
    _job("pod-security", f"{_POD}.securityContext.fsGroup", 0, "fsGroup is not the user's own"),
    _job("pod-security", f"{_POD}.securityContext.runAsUser", 0, "runAsUser is root or not said"),
    _job("pod-security", f"{_POD}.securityContext.runAsUser", _DELETED, "runAsUser is root or not said"),
    _job("pod-security", f"{_POD}.automountServiceAccountToken", _DELETED, "a service account's token"),
    _job("pod-security", f"{_POD}.enableServiceLinks", True, "the addresses of services"),
    _job("pod-security", f"{_SECURITY}.privileged", True, "privileged is set"),
    _job("pod-security", f"{_SECURITY}.allowPrivilegeEscalation", _DELETED, "allowPrivilegeEscalation is not false"),
    _job("pod-security", f"{_SECURITY}.readOnlyRootFilesystem", False, "the root file system can be written"),
    _job("pod-security", f"{_SECURITY}.capabilities.drop", ["NET_RAW"], "not all capabilities are dropped"),
    _job("pod-security", f"{_SECURITY}.capabilities.add", ["SYS_ADMIN"], "capabilities are added"),
    _job("pod-security", f"{_SECURITY}.procMount", "Unmasked", "procMount is not the default"),
    _job("pod-security", f"{_SECURITY}.runAsNonRoot", False, "runAsNonRoot is not true"),
    _job("pod-security", f"{_SECURITY}.seccompProfile.type", "Unconfined", "seccompProfile is not RuntimeDefault"),
    _job("pod-security", f"{_SECURITY}.appArmorProfile", {"type": "Unconfined"}, "appArmorProfile is Unconfined"),
    _job("pod-security", f"{_SECURITY}.seLinuxOptions", {"type": "spc_t"}, "seLinuxOptions are set"),
    _job("pod-security", f"{_SECURITY}.windowsOptions", {"hostProcess": True}, "hostProcess is set"),
    _job("pod-security", f"{_WRAPPER}.ports", [{"hostPort": 80}], "a port of the node is taken"),
    _job("pod-security", f"{_WRAPPER}.livenessProbe", {"httpGet": {"host": "a"}}, "a probe goes to another host"),
    _job("pod-security", f"{_POD}.initContainers.0.securityContext", _DELETED, "warmup-wait: the root file system"),
]


def _plant(objects: list[Object], plant: Plant) -> None:
    holder: t.Any = rendered.one(objects, plant.kind, plant.name)
    *way, last = (int(step) if step.isdigit() else step for step in plant.path.split("."))
    for step in way:
        holder = holder[step]
    if plant.value is _DELETED:
        del holder[last]
    else:
        holder[last] = plant.value


@pytest.mark.parametrize("plant", PLANTS, ids=lambda plant: f"{plant.check}: {plant.says[:60]}")
def test_a_check_finds_the_fault_that_it_is_for(plant: Plant) -> None:
    objects = copy.deepcopy(rendered.applied(FEATURES))
    if plant.check == "sizes":
        rendered.one(objects, plant.kind, plant.name)["metadata"]["annotations"] = {}
    _plant(objects, plant)
    assert any(plant.says in fault for fault in CHECKS[plant.check](objects))


def test_every_check_has_a_fault_that_it_finds() -> None:
    assert {plant.check for plant in PLANTS} == {*CHECKS}
