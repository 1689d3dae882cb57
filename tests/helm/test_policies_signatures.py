"""The policy about signatures, with real signatures in a registry."""

from __future__ import annotations

import contextlib
import pathlib
import typing as t

import pytest
from cryptography.hazmat.primitives.asymmetric import ec

from tests.helm import kyverno_cli, signing
from tests.helm.chart import Helm
from tests.helm.kyverno_cli import Object, Row, Run
from tests.helm.registry import Registry

#: They take long together.
pytestmark = pytest.mark.slow

Tool = t.Callable[[str], pathlib.Path]


@pytest.fixture
def registry() -> t.Iterator[Registry]:
    with contextlib.closing(Registry()) as made:
        yield made


@pytest.fixture
def key() -> ec.EllipticCurvePrivateKey:
    return signing.new_key()


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
    foreign = registry.image("htr/signed-by-another", signing.new_key())
    pods = [
        _pod("signed", signed),
        _pod("signed-by-another", foreign),
        _pod("first-unsigned", signed, initContainers=[{"name": "first", "image": unsigned}]),
        _pod("debugged", signed, ephemeralContainers=[{"name": "debug", "image": unsigned}]),
    ]

    rows = _check(tool("kyverno"), signing.policy(helm, registry, key), pods, _pod("canary", unsigned))

    assert {name: (row.result, row.message) for name, row in rows.items()} == {
        "signed": ("pass", "success"),
        "signed-by-another": ("fail", f"{signing.UNSIGNED}{foreign}{signing.INSTEAD}"),
        "first-unsigned": ("fail", f"{signing.UNSIGNED}{unsigned}{signing.INSTEAD}"),
        "debugged": ("fail", f"{signing.UNSIGNED}{unsigned}{signing.INSTEAD}"),
    }


def test_only_the_named_repositories_need_signatures(
    helm: Helm, tool: Tool, registry: Registry, key: ec.EllipticCurvePrivateKey
) -> None:
    unsigned = registry.image("htr/unsigned")
    pods = [_pod("of-another", registry.image("other/unsigned")), _pod("alike", registry.image("htr-other/unsigned"))]

    policy = signing.policy(helm, registry, key, f"{registry.address}/htr")
    rows = _check(tool("kyverno"), policy, pods, _pod("canary", unsigned))

    assert {row.result for row in rows.values()} <= {"pass", "skip"}


def test_an_image_that_its_registry_does_not_have_is_refused(
    helm: Helm, tool: Tool, registry: Registry, key: ec.EllipticCurvePrivateKey
) -> None:
    lost = registry.image("htr/signed", key).replace("/htr/signed@", "/htr/lost@")

    rows = _check(
        tool("kyverno"),
        signing.policy(helm, registry, key),
        [_pod("lost", lost)],
        _pod("canary", registry.image("a/b")),
    )

    assert rows["lost"].result in ("fail", "error")
