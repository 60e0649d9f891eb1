"""`contexture new`: by options, by questions, and when something is wrong."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from contexture.cli import app
from contexture.publications import NgsiPublication, SdmxPublication, load_publication_file
from contexture_sandbox.context_broker import SeedEntity, TestBroker
from contexture_sandbox.registry import TestRegistry, seed_message

pytestmark = pytest.mark.slow

BIKES = [
    {
        "id": f"station{number}",
        "type": "BikeStation",
        "bikes": {"type": "Number", "value": number},
        "status": {"type": "Text", "value": "closed" if number % 4 else "working"},
    }
    for number in range(1, 25)
]
CARS = [{"id": f"car{number}", "type": "Car", "speed": {"type": "Number", "value": "fast"}} for number in range(3)]


@pytest.fixture(scope="module")
def broker() -> Iterator[TestBroker]:
    with TestBroker() as running:
        running.load([SeedEntity("city", "/transport", each) for each in BIKES])
        running.load([SeedEntity("city", "/cars", each) for each in CARS])
        yield running


@pytest.fixture(scope="module")
def registry() -> Iterator[TestRegistry]:
    with TestRegistry() as running:
        running.submit(seed_message(30))
        yield running


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The empty folder of publications; no connection is known."""
    for name in [name for name in os.environ if name.startswith("AIRFLOW_CONN_")]:
        monkeypatch.delenv(name)
    path = tmp_path / "publications"
    path.mkdir()
    monkeypatch.setenv("CONTEXTURE_PUBLICATIONS", str(path))
    return path


