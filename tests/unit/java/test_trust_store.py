"""Java is given the authorities that the machine's PEM bundle names."""

from __future__ import annotations

from pathlib import Path

import pytest
from cryptography.hazmat.primitives.serialization import pkcs12

from contexture.java.runtime import Java
from contexture.java.trust_store import named_bundle, trust_store_options
from contexture_sandbox.certificates import write_certificates


@pytest.fixture(autouse=True)
def _bundle(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    write_certificates(tmp_path)
    broken = b"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"
    authority = (tmp_path / "ca.pem").read_bytes()
    (tmp_path / "bundle.pem").write_bytes(b"# a comment\n" + broken + authority + authority)
    monkeypatch.setenv("CONTEXTURE_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("REQUESTS_CA_BUNDLE", raising=False)
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "bundle.pem"))


def test_the_store_holds_each_readable_authority_once() -> None:
    option = trust_store_options()[0]
    store = Path(option.removeprefix("-Djavax.net.ssl.trustStore="))
    held = pkcs12.load_pkcs12(store.read_bytes(), b"changeit").additional_certs
    assert [entry.certificate.subject.rfc4514_string() for entry in held] == ["CN=contexture sandbox"]


def test_requests_own_variable_counts_where_the_general_one_is_missing(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.delenv("SSL_CERT_FILE")
    assert named_bundle() is None
    monkeypatch.setenv("REQUESTS_CA_BUNDLE", str(tmp_path / "ca.pem"))
    assert named_bundle() == tmp_path / "ca.pem"


def test_a_named_bundle_counts_for_a_complete_runtime_too(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    system = Java(tmp_path, tmp_path, 17, "PATH")
    assert len(system.trust_options()) == 3
    monkeypatch.delenv("SSL_CERT_FILE")
    assert system.trust_options() == ()
