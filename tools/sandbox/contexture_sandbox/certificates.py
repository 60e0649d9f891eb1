"""Certificate authorities for one sandbox, with certificates for its brokers and clients."""

from __future__ import annotations

import datetime
import ipaddress
from collections.abc import Sequence
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from contexture_sandbox.ports import LOOPBACK

_LIFE = datetime.timedelta(days=30)
# Clocks of containers and their hosts differ.
_EARLIER = datetime.timedelta(hours=1)
_HOSTS = ("localhost", LOOPBACK)


class Authority:
    """An authority with a key of its own, which is written nowhere.

    Args:
        name: its common name.
        above: the authority that signs it; itself when None.

    Attributes:
        certificate: its own.
    """

    def __init__(self, name: str = "contexture sandbox", above: Authority | None = None) -> None:
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._chain: tuple[x509.Certificate, ...] = ()
        builder = _builder(name, self._key, datetime.datetime.now(datetime.UTC) + _LIFE)
        builder = builder.add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        signer = above or self
        issuer = above.certificate.subject if above else _name(name)
        self.certificate: x509.Certificate = builder.issuer_name(issuer).sign(signer._key, hashes.SHA256())
        if above is not None:
            self._chain = (self.certificate, *above._chain)

    def write(self, file: Path) -> None:
        """Writes its certificate as PEM."""
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(self.certificate.public_bytes(serialization.Encoding.PEM))

    def issue(
        self, file: Path, name: str, *, hosts: Sequence[str] = _HOSTS, until: datetime.datetime | None = None
    ) -> None:
        """Writes a new key and its certificate, with those of authorities between it and the first, as PEM.

        Args:
            file: readable by this user alone.
            name: its common name.
            hosts: names and addresses it is for.
            until: when it ends; in 30 days when None.
        """
        key = ec.generate_private_key(ec.SECP256R1())
        usage = x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH])
        certificate = (
            _builder(name, key, until or datetime.datetime.now(datetime.UTC) + _LIFE)
            .issuer_name(self.certificate.subject)
            .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
            .add_extension(x509.SubjectAlternativeName([_host(host) for host in hosts]), critical=False)
            .add_extension(usage, critical=False)
            .sign(self._key, hashes.SHA256())
        )
        plain = serialization.NoEncryption()
        secret = key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, plain)
        chain = (each.public_bytes(serialization.Encoding.PEM) for each in (certificate, *self._chain))
        file.parent.mkdir(parents=True, exist_ok=True)
        file.touch(mode=0o600)
        file.write_bytes(secret + b"".join(chain))


def write_certificates(folder: Path) -> None:
    """Writes `ca.pem`, and `broker.pem` and `client.pem` with key and certificate; keeps those that are there."""
    if (folder / "client.pem").exists():
        return
    authority = Authority()
    authority.write(folder / "ca.pem")
    for name in ("broker", "client"):
        authority.issue(folder / f"{name}.pem", name)


def _builder(name: str, key: ec.EllipticCurvePrivateKey, until: datetime.datetime) -> x509.CertificateBuilder:
    begin = min(datetime.datetime.now(datetime.UTC), until) - _EARLIER
    return (
        x509.CertificateBuilder(serial_number=x509.random_serial_number(), public_key=key.public_key())
        .subject_name(_name(name))
        .not_valid_before(begin)
        .not_valid_after(until)
    )


def _name(name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])


def _host(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        return x509.DNSName(host)
