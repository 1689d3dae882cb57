"""The Pod Security Standard *restricted*, control by control, with those of *baseline* that it contains.

The standard: https://kubernetes.io/docs/concepts/security/pod-security-standards/
"""

from __future__ import annotations

import typing as t

from tests.cmp_plugin.object_checks import Object, containers, jobs, named, pod_spec

_SAFE_VOLUMES = {
    "configMap", "csi", "downwardAPI", "emptyDir", "ephemeral", "persistentVolumeClaim", "projected", "secret",
}  # fmt: skip
_SAFE_SECCOMP = ("RuntimeDefault", "Localhost")
_SAFE_SELINUX_TYPES = ("", "container_t", "container_init_t", "container_kvm_t", "container_engine_t")


def pod_security(objects: t.Sequence[Object]) -> t.Iterator[str]:
    for job in jobs(objects):
        spec = pod_spec(job)
        for fault in _pod(spec):
            yield f"{named(job)}: {fault}"
        for container in containers(job):
            for fault in _container(container, spec.get("securityContext", {})):
                yield f"{named(job)}: {container['name']}: {fault}"
        # Beyond the standard: our pods never speak to the API server, nor do they need the services' addresses.
        if spec.get("automountServiceAccountToken") is not False or spec.get("enableServiceLinks") is not False:
            yield f"{named(job)}: the pod gets a service account's token or the addresses of services"


def _pod(spec: Object) -> t.Iterator[str]:
    for key in ("hostNetwork", "hostPID", "hostIPC", "ephemeralContainers"):
        if spec.get(key):
            yield f"{key} is set"
    if spec.get("hostUsers") is True:
        yield "hostUsers is set"
    for volume in spec.get("volumes", []):
        if not volume.keys() - {"name"} <= _SAFE_VOLUMES:
            yield f"the volume {volume['name']} has a type that reaches the node"
    context = spec.get("securityContext", {})
    if context.get("sysctls"):
        yield "sysctls are set"
    if context.get("fsGroup") != context.get("runAsUser"):
        yield "fsGroup is not the user's own"
    yield from _context(context)


def _container(container: Object, pod: Object) -> t.Iterator[str]:
    context = container.get("securityContext", {})
    yield from _context(context)
    if context.get("privileged"):
        yield "privileged is set"
    if context.get("allowPrivilegeEscalation") is not False:
        yield "allowPrivilegeEscalation is not false"
    if context.get("readOnlyRootFilesystem") is not True:
        yield "the root file system can be written"
    if "ALL" not in context.get("capabilities", {}).get("drop", []):
        yield "not all capabilities are dropped"
    if set(context.get("capabilities", {}).get("add", [])) - {"NET_BIND_SERVICE"}:
        yield "capabilities are added"
    if context.get("procMount", "Default") != "Default":
        yield "procMount is not the default"
    if context.get("runAsNonRoot", pod.get("runAsNonRoot")) is not True:
        yield "runAsNonRoot is not true"
    # Without a number the kubelet cannot tell whether a user that an image names is root.
    if not context.get("runAsUser", pod.get("runAsUser")):
        yield "runAsUser is root or not said"
    if context.get("seccompProfile", pod.get("seccompProfile", {})).get("type") not in _SAFE_SECCOMP:
        yield "seccompProfile is not RuntimeDefault"
    if any(port.get("hostPort") for port in container.get("ports", [])):
        yield "a port of the node is taken"
    handlers = [container.get(probe) for probe in ("livenessProbe", "readinessProbe", "startupProbe")]
    handlers += container.get("lifecycle", {}).values()
    if any((handler or {}).get(kind, {}).get("host") for handler in handlers for kind in ("httpGet", "tcpSocket")):
        yield "a probe goes to another host"


def _context(context: Object) -> t.Iterator[str]:
    if context.get("runAsUser") == 0 or context.get("runAsNonRoot") is False:
        yield "it may run as root"
    if context.get("seccompProfile", {}).get("type", "RuntimeDefault") not in _SAFE_SECCOMP:
        yield "seccompProfile is Unconfined"
    if context.get("appArmorProfile", {}).get("type", "RuntimeDefault") not in _SAFE_SECCOMP:
        yield "appArmorProfile is Unconfined"
    selinux = context.get("seLinuxOptions", {})
    if selinux.get("type", "") not in _SAFE_SELINUX_TYPES or selinux.get("user") or selinux.get("role"):
        yield "seLinuxOptions are set"
    if context.get("windowsOptions", {}).get("hostProcess"):
        yield "hostProcess is set"
