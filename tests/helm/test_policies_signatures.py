"""The policy about signatures, with real signatures in a registry."""

from __future__ import annotations

import contextlib
import pathlib
import typing as t

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec

from tests.helm import kyverno_cli
from tests.helm.chart import Helm
from tests.helm.kyverno_cli import Object, Row, Run
from tests.helm.registry import Registry

#: They take long together.
pytestmark = pytest.mark.slow

Tool = t.Callable[[str], pathlib.Path]

_UNSIGNED = "images without a signature of the trusted key or identity: "


@pytest.fixture
def registry() -> t.Iterator[Registry]:
    with contextlib.closing(Registry()) as made:
        yield made


@pytest.fixture
def key() -> ec.EllipticCurvePrivateKey:
    return ec.generate_private_key(ec.SECP256R1())


def _pem(key: ec.EllipticCurvePrivateKey) -> str:
    public = key.public_key()
    return public.public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo).decode()


def _policy(helm: Helm, registry: Registry, key: ec.EllipticCurvePrivateKey, *repositories: str) -> Object:
    signatures = {"enabled": True, "key": _pem(key), "transparencyLog": False, "repositories": list(repositories)}
    values = {"enabled": True, "allowedRepositories": [registry.address], "signatures": signatures}
    objects = helm.template("no-site", settings={"policies": values})
    (policy,) = (item for item in objects if item["kind"] == "ImageValidatingPolicy")
    return policy


def _pod(name: str, image: str, **more: t.Any) -> Object:
    spec = {"containers": [{"name": "wrapper", "image": image}], **more}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "namespace": "htr-batch"}, "spec": spec}


def _check(program: pathlib.Path, policy: Object, pods: t.Sequence[Object], canary: Object) -> dict[str, Row]:
    rows = kyverno_cli.apply(program, [policy], pods, [canary], Run(options=("--registry",)))
    return {row.name: row for row in rows}


def test_an_image_needs_a_signature_of_the_trusted_key(
    helm: Helm, tool: Tool, registry: Registry, key: ec.EllipticCurvePrivateKey
) -> None:
    signed, unsigned = registry.image("htr/signed", key), registry.image("htr/unsigned")
    foreign = registry.image("htr/signed-by-another", ec.generate_private_key(ec.SECP256R1()))
    pods = [
        _pod("signed", signed),
        _pod("signed-by-another", foreign),
        _pod("first-unsigned", signed, initContainers=[{"name": "first", "image": unsigned}]),
        _pod("debugged", signed, ephemeralContainers=[{"name": "debug", "image": unsigned}]),
    ]

    rows = _check(tool("kyverno"), _policy(helm, registry, key), pods, _pod("canary", unsigned))

    instead = " — use an image that the build has signed"
    assert {name: (row.result, row.message) for name, row in rows.items()} == {
        "signed": ("pass", "success"),
        "signed-by-another": ("fail", f"{_UNSIGNED}{foreign}{instead}"),
        "first-unsigned": ("fail", f"{_UNSIGNED}{unsigned}{instead}"),
        "debugged": ("fail", f"{_UNSIGNED}{unsigned}{instead}"),
    }


def test_only_the_named_repositories_need_signatures(
    helm: Helm, tool: Tool, registry: Registry, key: ec.EllipticCurvePrivateKey
) -> None:
    unsigned = registry.image("htr/unsigned")
    pods = [_pod("of-another", registry.image("other/unsigned")), _pod("alike", registry.image("htr-other/unsigned"))]

    policy = _policy(helm, registry, key, f"{registry.address}/htr")
    rows = _check(tool("kyverno"), policy, pods, _pod("canary", unsigned))

    assert {row.result for row in rows.values()} <= {"pass", "skip"}


def test_an_image_that_its_registry_does_not_have_is_refused(
    helm: Helm, tool: Tool, registry: Registry, key: ec.EllipticCurvePrivateKey
) -> None:
    lost = registry.image("htr/signed", key).replace("/htr/signed@", "/htr/lost@")

    rows = _check(
        tool("kyverno"), _policy(helm, registry, key), [_pod("lost", lost)], _pod("canary", registry.image("a/b"))
    )

    assert rows["lost"].result in ("fail", "error")
