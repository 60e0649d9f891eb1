"""Connections as Airflow has them in the environment."""

from __future__ import annotations

import json

import pytest

from contexture.errors import ConfigurationError
from contexture.operations import environment

BEARER = {"Authorization": "Bearer a"}


@pytest.mark.parametrize(
    ("text", "address", "headers"),
    [
        ("http://broker:1026", "http://broker:1026", {}),
        ("http://broker:1026/https", "https://broker:1026", {}),
        ("https://broker", "https://broker", {}),
        ("http://https%3A%2F%2Fbroker:1026", "https://broker:1026", {}),
        ("http://https://broker:1026", "https://broker:1026", {}),
        ("http://me:p%40ss@broker:1026", "http://broker:1026", {"Authorization": "Basic bWU6cEBzcw=="}),
        ("http://broker:1026/?token=abc", "http://broker:1026", {"Authorization": "Bearer abc"}),
        (
            "http://broker:1026/?__extra__=%7B%22headers%22%3A%20%7B%22X-Auth-Token%22%3A%20%22abc%22%7D%7D",
            "http://broker:1026",
            {"X-Auth-Token": "abc"},
        ),
        (json.dumps({"conn_type": "http", "host": "broker", "port": 1026}), "http://broker:1026", {}),
        (json.dumps({"conn_type": "https", "host": "broker"}), "https://broker", {}),
        (json.dumps({"host": "https://broker:1026/ngsi/"}), "https://broker:1026/ngsi", {}),
        (json.dumps({"host": "broker", "schema": "https", "extra": {"token": "a"}}), "https://broker", BEARER),
        (json.dumps({"host": "broker", "extra": '{"token": "a"}'}), "http://broker", BEARER),
    ],
)
def test_json_and_uris_are_read(monkeypatch, text, address, headers):
    monkeypatch.setenv("AIRFLOW_CONN_CITY_BROKER", text)
    found = environment.from_environment("city_broker")
    assert found is not None
    assert (found.address, dict(found.headers)) == (address, headers)


@pytest.mark.parametrize("text", ["{hunter2", '{"password": "hunter2"}', "http://me:hunter2@", "http://hunter2:x:1"])
def test_what_can_not_be_read_is_never_shown(monkeypatch, text):
    monkeypatch.setenv("AIRFLOW_CONN_CITY_BROKER", text)
    with pytest.raises(ConfigurationError) as raised:
        environment.from_environment("city_broker")
    assert "AIRFLOW_CONN_CITY_BROKER" in str(raised.value)
    assert "hunter2" not in f"{raised.value}{raised.value.__context__ if not raised.value.__suppress_context__ else ''}"


def test_no_variable_is_no_connection(monkeypatch):
    monkeypatch.delenv("AIRFLOW_CONN_CITY_BROKER", raising=False)
    assert environment.from_environment("city_broker") is None
