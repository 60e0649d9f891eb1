"""Which single values a publication takes."""

from __future__ import annotations

import pytest
from croniter import croniter
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from contexture.publications import Publication, fields, schedule
from contexture.publications.quality import ENTITY_RULES, STRUCTURE_RULES
from contexture.sources.ngsi.rules.catalogue import RULES
from contexture.sources.sdmx.rules.catalogue import RULES as OF_STRUCTURES


def with_value(section: str, key: str, value: object) -> object:
    source: dict[str, object] = {"kind": "ngsi", "connection": "broker", "service": "vehicles"}
    data: dict[str, object] = {"name": "vehicles", "source": source}
    place = source if section == "source" else data if not section else data.setdefault(section, {})
    assert isinstance(place, dict)
    place[key] = value
    read = Publication.model_validate(data)
    return getattr(getattr(read, section) if section else read, key)


@pytest.mark.parametrize(
    ("section", "key", "written", "read"),
    [
        ("", "name", "a-1", "a-1"),
        ("", "schedule", "@daily", "@daily"),
        ("", "schedule", "0 6 * * mon-fri", "0 6 * * mon-fri"),
        ("", "schedule", "*/5 0-12/2 1,15 jan,jul 0", "*/5 0-12/2 1,15 jan,jul 0"),
        ("", "schedule", "0 0 29 2 *", "0 0 29 2 *"),
        ("", "schedule", "50-10 * * * *", "50-10 * * * *"),
        ("", "schedule", "0 6 L * *", "0 6 L * *"),
        ("", "schedule", "0 6 * * 5#2", "0 6 * * 5#2"),
        ("", "schedule", "@midnight", "@midnight"),
        ("source", "service", "SmartCity_1", "smartcity_1"),
        ("source", "service_path", "/", ("/",)),
        ("source", "service_path", "/#", ("/#",)),
        ("source", "service_path", "/a/b/", ("/a/b",)),
        ("source", "service_path", ["/a", "/b/#"], ("/a", "/b/#")),
        ("source", "service_path", ["/a", "/a/", "/b"], ("/a", "/b")),
        ("source", "service_path", ["/a", "/#", "/b/#"], ("/#",)),
        ("source", "service_path", ["/b/c", "/a/b", "/a/#", "/a", "/ab"], ("/b/c", "/a/#", "/ab")),
        ("source", "service_path", ["/", "/a"], ("/", "/a")),
        ("source", "types", "car", ("car",)),
        ("source", "query", "speed>50;name=='a;dateModified'", "speed>50;name=='a;dateModified'"),
        ("source", "query", "dateExpires>2026-01-01T00:00:00Z", "dateExpires>2026-01-01T00:00:00Z"),
        ("topics", "config", {"retention.ms": 604800000, "x": True}, {"retention.ms": "604800000", "x": "true"}),
        ("batches", "batch_ttl", -1, -1),
        ("quality", "max_quarantined_share", 0, 0.0),
        ("quality", "rules", {"stale": False}, {"stale": "off"}),
    ],
)
def test_values_are_read_as(section, key, written, read):
    assert with_value(section, key, written) == read


