"""The authorities this machine trusts, in the form Java reads."""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import ssl
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from contexture.java.cache import exclusive

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.serialization import pkcs12

# The store holds public certificates only; this is the password Java itself uses for such stores.
_PASSWORD = "changeit"  # noqa: S105
_BLOCK = re.compile(rb"-----BEGIN CERTIFICATE-----.+?-----END CERTIFICATE-----", re.DOTALL)


def named_bundle() -> Path | None:
    """The PEM bundle that the environment names (SSL_CERT_FILE, REQUESTS_CA_BUNDLE), if it exists."""
    for variable in ("SSL_CERT_FILE", "REQUESTS_CA_BUNDLE"):
        path = os.environ.get(variable)
        if path and Path(path).is_file():
            return Path(path)
    return None


def trust_store_options() -> tuple[str, ...]:
    """The JVM options for a trust store made from the machine's bundle; none when the machine has no bundle."""
    pem = _machine_bundle()
    if not pem:
        return ()
    store = _store(pem)
    return (
        f"-Djavax.net.ssl.trustStore={store}",
        "-Djavax.net.ssl.trustStoreType=PKCS12",
        f"-Djavax.net.ssl.trustStorePassword={_PASSWORD}",
    )


def short_digest(content: bytes) -> str:
    """Twelve hex digits that name `content`."""
    return hashlib.sha256(content).hexdigest()[:12]


def _machine_bundle() -> bytes:
    bundle = named_bundle()
    paths = ssl.get_default_verify_paths()
    if bundle is None and paths.cafile:
        bundle = Path(paths.cafile)
    if bundle is not None:
        return bundle.read_bytes()
    if paths.capath:
        return b"\n".join(file.read_bytes() for file in sorted(Path(paths.capath).glob("*.[0-9]")))
    return b""


def _store(pem: bytes) -> Path:
    with exclusive("java") as cache:
        store = cache / "java" / f"authorities-{short_digest(pem)}.p12"
        if not store.exists():
            store.parent.mkdir(parents=True, exist_ok=True)
            draft = store.with_suffix(".draft")
            draft.write_bytes(_pkcs12(pem))
            draft.rename(store)
    return store


def _pkcs12(pem: bytes) -> bytes:
    from cryptography.hazmat.primitives import serialization
    from cryptography.hazmat.primitives.serialization import pkcs12

    protection = serialization.BestAvailableEncryption(_PASSWORD.encode())
    return pkcs12.serialize_java_truststore(list(_certificates(pem)), protection)


def _certificates(pem: bytes) -> Iterator[pkcs12.PKCS12Certificate]:
    from cryptography import x509
    from cryptography.hazmat.primitives.serialization import pkcs12

    for number, block in enumerate(dict.fromkeys(_BLOCK.findall(pem))):
        # Bundles carry old certificates that parse with a warning, or no longer; the others still count.
        with warnings.catch_warnings(), contextlib.suppress(ValueError):
            warnings.simplefilter("ignore")
            certificate = x509.load_pem_x509_certificate(block)
            yield pkcs12.PKCS12Certificate(certificate, f"authority-{number}".encode())
