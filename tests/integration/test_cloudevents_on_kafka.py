"""CloudEvents on a real Kafka: read back by a client that shares no code with ours, and after compaction."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, cast
from uuid import uuid4

import orjson
import pytest

from builders.outboxes import publication
from builders.plain_kafka import consumed, made_topic, produce
from builders.whole_runs import Lasting, WholeRuns
from contexture.kafka import TopicRecord, read_committed
from contexture.publications import Publication
from contexture.records.cloudevents import Record, decode, encode
from contexture.sources.http.connection import BrokerConnection
from contexture_sandbox.context_broker import SeedEntity, TestBroker
from contexture_sandbox.kafka import EmbeddedKafka
from spark_jobs import pipeline

pytestmark = pytest.mark.integration

EAGER = {
    "cleanup.policy": "compact",
    "segment.ms": "100",
    "min.cleanable.dirty.ratio": "0.01",
    "delete.retention.ms": "100",
    "min.compaction.lag.ms": "0",
    "max.compaction.lag.ms": "1000",
}
EVENT: dict[str, object] = {"specversion": "1.0", "id": "17", "source": "/cars", "type": "moved"}
EVERY_BYTE = bytes(range(256))
ENTITY = {"id": "car1", "type": "car", "speed": {"type": "Number", "value": 10, "metadata": {}}}


@pytest.fixture(scope="module")
def eager() -> Iterator[EmbeddedKafka]:
    """A broker whose log cleaner looks every second."""
    with EmbeddedKafka(broker_config={"log.cleaner.backoff.ms": "1000"}) as cluster:
        yield cluster


def awaited(condition: Callable[[], bool], *, seconds: float = 180) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "compaction did not come to it"
        time.sleep(1)


def test_a_binary_event_arrives_with_exactly_its_bytes(kafka: EmbeddedKafka) -> None:
    topic = made_topic(kafka)
    sent = {**EVENT, "subject": "Euro € 😀 50%", "datacontenttype": 'a/b; x="y z"', "flag": False, "data": EVERY_BYTE}

    produce(kafka, topic, encode(sent, mode="binary", key="Zürich"), encode(EVENT, mode="binary"))

    first, second = consumed(kafka, topic)
    assert first.headers() == [
        ("ce_specversion", b"1.0"),
        ("ce_id", b"17"),
        ("ce_source", b"/cars"),
        ("ce_type", b"moved"),
        ("ce_subject", "Euro € 😀 50%".encode()),
        ("content-type", b'a/b; x="y z"'),
        ("ce_flag", b"false"),
    ]
    assert (first.key(), first.value()) == ("Zürich".encode(), EVERY_BYTE)
    assert (second.key(), second.value()) == (None, None)


def test_a_structured_event_arrives_as_json_with_its_media_type(kafka: EmbeddedKafka) -> None:
    topic = made_topic(kafka)
    sent = {**EVENT, "datacontenttype": "application/json", "flag": False, "data": {"speed": [1.5, None]}}

    produce(kafka, topic, encode(sent, mode="structured", key=b"\xff"), encode(EVENT, mode="structured"))

    first, second = consumed(kafka, topic)
    assert first.headers() == [("content-type", b"application/cloudevents+json")]
    assert (first.key(), orjson.loads(first.value() or b"")) == (b"\xff", sent)
    assert orjson.loads(second.value() or b"") == EVENT
    assert decode(cast(Any, first.headers()), first.key(), first.value()) == sent


def test_compaction_deletes_a_key_by_a_binary_event_without_data_and_by_no_other(eager: EmbeddedKafka) -> None:
    topic = made_topic(eager, **EAGER)
    full = {**EVENT, "data": {"speed": 5}}
    empty = {**EVENT, "datacontenttype": "text/plain", "data": ""}
    first = [encode(full, mode="binary", key=key) for key in ("K1", "K2", "K3")]
    then = [
        encode(EVENT, mode="binary", key="K1"),
        encode(EVENT, mode="structured", key="K2"),
        encode(empty, mode="binary", key="K3"),
    ]
    produce(eager, topic, *first, *then)

    def compacted() -> bool:
        # Only segments that are closed are compacted.
        produce(eager, topic, encode(full, mode="binary", key=f"filler {uuid4().hex[:4]}"))
        return sorted(each.key() for each in consumed(eager, topic) if each.key()[:1] == b"K") == [b"K2", b"K3"]

    awaited(compacted)

    left = {each.key(): each for each in consumed(eager, topic)}
    assert orjson.loads(left[b"K2"].value() or b"") == EVENT
    assert left[b"K3"].value() == b""


class Cars(WholeRuns):
    """The cars of a broker, in envelopes."""

    def publication(self, kind: str) -> Publication:
        config = {name: value for name, value in EAGER.items() if name != "cleanup.policy"}
        return publication(
            name=self.name,
            topics={"naming": "fixed", "topics": [self.topic], "config": config},
            message={"envelope": f"cloudevents-{kind}"},
            publish={"shards": 1},
        )

    def records(self) -> list[TopicRecord]:
        return list(read_committed(self.settings, [self.topic]))

    def events(self) -> list[dict[str, Any]]:
        return [decode(each.headers, each.key, each.value) for each in self.records()]


def car(number: int, speed: float, *, delete: bool = False) -> SeedEntity:
    body = {**ENTITY, "id": f"car{number}", "speed": {"type": "Number", "value": speed, "metadata": {}}}
    return SeedEntity("vehicles", "/4wheels", body, delete=delete)


@pytest.mark.parametrize("kind", ["binary", "structured"])
def test_a_publication_in_an_envelope_keeps_a_replica_of_events(
    kind: str, tmp_path: Path, eager: EmbeddedKafka, spark: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pipeline, "start_session", lambda _name: Lasting(spark))
    with TestBroker() as broker:
        connection = BrokerConnection(broker.url, timeout_seconds=60)
        monkeypatch.setenv("CONTEXTURE_SOURCE_CONNECTION", connection.to_json())
        runs = Cars(tmp_path, eager)
        owner = runs.publication(kind)
        broker.load([car(1, 10), car(2, 20)])
        runs.ran(owner)

        first = {event["subject"]: event for event in runs.events()}
        assert {event["data"]["speed"]["value"] for event in first.values()} == {10, 20}
        runs.ran(owner, mode="full")
        # The last two: the eager cleaner may have removed those before them already.
        again = runs.events()[-2:]
        assert {event["id"] for event in again} == {event["id"] for event in first.values()}

        broker.load([car(1, 10, delete=True)])
        assert [runs.ran(owner).deletes for _ in range(2)] == [0, 1]
        last = runs.records()[-1]
        assert (last.key, last.value) == (b'["vehicles","/4wheels","car1","car"]', None)
        gone = decode(last.headers, last.key, last.value)
        assert (gone["type"], gone["subject"]) == ("contexture.ngsi.entity.delete", "car1")
        assert runs.verified(owner) == (True, {"bytes": 1})
        runs.forget_outboxes()
        assert runs.verified(owner) == (True, {"content": 1})

        awaited(lambda: _rolled(runs, eager) == {b'["vehicles","/4wheels","car2","car"]'})
        (left,) = (each for each in runs.records() if b"car2" in (each.key or b""))
        assert decode(left.headers, left.key, left.value)["data"]["speed"]["value"] == 20  # type: ignore[index]


def _rolled(runs: Cars, kafka: EmbeddedKafka) -> set[bytes | None]:
    """Closes the segment by a record more; gives the keys of cars that are left."""
    produce(kafka, runs.topic, Record([], b"filler", f"filler {uuid4().hex[:4]}".encode()))
    return {each.key for each in runs.records() if b"filler" not in (each.key or b"")}
