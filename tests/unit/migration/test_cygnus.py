"""From a Cygnus agent to publications, with every parameter explained."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from contexture.errors import ConfigurationError
from contexture.migration import DIFFERENCES, Draft, Migration, migrate
from contexture.migration.cygnus import Files
from contexture.publications import Publication

HEAD = """\
a.sources = http
a.sinks = kafka
a.channels = c
a.sources.http.channels = c
a.sources.http.type = org.apache.flume.source.http.HTTPSource
a.sources.http.handler.default_service = vehicles
a.sinks.kafka.type = com.telefonica.iot.cygnus.sinks.NGSIKafkaSink
a.sinks.kafka.channel = c
a.channels.c.type = memory
"""


def migrated(*parameters: str, **options: Any) -> Migration:
    return migrate(HEAD + "".join(f"a.sinks.kafka.{each}\n" for each in parameters), **options)


def content(draft: Draft) -> Any:
    return yaml.safe_load(draft.text)


def outcome(migration: Migration, key: str) -> tuple[str, str]:
    (found,) = [each for each in migration.explained if each.key == key]
    return found.outcome, found.why


def test_a_sink_at_its_defaults_is_a_publication_at_cygnus_defaults():
    (draft,) = migrated().drafts

    assert content(draft) == {
        "name": "kafka",
        "description": "What the Cygnus sink a.sinks.kafka published",
        "schedule": "*/5 * * * *",
        "source": {
            "kind": "ngsi",
            "connection": "context_broker",
            "service": "vehicles",
            "service_path": "/#",
            "mode": "changes",
            "detect_deletions": False,
        },
        "topics": {
            "naming": "cygnus",
            "data_model": "dm-by-entity",
            "partitions": 1,
            "replication_factor": 1,
            "keep": "history",
        },
        "batches": {"batch_size": 1, "batch_timeout": 30, "batch_ttl": 10, "batch_retry_intervals": [5000]},
        "message": {"format": "cygnus-lines", "key": "identity"},
        "publish": {"connection": "kafka_default"},
    }


def test_every_parameter_is_kept_under_its_name():
    (draft,) = migrated(
        "data_model = DMByAttribute",
        "enable_lowercase = true",
        "partitions = 3",
        "replication_factor = 2",
        "batch_size = 7",
        "batch_timeout = 8",
        "batch_ttl = -1",
        "batch_retry_intervals = 1000, 2000",
    ).drafts

    publication = content(draft)
    topics = {"naming": "cygnus", "data_model": "dm-by-attribute", "enable_lowercase": True, "keep": "history"}
    assert publication["topics"] == {**topics, "partitions": 3, "replication_factor": 2}
    assert publication["batches"] == {
        "batch_size": 7,
        "batch_timeout": 8,
        "batch_ttl": -1,
        "batch_retry_intervals": [1000, 2000],
    }
    assert publication["message"]["key"] == "none"


@pytest.mark.parametrize("model", ["dm-by-service", "dm-by-service-path", "dm-by-entity", "dm-by-attribute"])
@pytest.mark.parametrize("size", [1, 100])
@pytest.mark.parametrize("lowercase", ["true", "false"])
def test_every_combination_passes_the_check(model: str, size: int, lowercase: str):
    (draft,) = migrated(f"data_model={model}", f"batch_size={size}", f"enable_lowercase={lowercase}").drafts

    assert Publication.model_validate(content(draft)).topics.data_model == model


@pytest.mark.parametrize(
    ("parameters", "key"),
    [
        (["batch_size=1", "data_model=dm-by-service"], "identity"),
        (["batch_size=2", "data_model=dm-by-entity"], "identity"),
        (["batch_size=2", "data_model=dm-by-service"], "none"),
        (["batch_size=2", "data_model=dm-by-entity", "enable_lowercase=true"], "none"),
    ],
)
def test_the_entity_is_the_key_where_all_lines_of_a_record_share_it(parameters: list[str], key: str):
    assert content(migrated(*parameters).drafts[0])["message"]["key"] == key


def test_every_line_of_the_file_is_explained_once():
    migration = migrated("batch_size=2", "broker_list=k:9092", "zookeeper_endpoint=z:2181", "batchsize=3")

    assert [each.line for each in migration.explained] == list(range(1, 14))
    assert outcome(migration, "a.sinks.kafka.batch_size") == ("kept", "batches.batch_size")
    assert outcome(migration, "a.sinks.kafka.broker_list")[0] == "replaced"
    assert outcome(migration, "a.sinks.kafka.zookeeper_endpoint")[0] == "no longer needed"
    assert outcome(migration, "a.sinks.kafka.batchsize") == (
        "unknown",
        "neither Cygnus nor Contexture knows it; did it mean batch_size?",
    )
    assert outcome(migration, "a.sources.http.handler.default_service") == ("replaced", "source.service")
    assert migration.is_clean


@pytest.mark.parametrize(
    ("parameter", "why"),
    [
        ("data_model = dm-by-entity-id", "Cygnus' Kafka sink writes nothing with it: expected one of dm-by-service"),
        ("enable_lowercase = True", "expected true or false; the default false was written"),
        ("batch_size = 0", "expected a whole number of at least 1; the default 1 was written"),
        ("batch_ttl = -2", "expected a whole number of at least -1; the default 10 was written"),
        ("batch_retry_intervals = 1000,x", "expected a whole number of at least 1; the default 5000 was written"),
    ],
)
def test_a_value_that_cygnus_refused_is_told_and_its_default_written(parameter: str, why: str):
    migration = migrated(parameter)

    assert not migration.is_clean
    found, told = outcome(migration, f"a.sinks.kafka.{parameter.split()[0]}")
    assert found == "wrong"
    assert told.startswith(why)
    assert Publication.model_validate(content(migration.drafts[0]))


def test_the_last_of_two_lines_counts():
    migration = migrated("batch_size = 2", "batch_size = 3")

    assert content(migration.drafts[0])["batches"]["batch_size"] == 3
    told = [(each.value, each.outcome) for each in migration.explained if each.key == "a.sinks.kafka.batch_size"]
    assert told == [("2", "no longer needed"), ("3", "kept")]


def test_each_service_is_a_publication_of_its_own():
    migration = migrated(services=["vehicles", "bikes", "vehicles"])

    assert [(draft.name, content(draft)["source"]["service"]) for draft in migration.drafts] == [
        ("kafka-vehicles", "vehicles"),
        ("kafka-bikes", "bikes"),
    ]
    assert not any("--service" in decision for decision in migration.decisions)
    assert any("--service" in decision for decision in migrated().decisions)


def test_without_any_service_it_is_the_one_cygnus_assumed_and_must_be_looked_at():
    text = HEAD.replace("a.sources.http.handler.default_service = vehicles\n", "")
    (draft,) = migrate(text).drafts

    assert content(draft)["source"]["service"] == "default"
    assert "CHANGE IT if your subscriptions use another" in draft.text


def test_sinks_of_several_agents_and_clusters():
    other = re.sub("^a", "b", HEAD, flags=re.MULTILINE) + "b.sinks.kafka.broker_list = other:9092\n"
    migration = migrate(HEAD + other)

    assert [(draft.name, draft.origin) for draft in migration.drafts] == [
        ("a-kafka", "a.sinks.kafka"),
        ("b-kafka", "b.sinks.kafka"),
    ]
    assert [content(draft)["publish"]["connection"] for draft in migration.drafts] == ["kafka_default", "kafka_2"]
    assert migration.connections == (
        "airflow connections add context_broker --conn-type http --conn-host orion.example.org --conn-port 1026",
        "airflow connections add kafka_default --conn-type kafka "
        """--conn-extra '{"bootstrap.servers": "localhost:9092"}'""",
        """airflow connections add kafka_2 --conn-type kafka --conn-extra '{"bootstrap.servers": "other:9092"}'""",
    )


def test_other_components_are_left_out_and_their_secrets_not_shown():
    migration = migrate(
        HEAD.replace("a.sinks = kafka", "a.sinks = kafka mongo")
        + "a.sinks.mongo.type = com.telefonica.iot.cygnus.sinks.NGSIMongoSink\n"
        + "a.sinks.mongo.mongo_password = s3cret\n"
        + "a.sinks.idle.type = com.telefonica.iot.cygnus.sinks.NGSIKafkaSink\n"
    )

    assert [draft.origin for draft in migration.drafts] == ["a.sinks.kafka"]
    assert outcome(migration, "a.sinks.mongo.type") == (
        "left out",
        "NGSIMongoSink is no Kafka sink of Cygnus: Contexture only replaces that",
    )
    assert outcome(migration, "a.sinks.idle.type") == (
        "left out",
        "the agent doesn't list idle, so that Flume never ran it",
    )
    assert "s3cret" not in repr(migration)


def test_the_sink_of_the_first_releases_keeps_its_names():
    (draft,) = migrate(HEAD.replace("cygnus.sinks.NGSIKafkaSink", "cygnus.sinks.OrionKafkaSink")).drafts

    assert content(draft)["topics"]["naming"] == "cygnus-legacy"


def test_an_older_release_keeps_its_names():
    (draft,) = migrated("batch_size=2", release="1.9").drafts

    assert content(draft)["topics"]["cygnus_version"] == "1.9"
    assert Publication.model_validate(content(draft)).message.key == "none"


def test_grouping_rules_and_name_mappings_are_named_beside_the_publication():
    parameters = ["enable_grouping=true", "enable_name_mappings=true"]
    migration = migrated(*parameters, files=Files("grouping.json", "mappings.json"))

    topics = content(migration.drafts[0])["topics"]
    assert (topics["enable_grouping"], topics["grouping_rules"]) == (True, "grouping.json")
    assert (topics["enable_name_mappings"], topics["name_mappings"]) == (True, "mappings.json")


def test_a_file_that_is_missing_is_asked_for():
    text = HEAD + (
        "a.sources.http.interceptors = ts gi\n"
        "a.sources.http.interceptors.gi.grouping_rules_conf_file = /conf/grouping_rules.conf\n"
        "a.sinks.kafka.enable_grouping = true\n"
    )
    migration = migrate(text)

    assert outcome(migration, "a.sinks.kafka.enable_grouping") == (
        "wrong",
        "the file is needed: give it by --grouping FILE (the agent reads /conf/grouping_rules.conf)",
    )
    assert "enable_grouping" not in content(migration.drafts[0])["topics"]


@pytest.mark.parametrize("text", ["", "a.sinks = x\na.sinks.x.type = logger", HEAD.replace("a.sinks = kafka\n", "")])
def test_a_file_without_a_kafka_sink_is_refused(text: str):
    with pytest.raises(ConfigurationError, match="lists no sink of the class NGSIKafkaSink"):
        migrate(text)


def test_the_how_to_page_tells_every_difference():
    page = (Path(__file__).parents[3] / "docs" / "how-to" / "move-from-cygnus.md").read_text(encoding="utf-8")
    table = [line.split(" | ")[0].removeprefix("| ") for line in page.splitlines() if line.startswith("| ")]

    assert [title for title, _, _ in DIFFERENCES if title not in table] == []
