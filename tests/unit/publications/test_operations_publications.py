"""A publication of Contexture's own events says where they go, and little else."""

from __future__ import annotations

from typing import Any

import pytest

from contexture.publications import Publication
from contexture.publications.fingerprint import resolve_keys
from contexture.publications.loading import validate


def given(**changes: Any) -> dict[str, Any]:
    return {"name": "audit", "source": {"kind": "operations"}, "topics": {"topics": ["ops"]}, **changes}


def test_a_kind_and_a_topic_are_enough() -> None:
    found = Publication.model_validate(given())
    assert (found.topics.naming, found.topics.keep, found.topics.topics) == ("fixed", "history", ("ops",))
    assert (found.message.format, found.message.envelope) == ("operations", "cloudevents-binary")
    assert (found.publish.shards, found.resync.on_config_change) == (1, "pending")


def test_what_was_written_out_is_read_back() -> None:
    found = Publication.model_validate(given())
    assert Publication.model_validate_json(found.model_dump_json()) == found


def test_what_is_shown_of_it_is_what_means_something() -> None:
    shown = [line.key for line in resolve_keys(Publication.model_validate(given())) if line.depth and line.value]
    assert shown == [
        "kind",
        "naming",
        "topics",
        "partitions",
        "replication_factor",
        "keep",
        "config",
        "max_new_topics",
        "batch_ttl",
        "batch_retry_intervals",
        "format",
        "envelope",
        "connection",
        "transactional_id_prefix",
        "broker_wait_seconds",
        "transaction_records",
        "on_startup",
        "on_config_change",
        "archive_days",
        "mail",
        "notifiers",
        "published_within_minutes",
    ]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"source": {"kind": "operations", "types": ["car"]}}, "`types` needs `kind: ngsi`"),
        ({"source": {"kind": "operations", "connection": "x"}}, "`connection` has no effect for `kind: operations`"),
        ({"source": {"kind": "operations", "mode": "notifications"}}, "`mode` has no effect"),
        ({"topics": {}}, "no topic is set for the events"),
        ({"topics": {"topics": ["ops"], "keep": "latest"}}, "`keep: latest` needs `kind: ngsi` or `kind: sdmx`"),
        ({"topics": {"topics": ["ops"], "naming": "cygnus"}}, "`naming: cygnus` needs `kind: ngsi`"),
        ({"topics": {"topics": ["ops"], "config": {"password": "x"}}}, "looks like a secret"),
        ({"message": {"envelope": "none"}}, "`envelope: none` needs `kind: ngsi` or `kind: sdmx`"),
        ({"message": {"key": "topic"}}, "`key` has no effect"),
        ({"message": {"format": "ngsiv2"}}, "`format: ngsiv2` needs `kind: ngsi`"),
        ({"publish": {"on_failure": "dead-letter"}}, "`on_failure` has no effect for `kind: operations`"),
        ({"publish": {"shards": 2}}, "`shards: 2` has no effect"),
        ({"quality": {"minimum_entities": 5}}, "`minimum_entities` has no effect"),
    ],
)
def test_everything_else_is_refused(changes: dict[str, Any], message: str) -> None:
    publication, findings = validate(given(**changes))
    assert publication is None
    assert any(message in finding.message for finding in findings), findings


def test_other_kinds_can_not_have_its_form() -> None:
    source = {"kind": "ngsi", "connection": "broker", "service": "a"}
    _, findings = validate({"name": "cars", "source": source, "message": {"format": "operations"}})
    assert [finding.message for finding in findings] == ["`format: operations` needs `kind: operations`"]
