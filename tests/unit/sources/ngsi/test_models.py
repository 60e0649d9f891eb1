"""Entities against the JSON Schemas of their types: offline, with references, and errors without their data."""

from __future__ import annotations

import json
import socket
from pathlib import Path

import orjson
import pytest

from contexture.errors import ConfigurationError
from contexture.events import parse_json
from contexture.operations.actions.vendor_models import vendor
from contexture.publications.loading import discover, load_publication_file
from contexture.sources.ngsi.entity import parse_entity
from contexture.sources.ngsi.json_schema import ModelSchemas, key_values
from contexture.sources.ngsi.rules.catalogue import EntityRuleOptions, severities
from contexture.sources.ngsi.rules.checks import check_entity

COMMON = {
    "$id": "https://models.example/common.json",
    "definitions": {
        "Commons": {"properties": {"id": {"type": "string", "maxLength": 8}, "name": {"type": "string"}}},
    },
}
CAR = {
    "$schema": "http://json-schema.org/schema#",
    "$id": "https://models.example/dataModel.Fleet/Car/schema.json",
    "allOf": [
        {"$ref": "https://models.example/common.json#/definitions/Commons"},
        {
            "properties": {
                "type": {"enum": ["Car"]},
                "speed": {"type": "number", "minimum": 0},
                "colour": {"type": "string", "enum": ["red", "blue"]},
            }
        },
    ],
    "required": ["id", "type", "speed"],
}


@pytest.fixture
def cloned(tmp_path: Path) -> Path:
    """Local copies of repositories, as Smart Data Models arranges them."""
    for name, schema in (("dataModel.Fleet/Car/schema.json", CAR), ("data-models/common.json", COMMON)):
        file = tmp_path / "cloned" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(json.dumps(schema))
    return tmp_path / "cloned"


@pytest.fixture
def publication_file(cloned: Path, tmp_path: Path) -> Path:
    project = tmp_path / "project"
    vendor(["Car"], cloned, project / "models")
    file = project / "cars.yaml"
    file.write_text(
        "name: cars\nsource: {kind: ngsi, connection: broker, service: s}\n"
        "quality: {models: {Car: models/dataModel.Fleet/Car/schema.json}, rules: {unknown-attr: warning}}\n"
    )
    return file


def found(publication_file: Path, entity: dict[str, object]) -> list[tuple[str, str, str]]:
    options = EntityRuleOptions.for_publication(load_publication_file(publication_file))
    parsed = parse_entity(orjson.dumps(entity), service="s")
    return [(each.rule, each.severity, each.message) for each in check_entity(parsed, options)]


def test_key_values_keep_values_alone_and_turn_literals_into_numbers() -> None:
    entity = parse_json(
        b'{"id":"i","type":"T","a":{"type":"Number","value":1.0,"metadata":{"m":{"value":1}}},'
        b'"b":{"value":{"c":[12345678901234567890123]}},"d":{"value":1E5}}'
    )
    assert isinstance(entity, dict)
    assert key_values(entity) == {
        "id": "i",
        "type": "T",
        "a": 1.0,
        "b": {"c": [12345678901234567890123]},
        "d": 100000.0,
    }


def test_vendoring_takes_along_what_is_referred_to_with_an_index_and_a_notice(cloned: Path, tmp_path: Path) -> None:
    target = tmp_path / "models"
    done = vendor(["dataModel.Fleet"], cloned, target)
    assert (done.models, done.files) == ({"Car": "dataModel.Fleet/Car/schema.json"}, 2)
    assert json.loads((target / "data-models/common.json").read_text()) == COMMON
    index = json.loads((target / "vendored.json").read_text())["schemas"]
    assert [entry["path"] for entry in index] == ["data-models/common.json", "dataModel.Fleet/Car/schema.json"]
    notice = (target / "NOTICE.md").read_text()
    assert "Creative Commons Attribution 4.0" in notice
    assert "`dataModel.Fleet/Car/schema.json` from https://models.example/dataModel.Fleet/Car/schema.json" in notice


def test_vendoring_the_same_again_changes_nothing(cloned: Path, tmp_path: Path) -> None:
    target = tmp_path / "models"
    vendor(["Car"], cloned, target)
    before = {file: file.read_bytes() for file in target.rglob("*") if file.is_file()}
    vendor(["Fleet/Car"], cloned, target)
    assert {file: file.read_bytes() for file in target.rglob("*") if file.is_file()} == before


