"""`contexture preview`: the topics of entities, name by name."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from contexture.cli import app

FILE = "name: a\nsource: {kind: ngsi, connection: b, service: vehicles, service_path: /4wheels}\n"
RULES = (
    '{"grouping_rules": [{"id": 1, "fields": ["entityType"], "regex": "car", "destination": "cars", '
    '"fiware_service_path": "/all"}]}'
)


@pytest.fixture
def publication(tmp_path: Path):
    def write(more: str = "") -> str:
        (tmp_path / "rules.json").write_text(RULES)
        path = tmp_path / "a.yaml"
        path.write_text(FILE + more)
        return str(path)

    return write


def run(*arguments: str, code: int = 0) -> str:
    result = CliRunner().invoke(app, ["preview", *arguments])
    assert result.exit_code == code, result.output
    return result.output


def test_an_entity_is_shown_with_its_topic(publication):
    assert run(publication(), "--entity", "car1=car") == (
        '["vehicles", "/4wheels", "car1", "car"]\n  vehiclesxffffx002f4wheelsxffffcar1xffffcar (42 characters)\n'
    )


def test_what_rules_make_of_a_name_is_shown(publication):
    path = publication("topics: {enable_grouping: true, grouping_rules: rules.json}\n")
    assert run(path, "--entity", "car1=car", "--path", "/x") == (
        '["vehicles", "/x", "car1", "car"]\n'
        '  named as ["vehicles", "/all", "cars", ""]\n'
        "  vehiclesxffffx002fallxffffcars (30 characters)\n"
    )


def test_attributes_have_their_own_topics_and_scripts_get_json(publication):
    path = publication("topics: {data_model: dm-by-attribute, naming: injective}\n")
    output = run(path, "--entity", "car1", "--attribute", "speed", "--json")
    assert json.loads(output)["names"] == [
        {
            "asked": {
                "identity": {"service": "vehicles", "service_path": "/4wheels", "id": "car1", "type": ""},
                "attribute": "speed",
                "attribute_type": "",
            },
            "identity": {"service": "vehicles", "service_path": "/4wheels", "id": "car1", "type": ""},
            "attribute": "speed",
            "topics": ["vehicles___s4wheels__car1____speed"],
            "error": "",
            "collides": False,
        }
    ]


def test_entities_of_a_file_are_named(publication, tmp_path):
    sample = tmp_path / "sample.json"
    sample.write_text('[{"id": "car2", "type": "car", "speed": {"type": "Number", "value": 1, "metadata": {}}}]')
    assert "xffffcar2xffffcar (42 characters)" in run(publication(), "--sample", str(sample))


def test_a_name_that_kafka_refuses_ends_with_1(publication):
    output = run(publication(), "--entity", "é" * 50, code=1)
    assert "to quarantine: the topic name" in output
    assert "has 280 characters; Kafka accepts 249" in output


def test_entities_that_share_a_topic_are_shown(publication):
    path = publication("topics: {enable_lowercase: true}\n")
    output = run(path, "--entity", "Car1=car", "--entity", "car1=car", "--entity", "car2=car", "--json")
    assert [each["collides"] for each in json.loads(output)["names"]] == [True, True, False]


def test_a_wrong_file_or_command_line_is_reported(publication):
    run(publication(), code=2)
    run(publication("topics: {data_model: dm-by-attribute}\n"), "--entity", "car1", code=2)
    run(publication("topics: {naming: wrong}\n"), "--entity", "car1", code=1)


def test_a_file_with_a_byte_order_mark_is_read(publication, tmp_path):
    sample = tmp_path / "sample.json"
    sample.write_bytes(b'\xef\xbb\xbf{"id": "car2", "type": "car"}\n')
    assert "xffffcar2xffffcar (42 characters)" in run(publication(), "--sample", str(sample))


def test_half_of_a_character_is_encoded_and_shown_as_an_escape(publication):
    output = run(publication(), "--entity", "a\ud83d=car")
    assert output == (
        '["vehicles", "/4wheels", "a\\ud83d", "car"]\n  vehiclesxffffx002f4wheelsxffffaxd83dxffffcar (44 characters)\n'
    )
    assert json.loads(run(publication(), "--entity", "a\ud83d=car", "--json"))["names"][0]["asked"]["identity"][
        "id"
    ] == ("a\ud83d")


@pytest.mark.parametrize(
    ("more", "topic"),
    [
        ("topics: {data_model: dm-by-service}", "vehicles"),
        ("topics: {data_model: dm-by-service-path}", "vehiclesxffffx002f4wheels"),
        ("topics: {data_model: dm-by-entity}", "vehiclesxffffx002f4wheelsxffffCar=1xffffcar".replace("=", "xffff")),
        ('topics: {cygnus_version: "1.2"}', "vehicles_4wheels_car_1_car"),
        ('topics: {cygnus_version: "1.9"}', "vehiclesxffffx002f4wheelsxffffcarxffff1xffffcar"),
        ('topics: {cygnus_version: "1.10"}', "vehiclesxffffx002f4wheelsxffffCarxffff1xffffcar"),
        ("topics: {naming: cygnus-legacy}", "vehicles_4wheels_car_1_car"),
        ("topics: {naming: injective}", "vehicles___s4wheels__Car_3d1__car"),
        ("topics: {naming: fixed, topics: [FOO]}", "FOO"),
    ],
)
def test_each_naming_shows_its_names(publication, more: str, topic: str):
    assert f"  {topic} ({len(topic)} characters)" in run(publication(f"{more}\n"), "--entity", "Car=1=car")


@pytest.mark.parametrize("version", ["1.3", "1.4.0"])
def test_releases_whose_names_brokers_refused_say_what_to_do(publication, version: str):
    output = run(publication(f'topics: {{cygnus_version: "{version}"}}\n'), "--entity", "car1=car", code=1)
    assert "holds '/'; Kafka accepts letters, digits, '.', '_' and '-'" in output


@pytest.mark.parametrize(("length", "code"), [(249, 0), (250, 1)])
def test_a_name_of_249_characters_is_the_last(publication, length: int, code: int):
    head = len("vehiclesxffffx002f4wheelsxffff")
    output = run(publication(), "--entity", "i" * (length - head), code=code)
    assert (f"({length} characters)" if code == 0 else f"has {length} characters") in output


def test_grouping_rules_that_are_left_out_are_shown(publication, tmp_path):
    path = publication("topics: {enable_grouping: true, grouping_rules: rules.json, compat: cygnus-2.19}\n")
    (tmp_path / "rules.json").write_text('{"grouping_rules": [{"id": 1}]}')

    assert "note: grouping rule 1 is left out" in run(path, "--entity", "car1=car")


def test_an_entity_that_can_not_be_read_hides_no_other(publication, tmp_path):
    sample = tmp_path / "sample.json"
    sample.write_bytes(b'[{"id": "car\\ud800", "type": "car"}, 5, {"id": "car2", "type": "car"}]')

    output = run(publication(), "--sample", str(sample), code=1)

    assert output.count("to quarantine: the body is") == 2
    assert "Next: correct the entity in its source" in output
    assert "xffffcar2xffffcar (42 characters)" in output
    document = json.loads(run(publication(), "--sample", str(sample), "--json", code=1))
    assert (len(document["names"]), len(document["unreadable"])) == (1, 2)


def test_the_default_tenant_gets_its_name_by_a_mapping(publication, tmp_path):
    (tmp_path / "names.json").write_text('{"serviceMappings": [{"newService": "default"}]}')
    path = tmp_path / "b.yaml"
    for model, topic in (("dm-by-service", "default"), ("dm-by-entity", "defaultxffffx002fxffffcar1xffffcar")):
        path.write_text(
            'name: b\nsource: {kind: ngsi, connection: b, service: "", service_path: /}\n'
            f"topics: {{data_model: {model}, enable_name_mappings: true, name_mappings: names.json, keep: history}}\n"
        )
        assert f"  {topic} ({len(topic)} characters)" in run(str(path), "--entity", "car1=car")


@pytest.mark.parametrize(
    ("path", "said"),
    [("4wheels", "starts with /"), ("", "starts with /"), ("/a/#", "selects many paths"), ("/*", "the wildcard is #")],
)
def test_a_path_that_no_entity_is_in_is_refused(publication, path: str, said: str):
    output = run(publication(), "--entity", "car1=car", "--path", path, code=2)
    assert said in " ".join(output.replace("│", " ").split())
