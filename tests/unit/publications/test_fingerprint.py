"""The fingerprint changes when, and only when, a record or its destination may."""

from __future__ import annotations

import pytest

from contexture.publications import Publication, canonical_json, fingerprint
from contexture.publications.fields import ChangesNoRecord, ChangesRecords
from contexture.publications.fingerprint import collect_marks, marks
from contexture.publications.publication import PUBLICATIONS
from contexture.publications.validation_messages import all_leaves, leaves

BASE = {
    "name": "vehicles",
    "source": {"kind": "ngsi", "connection": "context_broker", "service": "vehicles", "service_path": "/4wheels"},
    "topics": {"keep": "history"},
}


def digest(changes: dict[str, object]) -> str:
    data = {key: dict(value) if isinstance(value, dict) else value for key, value in BASE.items()}
    for path, value in changes.items():
        *sections, name = path.split(".", 2)
        place = data
        for section in sections:
            place = place.setdefault(section, {})
        place[name] = value
    return fingerprint(Publication.model_validate(data))


MARKS = dict(marks())
CHANGES_RECORDS = [key for key, mark in MARKS.items() if isinstance(mark, ChangesRecords)]
CHANGES_NO_RECORD = [key for key, mark in MARKS.items() if isinstance(mark, ChangesNoRecord)]


def test_every_key_says_what_it_does_to_records_and_why():
    assert sorted(MARKS) == sorted(".".join(path) for path in all_leaves())
    assert [key for key, mark in MARKS.items() if mark is None or not mark.reason] == []


def test_a_key_says_the_same_in_each_kind_of_publication():
    for kind in PUBLICATIONS:
        alone = {}
        collect_marks(PUBLICATIONS[kind], "", alone)
        assert {key: mark for key, mark in alone.items() if mark != MARKS[key]} == {}


def test_the_canonical_form_is_what_it_always_was():
    assert canonical_json(Publication.model_validate(BASE)) == (
        b'{"name":"vehicles","source.connection":"context_broker","source.kind":"ngsi","source.service":"vehicles",'
        b'"source.service_path":["/4wheels"],"topics.keep":"history"}'
    )


def test_the_fingerprint_of_a_publication_never_changes_with_a_version_of_contexture():
    assert digest({}) == "e6b2afeb29a4fba96778ed98f9b0e168343dc7560fe83228524434dcf2ead32c"
    everything = {
        "source.types": ["car", "bus"],
        "source.detect_deletions": False,
        "source.attributes": ["speed"],
        "topics.data_model": "dm-by-service-path",
        "topics.enable_lowercase": True,
        "topics.partitions": 6,
        "batches.batch_size": 10,
        "batches.batch_timeout": 5,
        "message.format": "cygnus-lines",
        "message.key": "topic",
        "publish.connection": "kafka_city",
    }
    assert digest(everything) == "a650780feb8afa37a9c34d9c855fe5b522c987a1f5e4f85b801a1498d65983b1"


CHANGING = {
    "name": "cars",
    "source.connection": "other",
    "source.api": "ngsi-ld",
    "source.flavour": "orion-ld",
    "source.service": "city",
    "source.service_path": "/a",
    "source.types": "car",
    "source.ids": ["car1"],
    "source.id_pattern": "^car",
    "source.type_pattern": "^car",
    "source.metadata_query": "speed.accuracy>0.9",
    "source.query": "speed>5",
    "source.attributes": "speed",
    "source.detect_deletions": False,
    "topics.naming": "injective",
    "topics.cygnus_version": "1.9.0",
    "topics.compat": "cygnus-2.19",
    "topics.grouping_rules_content": '{"grouping_rules":[]}',
    "topics.name_mappings_content": '{"serviceMappings":[]}',
    "topics.data_model": "dm-by-service",
    "topics.enable_lowercase": True,
    "topics.partitions": 3,
    "topics.keep": "latest",
    "batches.batch_size": 5,
    "batches.batch_timeout": 5,
    "message.format": "cygnus-lines",
    "message.key": "topic",
    "message.encoder": "avro",
    "quality.coerce_numbers": True,
    "publish.connection": "other",
    "publish.partitioner": "type",
}