@pytest.mark.parametrize("name", ["Bus", "dataModel.Weather", "../project"])
def test_a_model_that_is_not_there_is_named(cloned: Path, tmp_path: Path, name: str) -> None:
    with pytest.raises(ConfigurationError, match=f"has no model or subject {name}"):
        vendor([name], cloned, tmp_path / "models")


def test_a_reference_that_is_not_there_is_named(cloned: Path, tmp_path: Path) -> None:
    (cloned / "data-models/common.json").unlink()
    with pytest.raises(
        ConfigurationError, match=r"schema\.json refers to https://models\.example/common\.json"
    ) as error:
        vendor(["Car"], cloned, tmp_path / "models")
    assert error.value.next_step == f"put a copy of the repository that holds it below {cloned}"


def test_schemas_of_draft_4_are_known_by_their_id(cloned: Path, publication_file: Path) -> None:
    for file in cloned.rglob("*.json"):
        file.write_text(file.read_text().replace('"$id"', '"id"'))
    models = publication_file.parent / "models"
    (models / "vendored.json").unlink()
    assert vendor(["Car"], cloned, models).files == 2
    broken = found(
        publication_file,
        {
            "id": "car-number-1",
            "type": "Car",
            "speed": {"type": "Number", "value": 1, "metadata": {}},
            "name": {"type": "Text", "value": "A", "metadata": {}},
        },
    )
    assert broken == [("model", "warning", "'id' breaks maxLength: 8")]


def test_an_entity_that_fits_its_model_breaks_no_rule(publication_file: Path) -> None:
    entity = {"id": "car1", "type": "Car", "speed": {"type": "Number", "value": 1}, "name": {"value": "x"}}
    assert found(publication_file, entity) == []


def test_what_does_not_fit_is_a_warning_that_names_place_and_keyword(publication_file: Path) -> None:
    entity = {"id": "car123456", "type": "Car", "colour": {"type": "Text", "value": "secret"}, "wheels": {"value": 4}}
    assert sorted(found(publication_file, entity)) == [
        ("model", "warning", '\'colour\' breaks enum: ["red", "blue"]'),
        ("model", "warning", "'id' breaks maxLength: 8"),
        ("model", "warning", "'the entity' 'speed' is a required property"),
        ("unknown-attr", "warning", "the model of 'Car' has no attribute 'wheels'"),
    ]


def test_other_types_are_not_held_to_it(publication_file: Path) -> None:
    assert found(publication_file, {"id": "b", "type": "Bus", "wheels": {"value": 4}}) == []


def test_the_contents_travel_in_the_publication(publication_file: Path) -> None:
    publication = load_publication_file(publication_file)
    copied = type(publication).model_validate_json(publication.model_dump_json())
    for file in publication_file.parent.rglob("*.json"):
        file.unlink()
    options = EntityRuleOptions.for_publication(copied)
    parsed = parse_entity(b'{"id":"i","type":"Car"}', service="s")
    assert [each.rule for each in check_entity(parsed, options)] == ["model"]


def test_contents_are_not_written_by_hand(publication_file: Path) -> None:
    publication_file.write_text(publication_file.read_text().replace("rules:", "model_documents: {a: b}, rules:"))
    error = discover(publication_file)[0].error
    assert error is not None
    assert "unknown key `model_documents`" in str(error)


def test_a_schema_that_is_not_there_is_an_error_of_the_file(publication_file: Path) -> None:
    (publication_file.parent / "models/dataModel.Fleet/Car/schema.json").unlink()
    error = discover(publication_file)[0].error
    assert error is not None
    assert [problem.location for problem in error.problems] == ["quality.models"]


def test_nothing_is_ever_fetched(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*ignored: object, **also_ignored: object) -> None:
        raise AssertionError("a connection was tried")

    monkeypatch.setattr(socket, "create_connection", refuse)
    monkeypatch.setattr(socket.socket, "connect", refuse)
    with pytest.raises(ConfigurationError, match=r"refers to https://models\.example/common\.json"):
        ModelSchemas({"Car": "car.json"}, {"car.json": json.dumps(CAR)})


def test_rules_that_are_off_cost_and_find_nothing(publication_file: Path) -> None:
    publication = load_publication_file(publication_file)
    options = EntityRuleOptions(
        severities=severities({"model": "off"}),
        models=dict(publication.quality.models),
        model_documents=dict(publication.quality.model_documents),
    )
    assert check_entity(parse_entity(b'{"id":"i","type":"Car","wheels":{"value":1}}', service="s"), options) == []