@pytest.fixture
def city(broker: TestBroker, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AIRFLOW_CONN_CITY", broker.url)
    kafka = {"conn_type": "kafka", "extra": {"bootstrap.servers": "127.0.0.1:9"}}
    monkeypatch.setenv("AIRFLOW_CONN_CITY_KAFKA", json.dumps(kafka))


@pytest.fixture
def codes(registry: TestRegistry, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AIRFLOW_CONN_CODES", registry.url)


def run(*arguments: str, answers: str = "", code: int = 0) -> Result:
    result = CliRunner().invoke(app, ["new", *arguments], input=answers)
    assert result.exit_code == code, (result.output, result.exception)
    return result


def document(*arguments: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(run(*arguments, "--json").stdout)
    return found


def refused(*arguments: str, answers: str = "") -> str:
    result = CliRunner().invoke(app, ["new", *arguments], input=answers)
    assert result.exception is not None
    return str(result.exception)


@pytest.mark.usefixtures("city")
def test_a_broker_s_publication_is_written_by_options_alone(folder):
    result = run("--service", "City", "--type", "BikeStation", "--yes")

    file = folder / "bike-station.yaml"
    assert f"wrote {file}\nnext: read the file; after each change `contexture check {file}`\n" in result.stdout
    assert "bikes: in 24 of 24 (Number 24); 1 to 24" in result.stdout
    assert "1.1  bike-station\n" in result.stdout
    publication = load_publication_file(file)
    assert isinstance(publication, NgsiPublication)
    assert (publication.source.service, publication.source.types) == ("city", ("BikeStation",))
    assert publication.source.service_path == ("/#",)
    assert publication.topics.topics == ("bike-station",)
    assert publication.publish.connection == "city_kafka"
    assert publication.schedule == "*/5 * * * *"
    assert publication.quality.minimum_entities == 12
    assert publication.quality.required_attributes == ()
    assert publication.quality.ranges["bikes"].model_dump() == {"minimum": 0, "maximum": 50}
    assert publication.quality.allowed_values == {"status": ("closed", "working")}


@pytest.mark.usefixtures("city")
def test_a_document_for_scripts_writes_only_with_yes(folder):
    options = ("--service", "city", "--path", "/transport", "--name", "bikes", "--require", "--schedule", "none")
    found = document(*options)

    assert list(folder.iterdir()) == []
    assert (found["written"], found["right"], found["selected"]) == (False, True, 24)
    assert found["path"] == str(folder / "bikes.yaml")
    assert found["counts"] == {"service_paths": {"/transport": 24, "/cars": 3}, "types": {"BikeStation": 24}}
    assert [each["name"] for each in found["profile"]] == ["bikes", "status"]
    assert [(each["rule"], each["attribute"]) for each in found["candidates"]] == [
        ("required", "bikes"),
        ("range", "bikes"),
        ("required", "status"),
        ("enumeration", "status"),
    ]
    assert '  required_attributes: ["bikes", "status"]  # in all 24 sampled entities' in found["text"]
    assert found["preview"]["topics"] == {"bikes": 24}
    assert found["next"][1] == "then: airflow dags trigger publish_bikes --conf '{\"dry_run\": true}'"

    assert document(*options, "--yes")["written"] is True
    assert (folder / "bikes.yaml").read_text() == found["text"]


@pytest.mark.usefixtures("city")
def test_questions_are_repeated_until_the_answer_is_right(folder):
    answers = ["cit", "city", "9", "2", "Nope", "", "Bad Name", "", "", "", "every day", "@hourly", "y", ""]
    result = run(answers="\n".join(answers) + "\n")

    assert "Error: the service 'cit' has no entities." in result.stdout
    assert "    1         24  /transport\n    2          3  /cars\n" in result.stdout
    assert "Error: the source has no '9'. Next: choose among: /transport, /cars" in result.stdout
    assert "Error: the source has no 'Nope'. Next: choose among: Car" in result.stdout
    assert "Error: 'Bad Name' is not a name of a publication." in result.stdout
    assert "Error: a schedule is five cron fields" in result.stdout
    assert "All 3 sampled entities have: speed" in result.stdout
    assert "to quarantine: car0: number-string" in result.stdout
    publication = load_publication_file(folder / "city.yaml")
    assert isinstance(publication, NgsiPublication)
    assert (publication.source.service_path, publication.schedule) == (("/cars",), "@hourly")
    assert publication.quality.required_attributes == ("speed",)


@pytest.mark.usefixtures("city")
def test_nothing_is_written_without_consent_or_without_answers(folder):
    declined = run("--service", "city", answers="\n" * 6 + "n\nn\n")
    assert declined.stdout.endswith("nothing was written\n")
    stopped = run("--service", "city", answers="\n", code=1)
    assert "stopped: nothing was written (without a terminal, give --yes or --json)" in stopped.output
    assert list(folder.iterdir()) == []


@pytest.mark.usefixtures("city")
def test_a_file_that_is_there_is_replaced_only_with_force(folder):
    options = ("--service", "city", "--name", "bikes", "--yes")
    (folder / "bikes.yaml").write_text("mine")
    assert "there is a publication 'bikes' already" in refused(*options)
    assert (folder / "bikes.yaml").read_text() == "mine"
    run(*options, "--force")
    assert load_publication_file(folder / "bikes.yaml").name == "bikes"
    assert document("--service", "city", "--type", "Car")["name"] == "car"


@pytest.mark.usefixtures("city")
def test_a_proposed_name_is_free_and_the_service_of_other_publications_is_known(folder):
    run("--service", "city", "--yes")
    found = run("--yes")
    assert (folder / "city-2.yaml").is_file()
    assert "the default one: 0 entities, city: 27 entities" in found.stderr


@pytest.mark.usefixtures("city")
def test_topics_by_entity(folder):
    found = document("--service", "city", "--type", "Car", "--topics", "dm-by-entity")
    assert "  naming: cygnus\n  data_model: dm-by-entity\n" in found["text"]
    # Each would go to quarantine: its number is a text.
    assert {each["rule"] for each in found["preview"]["refused"]} == {"number-string"}
    assert found["next"][0].startswith("first: 3 of 3 sampled entities would go to quarantine, more than")


@pytest.mark.usefixtures("city")
def test_a_topic_that_kafka_refuses_is_shown_with_its_place_and_nothing_is_written(folder):
    result = run("--service", "city", "--topics", "my topic", "--yes", code=1)
    assert "'my topic' is not a topic name" in result.stdout
    assert result.stdout.endswith("nothing was written\n")
    assert list(folder.iterdir()) == []


@pytest.mark.usefixtures("city")
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--service", "cit"), "the service 'cit' has no entities. Next: name the Fiware-Service (--service)"),
        ((), "the default service has no entities"),
        (("--service", "my-service"), "service 'my-service': the context broker at"),
        (("--service", "city", "--type", "Boat"), "the source has no 'Boat'. Next: choose among: BikeStation, Car"),
        (("--service", "city", "--path", "/sea"), "the source has no '/sea'. Next: choose among: /transport, /cars"),
        (("--service", "city", "--name", "../x"), "'../x' is not a name of a publication"),
        (("--service", "city", "--schedule", "x"), "Next: write five cron fields, such as */5 * * * *"),
        (("--connection", "nope"), "there is no connection 'nope' in the environment. Next: choose among: city"),
        (("--connection", "city_kafka"), "has the type 'kafka'"),
        (("--output", "/nowhere"), "/nowhere is not a folder"),
    ],
)
def test_what_is_wrong_is_named_before_anything_is_written(folder, arguments, message):
    assert message in refused(*arguments, "--yes")
    assert list(folder.iterdir()) == []


def test_without_a_connection_it_shows_how_to_set_one():
    message = refused()
    assert "the environment has no connection to a context broker or a structure registry" in message
    assert "export AIRFLOW_CONN_CITY_BROKER=" in message


def test_one_of_several_connections_is_to_be_chosen(broker, monkeypatch):
    for name in ("A", "B"):
        monkeypatch.setenv(f"AIRFLOW_CONN_{name}", broker.url)
    monkeypatch.setenv("AIRFLOW_CONN_BROKEN", "{")
    assert "give --connection, one of: a, b" in refused("--yes")
    assert "Connection, one of a, b: " in run(answers="a\n", code=1).stdout


def test_a_source_that_is_away(contexture, monkeypatch):
    monkeypatch.setenv("AIRFLOW_CONN_CITY", "http://127.0.0.1:9")
    done = contexture("new", "--service", "city", "--yes")
    assert (done.code, "no context broker and no structure registry responds at http://127.0.0.1:9" in done.err) == (
        3,
        True,
    )
    done = contexture("new", "--kind", "sdmx", "--yes")
    assert (done.code, done.out) == (3, "")


def test_a_broker_that_speaks_ngsi_ld(folder, monkeypatch):
    entities = [
        {"id": f"urn:ngsi-ld:Lamp:{number}", "type": "Lamp", "level": {"type": "Property", "value": number}}
        for number in range(30)
    ]
    with TestBroker() as running:
        running.speak_linked_data("orion-ld").load(entities, tenant="city")
        monkeypatch.setenv("AIRFLOW_CONN_CITY", running.url)
        run("--service", "city", "--context", "https://example.org/context.jsonld", "--yes")
    publication = load_publication_file(folder / "city.yaml")
    assert isinstance(publication, NgsiPublication)
    assert (publication.source.api, publication.source.context) == ("ngsi-ld", "https://example.org/context.jsonld")
    assert publication.quality.ranges["level"].model_dump() == {"minimum": 0, "maximum": 50}


@pytest.mark.usefixtures("codes")
def test_a_registry_s_publication_by_options(folder):
    result = run("--agency", "CITY", "--class", "Codelist", "--class", "Dataflow", "--name", "codes", "--yes")

    publication = load_publication_file(folder / "codes.yaml")
    assert isinstance(publication, SdmxPublication)
    assert publication.source.select == ("Codelist,Dataflow=CITY:*(*)",)
    assert "8 of 30 structures are selected, for 1 topics" in result.stdout
    assert publication.quality.minimum_entities == 4
    assert "and `contexture resync codes --mode full --reason 'first load'`" in result.stdout


@pytest.mark.usefixtures("codes")
def test_a_registry_s_publication_by_questions(folder):
    result = run(answers="2\n1\n" + "\n" * 6)
    assert "Agencies of FMR" in result.stdout
    (file,) = folder.iterdir()
    assert file.stem == "city-health"
    publication = load_publication_file(file)
    assert isinstance(publication, SdmxPublication)
    assert publication.source.select == ("Codelist=CITY.HEALTH:*(*)",)


@pytest.mark.usefixtures("codes")
def test_everything_of_a_registry(folder):
    found = document("--yes")
    assert (found["written"], found["selected"]) == (True, 30)
    assert list(found["counts"]["classes"]) == ["Codelist", "Dataflow", "ConceptScheme", "DataStructure"]
    assert load_publication_file(folder / "structures.yaml").name == "structures"


@pytest.mark.usefixtures("codes")
def test_an_agency_that_there_is_not():
    assert "the source has no 'ECB'. Next: choose among: CITY" in refused("--agency", "ECB", "--yes")