@pytest.mark.parametrize("key", CHANGING)
def test_what_can_change_a_record_or_its_destination_changes_the_fingerprint(key):
    assert digest({key: CHANGING[key]}) != digest({})


KEEPING = {
    "description": "other words",
    "schedule": "@daily",
    "source.mode": "full",
    "source.notifier_connection": "orion",
    "source.shrink_limit.share": 0.5,
    "source.shrink_limit.count": 5,
    "source.shrink_limit.beyond": "ask",
    "source.shrink_limit.answer_hours": 5,
    "source.page_size": 10,
    "source.overlap_seconds": 5,
    "source.walk_deadline_seconds": 5,
    "topics.collision": "quarantine",
    "source.suppress_unchanged": False,
    "source.parallel_readers": 3,
    "source.pause_milliseconds": 250,
    "topics.replication_factor": 3,
    "topics.config": {"retention.ms": "5"},
    "topics.max_new_topics": 5,
    "topics.max_broker_partitions": 5,
    "batches.batch_ttl": 5,
    "batches.batch_retry_intervals": [5],
    "publish.shards": 5,
    "publish.transaction_records": 5,
    "publish.transactional_id_prefix": "other",
    "publish.on_failure": "dead-letter",
    "publish.broker_wait_seconds": 5,
    "publish.broker_list": "localhost:9092",
    "publish.zookeeper_endpoint": "localhost:2181",
    "quality.rules": {"stale": "error"},
    "quality.max_quarantined_share": 0.5,
    "quality.minimum_entities": 5,
    "quality.maximum_entities": 500,
    "quality.required_attributes": ["speed"],
    "quality.attribute_types": {"speed": "Number"},
    "quality.ranges": {"speed": {"minimum": 0}},
    "quality.fresh_within_seconds": 5,
    "quality.allowed_values": {"state": ["on"]},
    "quality.stale_after_seconds": {"car": 5},
    "quality.syntax": "ngsi-ld",
    "quality.allow_intervals": True,
    "quality.models": {"car": "car.json"},
    "quality.model_documents": {"car.json": "{}"},
    "resync.on_startup": "full",
    "resync.on_config_change": "none",
    "retention.archive_days": 5,
    "notify.mail": ["ops@example.org"],
    "notify.notifiers": [{"notifier": "airflow.providers.slack.notifications.slack.SlackNotifier"}],
    "notify.published_within_minutes": 30,
}


@pytest.mark.parametrize("key", KEEPING)
def test_what_changes_no_record_keeps_the_fingerprint(key):
    assert digest({key: KEEPING[key]}) == digest({})


def test_every_key_that_works_today_is_tried_in_one_direction():
    not_yet = {
        "source.kind",
        "source.georel",  # needs geometry and coords beside it; tried below
        "source.geometry",
        "source.coords",
        "source.select",
        "source.context",  # needs api beside it; tried below
        "source.media_type",
        "source.registrations",
        "topics.topics",
        "topics.enable_grouping",
        "topics.enable_name_mappings",
        "topics.routes",
        "message.envelope",
        "message.allow_lossy",
        "message.partition_key",  # needs an envelope beside it; tried below
        "message.bundle",  # of registries
    }
    assert set(CHANGING) == set(CHANGES_RECORDS) - not_yet
    assert set(KEEPING) == set(CHANGES_NO_RECORD) - {
        "publish.dead_letter_topic",  # need on_failure beside them; tried below
        "publish.max_dead_letters",
        "quality.expectations",
        "topics.grouping_rules",
        "topics.name_mappings",
    }


def test_where_dead_letters_go_keeps_the_fingerprint():
    letters = {"publish.on_failure": "dead-letter", "publish.dead_letter_topic": "x", "publish.max_dead_letters": 5}
    assert digest(letters) == digest({})