@pytest.mark.parametrize(
    ("section", "key", "value"),
    [
        ("", "name", "Vehicles"),
        ("", "name", "-a"),
        ("", "name", "a" * 201),
        ("", "schedule", ""),
        ("", "schedule", "@once"),
        ("", "schedule", "* * * * * *"),
        ("", "schedule", "60 * * * *"),
        ("", "schedule", "*/0 * * * *"),
        ("", "schedule", "0 0 31 feb,apr *"),
        ("", "schedule", "R 6 * * *"),
        ("", "schedule", "H(0-29) 6 * * *"),
        ("", "schedule", "0 6 * * mon,R(1-3)"),
        ("", "schedule", "\u0661 * * * *"),
        ("source", "service", "a-b"),
        ("source", "service", "a" * 51),
        ("source", "service_path", "4wheels"),
        ("source", "service_path", "/*"),
        ("source", "service_path", "/a,/b"),
        ("source", "service_path", "/a//b"),
        ("source", "service_path", "/#/a"),
        ("source", "service_path", "/" + "/".join("abcdefghijk")),
        ("source", "service_path", []),
        ("source", "types", "car,bus"),
        ("source", "types", ["car", "car"]),
        ("source", "id_pattern", "["),
        ("source", "type_pattern", "["),
        ("source", "id_pattern", "car(?=1)"),
        ("source", "query", "dateExpires"),
        ("source", "query", "speed>5;!dateModified"),
        ("source", "query", "dateModified>2026-01-01T00:00:00Z"),
        ("source", "page_size", 1001),
        ("source", "page_size", True),
        ("source", "connection", "http://broker:1026"),
        ("topics", "partitions", 0),
        ("topics", "topics", ["a b"]),
        ("topics", "topics", [".."]),
        ("topics", "topics", ["A", "A"]),
        ("topics", "topics", ["contexture.ledger.vehicles"]),
        ("batches", "batch_size", 0),
        ("batches", "batch_timeout", 0),
        ("batches", "batch_ttl", -2),
        ("batches", "batch_retry_intervals", []),
        ("batches", "batch_retry_intervals", [5000, 0]),
        ("batches", "batch_retry_intervals", ""),
        ("batches", "batch_retry_intervals", "5000,"),
        ("batches", "batch_retry_intervals", "5000 10000"),
        ("batches", "batch_retry_intervals", "5s"),
        ("batches", "batch_retry_intervals", "5000,0"),
        ("message", "key", ""),
        ("publish", "transactional_id_prefix", ""),
        ("quality", "max_quarantined_share", 1.1),
        ("quality", "max_quarantined_share", float("nan")),
        ("quality", "expectations", [{"name": "to_be_unique"}]),
        ("retention", "archive_days", 0),
        ("notify", "mail", ["no-address"]),
        ("notify", "mail", "a@example.org, b@example.org"),
        ("notify", "published_within_minutes", 0),
        ("notify", "notifiers", [{"notifier": "SlackNotifier"}]),
        ("notify", "notifiers", [{"notifier": "a b.C"}]),
        ("notify", "notifiers", [{"notifier": "a.B", "arguments": {"slack_webhook_token": "xoxb-1"}}]),
    ],
)
def test_values_are_refused(section, key, value):
    with pytest.raises(ValidationError):
        with_value(section, key, value)


@pytest.mark.parametrize("written", ["5000,10000", " 5000 , 10000 ", [5000, 10000]])
def test_retry_intervals_are_a_list_or_the_text_of_a_cygnus_agent(written):
    assert with_value("batches", "batch_retry_intervals", written) == (5000, 10000)


FIELD = st.text("0123456789*/-,abcjfemnourstw", min_size=1, max_size=6)


@given(st.one_of(st.builds(" ".join, st.lists(FIELD, min_size=5, max_size=5)), st.text(max_size=20)))
def test_whatever_schedule_is_accepted_airflows_reader_accepts_too(expression):
    try:
        schedule.check(expression)
    except ValueError:
        return
    assert expression in schedule.PRESETS or croniter.is_valid(expression)
    assert schedule.describe_schedule(expression)


@pytest.mark.parametrize(
    ("expression", "words"),
    [
        ("@midnight", "At 00:00"),
        ("0 6 * * mon-fri", "At 06:00, Monday through Friday"),
        ("*/20 * * * *", "Every 20 minutes"),
        ("0 6 L * *", "At 06:00, on the last day of the month"),
        ("0 6 1,15 * 1", "At 06:00, on day 1 and 15 of the month, or at 06:00, only on Monday"),
    ],
)
def test_a_schedule_is_described_in_words(expression: str, words: str) -> None:
    assert schedule.describe_schedule(expression) == words


@pytest.mark.parametrize(
    ("outer", "inner", "expected"),
    [
        ("/#", "/", True),
        ("/#", "/a/b", True),
        ("/a/#", "/a", True),
        ("/a/#", "/a/#", True),
        ("/a/#", "/a/b/#", True),
        ("/a/#", "/ab", False),
        ("/a/#", "/#", False),
        ("/a", "/a", True),
        ("/a", "/a/b", False),
        ("/a", "/#", False),
    ],
)
def test_a_path_covers(outer, inner, expected):
    assert fields.path_contains(outer, inner) is expected


def test_the_rules_that_may_be_set_are_those_that_there_are():
    assert tuple(rule.name for rule in RULES) == ENTITY_RULES
    assert tuple(rule.name for rule in OF_STRUCTURES) == STRUCTURE_RULES
