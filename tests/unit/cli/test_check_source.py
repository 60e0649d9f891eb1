"""The preview of `contexture check` from a context broker."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest
from typer.testing import CliRunner

from contexture.cli import app
from contexture_sandbox.context_broker import SeedEntity, TestBroker

FILE = """\
name: vehicles
source: {kind: ngsi, connection: my_broker, service: vehicles, service_path: [/4wheels, /2wheels], types: [car]}
"""


@pytest.fixture(scope="module")
def broker() -> Iterator[TestBroker]:
    with TestBroker() as running:
        running.load(
            [
                SeedEntity("vehicles", "/4wheels", {"id": "car1", "type": "car"}),
                SeedEntity("vehicles", "/4wheels", {"id": "bus1", "type": "bus"}),
                SeedEntity("vehicles", "/4wheels", {"id": "car2", "type": "car"}),
                SeedEntity("vehicles", "/2wheels", {"id": "car3", "type": "car"}),
            ]
        )
        yield running


@pytest.fixture
def file(tmp_path) -> str:
    path = tmp_path / "vehicles.yaml"
    path.write_text(FILE, encoding="utf-8")
    return str(path)


def previewed(*arguments: str) -> tuple[str, list[tuple[str, list[str]]]]:
    result = CliRunner().invoke(app, ["check", *arguments, "--json"])
    assert result.exit_code == 0, result.output
    preview = json.loads(result.output)["publications"][0]["preview"]
    return preview["origin"], [(each["topic"], each["entities"]) for each in preview["records"]]


ALL = [
    ("vehiclesxffffx002f4wheelsxffffcar1xffffcar", ["car1"]),
    ("vehiclesxffffx002f4wheelsxffffcar2xffffcar", ["car2"]),
    ("vehiclesxffffx002f2wheelsxffffcar3xffffcar", ["car3"]),
]


def test_an_address_gives_what_the_publication_selects(broker, file):
    assert previewed(file, "--source", broker.url) == (broker.url, ALL)


def test_no_more_entities_are_read_than_asked_for(broker, file):
    assert previewed(file, "--source", broker.url, "--entities", "2")[1] == ALL[:2]


def test_the_publications_own_connection_is_read_from_the_environment(broker, file, monkeypatch):
    monkeypatch.setenv("AIRFLOW_CONN_MY_BROKER", broker.url)
    assert previewed(file) == (broker.url, ALL)


def test_a_service_that_is_not_there_differs_from_a_broken_source(broker, file, tmp_path):
    path = tmp_path / "typo.yaml"
    path.write_text(FILE.replace("service: vehicles", "service: vehicle"), encoding="utf-8")
    result = CliRunner().invoke(app, ["check", str(path), "--source", broker.url])
    assert result.exit_code == 0
    assert "a broker returns nothing for a service that does not exist" in result.output
