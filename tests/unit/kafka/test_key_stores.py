"""PKCS#12 and PEM stores of Java clients; Java's own format is in tests/integration/kafka, where keytool runs."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.serialization import pkcs12

from contexture.kafka import ClientSettings, KafkaConfigurationError
from contexture_sandbox.certificates import write_certificates

MINIMAL = {"bootstrap.servers": "a:1", "security.protocol": "SSL"}
PASSWORD = "pässwörd-hush"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """`ca.pem` and `client.pem`, and both as PKCS#12."""
    folder = tmp_path_factory.mktemp("stores")
    write_certificates(folder)
    authority, protection = read(folder / "ca.pem"), serialization.BestAvailableEncryption(PASSWORD.encode())
    key = serialization.load_pem_private_key((folder / "client.pem").read_bytes(), None)
    keys = pkcs12.serialize_key_and_certificates(b"me", key, read(folder / "client.pem"), [authority], protection)
    (folder / "keys.p12").write_bytes(keys)
    trusted = pkcs12.serialize_java_truststore([pkcs12.PKCS12Certificate(authority, b"ca")], protection)
    (folder / "trust.p12").write_bytes(trusted)
    return folder


def read(file: Path) -> x509.Certificate:
    return x509.load_pem_x509_certificate(file.read_bytes())


def settings(**options: object) -> ClientSettings:
    return ClientSettings.from_extra({**MINIMAL, **{name.replace("_", "."): value for name, value in options.items()}})


def test_a_trust_store_becomes_authorities(folder):
    found = settings(ssl_truststore_location=str(folder / "trust.p12"), ssl_truststore_password=PASSWORD).admin()
    assert found["ssl.ca.pem"] == (folder / "ca.pem").read_text()
    assert not [name for name in found if name.startswith("ssl.truststore")]


def test_a_key_store_becomes_a_chain_and_a_key(folder):
    options = settings(ssl_keystore_location=str(folder / "keys.p12"), ssl_keystore_password=PASSWORD).producer()
    chain = x509.load_pem_x509_certificates(str(options["ssl.certificate.pem"]).encode())
    assert chain == [read(folder / "client.pem"), read(folder / "ca.pem")]
    key = serialization.load_pem_private_key(str(options["ssl.key.pem"]).encode(), None)
    assert key.public_key() == chain[0].public_key()
    assert not {"ssl.keystore.location", "ssl.keystore.password", "ssl.key.password"} & set(options)


def test_stores_in_pem_are_named_as_they_are(folder):
    ca, mine = str(folder / "ca.pem"), str(folder / "client.pem")
    given = {"ssl_truststore_type": "PEM", "ssl_truststore_location": ca, "ssl_keystore_location": mine}
    options = settings(**given, ssl_keystore_type="pem", ssl_key_password="hush").consumer()
    assert options["ssl.ca.location"] == ca
    assert (options["ssl.certificate.location"], options["ssl.key.location"]) == (mine, mine)
    assert options["ssl.key.password"] == "hush"


def test_a_renewed_store_is_read_anew(folder, tmp_path):
    store = tmp_path / "trust.p12"
    store.write_bytes((folder / "trust.p12").read_bytes())
    mine = settings(ssl_truststore_location=str(store), ssl_truststore_password=PASSWORD)
    before = mine.admin()["ssl.ca.pem"]
    write_certificates(tmp_path / "new")
    renewed = pkcs12.PKCS12Certificate(read(tmp_path / "new" / "ca.pem"), b"ca")
    protection = serialization.BestAvailableEncryption(PASSWORD.encode())
    store.write_bytes(pkcs12.serialize_java_truststore([renewed], protection))
    os.utime(store, ns=(1, 1))
    assert mine.admin()["ssl.ca.pem"] == (tmp_path / "new" / "ca.pem").read_text() != before


@pytest.mark.parametrize("content", [None, b"", b"certainly no store"])
def test_a_store_that_is_none_is_reported_by_the_option_that_names_it(tmp_path, content):
    store = tmp_path / "store"
    if content is not None:
        store.write_bytes(content)
    with pytest.raises(KafkaConfigurationError, match=r"ssl\.truststore\.location names"):
        settings(ssl_truststore_location=str(store)).admin()


def test_stores_travel_with_settings_to_other_processes(folder):
    mine = settings(ssl_truststore_location=str(folder / "trust.p12"), ssl_truststore_password=PASSWORD)
    again = ClientSettings.from_extra(mine.__reduce__()[1][0])  # type: ignore[index]
    assert again.admin() == mine.admin()


def test_no_password_of_a_store_shows(folder):
    mine = settings(ssl_truststore_location=str(folder / "trust.p12"), ssl_truststore_password=PASSWORD)
    assert PASSWORD not in repr(mine)
    assert mine.secrets() == (PASSWORD,)
