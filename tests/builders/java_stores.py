"""Key and trust stores as Java tools make them: JKS, PKCS#12."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.serialization import pkcs12

from contexture.kafka.key_stores import observe


def keys_in_pkcs12(pem: Path, target: Path, password: str) -> Path:
    """The key of a PEM file with all its certificates."""
    content = pem.read_bytes()
    key = serialization.load_pem_private_key(content, None)
    first, *others = x509.load_pem_x509_certificates(content)
    protection = serialization.BestAvailableEncryption(password.encode())
    target.write_bytes(pkcs12.serialize_key_and_certificates(b"me", key, first, others, protection))  # type: ignore[arg-type]
    return target


def trust_in_pkcs12(pem: Path, target: Path, password: str) -> Path:
    """The certificates of a PEM file as authorities."""
    found = x509.load_pem_x509_certificates(pem.read_bytes())
    entries = [pkcs12.PKCS12Certificate(each, f"ca-{number}".encode()) for number, each in enumerate(found)]
    protection = serialization.BestAvailableEncryption(password.encode())
    target.write_bytes(pkcs12.serialize_java_truststore(entries, protection))
    return target


def in_jks(source: Path, target: Path, password: str, *, new_password: str = "", key_password: str = "") -> Path:
    """A PKCS#12 store in Java's own format, under another password and with one for its key where they are given."""
    variables = {"OLD": password, "NEW": new_password or password, "KEY": key_password or new_password or password}
    passwords = ["-srcstorepass:env", "OLD", "-deststorepass:env", "NEW"]
    if key_password:
        passwords += ["-srcalias", "me", "-srckeypass:env", "OLD", "-destkeypass:env", "KEY"]
    stores = ["-srckeystore", str(source), "-srcstoretype", "PKCS12", "-destkeystore", str(target)]
    command = [str(observe()), "-J-Dsun.jnu.encoding=UTF-8", "-importkeystore", "-noprompt", *stores]
    subprocess.run(
        [*command, "-deststoretype", "JKS", *passwords],
        env={**os.environ, **variables},
        check=True,
        capture_output=True,
    )
    return target
