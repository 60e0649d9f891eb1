"""Clients that can't be made: what is said of it, and what is not."""

from __future__ import annotations

import time

import pytest
from cryptography.hazmat.primitives import serialization

from contexture.kafka import ClientSettings, KafkaConfigurationError
from contexture.kafka.callbacks import ClientCallbacks
from contexture.kafka.clients import admin, reader, transactional_producer
from contexture_sandbox.certificates import Authority

MINIMAL = {"bootstrap.servers": "127.0.0.1:9", "security.protocol": "SASL_SSL"}


def refusal(**options: object) -> KafkaConfigurationError:
    named = {name.replace("_", "."): value for name, value in options.items()}
    with pytest.raises(KafkaConfigurationError) as caught:
        admin(ClientSettings.from_extra({**MINIMAL, **named}), ClientCallbacks())
    return caught.value


@pytest.mark.parametrize("options", [{}, {"sasl_mechanism": "GSSAPI", "sasl_kerberos_keytab": "/k"}])
def test_kerberos_without_a_client_that_has_it_is_reported_with_both_ways_to_get_one(options):
    error = refusal(**options)
    assert "this Kafka client was built without Kerberos" in error.message
    assert "Confluent's package repository" in error.next_step
    assert "build librdkafka from source" in error.next_step
    assert "pip install --force-reinstall --no-binary confluent-kafka confluent-kafka" in error.next_step


@pytest.mark.parametrize(
    "options",
    [
        {"ssl_key_pem": "no key: hush-1", "ssl_certificate_pem": "hush-1"},
        {"sasl_pasword": "hush-1"},
    ],
)
def test_what_the_client_quotes_of_secrets_is_left_out(options):
    secured = {"sasl_mechanism": "PLAIN", "sasl_username": "anna", "sasl_password": "hush-1"}
    error = refusal(**{**secured, **options})
    assert "hush" not in str(error)
    assert error.__cause__ is None


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """A certificate with its key, the key under a password, and a file that holds neither."""
    folder = tmp_path_factory.mktemp("tls")
    Authority().issue(folder / "mine.pem", "me")
    key = serialization.load_pem_private_key((folder / "mine.pem").read_bytes(), None)
    locked = serialization.BestAvailableEncryption(b"key-hush")
    content = key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, locked)
    (folder / "locked.key").write_bytes(content)
    (folder / "other.txt").write_text("neither")
    return folder


@pytest.mark.parametrize(
    ("options", "reason", "advice"),
    [
        (
            {"ca": "none.pem"},
            "ssl.ca.location of the Kafka connection cannot be used: {}/none.pem: No",
            "path",
        ),
        ({"ca": "other.txt"}, "{}/other.txt holds no certificate in PEM", "-----BEGIN CERTIFICATE-----"),
        ({"certificate": "none.pem"}, "ssl.certificate.location of the Kafka connection cannot be used", "path"),
        ({"certificate": "locked.key"}, "{}/locked.key holds no certificate in PEM", "-----BEGIN CERTIFICATE-----"),
        ({"certificate": "mine.pem", "key": "none.pem"}, "ssl.key.location of the Kafka connection", "path"),
        ({"certificate": "mine.pem", "key": "other.txt"}, "{}/other.txt holds no private key in PEM", "PRIVATE KEY"),
        (
            {"certificate": "mine.pem", "key": "locked.key"},
            "the key in {}/locked.key has a password",
            "give it in ssl.key.password",
        ),
        (
            {"certificate": "mine.pem", "key": "locked.key", "password": "wrong-hush"},
            "ssl.key.password does not open the key in {}/locked.key",
            "correct ssl.key.password",
        ),
    ],
)
def test_a_file_for_tls_that_can_not_be_used_is_reported_with_its_setting(files, options, reason, advice):
    named = {f"ssl_{name}_location": str(files / file) for name, file in options.items() if name != "password"}
    if "password" in options:
        named["ssl_key_password"] = options["password"]
    error = refusal(**{**named, "security_protocol": "SSL"})
    assert reason.format(files) in error.message
    assert advice in error.next_step
    assert "hush" not in str(error)


def test_what_the_client_quotes_while_it_runs_is_left_out_too():
    tokens = {"sasl.mechanism": "OAUTHBEARER", "enable.sasl.oauthbearer.unsecure.jwt": True}
    settings = ClientSettings.from_extra({**MINIMAL, **tokens, "sasl.oauthbearer.config": "principal=me hush-1 hush-2"})
    watch = ClientCallbacks()
    client, until = admin(settings, watch), time.monotonic() + 60
    while watch.refused is None and time.monotonic() < until:
        client.poll(0.1)
    with pytest.raises(KafkaConfigurationError, match="_AUTHENTICATION") as caught:
        watch.raise_refusal("trying")
    assert "hush" not in str(caught.value)
    assert "***" in str(caught.value)


def test_an_unknown_name_is_reported_by_every_kind_of_client():
    settings = ClientSettings.from_extra({"bootstrap.servers": "a:1", "no.such.name": 1})
    makers = (admin, reader, lambda *given: transactional_producer(given[0], "tx", given[1]))
    for make in makers:
        with pytest.raises(KafkaConfigurationError, match=r"no\.such\.name"):
            make(settings, ClientCallbacks())
