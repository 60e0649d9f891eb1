"""`contexture check` and `contexture preview` of a publication whose source speaks NGSI-LD."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from contexture.cli import app
from contexture_sandbox.context_broker import TestBroker

FILE = """\
name: city
source:
  {kind: ngsi, connection: my_broker, service: city, api: ngsi-ld, context: "https://example.org/context.jsonld",
   service_path: [/Madrid/#, /Paris], types: [Car, Asset]}
message: {format: ngsi-ld}
topics: {data_model: DATA_MODEL}
"""
CAR = {
    "id": "urn:ngsi-ld:Car:1",
    "type": ["Car", "Asset"],
    "scope": ["/Madrid", "/Paris"],
    "speed": [
        {"type": "Property", "value": 1},
        {"type": "Property", "value": 2, "datasetId": "urn:gps"},
    ],
}
TOPIC = "cityxffffx002fxffffurnx003angsi-ldx003aCarx003a1xffffAssetx002cCar"


@pytest.fixture
def written(tmp_path: Path) -> Callable[..., str]:
    def write(data_model: str = "dm-by-entity") -> str:
        path = tmp_path / "city.yaml"
        path.write_text(FILE.replace("DATA_MODEL", data_model), encoding="utf-8")
        return str(path)

    return write


def asked(*arguments: str) -> dict[str, Any]:
    result = CliRunner().invoke(app, [*arguments, "--json"])
    assert result.exit_code == 0, result.output
    found: dict[str, Any] = json.loads(result.output)
    return found


def test_check_reads_the_broker_as_the_publication_says(written: Callable[..., str]) -> None:
    with TestBroker() as broker:
        broker.speak_linked_data("stellio").load([CAR], tenant="city")
        found = asked("check", written(), "--source", broker.url)
    (checked,) = found["publications"]
    assert [(one["topic"], one["entities"]) for one in checked["preview"]["records"]] == [(TOPIC, [CAR["id"]])]


def test_preview_takes_a_file_in_the_sources_form(written: Callable[..., str], tmp_path: Path) -> None:
    sample = tmp_path / "cars.json"
    sample.write_text(json.dumps([CAR]), encoding="utf-8")
    names = asked("preview", written("dm-by-attribute"), "--sample", str(sample))["names"]
    assert [name["topics"][0].removeprefix(TOPIC) for name in names] == ["xffffscope", "xffffspeed", "xffffspeed"]
    assert not any(name["collides"] for name in names)


def test_an_entity_named_by_hand_has_no_service_path(written: Callable[..., str]) -> None:
    names = asked("preview", written(), "--entity", "urn:ngsi-ld:Car:1=Asset,Car")["names"]
    assert names[0]["topics"] == [TOPIC]
