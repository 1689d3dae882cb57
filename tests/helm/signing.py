"""The policy about signatures, for a key and a registry of a test."""

from __future__ import annotations

from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec

from tests.helm.chart import Helm, Object
from tests.helm.registry import Registry

#: What the policy says before the image, and after it.
UNSIGNED = "images without a signature of the trusted key or identity: "
INSTEAD = " — use an image that the build has signed"


def new_key() -> ec.EllipticCurvePrivateKey:
    """A key as cosign makes one."""
    return ec.generate_private_key(ec.SECP256R1())


def policy(helm: Helm, registry: Registry, key: ec.EllipticCurvePrivateKey, *repositories: str) -> Object:
    """The policy as the chart renders it, for all images or for those of some repositories."""
    signatures = {"enabled": True, "key": _pem(key), "transparencyLog": False, "repositories": list(repositories)}
    values = {"enabled": True, "allowedRepositories": [registry.address], "signatures": signatures}
    objects = helm.template("no-site", settings={"policies": values})
    (found,) = (item for item in objects if item["kind"] == "ImageValidatingPolicy")
    return found


def _pem(key: ec.EllipticCurvePrivateKey) -> str:
    public = key.public_key()
    return public.public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo).decode()
