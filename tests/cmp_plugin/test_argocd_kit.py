"""What Argo CD is given to run campaigns: the sidecar, the project and the Application."""

from __future__ import annotations

import pathlib
import re
import subprocess
import typing as t

import pytest
import yaml

from htrflow_campaigns import probe, settings
from tests import tools
from tests.cmp_plugin import rendered
from tests.cmp_plugin.plugin_server import sandbox
from tests.cmp_plugin.rendered import Object

KIT = sandbox.TOP / "cmp-plugin" / "argocd"
HEALTH_KEY = "resource.customizations.health.batch_Job"

#: What of Argo CD's own installation the component changes, as far as it matters here.
ARGO_CD = """
apiVersion: apps/v1
kind: Deployment
metadata:
  name: argocd-repo-server
  labels: {app.kubernetes.io/component: repo-server}
spec:
  selector: {matchLabels: {app.kubernetes.io/name: argocd-repo-server}}
  template:
    metadata: {labels: {app.kubernetes.io/name: argocd-repo-server}}
    spec:
      serviceAccountName: argocd-repo-server
      automountServiceAccountToken: false
      containers:
        - name: argocd-repo-server
          image: quay.io/argoproj/argocd:latest
          args: [/usr/local/bin/argocd-repo-server]
          volumeMounts:
            - {name: tmp, mountPath: /tmp}
            - {name: plugins, mountPath: /home/argocd/cmp-server/plugins}
      initContainers:
        - name: copyutil
          image: quay.io/argoproj/argocd:latest
          volumeMounts:
            - {name: var-files, mountPath: /var/run/argocd}
      volumes:
        - {name: tmp, emptyDir: {}}
        - {name: var-files, emptyDir: {}}
        - {name: plugins, emptyDir: {}}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: argocd-cm}
data: {url: https://argocd.example.org}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: argocd-cmd-params-cm}
"""
KUSTOMIZATION = """
apiVersion: kustomize.config.k8s.io/v1beta1
kind: Kustomization
namespace: NAMESPACE
resources: [argo-cd.yaml]
components: [component]
images:
  - name: registry.example.org/htrflow-campaigns-cmp
    newName: registry.example.net/cmp
    digest: sha256:1111111111111111111111111111111111111111111111111111111111111111
"""


def load(name: str) -> dict[str, t.Any]:
    return t.cast(dict[str, t.Any], yaml.safe_load((KIT / name).read_text("utf-8")))


def kustomize(folder: pathlib.Path, argo_cd: str = ARGO_CD, namespace: str = "argocd") -> list[Object]:
    """Argo CD with the component, as ``kubectl kustomize`` builds it."""
    (folder / "argo-cd.yaml").write_text(argo_cd)
    (folder / "kustomization.yaml").write_text(KUSTOMIZATION.replace("NAMESPACE", namespace))
    component = folder / "component"
    component.mkdir()
    for file in KIT.iterdir():
        (component / file.name).write_bytes(file.read_bytes())
    command = [str(tools.get("kubectl")), "kustomize", str(folder)]
    result = subprocess.run(command, capture_output=True, text=True, encoding="utf-8", timeout=60, check=False)
    assert result.returncode == 0, result.stderr
    assert result.stderr == ""
    return list(yaml.safe_load_all(result.stdout))


def pod(objects: t.Iterable[Object]) -> dict[str, t.Any]:
    deployment = rendered.one(objects, "Deployment", "argocd-repo-server")
    return t.cast(dict[str, t.Any], deployment["spec"]["template"]["spec"])


def container(containers: t.Iterable[Object]) -> Object:
    (found,) = (found for found in containers if found["name"] == "htrflow-campaigns")
    return found


# The sidecar


