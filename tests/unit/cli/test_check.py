"""`contexture check`: verdict, configuration and preview, and what its exit code means."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from contexture.cli import app

FILE = """\
name: vehicles
source:
  kind: ngsi
  connection: context_broker
  service: vehicles
  service_path: /4wheels
"""
LINES = """\
topics: {data_model: dm-by-service-path, keep: history}
batches: {batch_size: 2}
message: {format: cygnus-lines, key: topic}
"""


def car(number: int, **attributes: object) -> dict[str, object]:
    return {"id": f"car{number}", "type": "car", **attributes}


def number(value: object) -> dict[str, object]:
    return {"type": "Number", "value": value, "metadata": {}}


@pytest.fixture(autouse=True)
def no_connections(monkeypatch):
    monkeypatch.delenv("AIRFLOW_CONN_CONTEXT_BROKER", raising=False)
    monkeypatch.delenv("CONTEXTURE_PUBLICATIONS", raising=False)


@pytest.fixture
def written(tmp_path: Path):
    def write(name: str, content: object) -> str:
        path = tmp_path / name
        path.write_text(content if isinstance(content, str) else json.dumps(content), encoding="utf-8")
        return str(path)

    return write


def run(*arguments: str, code: int = 0) -> str:
    result = CliRunner().invoke(app, ["check", *arguments])
    assert result.exit_code == code, result.output
    return result.output


def records(output: str) -> list[tuple[int, int, str, str | None, list[str]]]:
    (publication,) = json.loads(output)["publications"]
    return [
        (each["batch"], each["sub_batch"], each["topic"], each["key"], each["entities"])
        for each in publication["preview"]["records"]
    ]


def test_a_right_file_shows_its_configuration_with_defaults_marked(written):
    output = run(written("vehicles.yaml", FILE))
    assert "vehicles.yaml: right" in output
    assert "  service_path: [/4wheels]\n" in output
    assert "  data_model: dm-by-entity  # default\n" in output
    assert "set AIRFLOW_CONN_CONTEXT_BROKER, or give --source http://host:1026 or --sample entities.json" in output


def test_keys_of_registries_are_not_shown_for_a_broker(written):
    output = run(written("vehicles.yaml", FILE))
    assert "  types: []  # default\n" in output
    for key in ("select:", "registrations:", "routes:", "allow_lossy:"):
        assert key not in output


def test_a_wrong_file_shows_every_problem_and_exits_with_1(written):
    output = run(written("vehicles.yaml", FILE + "topic: {}\nmessage: {key: none}\n"), code=1)
    assert ":7:1: error: unknown key `topic`" in output
    assert ":8:16: error: `key: none` with `detect_deletions: true`" in output
    assert "0 of 1 right" in output


def test_a_bad_file_beside_a_good_one_hides_nothing(written, tmp_path):
    written("good.yaml", FILE)
    written("bad.yaml", "name: [")
    output = run(str(tmp_path), code=1)
    assert "good.yaml: right" in output
    assert "1 of 2 right" in output


def test_the_preview_shows_topics_and_keys_of_a_file_of_entities(written):
    sample = written("entities.json", [car(1, speed=number(5)), car(2, speed=number(6))])
    output = run(written("vehicles.yaml", FILE), "--sample", sample, "--json")
    assert records(output) == [
        (1, 1, "vehiclesxffffx002f4wheelsxffffcar1xffffcar", '["vehicles","/4wheels","car1","car"]', ["car1"]),
        (2, 1, "vehiclesxffffx002f4wheelsxffffcar2xffffcar", '["vehicles","/4wheels","car2","car"]', ["car2"]),
    ]


def test_the_preview_counts_the_envelope_that_is_in_the_value(written):
    sample = written("entities.json", car(1, speed=number(5)))
    sizes = {}
    for envelope in ("none", "cloudevents-binary", "cloudevents-structured"):
        path = written(f"{envelope}.yaml", FILE + f"message: {{envelope: {envelope}}}\n")
        (publication,) = json.loads(run(path, "--sample", sample, "--json"))["publications"]
        (record,) = publication["preview"]["records"]
        sizes[envelope] = record["value_bytes"]

    assert sizes["none"] == sizes["cloudevents-binary"]
    around = (
        '{"specversion":"1.0","datacontenttype":"application/json","id":"0123456789abcdef0123456789abcdef",'
        '"source":"/ngsi/context_broker/vehicles/4wheels","type":"contexture.ngsi.entity.upsert","subject":"car1",'
        '"entitytype":"car","data":}'
    )
    assert sizes["cloudevents-structured"] - sizes["none"] == len(around)


def test_the_preview_joins_the_lines_of_a_sub_batch(written):
    entities = [
        {**car(1, speed=number(5)), "servicePath": {"type": "Text", "value": "/4wheels"}},
        {**car(2, speed=number(5)), "servicePath": {"type": "Text", "value": "/2wheels"}},
        {**car(3, speed=number(5)), "servicePath": {"type": "Text", "value": "/4wheels"}},
        {**car(4, speed=number(5)), "servicePath": {"type": "Text", "value": "/4wheels"}},
        {**car(5, speed=number(5)), "servicePath": {"type": "Text", "value": "/2wheels"}},
    ]
    path = written("vehicles.yaml", FILE.replace("/4wheels", "/#") + LINES.replace("batch_size: 2", "batch_size: 4"))
    output = run(path, "--sample", written("entities.json", entities), "--json")
    four, two = "vehiclesxffffx002f4wheels", "vehiclesxffffx002f2wheels"
    assert records(output) == [
        (1, 1, four, four, ["car1", "car3", "car4"]),
        (1, 2, two, two, ["car2"]),
        (2, 1, two, two, ["car5"]),
    ]


def test_one_record_for_each_attribute_and_each_fixed_topic(written):
    sample = written("entities.json", car(1, speed=number(5), oil=number(6)))
    by_attribute = run(
        written("a.yaml", FILE + "topics: {data_model: dm-by-attribute}\n"), "--sample", sample, "--json"
    )
    assert [(batch, topic) for batch, _, topic, _, _ in records(by_attribute)] == [
        (1, "vehiclesxffffx002f4wheelsxffffcar1xffffcarxffffspeed"),
        (2, "vehiclesxffffx002f4wheelsxffffcar1xffffcarxffffoil"),
    ]
    fixed = run(written("b.yaml", FILE + "topics: {naming: fixed, topics: [FOO, BAR]}\n"), "--sample", sample, "--json")
    assert [(batch, sub_batch, topic) for batch, sub_batch, topic, _, _ in records(fixed)] == [
        (1, 1, "FOO"),
        (1, 2, "BAR"),
    ]


def test_the_preview_shows_what_would_go_to_quarantine_and_what_is_only_warned_of(written):
    entities = [car(1, speed=number("12")), car(2, geo={"type": "geo:point", "value": "1, 2"}), car(3), "no entity"]
    entities.append(car(4) | {"id": "x" * 250})
    sample = written("entities.json", entities)
    output = run(written("vehicles.yaml", FILE), "--sample", sample, "--json")
    preview = json.loads(output)["publications"][0]["preview"]
    assert [(each["id"][:4], each["rule"]) for each in preview["refused"]] == [
        ("car1", "number-string"),
        ("", "body"),
        ("xxxx", "topic-length"),
    ]
    assert preview["warnings"] == {"geo-legacy": 1}
    assert [record["entities"] for record in preview["records"]] == [["car2"], ["car3"]]
    text = run(written("vehicles.yaml", FILE), "--sample", sample)
    assert "to quarantine: car1: number-string: 'speed' should be a JSON number, but is '12'" in text
    assert "warning geo-legacy: 1 entities; published anyway" in text


def test_entities_may_stand_on_lines_of_their_own(written):
    sample = written("entities.json", "\n".join(json.dumps(car(each)) for each in (1, 2)))
    output = run(written("vehicles.yaml", FILE), "--sample", sample, "--json")
    assert [entities for *_, entities in records(output)] == [["car1"], ["car2"]]


@pytest.mark.parametrize("content", ["{", "[1", "{} {", "", " [ ] "])
def test_a_sample_that_holds_no_entities_is_a_wrong_command_line(written, content, capsys):
    result = CliRunner().invoke(app, ["check", written("v.yaml", FILE), "--sample", written("e.json", content)])
    assert result.exit_code != 0
    assert "holds no entities" in str(result.exception)


def test_notes_are_shown_and_change_no_exit_code(written):
    output = run(written("vehicles.yaml", FILE + "publish: {broker_list: 'localhost:9092'}\n"))
    assert "note: `broker_list` of Cygnus has no effect" in output


def test_the_folder_of_the_environment_is_the_default(written, monkeypatch, tmp_path):
    written("vehicles.yaml", FILE)
    monkeypatch.setenv("CONTEXTURE_PUBLICATIONS", str(tmp_path))
    assert "vehicles.yaml: right" in run()


def test_json_is_one_document_with_problems_at_their_places(written):
    document = json.loads(run(written("vehicles.yaml", FILE + "topic: {}\n"), "--json", code=1))
    assert document["valid"] is False
    (publication,) = document["publications"]
    assert publication["configuration"] is None
    (problem,) = publication["problems"]
    assert (problem["line"], problem["column"], problem["location"]) == (7, 1, "topic")


def test_sample_and_source_exclude_each_other(written):
    run(written("v.yaml", FILE), "--sample", written("e.json", []), "--source", "http://127.0.0.1:1", code=2)


@pytest.mark.slow
def test_a_source_that_is_not_there_exits_with_3_after_the_verdict(written):
    output = run(written("vehicles.yaml", FILE), "--source", "http://127.0.0.1:9", code=3)
    assert "vehicles.yaml: right" in output
    assert "no preview: the context broker at http://127.0.0.1:9 cannot be reached" in output
