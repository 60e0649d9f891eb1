"""How clients reach an embedded Kafka."""

from __future__ import annotations

from pathlib import Path

import pytest

from contexture.errors import ConfigurationError
from contexture_sandbox import storage
from contexture_sandbox.listeners import Ports, Security, listener_properties


def test_every_listener_is_on_the_loopback_address() -> None:
    properties = listener_properties(Ports(client=1001, internal=1002, controller=1003), "SSL")
    assert properties["listeners"] == "CLIENT://127.0.0.1:1001,INTERNAL://127.0.0.1:1002,CONTROLLER://127.0.0.1:1003"
    assert properties["advertised.listeners"] == "CLIENT://127.0.0.1:1001,INTERNAL://127.0.0.1:1002"
    assert properties["listener.security.protocol.map"] == "CLIENT:SSL,INTERNAL:PLAINTEXT,CONTROLLER:PLAINTEXT"


def test_passwords_are_not_shown() -> None:
    assert "hidden" not in repr(Security("SASL_SSL", users={"alice": "hidden"}))


def test_a_login_needs_users() -> None:
    with pytest.raises(ConfigurationError, match="SASL_PLAINTEXT without a user"):
        Security("SASL_PLAINTEXT")


def test_a_client_gets_the_settings_of_its_user() -> None:
    security = Security("SASL_SSL", users={"alice": "a", "bob": "b"})
    assert security.client_settings(Path("/c"), "bob") == {
        "security.protocol": "SASL_SSL",
        "sasl.mechanism": "SCRAM-SHA-512",
        "sasl.username": "bob",
        "sasl.password": "b",
        "ssl.ca.location": "/c/ca.pem",
    }


def test_each_mechanism_has_its_login_at_the_broker() -> None:
    users = {"alice": 'a"\\b'}
    security = Security("SASL_SSL", users=users, mechanisms=("PLAIN", "SCRAM-SHA-256"), access_control=True)
    properties = security.broker_properties(Path("/c/broker.pem"))
    assert properties["listener.name.client.sasl.enabled.mechanisms"] == "PLAIN,SCRAM-SHA-256"
    assert properties["listener.name.client.plain.sasl.jaas.config"].endswith(' user_alice="a\\"\\\\b";')
    assert "ScramLoginModule required;" in properties["listener.name.client.scram-sha-256.sasl.jaas.config"]
    assert properties["super.users"] == "User:ANONYMOUS"
    assert security.client_settings(Path("/c"))["sasl.mechanism"] == "PLAIN"


def test_a_formatted_folder_says_which_cluster_it_belongs_to(tmp_path: Path) -> None:
    (tmp_path / "template").write_bytes(b"features")
    assert not storage.is_formatted(tmp_path / "data")
    cluster = storage.random_id()
    storage.format_folder(tmp_path / "data", cluster=cluster, node=2, template=tmp_path / "template")
    assert storage.is_formatted(tmp_path / "data")
    assert storage.cluster_id(tmp_path / "data") == cluster
    assert (tmp_path / "data" / "bootstrap.checkpoint").read_bytes() == b"features"


def test_random_ids_are_22_characters_that_no_option_starts_with() -> None:
    ids = {storage.random_id() for _ in range(500)}
    assert len(ids) == 500
    assert all(len(text) == 22 and not text.startswith("-") for text in ids)
