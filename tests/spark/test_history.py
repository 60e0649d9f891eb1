"""A backfill from the history of an NGSI-LD broker: through landing and prepare, against the test broker."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import orjson
import pytest

from builders.outboxes import publication
from builders.preparing import Preparer
from contexture.publications import fingerprint
from contexture.sources.http.connection import BrokerConnection
from contexture.sources.http.errors import NotOfferedError
from contexture.storage.manifests import Manifest
from contexture.storage.orders import ReplayOptions, StageOrder
from contexture_sandbox.context_broker import TestBroker
from contexture_sandbox.context_broker.linked_data import LinkedDataFace
from spark_jobs.entities.history import land_history
from spark_jobs.entities.read import read_entities

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

TEN = datetime(2026, 1, 1, 10, tzinfo=UTC)
HOUR = (TEN, TEN + timedelta(hours=1))
SOURCE = {
    "kind": "ngsi",
    "connection": "context_broker",
    "service": "City",
    "api": "ngsi-ld",
    "context": "https://example.org/context.jsonld",
}


class Runs(Preparer):
    """Runs that read from a broker."""

    def order(self, mode: str, **asked: Any) -> StageOrder:
        self.runs += 1
        return StageOrder.model_validate(
            {
                "publication": self.publication,
                "fingerprint": fingerprint(self.publication),
                "home": self.storage.root,
                "run": f"run{self.runs}",
                "mode": mode,
                "sequence": self.runs,
                **asked,
            }
        )

    def full(self, broker: TestBroker) -> Manifest:
        """The outbox of all that the broker holds, concluded."""
        order = self.order("full")
        read_entities(self.spark, order, BrokerConnection(broker.url), None)
        return self.conclude(self.again(order.run, mode="full"))

    def backfill(self, broker: TestBroker, **options: str) -> Manifest:
        """The outbox of the hour from ten."""
        order = self.order("backfill", interval=HOUR)
        land_history(order, BrokerConnection(broker.url))
        return self.again(order.run, mode="backfill", interval=HOUR, replay=ReplayOptions.model_validate(options))

    def sent(self, manifest: Manifest) -> list[tuple[str, str, object]]:
        """Time, entity and speed of each record, in their order."""
        return [_sent_values(record) for record in self.records(manifest)]


def _sent_values(record: dict[str, Any]) -> tuple[str, str, object]:
    value = orjson.loads(record["value"])
    return f"{record['timestamp']:%H:%M}", value["id"][-1], value.get("speed", {}).get("value")


@pytest.fixture
def broker() -> Iterator[TestBroker]:
    with TestBroker() as started:
        yield started


@pytest.fixture
def face(broker: TestBroker) -> LinkedDataFace:
    """What happened to two cars before, in and after the hour."""
    face = broker.speak_linked_data("stellio")
    for minutes, number, speed in [(-30, 1, 1), (0, 1, 2), (20, 2, 3), (40, 1, 4), (50, 2, 5), (90, 2, 6)]:
        at = (TEN + timedelta(minutes=minutes)).isoformat()
        face.load([car(number, speed)], tenant="City", at=at)
    return face


def car(number: int, speed: int) -> dict[str, object]:
    colour = {"type": "Property", "value": "red"}
    return {
        "id": f"urn:ngsi-ld:Car:{number}",
        "type": "Car",
        "speed": {"type": "Property", "value": speed},
        "colour": colour,
    }


def runs(spark: SparkSession, home: Path, **topics: object) -> Runs:
    named = {"naming": "cygnus", "data_model": "dm-by-entity", **topics}
    owner = publication(source=SOURCE, message={"format": "ngsi-ld"}, topics=named, publish={"shards": 1})
    return Runs(spark, home, owner)


def test_every_change_of_the_interval_is_sent_in_order_and_marked(
    spark: SparkSession, broker: TestBroker, face: LinkedDataFace, tmp_path: Path
) -> None:
    city = runs(spark, tmp_path, keep="history")
    city.full(broker)
    before = city.state.pointer()
    manifest = city.backfill(broker)
    assert city.sent(manifest) == [("10:00", "1", 2), ("10:20", "2", 3), ("10:40", "1", 4), ("10:50", "2", 5)]
    assert manifest.headers == (("contexture-backfill", "2026-01-01T10:00:00+00:00"),)
    assert (manifest.interval, manifest.mode, manifest.upserts, manifest.deletes) == (HOUR, "backfill", 4, 0)
    city.conclude(manifest)
    assert city.state.pointer() == before


def test_a_replica_gets_only_what_is_still_the_newest(
    spark: SparkSession, broker: TestBroker, face: LinkedDataFace, tmp_path: Path
) -> None:
    city = runs(spark, tmp_path, keep="latest")
    face.load([car(3, 7)], tenant="City", at=(TEN + timedelta(minutes=5)).isoformat())
    face.remove("urn:ngsi-ld:Car:3", tenant="City")
    city.full(broker)
    manifest = city.backfill(broker)
    # Car 2 was changed after the hour, and car 3 is gone: neither may be undone.
    assert city.sent(manifest) == [("10:40", "1", 4)]
    assert manifest.skipped_newer == 4
    elsewhere = city.backfill(broker, topic_prefix="again-")
    assert [when for when, _, _ in city.sent(elsewhere)] == ["10:00", "10:05", "10:20", "10:40", "10:50"]
    assert {record["topic"].startswith("again-City") for record in city.records(elsewhere)} == {True}
    assert (elsewhere.replayed_from, elsewhere.topic_prefix, elsewhere.skipped_newer) == ("source", "again-", 0)


def test_by_attribute_only_what_changed_is_sent(
    spark: SparkSession, broker: TestBroker, face: LinkedDataFace, tmp_path: Path
) -> None:
    city = runs(spark, tmp_path, data_model="dm-by-attribute", keep="history")
    manifest = city.backfill(broker)
    # Car 1 had its colour before; car 2 gets it in the hour.
    assert city.sent(manifest) == [
        ("10:00", "1", 2),
        ("10:20", "2", 3),
        ("10:20", "2", None),
        ("10:40", "1", 4),
        ("10:50", "2", 5),
    ]


def test_what_was_landed_is_not_read_again(
    spark: SparkSession, broker: TestBroker, face: LinkedDataFace, tmp_path: Path
) -> None:
    city = runs(spark, tmp_path)
    order = city.order("backfill", interval=HOUR)
    first = land_history(order, BrokerConnection(broker.url))
    broker.stop()
    assert land_history(order, BrokerConnection(broker.url)) == first
    assert (first.rows, first.complete, first.watermark_to, first.finished_at) == (4, False, None, HOUR[1])


def test_nothing_is_landed_where_no_history_is_shown(spark: SparkSession, broker: TestBroker, tmp_path: Path) -> None:
    broker.speak_linked_data("orion-ld").load([car(1, 1)], tenant="City")
    city = runs(spark, tmp_path)
    order = city.order("backfill", interval=HOUR)
    with pytest.raises(NotOfferedError, match="serves no history"):
        land_history(order, BrokerConnection(broker.url))
    assert not city.storage.exists(city.folder.landing_manifest(order.run))
