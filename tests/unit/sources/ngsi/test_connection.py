"""Connections: what they take, and what they never show."""

from __future__ import annotations

import pickle

import pytest

from contexture.errors import ConfigurationError
from contexture.sources.http.connection import BrokerConnection

SECRET = "s3cr3t-77"


def connection() -> BrokerConnection:
    return BrokerConnection(f"https://user:{SECRET}@broker.example:1026/orion/", {"X-Auth-Token": SECRET}, 5.0, False)


def test_it_survives_json_and_pickle() -> None:
    assert BrokerConnection.from_json(connection().to_json()) == connection()
    assert pickle.loads(pickle.dumps(connection())) == connection()


def test_neither_repr_nor_address_show_a_secret() -> None:
    assert SECRET not in repr(connection())
    assert connection().address == "https://broker.example:1026/orion"


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "{}",
        '{"base_url": 5}',
        f'{{"base_url": "http://b", "headers": {{"a": ["{SECRET}"]}}}}',
        f'{{"base_url": "http://b", "token": "{SECRET}"}}',
        f'{{"base_url": "http://b", "headers": {{"a": "{SECRET}\\n"}}}}',
        f'{{"base_url": "ftp://user:{SECRET}@b"}}',
        f'{{"base_url": "http://user:{SECRET}@b:port"}}',
        f'{{"base_url": "http://b", "headers": {{"a": "{SECRET}',
        '{"base_url": "http://b", "timeout_seconds": 0}',
    ],
)
def test_what_is_no_connection_is_a_configuration_error_without_secrets(text: str) -> None:
    with pytest.raises(ConfigurationError) as raised:
        BrokerConnection.from_json(text)
    assert SECRET not in str(raised.value)
    assert raised.value.__cause__ is None


def test_a_bundle_that_is_not_there_is_a_configuration_error() -> None:
    with pytest.raises(ConfigurationError, match=r"no/such\.pem"):
        BrokerConnection("https://b", verify="no/such.pem").ssl_context()


@pytest.mark.parametrize(
    ("url", "loopback"),
    [("http://127.0.0.1:1026", True), ("http://[::1]:1", True), ("http://localhost", True), ("http://10.0.0.1", False)],
)
def test_a_broker_on_this_machine_is_asked_without_a_proxy(url: str, loopback: bool) -> None:
    assert BrokerConnection(url).is_loopback is loopback
