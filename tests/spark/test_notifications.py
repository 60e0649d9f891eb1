"""Runs of a publication that is notified: the stage job from its inbox to its outbox."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import orjson
import pyarrow.parquet as pq
import pytest

from builders.layout import PublicationPaths
from builders.notifying import LEGACY, body, entity, gone, notify
from builders.outboxes import publication
from contexture.publications import Publication, fingerprint
from contexture.sources.http.connection import BrokerConnection
from contexture.storage.conclusion import conclude
from contexture.storage.home import Home
from contexture.storage.manifests import LandingManifest, Manifest
from contexture.storage.orders import Retry, StageOrder
from contexture.storage.outbox_reader import OutboxShardReader
from contexture.storage.quarantine_retry import write_retry_landing
from contexture_sandbox.context_broker import SeedEntity, TestBroker
from spark_jobs.entities.judge import judge_outbox
from spark_jobs.entities.prepare import prepare
from spark_jobs.entities.read import read_entities
from spark_jobs.shared.outbox import Stopwatch

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

SOURCE = {
    "kind": "ngsi",
    "connection": "context_broker",
    "service": "vehicles",
    "service_path": "/4wheels",
    "mode": "notifications",
}
PREFIX = "vehiclesxffffx002f4wheelsxffff"
NOWHERE = BrokerConnection("http://127.0.0.1:9", timeout_seconds=1)
SentRecord = tuple[str, Any]


class Runs:
    """The runs of one publication."""

    def __init__(self, spark: SparkSession, home: Path, owner: Publication) -> None:
        self.spark = spark
        self.storage = Home(str(home))
        self.owner = owner
        self.folder = PublicationPaths(owner.name)
        self.outboxes = self.storage.publication(owner.name).outboxes
        self.state = self.storage.publication(owner.name).state
        self.number = 0
        self.judges = False

    def notify(self, *entities: dict[str, object]) -> None:
        """Each in a notification of its own."""
        notify(self.storage, *(body(each) for each in entities))

    def prepare(self, mode: str = "notifications", connection: BrokerConnection = NOWHERE, **asked: Any) -> Manifest:
        """The outbox of a new run."""
        self.number += 1
        return self.again(mode, connection, **asked)

    def again(self, mode: str = "notifications", connection: BrokerConnection = NOWHERE, **asked: Any) -> Manifest:
        """The outbox of the same run."""
        order = StageOrder.model_validate(
            {
                "publication": self.owner,
                "fingerprint": fingerprint(self.owner),
                "home": self.storage.root,
                "run": f"run{self.number}",
                "mode": mode,
                "sequence": self.number,
                **asked,
            }
        )
        landing = read_entities(self.spark, order, connection, self.state.pointer().watermark)
        manifest = prepare(self.spark, order, landing, Stopwatch())
        # Great Expectations takes seconds.
        self.approved = not self.judges or judge_outbox(self.spark, order, landing, manifest).approved
        return manifest

    def concluded(self, mode: str = "notifications", connection: BrokerConnection = NOWHERE, **asked: Any) -> Manifest:
        """The outbox of a new run, concluded."""
        manifest = self.prepare(mode, connection, **asked)
        assert self.approved
        self.outboxes.set_status(manifest.outbox, "approved", reason="a test says so")
        conclude(self.storage.publication(manifest.publication), manifest, cluster="c", target="t")
        return manifest

    def retried(self, outbox: str) -> Manifest:
        """The outbox of a new run that tries again what another one's run refused, concluded."""
        self.number += 1
        retry = Retry(outbox=outbox)
        order = StageOrder(
            publication=self.owner,
            fingerprint=fingerprint(self.owner),
            home=self.storage.root,
            run=f"run{self.number}",
            mode="changes",
            sequence=self.number,
            retry=retry,
        )
        manifest = prepare(
            self.spark,
            order,
            write_retry_landing(Home(order.home).publication(order.publication.name), order, retry),
            Stopwatch(),
        )
        self.outboxes.set_status(manifest.outbox, "approved", reason="a test says so")
        conclude(self.storage.publication(manifest.publication), manifest, cluster="c", target="t")
        return manifest

    def rows(self, manifest: Manifest) -> list[dict[str, Any]]:
        readers = [OutboxShardReader(self.storage, manifest, shard.shard) for shard in manifest.shards]
        return [row for reader in readers for batch in reader.batches(0) for row in batch.to_pylist()]

    def sent(self, manifest: Manifest) -> list[SentRecord]:
        """Key's last members and the numbers of each record in sending order; None for a tombstone."""
        return [(".".join(orjson.loads(row["key"])[2::2]), numbers(row["value"])) for row in self.rows(manifest)]

    def landing(self) -> LandingManifest:
        return LandingManifest.model_validate_json(self.storage.read(self.folder.landing_manifest(f"run{self.number}")))

    def waiting(self) -> int:
        return len(self.storage.files(f"{self.owner.name}/inbox"))

    def held(self) -> list[str]:
        return sorted(row["identity"].decode() for row in self.state.table(self.state.pointer()).to_pylist())


