"""What the pages say to type where something else was before: Cygnus, models of others."""

from __future__ import annotations

import json
from pathlib import Path

from builders.pages import block
from contexture_sandbox.context_broker import SeedEntity, TestBroker

CYGNUS, MODELS = "how-to/move-from-cygnus.md", "how-to/validate-with-models.md"
FUSION, ADD = "how-to/move-from-fusion-registry.md", "how-to/add-a-publication.md"
AGENT = """\
a.sinks = kafka
a.sinks.kafka.type = com.telefonica.iot.cygnus.sinks.NGSIKafkaSink
a.sinks.kafka.enable_grouping = true
a.sinks.kafka.enable_name_mappings = true
"""
RULES = (
    '# rules\n{"grouping_rules": [{"id": 1, "fields": ["entityType"], "regex": "car", "destination": "cars", '
    '"fiware_service_path": "/all"}]}'
)
SCHEMA = {"$id": "https://models.example/Weather/schema.json", "properties": {"type": {"enum": ["WeatherObserved"]}}}
VEHICLES = "name: vehicles\nsource: {kind: ngsi, connection: context_broker, service: vehicles}\n"


def test_an_agent_of_cygnus_becomes_publications_that_pass_the_check(terminal):
    (terminal.folder / "agent_1.conf").write_text(AGENT)
    (terminal.folder / "grouping_rules.conf").write_text(RULES)
    (terminal.folder / "name_mappings.conf").write_text('{"serviceMappings": []}')
    terminal.run(block(CYGNUS, "contexture import cygnus"))
    assert "kafka.yaml: right" in terminal.run("contexture check publications").stdout


def test_a_registry_s_producer_becomes_a_publication_that_passes_the_check(terminal):
    (terminal.folder / "kafka.properties").write_text("bootstrap.servers=k1:9092\ntopic=FOO\nformat=Fusion-JSON\n")
    printed = terminal.run(block(FUSION, "contexture import fmr")).stdout
    assert "airflow connections add registry --conn-type http --conn-host https://registry.example.org" in printed
    assert "structures.yaml: right" in terminal.run("contexture check publications").stdout
    assert "topics: [structures-new]" in (terminal.folder / "publications/structures.yaml").read_text().replace('"', "")


def test_a_publication_is_proposed_from_a_broker(terminal):
    bike = {"id": "station1", "type": "BikeHireDockingStation", "availableBikeNumber": {"type": "Number", "value": 11}}
    with TestBroker() as broker:
        broker.load([SeedEntity("city", "/transport", bike)])
        terminal.set(f"export AIRFLOW_CONN_CITY_BROKER={broker.url}")
        printed = terminal.run(block(ADD, "contexture new")).stdout
        assert f"wrote {terminal.folder / 'publications/bikes.yaml'}" in printed
        assert "bikes.yaml: right" in terminal.run("contexture check publications").stdout


def test_a_model_is_copied_with_its_attribution(terminal):
    file = terminal.folder / "smart-data-models" / "dataModel.Weather" / "WeatherObserved" / "schema.json"
    file.parent.mkdir(parents=True)
    file.write_text(json.dumps(SCHEMA))
    terminal.run(block(MODELS, "contexture models vendor"))
    copied = terminal.folder / "include/publications/models"
    assert {"NOTICE.md", "vendored.json"} <= {path.name for path in copied.iterdir()}
    # Where the page's example looks for it.
    named = block(MODELS, "models: {WeatherObserved").partition("WeatherObserved: ")[2].partition("}")[0]
    assert (copied.parent / named).is_file()


def test_pools_are_written_for_airflow(terminal):
    terminal.run("contexture pools > pools.json")
    pools = json.loads(Path(terminal.folder, "pools.json").read_text())
    assert sorted(pools) == ["contexture_broker", "contexture_source", "contexture_spark"]
