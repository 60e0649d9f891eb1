"""From a Cygnus agent to publications, with every parameter explained."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from contexture.errors import ConfigurationError
from contexture.importers.cygnus.parameters import DIFFERENCES
from contexture.importers.cygnus.publications import RuleFiles, import_agent
from contexture.importers.result import Draft, ImportResult
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


def migrated(*parameters: str, **options: Any) -> ImportResult:
    return import_agent(HEAD + "".join(f"a.sinks.kafka.{each}\n" for each in parameters), **options)


def content(draft: Draft) -> Any:
    return yaml.safe_load(draft.text)


def outcome(migration: ImportResult, key: str) -> tuple[str, str]:
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
def test_a_value_that_cygnus_refused_is_reported_and_its_default_written(parameter: str, why: str):
    migration = migrated(parameter)

    assert not migration.is_clean
    found, why_ = outcome(migration, f"a.sinks.kafka.{parameter.split()[0]}")
    assert found == "wrong"
    assert why_.startswith(why)
    assert Publication.model_validate(content(migration.drafts[0]))


def test_the_last_of_two_lines_counts():
    migration = migrated("batch_size = 2", "batch_size = 3")

    assert content(migration.drafts[0])["batches"]["batch_size"] == 3
    outcomes = [(each.value, each.outcome) for each in migration.explained if each.key == "a.sinks.kafka.batch_size"]
    assert outcomes == [("2", "no longer needed"), ("3", "kept")]


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
    (draft,) = import_agent(text).drafts

    assert content(draft)["source"]["service"] == "default"
    assert "CHANGE IT if your subscriptions use another" in draft.text


def test_sinks_of_several_agents_and_clusters():
    other = re.sub("^a", "b", HEAD, flags=re.MULTILINE) + "b.sinks.kafka.broker_list = other:9092\n"
    migration = import_agent(HEAD + other)

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
    migration = import_agent(
        HEAD.replace("a.sinks = kafka", "a.sinks = kafka mongo")
        + "a.sinks.mongo.type = com.telefonica.iot.cygnus.sinks.NGSIMongoSink\n"
        + "a.sinks.mongo.mongo_password = s3cret\n"
        + "a.sinks.idle.type = com.telefonica.iot.cygnus.sinks.NGSIKafkaSink\n"
    )

    assert [draft.origin for draft in migration.drafts] == ["a.sinks.kafka"]
    assert outcome(migration, "a.sinks.mongo.type") == (
        "left out",
        "NGSIMongoSink is not a Kafka sink of Cygnus: Contexture only replaces that",
    )
    assert outcome(migration, "a.sinks.idle.type") == (
        "left out",
        "the agent does not list idle, so that Flume never ran it",
    )
    assert "s3cret" not in repr(migration)


def test_the_sink_of_the_first_releases_keeps_its_names():
    (draft,) = import_agent(HEAD.replace("cygnus.sinks.NGSIKafkaSink", "cygnus.sinks.OrionKafkaSink")).drafts

    assert content(draft)["topics"]["naming"] == "cygnus-legacy"


def test_an_older_release_keeps_its_names():
    (draft,) = migrated("batch_size=2", release="1.9").drafts

    assert content(draft)["topics"]["cygnus_version"] == "1.9"
    assert Publication.model_validate(content(draft)).message.key == "none"


def test_grouping_rules_and_name_mappings_are_named_beside_the_publication():
    parameters = ["enable_grouping=true", "enable_name_mappings=true"]
    migration = migrated(*parameters, files=RuleFiles("grouping.json", "mappings.json"))

    topics = content(migration.drafts[0])["topics"]
    assert (topics["enable_grouping"], topics["grouping_rules"]) == (True, "grouping.json")
    assert (topics["enable_name_mappings"], topics["name_mappings"]) == (True, "mappings.json")


def test_a_file_that_is_missing_is_asked_for():
    text = HEAD + (
        "a.sources.http.interceptors = ts gi\n"
        "a.sources.http.interceptors.gi.grouping_rules_conf_file = /conf/grouping_rules.conf\n"
        "a.sinks.kafka.enable_grouping = true\n"
    )
    migration = import_agent(text)

    assert outcome(migration, "a.sinks.kafka.enable_grouping") == (
        "wrong",
        "the file is needed: give it by --grouping FILE (the agent reads /conf/grouping_rules.conf)",
    )
    assert "enable_grouping" not in content(migration.drafts[0])["topics"]


@pytest.mark.parametrize("text", ["", "a.sinks = x\na.sinks.x.type = logger", HEAD.replace("a.sinks = kafka\n", "")])
def test_a_file_without_a_kafka_sink_is_refused(text: str):
    with pytest.raises(ConfigurationError, match="lists no sink of the class NGSIKafkaSink"):
        import_agent(text)


def test_the_how_to_page_lists_every_difference():
    page = (Path(__file__).parents[3] / "docs" / "how-to" / "move-from-cygnus.md").read_text(encoding="utf-8")
    table = [line.split(" | ")[0].removeprefix("| ") for line in page.splitlines() if line.startswith("| ")]

    assert [title for title, _, _ in DIFFERENCES if title not in table] == []


@pytest.mark.parametrize(
    ("parameter", "outcome_", "why"),
    [
        ("type", "replaced", "this file: one publication for each Kafka sink"),
        ("channel", "replaced", "what is not sent yet is in the outbox, on storage; its size is the disk's"),
        ("enable_grouping = false", "kept", "topics.enable_grouping"),
        ("enable_name_mappings = false", "kept", "topics.enable_name_mappings"),
        ("enable_lowercase = false", "kept", "topics.enable_lowercase"),
        ("data_model = dm-by-entity", "kept", "topics.data_model"),
        ("broker_list = k:9092", "replaced", "`bootstrap.servers` of the connection that publish.connection names"),
        (
            "zookeeper_endpoint = z:2181",
            "no longer needed",
            "Kafka has no ZooKeeper any more; topics are made through the brokers",
        ),
        ("partitions = 1", "kept", "topics.partitions"),
        ("replication_factor = 1", "kept", "topics.replication_factor"),
        ("batch_size = 1", "kept", "batches.batch_size"),
        ("batch_timeout = 30", "kept", "batches.batch_timeout"),
        ("batch_ttl = 10", "kept", "batches.batch_ttl"),
        ("batch_retry_intervals = 5000", "kept", "batches.batch_retry_intervals"),
        (
            "enable_encoding = false",
            "no longer needed",
            "topic names are always encoded, as Cygnus' Kafka sink did",
        ),
        ("persistence_policy.max_records = 5", "no longer needed", "Cygnus ignored it for Kafka"),
        ("persistence_policy.expiration_time = 5", "no longer needed", "Cygnus ignored it for Kafka"),
        ("persistence_policy.checking_time = 5", "no longer needed", "Cygnus ignored it for Kafka"),
        ("topic_type = topic-by-service", "kept", "topics.data_model, as Cygnus calls it since 1.0"),
    ],
)
def test_each_parameter_of_the_sink_is_explained(parameter: str, outcome_: str, why: str):
    name, _, value = parameter.partition(" = ")
    migration = migrated(parameter) if value else migrated()

    assert outcome(migration, f"a.sinks.kafka.{name}") == (outcome_, why)
    assert migration.is_clean


@pytest.mark.parametrize(
    ("parameter", "outcome_"),
    [
        ("type = org.apache.flume.source.http.HTTPSource", "replaced"),
        ("channels = c", "replaced"),
        ("port = 5050", "no longer needed"),
        ("bind = 127.0.0.1", "no longer needed"),
        ("handler = com.telefonica.iot.cygnus.handlers.NGSIRestHandler", "no longer needed"),
        ("handler.notification_target = /notify", "no longer needed"),
        ("handler.default_service = vehicles", "replaced"),
        ("handler.default_service_path = /", "replaced"),
        ("handler.events_ttl = 10", "replaced"),
        ("interceptors = ts gi nmi", "replaced"),
        ("interceptors.ts.type = timestamp", "no longer needed"),
        ("interceptors.gi.type = com.telefonica.iot.cygnus.interceptors.NGSIGroupingInterceptor$Builder", "replaced"),
        ("interceptors.gi.grouping_rules_conf_file = /conf/grouping_rules.conf", "replaced"),
        ("interceptors.gi.enable_encoding = true", "replaced"),
        ("interceptors.de.matching_table = /conf/matching_table.conf", "replaced"),
        ("interceptors.nmi.name_mappings_conf_file = /conf/name_mappings.conf", "replaced"),
        ("selector.type = replicating", "no longer needed"),
        ("interceptors.x.secret_sauce = 1", "unknown"),
        ("backlog = 5", "unknown"),
    ],
)
def test_each_parameter_of_the_source_is_explained(parameter: str, outcome_: str):
    migration = import_agent(f"{HEAD}a.sources.http.{parameter}\n")

    outcomes = [each.outcome for each in migration.explained if each.key == f"a.sources.http.{parameter.split()[0]}"]
    assert outcomes[-1] == outcome_
    assert migration.is_clean


def test_the_first_releases_named_data_models_by_topic_type():
    text = HEAD.replace("cygnus.sinks.NGSIKafkaSink", "cygnus.sinks.OrionKafkaSink")
    models = [
        content(import_agent(f"{text}a.sinks.kafka.topic_type = {name}\n").drafts[0])["topics"]["data_model"]
        for name in ("topic-by-service", "topic-by-service-path", "topic-by-destination")
    ]

    assert models == ["dm-by-service", "dm-by-service-path", "dm-by-entity"]
    wrong = migrated("topic_type = topic-by-magic")
    assert outcome(wrong, "a.sinks.kafka.topic_type") == (
        "wrong",
        "expected one of topic-by-service, topic-by-service-path, topic-by-destination; "
        "the default dm-by-entity was written",
    )


@pytest.mark.parametrize("value", ["1_000", "1e3", "1.0", "0x10", "\u0661", "ten", "-"])
def test_only_whole_numbers_are_numbers(value: str):
    assert not migrated(f"batch_size = {value}").is_clean


def test_two_sinks_never_become_one_file():
    text = HEAD.replace("a.sinks = kafka", "a.sinks = kafka kafka_ Kafka").replace("sinks.kafka.", "sinks.kafka_.")
    for name in ("kafka", "Kafka"):
        text += f"a.sinks.{name}.type = com.telefonica.iot.cygnus.sinks.NGSIKafkaSink\n"

    drafts = import_agent(text).drafts

    assert [(draft.origin, draft.name) for draft in drafts] == [
        ("a.sinks.kafka_", "kafka"),
        ("a.sinks.kafka", "kafka-2"),
        ("a.sinks.Kafka", "kafka-3"),
    ]
    assert [content(draft)["name"] for draft in drafts] == ["kafka", "kafka-2", "kafka-3"]


def test_a_service_in_capitals_is_no_second_service():
    drafts = migrated(services=["Vehicles", "vehicles", "bikes", "a_b", "a__b"]).drafts

    assert [draft.name for draft in drafts] == ["kafka-vehicles", "kafka-bikes", "kafka-a-b", "kafka-a-b-2"]


@pytest.mark.parametrize("release", ["1.10", "1.10.0", "2.19.0", "3.18.0"])
def test_a_release_with_the_names_of_today_is_not_written(release: str):
    migration = migrated("batch_size=2", release=release)
    publication = content(migration.drafts[0])

    assert "cygnus_version" not in publication["topics"]
    assert publication["message"]["key"] == "identity"
    assert not any("--cygnus-version" in decision for decision in migration.decisions)


GROUPED = HEAD + "a.sources.http.interceptors = ts gi\na.sinks.kafka.enable_grouping = true\n"


def test_names_that_no_rule_matches_are_for_a_person_to_decide():
    def decisions(text: str) -> list[str]:
        migration = import_agent(text, files=RuleFiles("grouping.json"))
        return [each for each in migration.decisions if "compat: cygnus-2.19" in each]

    assert len(decisions(GROUPED)) == 1
    assert decisions(f"{GROUPED}a.sources.http.interceptors.gi.enable_encoding = true\n") == []


def test_files_that_no_sink_uses_are_reported_and_left_out():
    migration = migrated(files=RuleFiles("grouping.json", "mappings.json"))

    assert migration.drafts[0].files == ()
    assert [each for each in migration.decisions if each.startswith("whether --")] == [
        "whether --grouping is intended: no Kafka sink says enable_grouping = true, so its file is left out",
        "whether --mappings is intended: no Kafka sink says enable_name_mappings = true, so its file is left out",
    ]
    assert import_agent(GROUPED, files=RuleFiles("grouping.json")).drafts[0].files == ("grouping.json",)


DIFFERENT_ON_PURPOSE = {
    # What the rules say of Cygnus: the difference that states it.
    "only the last attribute is stored with dm-by-attribute": "dm-by-attribute",
    "every line has the path of the first": "paths in a record of several lines",
    "joined keys of sub-batches collide": "names that collide",
    "an exhausted batch takes the next with it": "retries",
    "broker failures are not noticed": "delivery",
    "batch_size above the transaction capacity": "large batches",
    "a file channel is blocked by xffff": "file channels",
    "entities without attributes fail": "entities without attributes",
    "a quote breaks the line": "quotes in service and path",
    "no key": "keys and order",
    "hash order": "order in a line and in a batch",
    "isPattern of NGSIv1": "lines of NGSIv1 notifications",
    "TTL -1 stays at the first interval": "retries",
    "the timeout counts from the batch before": "when a batch closes",
    "topics through ZooKeeper": "new topics",
    "no check of names": "names that Kafka refuses",
    "paths of 50 characters": "service paths",
    "unmatched entities are joined by _": "entities that no grouping rule matches",
    "quirks of name mappings": "what name mappings match",
    "rules are read again every 30 s": "grouping rules and name mappings",
    "statistics without authentication": "statistics and administration",
}


def test_every_known_defect_of_cygnus_has_its_difference():
    titles = [difference.title for difference in DIFFERENCES]

    assert len(set(titles)) == len(titles)
    assert [title for title in DIFFERENT_ON_PURPOSE.values() if title not in titles] == []


def test_the_service_that_cygnus_assumed_may_be_the_default_tenant():
    (decision,) = [each for each in migrated().decisions if "newService" in each]

    assert decision.startswith("whether 'vehicles' is a service of the broker")
    assert 'name mappings {"serviceMappings": [{"newService": "vehicles"}]}' in decision
    assert not any("newService" in each for each in migrated(services=["vehicles"]).decisions)