def numbers(value: bytes | None) -> dict[str, float] | None:
    if value is None:
        return None
    entity = orjson.loads(value)
    return {name: member["value"] for name, member in entity.items() if isinstance(member, dict)}


@pytest.fixture
def runs(spark: SparkSession, tmp_path: Path) -> Callable[..., Runs]:
    """A new home with one shard, so that sending order shows; sections of the publication as given."""

    def make(**changes: Any) -> Runs:
        owner = publication(**{"source": SOURCE, "publish": {"shards": 1}, **changes})
        return Runs(spark, tmp_path / "home", owner)

    return make


@pytest.fixture
def broker():
    with TestBroker() as started:
        yield started


def held_by(broker: TestBroker, *entities: dict[str, object]) -> BrokerConnection:
    broker.load(SeedEntity("vehicles", "/4wheels", each) for each in entities)
    return BrokerConnection(broker.url, timeout_seconds=60)


def test_notifications_are_sent_in_order_and_only_the_last_of_each_entity_is_held(runs: Callable[..., Runs]) -> None:
    cars = runs()
    cars.judges = True
    cars.notify(entity(1, speed=10), entity(2, speed=20), entity(1, speed=11), entity(1, speed=11), entity(1, speed=10))

    first = cars.concluded()

    assert cars.sent(first) == [
        ("car1", {"speed": 10}),
        ("car2", {"speed": 20}),
        ("car1", {"speed": 11}),
        ("car1", {"speed": 10}),
    ]
    assert (first.read, first.accepted, first.unchanged, first.upserts, first.repeated) == (5, 5, 1, 4, 0)
    assert cars.state.pointer().identities == 2
    assert cars.waiting() == 0

    cars.notify(entity(1, speed=10), entity(2, speed=21))
    second = cars.concluded()
    assert cars.sent(second) == [("car2", {"speed": 21})]
    assert (second.unchanged, second.upserts) == (1, 1)
    assert cars.concluded().records == 0


def test_what_was_swapped_on_its_way_is_sent_in_the_order_of_the_brokers_times(runs: Callable[..., Runs]) -> None:
    def at(second: int, notified: dict[str, object]) -> dict[str, object]:
        time = {"type": "DateTime", "value": f"2026-01-01T00:00:{second:02}.000Z"}
        notified["speed"] = {**cast("dict[str, object]", notified["speed"]), "metadata": {"dateModified": time}}
        return {**notified, "dateModified": {**time, "metadata": {}}}

    cars = runs()
    cars.notify(at(2, entity(2, speed=22)), at(1, gone(1)), at(1, entity(1, speed=1)), at(1, entity(2, speed=21)))

    manifest = cars.concluded()

    assert cars.sent(manifest) == [
        ("car2", {"speed": 21}),
        ("car1", {"speed": 1}),
        ("car1", None),
        ("car2", {"speed": 22}),
    ]
    assert cars.held() == ['["vehicles","/4wheels","car2","car"]']