@pytest.mark.parametrize("namespace", ["argocd", "gitops"])
def test_the_component_adds_one_container_and_one_volume_to_the_repo_server(
    tmp_path: pathlib.Path, namespace: str
) -> None:
    built = pod(kustomize(tmp_path, namespace=namespace))
    before = next(yaml.safe_load_all(ARGO_CD))["spec"]["template"]["spec"]
    assert {found["name"] for found in built["containers"]} == {"argocd-repo-server", "htrflow-campaigns"}
    assert [found for found in built["containers"] if found["name"] != "htrflow-campaigns"] == before["containers"]
    added = [volume for volume in built["volumes"] if volume not in before["volumes"]]
    assert added == [{"name": "htrflow-campaigns-tmp", "emptyDir": {"sizeLimit": "1Gi"}}]
    assert built["initContainers"] == before["initContainers"]


def test_the_component_works_on_an_argo_cd_whose_files_name_their_namespace(tmp_path: pathlib.Path) -> None:
    named = re.sub(r"(metadata: \{name: [\w-]+)\}", r"\1, namespace: argocd}", ARGO_CD)
    named = named.replace(
        "  name: argocd-repo-server\n  labels", "  name: argocd-repo-server\n  namespace: argocd\n  labels"
    )
    assert named.count("namespace: argocd") == 3
    built = kustomize(tmp_path, named)
    assert container(pod(built)["containers"])
    assert HEALTH_KEY in rendered.one(built, "ConfigMap", "argocd-cm")["data"]


def test_the_component_keeps_the_settings_that_argo_cd_has(tmp_path: pathlib.Path) -> None:
    built = kustomize(tmp_path)
    data = rendered.one(built, "ConfigMap", "argocd-cm")["data"]
    assert data.keys() == {"url", HEALTH_KEY}
    parameters = rendered.one(built, "ConfigMap", "argocd-cmd-params-cm")["data"]
    assert parameters == {"reposerver.plugin.tar.exclusions": ".git/*"}


def test_the_image_is_the_users_to_set(tmp_path: pathlib.Path) -> None:
    image = container(pod(kustomize(tmp_path))["containers"])["image"]
    assert image == "registry.example.net/cmp@sha256:" + "1" * 64


def test_the_image_that_nobody_has_set_cannot_be_pulled() -> None:
    assert container(pod([load("sidecar.yaml")])["containers"])["image"].endswith("@sha256:" + "0" * 64)


def test_the_sidecar_meets_pod_security_restricted_and_writes_nowhere_but_tmp() -> None:
    sidecar = container(pod([load("sidecar.yaml")])["containers"])
    assert sidecar["securityContext"] == {
        "runAsNonRoot": True,
        "runAsUser": sandbox.UID,
        "runAsGroup": sandbox.UID,
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
        "seccompProfile": {"type": "RuntimeDefault"},
    }
    mounts = {mount["mountPath"]: mount["name"] for mount in sidecar["volumeMounts"]}
    assert mounts == {
        "/var/run/argocd": "var-files",
        "/home/argocd/cmp-server/plugins": "plugins",
        "/tmp": "htrflow-campaigns-tmp",
    }
    assert str(probe.SOCKETS) in mounts


def test_the_sidecar_starts_argo_cds_server_and_is_ready_when_its_socket_answers() -> None:
    sidecar = container(pod([load("sidecar.yaml")])["containers"])
    assert sidecar["command"] == ["/var/run/argocd/argocd-cmp-server"]
    assert sidecar["readinessProbe"]["exec"]["command"] == ["htrflow-campaigns", "probe"]
    assert sidecar["resources"]["limits"].keys() == {"memory"}


def test_the_sidecar_sets_every_setting_that_the_plugin_has() -> None:
    environment = {
        found["name"]: found["value"] for found in container(pod([load("sidecar.yaml")])["containers"])["env"]
    }
    assert environment.keys() == {settings.NAMESPACES, settings.ALLOW_EMPTY, settings.MAX_MIB}
    read = settings.from_environment(environment)
    assert read == settings.Settings(frozenset({"htr-batch"}))


def test_the_values_of_the_argo_cd_chart_hold_the_same_as_the_component(tmp_path: pathlib.Path) -> None:
    values = load("values.yaml")
    assert values.keys() == {"repoServer", "configs"}
    component = pod([load("sidecar.yaml")])
    assert values["repoServer"]["extraContainers"] == component["containers"]
    assert values["repoServer"]["volumes"] == component["volumes"]
    assert values["configs"]["cm"] == load("argocd-cm.yaml")["data"]
    assert values["configs"]["params"] == load("argocd-cmd-params-cm.yaml")["data"]


