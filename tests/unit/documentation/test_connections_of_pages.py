"""Connections as the pages write them for a shell: Airflow's form, and what we make of it."""

from __future__ import annotations

import pytest

from builders.pages import block
from builders.terminal import Terminal
from contexture.operations import environment
from contexture.operations.actions.connection_check import settings_of


def taken_over(terminal: Terminal, script: str, variable: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Gives this process the variable that a shell has after the page's script."""
    terminal.set(script)
    monkeypatch.setenv(variable, terminal.variables[variable])


def test_a_broker_that_wants_a_token(terminal, monkeypatch):
    script = block("how-to/connect-to-a-broker.md", "AIRFLOW_CONN_CITY_BROKER")
    taken_over(terminal, script, "AIRFLOW_CONN_CITY_BROKER", monkeypatch)
    broker = environment.from_environment("city_broker")
    assert broker is not None
    assert broker.base_url == "https://broker.example.org:443"
    assert broker.headers == {"Authorization": "Bearer ..."}


def test_a_secured_kafka(terminal, monkeypatch, tmp_path):
    script = block("how-to/connect-to-a-secured-cluster.md", "AIRFLOW_CONN_CITY_KAFKA")
    (tmp_path / "ca.pem").write_text("")
    own = script.replace("/path/ca.pem", str(tmp_path / "ca.pem"))
    taken_over(terminal, own, "AIRFLOW_CONN_CITY_KAFKA", monkeypatch)
    client = settings_of("city_kafka").shown()
    assert client["bootstrap.servers"] == "broker-1:9093,broker-2:9093"
    assert (client["security.protocol"], client["sasl.mechanism"]) == ("SASL_SSL", "SCRAM-SHA-512")
    assert (client["sasl.username"], "..." in client.values()) == ("me", False)
