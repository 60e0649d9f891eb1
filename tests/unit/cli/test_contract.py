"""`contexture contract`: records are described in public forms, which the public models and schemas accept."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest
import yaml
from open_data_contract_standard.model import OpenDataContractStandard
from typer.testing import CliRunner, Result

from builders.asyncapi import asyncapi_schema
from builders.outboxes import outbox, publication
from contexture.cli import app
from contexture.errors import ConfigurationError
from contexture.operations.actions.contract import check_describable, observe_contract
from contexture.storage.home import Home

CARS = """\
name: vehicles
schedule: "*/5 * * * *"
source: {kind: ngsi, connection: context_broker, service: vehicles}
topics: {naming: fixed, topics: [cars, garages], config: {retention.ms: "86400000"}, partitions: 3,
         replication_factor: 1}
"""
KEY = b'["vehicles","/4wheels","car1","car"]'
SPEED: dict[str, Any] = {"type": "Number", "value": 1.5, "metadata": {}}
CAR = {"id": "car1", "type": "car", "speed": SPEED, "plate": {"type": "Text", "value": "A", "metadata": {}}}
SLOW = {"id": "car2", "type": "car", "speed": {**SPEED, "value": None}}
GARAGE = {"id": "garage1", "type": "garage", "capacity": {"type": "Number", "value": 7, "metadata": {}}}


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Home:
    folder = tmp_path / "publications"
    folder.mkdir()
    (folder / "vehicles.yaml").write_text(CARS)
    monkeypatch.setenv("CONTEXTURE_PUBLICATIONS", str(folder))
    monkeypatch.setenv("CONTEXTURE_HOME", str(tmp_path / "home"))
    return Home(str(tmp_path / "home"))


def conclude(home: Home, sequence: int, *records: tuple[str, bytes, bytes | None]) -> None:
    made = outbox(home, publication(), sequence, [list(records)])
    outboxes = home.publication("vehicles").outboxes
    outboxes.set_status(made.outbox, "approved", reason="good")
    outboxes.set_status(made.outbox, "concluded", reason="sent")


@pytest.fixture
def sent(home: Home) -> Home:
    conclude(home, 1, ("cars", KEY, json.dumps(CAR).encode()), ("garages", KEY, json.dumps(GARAGE).encode()))
    conclude(home, 2, ("cars", KEY, json.dumps(SLOW).encode()), ("cars", KEY, None))
    return home


def run(*arguments: str) -> Result:
    return CliRunner().invoke(app, ["contract", "vehicles", *arguments])


def document(form: str) -> dict[str, Any]:
    return json.loads(run("--form", form, "--json").stdout)


@pytest.mark.usefixtures("sent")
def test_a_json_schema_distinguishes_optional_from_nullable() -> None:
    schema = document("json-schema")

    assert schema["$schema"] == "https://json-schema.org/draft/2020-12/schema"
    car = schema["$defs"]["car"]
    assert car["required"] == ["id", "speed", "type"]
    assert car["properties"]["speed"]["properties"]["value"] == {"type": ["null", "number"]}
    assert car["properties"]["plate"]["properties"]["value"] == {"type": "string"}
    assert schema["$defs"]["key"] == {
        "type": "string",
        "contentMediaType": "application/json",
        "contentSchema": {"type": "array", "items": {"type": "string"}},
    }


@pytest.mark.usefixtures("sent")
def test_a_json_schema_accepts_what_was_sent_and_refuses_another_shape() -> None:
    validator = jsonschema_rs.Draft202012Validator(document("json-schema"))

    assert all(validator.is_valid(each) for each in (CAR, SLOW, GARAGE))
    assert not validator.is_valid({**CAR, "speed": "fast"})
    assert not validator.is_valid({"id": "car3", "type": "car"})


@pytest.mark.usefixtures("sent")
def test_asyncapi_has_a_channel_for_each_topic_and_a_tombstone() -> None:
    api = document("asyncapi")

    assert api["channels"]["cars"] == {
        "address": "cars",
        "messages": {
            "car": {"$ref": "#/components/messages/car"},
            "tombstone": {"$ref": "#/components/messages/tombstone"},
        },
        "bindings": {
            "kafka": {
                "partitions": 3,
                "topicConfiguration": {"cleanup.policy": ["compact"], "retention.ms": 86400000},
                "bindingVersion": "0.5.0",
                "replicas": 1,
            }
        },
    }
    assert set(api["channels"]["garages"]["messages"]) == {"garage", "tombstone"}
    assert api["components"]["messages"]["tombstone"]["payload"] == {"type": "null"}


@pytest.mark.usefixtures("sent")
def test_the_public_schema_of_asyncapi_accepts_the_document() -> None:
    errors = [
        f"{list(error.instance_path)}: {error.message[:200]}"
        for error in jsonschema_rs.Draft7Validator(asyncapi_schema()).iter_errors(document("asyncapi"))
    ]

    assert errors == []


@pytest.mark.usefixtures("sent")
def test_the_public_model_of_odcs_accepts_the_contract() -> None:
    contract = OpenDataContractStandard.from_string(run("--form", "odcs").stdout)

    assert (contract.id, contract.kind, contract.apiVersion) == ("contexture-vehicles", "DataContract", "v3.0.2")
    assert contract.schema_ is not None
    car = contract.schema_[0]
    assert (car.name, car.physicalName) == ("car", "cars")
    assert car.properties is not None
    assert {each.name: each.required for each in car.properties} == {
        "id": True,
        "plate": False,
        "speed": True,
        "type": True,
    }


@pytest.mark.usefixtures("sent")
def test_no_value_of_an_entity_is_printed(sent: Home) -> None:
    conclude(sent, 3, ("cars", KEY, b'{"id":"secret-id","type":"car","speed":{"value":"secret-value"}}'))

    assert "secret" not in "".join(run("--form", form).stdout for form in ("json-schema", "asyncapi", "odcs"))


def test_lines_of_cygnus_and_events_are_described_by_what_is_in_them(home: Home) -> None:
    line = json.dumps({"headers": [{"fiware-service": "vehicles"}], "body": {"id": "car1", "type": "car"}}).encode()
    event = json.dumps({"specversion": "1.0", "data": {"id": "bus1", "type": "bus"}}).encode()
    conclude(home, 1, ("cars", b"car1", line + b"\n" + line), ("cars", b"bus1", event))

    found = observe_contract(home.publication("vehicles"))

    assert {kind: (shape.records, shape.lines) for kind, shape in found.values.items()} == {
        "car": (1, True),
        "bus": (1, False),
    }
    assert found.key_schema() == {"type": "string"}


def test_a_key_that_only_begins_as_json_is_a_text(home: Home) -> None:
    conclude(home, 1, ("cars", KEY, b"{}"), ("cars", b"[A 12", b"{}"))

    assert observe_contract(home.publication("vehicles")).key_schema() == {"type": "string"}


def test_a_structure_message_in_xml_is_a_text_of_its_media_type(home: Home) -> None:
    conclude(home, 1, ("structures", b"urn:sdmx:a", b"<mes:Structure/>"))

    shape = observe_contract(home.publication("vehicles")).values["structure"]

    assert shape.schema() == {"type": "string", "contentMediaType": "application/xml"}


def test_only_as_many_records_as_wanted_are_looked_at_the_latest_first(sent: Home) -> None:
    found = observe_contract(sent.publication("vehicles"), records=1)

    assert (found.records, list(found.topics), found.tombstones) == (1, ["cars"], 0)


def test_a_publication_that_has_sent_nothing_says_what_to_do(home: Home) -> None:
    result = run()

    assert isinstance(result.exception, ConfigurationError)
    assert "Next: run it, and look at its state with `contexture status`" in str(result.exception)


@pytest.mark.usefixtures("sent")
def test_a_file_is_written_in_yaml(tmp_path: Path) -> None:
    file = tmp_path / "asyncapi.yaml"

    assert run("--output", str(file)).stdout == f"asyncapi of vehicles is in {file}\n"
    assert yaml.safe_load(file.read_text())["asyncapi"] == "3.0.0"


def test_values_that_an_encoder_makes_are_not_described(sent: Home) -> None:
    with pytest.raises(ConfigurationError, match="what the encoder avro makes"):
        check_describable(publication(message={"encoder": "avro"}))
    check_describable(publication())