def test_the_values_hold_nothing_that_helm_would_take_for_a_template(tmp_path: pathlib.Path) -> None:
    text = (KIT / "values.yaml").read_text("utf-8")
    assert "{{" not in text
    # The chart renders containers and volumes through `tpl`; a chart that does only this gives them back unchanged.
    (tmp_path / "templates").mkdir()
    (tmp_path / "Chart.yaml").write_text("apiVersion: v2\nname: stand-in\nversion: 0.0.0\n")
    template = (
        '{"containers": {{ tpl (toJson .Values.repoServer.extraContainers) $ }}, "cm": {{ toJson .Values.configs.cm }}}'
    )
    (tmp_path / "templates" / "objects.yaml").write_text(template)
    command = [str(tools.get("helm")), "template", "x", str(tmp_path), "--values", str(KIT / "values.yaml")]
    result = subprocess.run(command, capture_output=True, text=True, encoding="utf-8", timeout=60, check=False)
    assert result.returncode == 0, result.stderr
    values = load("values.yaml")
    assert yaml.safe_load(result.stdout) == {
        "containers": values["repoServer"]["extraContainers"],
        "cm": values["configs"]["cm"],
    }


def test_every_copy_of_the_health_rule_is_the_file(tmp_path: pathlib.Path) -> None:
    script = (KIT / "health.lua").read_text("utf-8")
    assert load("argocd-cm.yaml")["data"] == {HEALTH_KEY: script}
    assert load("values.yaml")["configs"]["cm"] == {HEALTH_KEY: script}
    assert rendered.one(kustomize(tmp_path), "ConfigMap", "argocd-cm")["data"][HEALTH_KEY] == script


# The project and the Application


def test_the_project_allows_config_maps_and_jobs_in_one_namespace_and_nothing_else() -> None:
    spec = load("project.yaml")["spec"]
    assert spec["clusterResourceWhitelist"] == []
    assert {(found["group"], found["kind"]) for found in spec["namespaceResourceWhitelist"]} == {
        ("", "ConfigMap"),
        ("batch", "Job"),
    }
    assert [found["namespace"] for found in spec["destinations"]] == ["htr-batch"]
    assert not any("*" in value for value in (*spec["sourceRepos"], *(str(found) for found in spec["destinations"])))


def test_the_project_allows_all_that_the_converter_renders() -> None:
    allowed = {(found["group"], found["kind"]) for found in load("project.yaml")["spec"]["namespaceResourceWhitelist"]}
    for found in [*rendered.generated(rendered.FEATURES), *rendered.generated(rendered.EXAMPLE)]:
        group = found["apiVersion"].rpartition("/")[0]
        assert (group, found["kind"]) in allowed


def test_project_application_and_plugin_agree_on_names() -> None:
    project, application = load("project.yaml"), load("application.yaml")
    spec = application["spec"]
    assert spec["project"] == project["metadata"]["name"]
    assert application["metadata"]["namespace"] == project["metadata"]["namespace"]
    assert spec["source"]["repoURL"] in project["spec"]["sourceRepos"]
    assert spec["destination"] in project["spec"]["destinations"]
    assert spec["source"]["plugin"] == {"name": probe.PLUGIN}
    environment = {
        found["name"]: found["value"] for found in container(pod([load("sidecar.yaml")])["containers"])["env"]
    }
    assert environment[settings.NAMESPACES] == spec["destination"]["namespace"]


def test_the_application_prunes_and_never_heals_and_never_wipes() -> None:
    policy = load("application.yaml")["spec"]["syncPolicy"]
    assert policy["automated"] == {"prune": True, "selfHeal": False, "allowEmpty": False}
    assert {*policy["syncOptions"]} == {
        "ApplyOutOfSyncOnly=true",
        "RespectIgnoreDifferences=true",
        "PrunePropagationPolicy=background",
    }


def test_deleting_the_application_deletes_no_campaign() -> None:
    assert "finalizers" not in load("application.yaml")["metadata"]