def test_a_record_is_that_of_a_pull_with_the_time_of_arrival(runs: Callable[..., Runs]) -> None:
    cars = runs()
    cars.notify(entity(1, speed=112.9))
    manifest = cars.prepare()
    (row,) = cars.rows(manifest)
    (landed,) = pq.read_table(cars.storage.path(f"{cars.folder.landing('run1')}/part-notified.parquet")).to_pylist()
    assert row == {
        "position": 0,
        "topic": f"{PREFIX}car1xffffcar",
        "key": b'["vehicles","/4wheels","car1","car"]',
        "value": b'{"id":"car1","type":"car","speed":{"type":"Number","value":112.9,"metadata":{}}}',
        "partition": None,
        "timestamp": landed["received_at"].replace(microsecond=landed["received_at"].microsecond // 1000 * 1000),
        "transaction": 0,
        "batch": 0,
        "sub_batch": 0,
        "events": 1,
    }
    assert (landed["operation"], landed["media_type"]) == ("upsert", "application/json; notified=ngsiv2")
    assert manifest.received_from == landed["received_at"]


def test_a_deletion_is_sent_where_it_happened(runs: Callable[..., Runs]) -> None:
    cars = runs()
    cars.notify(entity(1, speed=1), entity(2, speed=2), entity(3, speed=3))
    cars.concluded()
    cars.notify(
        gone(1), entity(2, speed=20), gone(2), entity(2, speed=2), gone(3), entity(4, speed=4), gone(4), gone(5)
    )

    manifest = cars.concluded()

    assert cars.sent(manifest) == [
        ("car1", None),
        ("car2", {"speed": 20}),
        ("car2", None),
        ("car2", {"speed": 2}),
        ("car3", None),
        ("car4", {"speed": 4}),
        ("car4", None),
    ]
    assert [row["batch"] for row in cars.rows(manifest)] == list(range(7))
    assert (manifest.read, manifest.upserts, manifest.deletes) == (8, 3, 4)
    assert cars.held() == ['["vehicles","/4wheels","car2","car"]']
    assert cars.state.pointer().identities == 1


def test_a_tombstone_goes_to_the_topic_and_key_that_were_used(runs: Callable[..., Runs]) -> None:
    cars = runs(topics={"data_model": "dm-by-service-path"})
    cars.notify(entity(1, speed=1))
    cars.concluded()
    cars.owner = publication(source=SOURCE, publish={"shards": 1})
    cars.notify(gone(1), entity(1, speed=2), gone(1))
    manifest = cars.concluded()
    assert [(row["topic"], row["value"] is None) for row in cars.rows(manifest)] == [
        ("vehiclesxffffx002f4wheels", True),
        (f"{PREFIX}car1xffffcar", False),
        (f"{PREFIX}car1xffffcar", True),
    ]
    assert cars.held() == []


def test_an_attribute_is_gone_with_its_entity_and_not_because_it_was_not_notified(runs: Callable[..., Runs]) -> None:
    cars = runs(topics={"data_model": "dm-by-attribute"})
    cars.notify(entity(1, speed=1, oil=2), entity(2, speed=3))
    cars.concluded()

    cars.notify(entity(1, speed=5))
    partial = cars.concluded()
    assert cars.sent(partial) == [("car1.speed", {"speed": 5})]
    assert (partial.deletes, cars.state.pointer().identities) == (0, 3)

    cars.notify(entity(1, fuel=7), gone(1), entity(1, speed=5))
    ended = cars.concluded()
    sent = cars.sent(ended)
    assert sent[0] == ("car1.fuel", {"fuel": 7})
    assert sorted(sent[1:4]) == [("car1.fuel", None), ("car1.oil", None), ("car1.speed", None)]
    assert sent[4:] == [("car1.speed", {"speed": 5})]
    assert [orjson.loads(each)[2::2] for each in cars.held()] == [["car1", "speed"], ["car2", "speed"]]


def test_joined_lines_do_not_reach_over_a_deletion(runs: Callable[..., Runs]) -> None:
    cars = runs(
        message={"format": "cygnus-lines", "key": "topic"},
        batches={"batch_size": 10, "batch_timeout": 3600},
        topics={"keep": "history"},
    )
    cars.notify(entity(1, speed=1), entity(1, speed=2), gone(1), entity(1, speed=3))
    rows = cars.rows(cars.concluded())
    assert [None if row["value"] is None else row["value"].count(b"\n") + 1 for row in rows] == [2, None, 1]
    assert [(row["batch"], row["events"]) for row in rows] == [(0, 2), (1, 1), (2, 1)]


def test_without_deletions_an_entity_that_is_gone_stays(runs: Callable[..., Runs]) -> None:
    cars = runs(source={**SOURCE, "detect_deletions": False})
    cars.notify(entity(1, speed=1), gone(1))
    manifest = cars.concluded()
    assert (cars.sent(manifest), manifest.deletes) == ([("car1", {"speed": 1})], 0)
    assert len(cars.held()) == 1


def test_what_was_legacy_is_written_as_it_was_received(runs: Callable[..., Runs]) -> None:
    cars = runs(message={"format": "cygnus-lines"})
    speed = b'{"name":"speed","type":"float","value":"112.9"}'
    element = b'{"type":"car","isPattern":"false","id":"car1","attributes":[%b]}' % speed
    notified = b'{"subscriptionId":"s","originator":"o","contextResponses":[{"contextElement":%b}]}' % element
    notify(cars.storage, notified, headers=LEGACY)
    (row,) = cars.rows(cars.concluded())
    assert row["value"].split(b'"body":')[1] == (
        b'{"attributes":[{"name":"speed","type":"float","value":"112.9","metadatas":[]}],'
        b'"type":"car","isPattern":"false","id":"car1"}}'
    )


def test_what_a_rule_refuses_is_quarantined_and_counted_and_the_rest_is_sent(runs: Callable[..., Runs]) -> None:
    cars = runs(quality={"max_quarantined_share": 1})
    bad = {"id": "car1", "type": "car", "speed": {"type": "Number", "value": "fast", "metadata": {}}}
    cars.notify(entity(1, speed=1), bad, entity(1, speed=2))
    manifest = cars.concluded()
    assert cars.sent(manifest) == [("car1", {"speed": 1}), ("car1", {"speed": 2})]
    assert (manifest.accepted, manifest.quarantined, manifest.read) == (2, {"number-string": 1}, 3)


def test_a_run_that_is_done_again_takes_what_it_took_and_the_next_one_the_rest(runs: Callable[..., Runs]) -> None:
    cars = runs()
    cars.notify(entity(1, speed=1))
    first = cars.prepare()
    cars.notify(entity(2, speed=2))
    assert cars.again() == first
    cars.outboxes.set_status(first.outbox, "approved", reason="a test says so")
    conclude(cars.storage.publication(first.publication), first, cluster="c", target="t")
    assert cars.waiting() == 1
    assert cars.sent(cars.concluded()) == [("car2", {"speed": 2})]


def test_what_a_rejected_run_took_is_sent_by_the_next_one(runs: Callable[..., Runs]) -> None:
    cars = runs()
    cars.notify(entity(1, speed=1))
    rejected = cars.prepare()
    cars.outboxes.set_status(rejected.outbox, "rejected", reason="dry run")
    again = cars.concluded()
    assert again.outbox != rejected.outbox
    assert cars.sent(again) == [("car1", {"speed": 1})]


def test_a_run_without_notifications_is_approved_and_empty(runs: Callable[..., Runs]) -> None:
    cars = runs(quality={"minimum_entities": 5})
    cars.judges = True
    cars.notify(entity(1, speed=1))
    cars.concluded()
    manifest = cars.concluded()
    assert (manifest.records, manifest.read, manifest.warnings, cars.approved) == (0, 0, {}, True)
    assert cars.state.pointer().identities == 1


def test_a_full_run_sends_notifications_first_and_repairs_what_they_missed(
    runs: Callable[..., Runs], broker: TestBroker
) -> None:
    cars = runs()
    cars.judges = True
    cars.notify(entity(1, speed=1), entity(2, speed=2))
    cars.concluded()
    connection = held_by(broker, entity(2, speed=2, oil=9), entity(3, speed=3))
    cars.notify(entity(2, speed=20), gone(1))

    manifest = cars.concluded("full", connection)

    sent = cars.sent(manifest)
    assert sent[:2] == [("car2", {"speed": 20}), ("car1", None)]
    assert sorted(sent[2:]) == [("car2", {"oil": 9, "speed": 2}), ("car3", {"speed": 3})]
    assert (manifest.read, manifest.source_count, manifest.warnings) == (4, 2, {})
    assert (cars.landing().notified, cars.landing().complete, cars.waiting()) == (2, True, 0)
    assert cars.state.pointer().watermark is not None
    assert [orjson.loads(each)[2] for each in cars.held()] == ["car2", "car3"]


def test_a_pull_of_changes_follows_on_what_was_notified(runs: Callable[..., Runs], broker: TestBroker) -> None:
    cars = runs()
    connection = held_by(broker, entity(1, speed=1), entity(2, speed=2), entity(3, speed=3))
    cars.concluded("full", connection)
    cars.notify(entity(1, speed=10), entity(2, speed=2))
    manifest = cars.concluded("changes", connection)
    assert cars.sent(manifest) == [("car1", {"speed": 10}), ("car1", {"speed": 1})]
    cars.notify(entity(1, speed=1), entity(2, speed=4))
    watermark = cars.state.pointer().watermark
    assert cars.sent(cars.concluded()) == [("car2", {"speed": 4})]
    assert cars.state.pointer().watermark == watermark


def test_an_attribute_that_was_notified_and_is_no_longer_there_when_all_is_read_is_gone(
    runs: Callable[..., Runs], broker: TestBroker
) -> None:
    cars = runs(topics={"data_model": "dm-by-attribute"})
    connection = held_by(broker, entity(1, speed=1))
    cars.notify(entity(1, speed=1, oil=2))
    manifest = cars.concluded("full", connection)
    assert cars.sent(manifest) == [
        ("car1.speed", {"speed": 1}),
        ("car1.oil", {"oil": 2}),
        ("car1.speed", {"speed": 1}),
        ("car1.oil", None),
    ]
    assert [orjson.loads(each)[2::2] for each in cars.held()] == [["car1", "speed"]]


def test_sending_again_sends_everything_that_was_notified(runs: Callable[..., Runs]) -> None:
    cars = runs()
    cars.notify(entity(1, speed=1))
    cars.concluded()
    cars.notify(entity(1, speed=1), entity(1, speed=1))
    assert cars.prepare(republish=True).upserts == 2


def test_what_an_ngsi_ld_broker_notified_is_written_as_it_was_received(runs: Callable[..., Runs]) -> None:
    cars = runs(
        source={**SOURCE, "api": "ngsi-ld", "service_path": "/#"},
        message={"format": "ngsi-ld"},
        topics={"naming": "fixed", "topics": ["cars"], "data_model": "dm-by-entity"},
    )
    created = {"id": "urn:car:1", "type": "car", "speed": {"type": "Property", "value": 10, "unitCode": "KMH"}}
    gone_now = {"id": "urn:car:1", "type": "car", "deletedAt": "2026-03-01T08:00:00Z"}
    headers = {"content-type": "application/json", "ngsild-tenant": "vehicles"}
    wrapped = {"id": "urn:n:1", "type": "Notification", "subscriptionId": "urn:s:1", "@context": "http://a/b.jsonld"}
    for each in (created, gone_now):
        notify(cars.storage, orjson.dumps({**wrapped, "data": [each]}), headers=headers)
    rows = cars.rows(cars.concluded())
    assert [row["key"] for row in rows] == [b'["vehicles","/","urn:car:1","car"]'] * 2
    assert orjson.loads(rows[0]["value"]) == {**created, "@context": "http://a/b.jsonld"}
    assert rows[1]["value"] is None


def test_refused_notifications_are_tried_again_in_turn_and_nothing_they_lack_is_taken_for_gone(
    runs: Callable[..., Runs],
) -> None:
    cars = runs(topics={"data_model": "dm-by-attribute"}, quality={"max_quarantined_share": 1})
    cars.notify(entity(1, doors=4))
    cars.concluded()
    cars.notify(*({**entity(1), "speed": {"type": "Number", "value": speed}} for speed in ("5", "6")))
    refused = cars.concluded()
    cars.owner = cars.owner.model_copy(
        update={"quality": cars.owner.quality.model_copy(update={"rules": {"number-string": "warning"}})}
    )

    again = cars.retried(refused.outbox)

    assert refused.quarantined == {"number-string": 2}
    assert cars.sent(again) == [("car1.speed", {"speed": "5"}), ("car1.speed", {"speed": "6"})]
    assert (again.read, again.upserts, again.deletes) == (2, 2, 0)
    assert len(cars.held()) == 2
