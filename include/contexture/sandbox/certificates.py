"""A certificate authority for one sandbox, with certificates for its brokers and clients."""

from __future__ import annotations

import datetime
import ipaddress
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from contexture.sandbox.ports import LOOPBACK

_LIFE = datetime.timedelta(days=30)


def write_certificates(folder: Path) -> None:
    """Writes `ca.pem`, and `broker.pem` and `client.pem` with key and certificate; keeps those that are there."""
    if (folder / "client.pem").exists():
        return
    folder.mkdir(parents=True, exist_ok=True)
    authority_key = ec.generate_private_key(ec.SECP256R1())
    authority = _certificate("contexture sandbox", authority_key, None, authority_key)
    (folder / "ca.pem").write_bytes(authority.public_bytes(serialization.Encoding.PEM))
    for name in ("broker", "client"):
        key = ec.generate_private_key(ec.SECP256R1())
        certificate = _certificate(name, key, authority, authority_key)
        _write_pem(folder / f"{name}.pem", key, certificate)


def _certificate(
    name: str,
    key: ec.EllipticCurvePrivateKey,
    issuer: x509.Certificate | None,
    issuer_key: ec.EllipticCurvePrivateKey,
) -> x509.Certificate:
    """A certificate for `key`; an authority's own when there is no issuer."""
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    now = datetime.datetime.now(datetime.UTC)
    hosts = x509.SubjectAlternativeName([x509.DNSName("localhost"), x509.IPAddress(ipaddress.ip_address(LOOPBACK))])
    usage = x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH])
    builder = (
        x509.CertificateBuilder(serial_number=x509.random_serial_number(), public_key=key.public_key())
        .subject_name(subject)
        .issuer_name(subject if issuer is None else issuer.subject)
        # Clocks of containers and their hosts differ.
        .not_valid_before(now - datetime.timedelta(hours=1))
        .not_valid_after(now + _LIFE)
        .add_extension(x509.BasicConstraints(ca=issuer is None, path_length=None), critical=True)
    )
    if issuer is not None:
        builder = builder.add_extension(hosts, critical=False).add_extension(usage, critical=False)
    return builder.sign(issuer_key, hashes.SHA256())


def _write_pem(file: Path, key: ec.EllipticCurvePrivateKey, certificate: x509.Certificate) -> None:
    plain = serialization.NoEncryption()
    secret = key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, plain)
    file.touch(mode=0o600)
    file.write_bytes(secret + certificate.public_bytes(serialization.Encoding.PEM))
