"""Airflow connections become settings, and their secrets stay hidden."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

pytestmark = pytest.mark.airflow

pytest.importorskip("airflow.sdk")

from contexture.errors import ConfigurationError  # noqa: E402
from contexture.sources.sdmx.registry import RegistryConnection  # noqa: E402
from contexture_airflow.connections.settings import kafka_settings, source_connection  # noqa: E402

SetConnection = Callable[..., None]


@pytest.mark.parametrize(
    ("fields", "address"),
    [
        ({"host": "orion", "port": 1026}, "http://orion:1026"),
        ({"host": "orion", "port": 1026, "schema": "https"}, "https://orion:1026"),
        ({"host": "https://city.example/broker/"}, "https://city.example/broker"),
        ({"host": "http://orion:1026"}, "http://orion:1026"),
        ({"host": "http://orion:1026", "port": 1026}, "http://orion:1026"),
    ],
)
def test_host_port_and_schema_give_the_address(
    set_connection: SetConnection, fields: dict[str, Any], address: str
) -> None:
    set_connection("broker", conn_type="http", **fields)
    assert source_connection("broker").base_url == address


@pytest.mark.parametrize(
    ("fields", "headers"),
    [
        ({}, {}),
        ({"login": "ann", "password": "s3cret"}, {"Authorization": "Basic YW5uOnMzY3JldA=="}),
        ({"extra": {"token": "t0ken"}}, {"Authorization": "Bearer t0ken"}),
        ({"extra": {"headers": {"X-Auth-Token": "t0ken"}}}, {"X-Auth-Token": "t0ken"}),
        ({"login": "ann", "extra": {"headers": {"Authorization": "Own x"}}}, {"Authorization": "Own x"}),
    ],
)
def test_login_token_and_headers_are_sent(
    set_connection: SetConnection, fields: dict[str, Any], headers: dict[str, str]
) -> None:
    set_connection("broker", conn_type="http", host="orion", **fields)
    assert dict(source_connection("broker").headers) == headers


def test_no_secret_shows(set_connection: SetConnection) -> None:
    set_connection("broker", conn_type="http", host="orion", login="ann", password="s3cret", extra={"token": "t0ken"})
    shown = repr(source_connection("broker"))
    assert "t0ken" not in shown
    assert "s3cret" not in shown


def test_timeout_and_verification_can_be_set(set_connection: SetConnection) -> None:
    set_connection("broker", conn_type="http", host="orion", extra={"timeout_seconds": 5, "verify": False})
    found = source_connection("broker")
    assert (found.timeout_seconds, found.verify) == (5.0, False)


def test_a_missing_connection_is_named(set_connection: SetConnection) -> None:
    with pytest.raises(ConfigurationError, match=r"no Airflow connection 'nowhere'.*AIRFLOW_CONN_NOWHERE"):
        source_connection("nowhere")


def test_a_source_without_a_host_is_refused(set_connection: SetConnection) -> None:
    set_connection("broker", conn_type="http")
    with pytest.raises(ConfigurationError, match="has no host"):
        source_connection("broker")


def test_a_registry_takes_the_same_fields(set_connection: SetConnection) -> None:
    set_connection("registry", conn_type="http", host="fmr", port=8080, login="root", password="s3cret")
    found = source_connection("registry", "sdmx")
    assert isinstance(found, RegistryConnection)
    assert found.base_url == "http://fmr:8080"
    assert found.headers["Authorization"].startswith("Basic ")
    assert "s3cret" not in repr(found)


def test_secrets_of_a_registry_are_masked(set_connection: SetConnection, monkeypatch: pytest.MonkeyPatch) -> None:
    masked: list[str] = []
    monkeypatch.setattr("contexture_airflow.connections.settings.mask_secret", masked.append)
    set_connection("registry", conn_type="http", host="fmr", extra={"token": "t0ken"})
    source_connection("registry", "sdmx")
    assert masked == ["Bearer t0ken"]


def test_the_extra_of_a_kafka_connection_is_taken(set_connection: SetConnection) -> None:
    set_connection("kafka", conn_type="kafka", extra={"bootstrap.servers": "b:9092,a:9092"})
    assert kafka_settings("kafka").identity() == "PLAINTEXT://a:9092,b:9092"


def test_host_and_port_of_a_kafka_connection_name_brokers(set_connection: SetConnection) -> None:
    set_connection("kafka", conn_type="kafka", host="b,a:9093", port=9094)
    assert kafka_settings("kafka").identity() == "PLAINTEXT://a:9093,b:9094"


def test_a_kafka_connection_may_list_brokers_and_use_names_of_java(set_connection: SetConnection) -> None:
    extra = {"bootstrap.servers": ["b:1", "a:2"], "max.request.size": 25_000_000}
    set_connection("kafka", conn_type="kafka", extra=extra)
    found = kafka_settings("kafka")
    assert (found.identity(), found.options["message.max.bytes"]) == ("PLAINTEXT://a:2,b:1", 25_000_000)


def test_secrets_of_a_kafka_connection_are_masked_in_logs(
    set_connection: SetConnection, monkeypatch: pytest.MonkeyPatch
) -> None:
    masked: list[str] = []
    monkeypatch.setattr("contexture_airflow.connections.settings.mask_secret", masked.append)
    jaas = 'org.apache.kafka.common.security.plain.PlainLoginModule required username="ann" password="s3cret";'
    extra = {"bootstrap.servers": "a:1", "security.protocol": "SASL_SSL", "sasl.jaas.config": jaas}
    set_connection("kafka", conn_type="kafka", extra=extra)
    kafka_settings("kafka")
    assert sorted(masked) == sorted(["s3cret", jaas])


def test_a_kafka_connection_without_brokers_is_refused(set_connection: SetConnection) -> None:
    set_connection("kafka", conn_type="kafka", extra={"group.id": "x"})
    with pytest.raises(ConfigurationError, match=r"'kafka' cannot be used: .*bootstrap\.servers"):
        kafka_settings("kafka")


def test_a_missing_kafka_connection_is_named() -> None:
    with pytest.raises(ConfigurationError, match="no Airflow connection 'no_kafka'"):
        kafka_settings("no_kafka")
