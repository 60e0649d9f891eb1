"""Connections to registries: what they take, and what they never show."""

from __future__ import annotations

import pickle

import pytest

from contexture.errors import ConfigurationError
from contexture.sources.http.connection import ConnectionFields, secrets
from contexture.sources.sdmx.registry import RegistryConnection, registry_connection

SECRET = "s3cr3t-77"


def fields(**extra: object) -> ConnectionFields:
    return ConnectionFields("registry.example", "https", "https", 8443, "reader", SECRET, extra)


def test_it_survives_json_and_pickle():
    connection = RegistryConnection(
        "https://registry.example/FusionRegistry/", {"X-Key": SECRET}, flavour="fmr", api="v1", reply_bytes=1000
    )
    assert RegistryConnection.from_json(connection.to_json()) == connection
    assert pickle.loads(pickle.dumps(connection)) == connection
    assert connection.address == "https://registry.example/FusionRegistry"
    assert SECRET not in repr(connection)


def test_airflows_fields_become_an_address_and_credentials():
    connection = registry_connection("registry", fields(flavour="generic", api="v2", timeout_seconds=7))
    assert connection.address == "https://registry.example:8443"
    assert connection.headers == {"Authorization": "Basic cmVhZGVyOnMzY3IzdC03Nw=="}
    assert (connection.flavour, connection.api, connection.timeout_seconds) == ("generic", "v2", 7.0)
    assert secrets(connection) == ("Basic cmVhZGVyOnMzY3IzdC03Nw==",)


def test_access_tokens_and_our_own_certificate_are_those_of_brokers():
    extra = {"authentication": "oauth2", "token_url": "https://idp.example/token", "certificate": "ours.pem"}
    connection = registry_connection("registry", fields(**extra))
    assert connection.grant is not None
    assert (connection.grant.kind, connection.certificate) == ("client_credentials", "ours.pem")
    assert "Authorization" not in connection.headers


def test_without_credentials_it_reads_as_the_public_does():
    assert RegistryConnection("http://registry").is_public
    assert not RegistryConnection("http://registry", {"Authorization": "Bearer x"}).is_public
    assert not RegistryConnection(f"http://me:{SECRET}@registry").is_public


def test_it_waits_two_minutes_unless_the_connection_says_otherwise():
    """A registry puts a whole agency together before the first byte comes."""
    assert registry_connection("registry", fields()).timeout_seconds == 120.0


@pytest.mark.parametrize(
    "extra", [{"flavour": "orion"}, {"api": "v3"}, {"reply_bytes": "much"}, {"reply_bytes": 0}, {"timeout_seconds": 0}]
)
def test_errors_of_unusable_settings_show_no_secrets(extra: dict[str, object]):
    with pytest.raises(ConfigurationError) as raised:
        registry_connection("registry", fields(**extra))
    assert SECRET not in str(raised.value)


@pytest.mark.parametrize("text", ["{}", '{"base_url": "http://r", "flavour": "orion"}', '{"base_url": "r"}'])
def test_what_is_no_connection_is_refused(text: str):
    with pytest.raises(ConfigurationError, match="structure registry"):
        RegistryConnection.from_json(text)