def test_keys_that_need_each_other_change_the_fingerprint():
    near = {"source.georel": "near;maxDistance:5", "source.geometry": "point", "source.coords": "1,2"}
    found = {
        digest({}),
        digest(near),
        digest({**near, "source.coords": "3,4"}),
        digest({**near, "source.georel": "near;maxDistance:6"}),
        digest({**near, "source.georel": "coveredBy", "source.geometry": "polygon"}),
        digest({"topics.naming": "fixed", "topics.topics": ["A"]}),
        digest({"topics.naming": "fixed", "topics.topics": ["A", "B"]}),
        digest({"source.api": "ngsi-ld", "source.context": "https://example.org/a.jsonld"}),
        digest({"source.api": "ngsi-ld", "source.context": "https://example.org/b.jsonld"}),
        digest({"message.envelope": "cloudevents-binary"}),
        digest({"message.envelope": "cloudevents-binary", "message.partition_key": "type"}),
    }
    assert len(found) == 11


def test_writing_a_default_out_changes_nothing():
    assert digest(
        {"topics.partitions": 1, "message.format": "ngsiv2", "publish.connection": "kafka_default"}
    ) == digest({})


def test_the_order_of_a_selection_says_nothing():
    assert digest({"source.types": ["car", "bus"]}) == digest({"source.types": ["bus", "car"]})


def test_defaults_of_fingerprinted_keys_are_frozen():
    """Another default would change what an old file publishes without changing its fingerprint."""
    defaults, others = {}, {}
    for kind, model in PUBLICATIONS.items():
        for path in leaves(model):
            owner = model
            for section in path[:-1]:
                owner = owner.model_fields[section].annotation
            field, key = owner.model_fields[path[-1]], ".".join(path)
            if key in CHANGES_RECORDS and not field.is_required():
                first = defaults.setdefault(key, field.default)
                if first != field.default:
                    others[kind, key] = field.default
    assert defaults == {
        "source.api": "ngsiv2",
        "source.context": None,
        "source.service": "",
        "source.service_path": ("/#",),
        "source.types": (),
        "source.ids": (),
        "source.id_pattern": None,
        "source.type_pattern": None,
        "source.metadata_query": None,
        "source.query": None,
        "source.attributes": (),
        "source.georel": None,
        "source.geometry": None,
        "source.coords": None,
        "source.select": (),
        "source.flavour": "auto",
        "source.connection": "operational_tables",
        "source.media_type": "application/vnd.sdmx.structure+xml;version=2.1",
        "source.registrations": False,
        "source.detect_deletions": True,
        "topics.naming": "cygnus",
        "topics.cygnus_version": None,
        "topics.data_model": "dm-by-entity",
        "topics.enable_lowercase": False,
        "topics.compat": "none",
        "topics.enable_grouping": False,
        "topics.grouping_rules_content": None,
        "topics.enable_name_mappings": False,
        "topics.name_mappings_content": None,
        "topics.topics": (),
        "topics.routes": (),
        "topics.partitions": 1,
        "topics.keep": "latest",
        "batches.batch_size": 1,
        "batches.batch_timeout": 30,
        "message.format": "ngsiv2",
        "message.envelope": "none",
        "message.key": "identity",
        "message.encoder": None,
        "message.partition_key": "none",
        "message.allow_lossy": False,
        "message.bundle": "artefact",
        "quality.coerce_numbers": False,
        "publish.connection": "kafka_default",
        "publish.partitioner": "murmur2",
    }
    assert others == {
        ("sdmx", "topics.naming"): "fixed",
        ("sdmx", "message.format"): "sdmx",
        ("operations", "topics.naming"): "fixed",
        ("operations", "topics.keep"): "history",
        ("operations", "message.format"): "operations",
        ("operations", "message.envelope"): "cloudevents-binary",
    }
