"""An authority for certificates, made for one run."""

from __future__ import annotations

import datetime
import ipaddress
import pathlib
import typing as t

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

_LIFE = datetime.timedelta(days=2)


class Authority:
    """Signs certificates. ``NAME.crt`` and ``NAME.key`` in its folder are its own."""

    def __init__(self, folder: pathlib.Path, name: str) -> None:
        self.certificate, self._key_file = folder / f"{name}.crt", folder / f"{name}.key"
        if self.certificate.is_file():
            key = serialization.load_pem_private_key(self._key_file.read_bytes(), password=None)
            self._key = t.cast(ec.EllipticCurvePrivateKey, key)
            self._name = x509.load_pem_x509_certificate(self.certificate.read_bytes()).subject
            return
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        usage = x509.KeyUsage(
            digital_signature=True,
            key_cert_sign=True,
            crl_sign=True,
            content_commitment=False,
            key_encipherment=False,
            data_encipherment=False,
            key_agreement=False,
            encipher_only=False,
            decipher_only=False,
        )
        builder = _builder(self._name, self._name, self._key.public_key())
        builder = builder.add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        signed = builder.add_extension(usage, critical=True).sign(self._key, hashes.SHA256())
        _write_key(self._key, self._key_file)
        self.certificate.write_bytes(signed.public_bytes(serialization.Encoding.PEM))

    @property
    def key(self) -> pathlib.Path:
        """The file with the authority's own key."""
        return self._key_file

    def server(self, certificate: pathlib.Path, key: pathlib.Path, *names: str) -> None:
        """Writes a certificate for a server that has these host names and addresses."""
        self._sign(certificate, key, x509.Name([]), ExtendedKeyUsageOID.SERVER_AUTH, names)

    def client(self, certificate: pathlib.Path, key: pathlib.Path, user: str, groups: t.Iterable[str] = ()) -> None:
        """Writes a certificate for a user of the Kubernetes API."""
        parts = [x509.NameAttribute(NameOID.ORGANIZATION_NAME, group) for group in groups]
        subject = x509.Name([*parts, x509.NameAttribute(NameOID.COMMON_NAME, user)])
        self._sign(certificate, key, subject, ExtendedKeyUsageOID.CLIENT_AUTH, ())

    def _sign(
        self,
        certificate: pathlib.Path,
        key: pathlib.Path,
        subject: x509.Name,
        usage: x509.ObjectIdentifier,
        names: t.Iterable[str],
    ) -> None:
        private = ec.generate_private_key(ec.SECP256R1())
        builder = _builder(subject, self._name, private.public_key())
        builder = builder.add_extension(x509.ExtendedKeyUsage([usage]), critical=False)
        builder = builder.add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        if names:
            alternatives = x509.SubjectAlternativeName([_general(name) for name in names])
            builder = builder.add_extension(alternatives, critical=not list(subject))
        signed = builder.sign(self._key, hashes.SHA256())
        _write_key(private, key)
        certificate.write_bytes(signed.public_bytes(serialization.Encoding.PEM))


def signing_key(file: pathlib.Path) -> None:
    """Writes a key that signs the tokens of service accounts."""
    _write_key(ec.generate_private_key(ec.SECP256R1()), file)


def _builder(subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePublicKey) -> x509.CertificateBuilder:
    now = datetime.datetime.now(datetime.UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(minutes=5))
        .not_valid_after(now + _LIFE)
    )


def _general(name: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(name))
    except ValueError:
        return x509.DNSName(name)


def _write_key(key: ec.EllipticCurvePrivateKey, file: pathlib.Path) -> None:
    content = key.private_bytes(
        # Kubernetes reads no other format for the keys of its tokens.
        serialization.Encoding.PEM,
        serialization.PrivateFormat.TraditionalOpenSSL,
        serialization.NoEncryption(),
    )
    file.touch(mode=0o600)
    file.write_bytes(content)
