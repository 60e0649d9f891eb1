"""Outboxes of publications with an envelope: each record is an event, and reads as one."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from builders.landing import MORNING, car
from builders.notifying import body, entity, gone, notify
from builders.outboxes import publication
from builders.preparing import Preparer
from contexture.publications import fingerprint
from contexture.records.cloudevents import decode
from contexture.sources.http.connection import BrokerConnection
from contexture.storage.manifests import Manifest
from contexture.storage.orders import StageOrder
from spark_jobs.entities.prepare import prepare
from spark_jobs.entities.read import read_entities
from spark_jobs.shared.outbox import Stopwatch

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

KINDS = ("binary", "structured")
Prepare = Callable[..., Preparer]


@pytest.fixture
def preparer(spark: SparkSession, tmp_path: Path) -> Prepare:
    """A new home with a publication of the cars in an envelope."""

    def make(kind: str, home: str = "home", message: dict[str, str] | None = None, **changes: Any) -> Preparer:
        sections = {"message": {"envelope": f"cloudevents-{kind}", **(message or {})}, **changes}
        return Preparer(spark, tmp_path / home, publication(**sections))

    return make


def headers(manifest: Manifest, row: dict[str, Any]) -> list[tuple[str, bytes]]:
    """The headers of a record as the sender gives them."""
    varying = [(name.removeprefix("header:"), value) for name, value in row.items() if name.startswith("header:")]
    constant = [(name, value.encode()) for name, value in manifest.headers]
    return [*constant, *((name, value) for name, value in varying if value is not None)]


def events(runs: Preparer, manifest: Manifest) -> list[dict[str, Any]]:
    """The events of all records, by subject and attribute."""
    read = [decode(headers(manifest, row), row["key"], row["value"]) for row in runs.records(manifest)]
    return sorted(read, key=lambda event: (str(event["subject"]), str(event.get("attributename"))))


def later(minutes: int) -> Any:
    return MORNING + timedelta(minutes=minutes)


@pytest.mark.parametrize("kind", KINDS)
def test_each_record_is_an_event_that_says_whose_it_is(preparer: Prepare, kind: str) -> None:
    runs = preparer(kind)

    first, second = events(runs, runs.concluded([car(1, 10), car(2, 20.5)]))

    assert len(first.pop("id")) == 32
    assert first == {
        "specversion": "1.0",
        "source": "/ngsi/context_broker/vehicles/4wheels",
        "type": "contexture.ngsi.entity.upsert",
        "subject": "car1",
        "time": "2026-03-01T08:00:00Z",
        "entitytype": "car",
        "datacontenttype": "application/json",
        "data": {"id": "car1", "type": "car", "speed": {"type": "Number", "value": 10, "metadata": {}}},
    }
    assert second["data"]["speed"]["value"] == 20.5


def test_both_modes_send_the_same_events(preparer: Prepare) -> None:
    sent = [events(runs, runs.prepare([car(1, 10), car(2, 20)])) for runs in (preparer(kind, kind) for kind in KINDS)]

    assert sent[0] == sent[1]
    assert sent[0][0]["id"] != sent[0][1]["id"]


@pytest.mark.parametrize("kind", KINDS)
def test_a_deletion_is_a_tombstone_that_names_what_is_gone(preparer: Prepare, kind: str) -> None:
    runs = preparer(kind)
    runs.concluded([car(1, 10), car(2, 20)])
    runs.concluded([car(2, 20)])

    manifest = runs.concluded([car(2, 20)])

    (row,) = runs.records(manifest)
    assert (row["key"], row["value"]) == (b'["vehicles","/4wheels","car1","car"]', None)
    (event,) = events(runs, manifest)
    assert len(event.pop("id")) == 32
    assert event == {
        "specversion": "1.0",
        "source": "/ngsi/context_broker/vehicles/4wheels",
        "type": "contexture.ngsi.entity.delete",
        "subject": "car1",
        "entitytype": "car",
    }


@pytest.mark.parametrize("kind", KINDS)
def test_an_id_lives_as_long_as_the_content_it_names(preparer: Prepare, kind: str) -> None:
    runs = preparer(kind)
    first = runs.concluded([car(1, 10)])
    before = runs.records(first)

    again = events(runs, runs.concluded([car(1, 10)], mode="full"))
    changed = events(runs, runs.concluded([car(1, 20, modified=later(1))]))
    back = events(runs, runs.concluded([car(1, 10, modified=later(2))]))

    ids = [sent[0]["id"] for sent in (events(runs, first), again, changed, back)]
    assert ids[0] == ids[1]
    assert len(set(ids)) == 3
    assert runs.records(first) == before


@pytest.mark.parametrize("kind", KINDS)
def test_attributes_are_sent_one_by_one_and_a_removed_one_is_sent_too(preparer: Prepare, kind: str) -> None:
    runs = preparer(kind, topics={"data_model": "dm-by-attribute"})
    colour = {"type": "Text", "value": "red", "metadata": {}}

    sent = events(runs, runs.concluded([{**car(1, 10), "colour": colour}]))
    removed = events(runs, runs.concluded([car(1, 10, modified=later(1))]))

    assert [(event["attributename"], event["type"]) for event in [*sent, *removed]] == [
        ("colour", "contexture.ngsi.attribute.upsert"),
        ("speed", "contexture.ngsi.attribute.upsert"),
        ("colour", "contexture.ngsi.attribute.delete"),
    ]
    assert sent[0]["data"] == {"id": "car1", "type": "car", "colour": colour}


@pytest.mark.parametrize("kind", KINDS)
def test_every_form_has_its_media_type_and_each_topic_the_same_event(preparer: Prepare, kind: str) -> None:
    for form, media_type in (("ngsi-ld", "application/ld+json"), ("cygnus-lines", "application/json")):
        runs = preparer(kind, form, {"format": form}, topics={"naming": "fixed", "topics": ["A", "B"]})
        one, other = events(runs, runs.prepare([car(1, 10)]))
        assert one == other
        assert one["datacontenttype"] == media_type
        assert isinstance(one["data"], dict)


def test_literals_stay_as_they_were_written(preparer: Prepare) -> None:
    odd = b'{"id":"car1","type":"car","speed":{"type":"Number","value":1.0E2,"metadata":{}}}'
    for kind in KINDS:
        runs = preparer(kind, kind)
        (row,) = runs.records(runs.prepare([odd]))
        assert b'"value":1.0E2' in row["value"]


def test_headers_count_into_the_size_that_kafka_takes(preparer: Prepare) -> None:
    (row,) = (runs := preparer("binary", "large")).records(runs.prepare([car(1, 10)]))
    limit = len(row["key"]) + len(row["value"])
    for kind in KINDS:
        runs = preparer(kind, kind, topics={"config": {"max.message.bytes": str(limit)}})
        assert runs.prepare([car(1, 10)]).quarantined == {"size": 1}


def test_equal_runs_give_equal_bytes(preparer: Prepare) -> None:
    for kind in KINDS:
        one, other = (preparer(kind, f"{kind}{number}") for number in range(2))
        assert one.records(one.prepare([car(1, 10)])) == other.records(other.prepare([car(1, 10)]))


def test_without_an_envelope_nothing_is_said(preparer: Prepare) -> None:
    runs = preparer("binary", message={"envelope": "none"})

    manifest = runs.prepare([car(1, 10)])

    assert manifest.headers == ()
    assert not [name for name in runs.records(manifest)[0] if name.startswith("header:")]


@pytest.mark.parametrize("kind", KINDS)
def test_notified_deletions_are_among_events_with_ids_of_their_own(spark: Any, tmp_path: Path, kind: str) -> None:
    source = {"kind": "ngsi", "connection": "context_broker", "service": "vehicles", "service_path": "/4wheels"}
    owner = publication(source={**source, "mode": "notifications"}, message={"envelope": f"cloudevents-{kind}"})
    runs = Preparer(spark, tmp_path, owner)
    # Without times only their place distinguishes the first from the last of them.
    notify(runs.storage, *(body(each) for each in (entity(1, speed=5), gone(1), entity(1, speed=5), gone(1))))
    order = StageOrder(
        publication=owner,
        fingerprint=fingerprint(owner),
        home=runs.storage.root,
        run="run1",
        mode="notifications",
        sequence=1,
    )
    landing = read_entities(spark, order, BrokerConnection("http://127.0.0.1:9", timeout_seconds=1), None)
    manifest = prepare(spark, order, landing, Stopwatch())

    sent = [decode(headers(manifest, row), row["key"], row["value"]) for row in runs.records(manifest)]

    assert [event["type"].rpartition(".")[2] for event in sent] == ["upsert", "delete", "upsert", "delete"]  # type: ignore[attr-defined]
    assert len({event["id"] for event in sent}) == 4
