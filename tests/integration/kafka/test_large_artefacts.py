"""An artefact of any size up to the limit goes from the outbox to a reader; a larger one stops its producer."""

from __future__ import annotations

import random
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path
from uuid import uuid4

import pytest

from builders.registry_outboxes import URN, RegistryChange, registry_outbox, structures
from contexture.errors import RejectedError
from contexture.kafka import ClientSettings, TopicSpec, ensure_topics, read_committed
from contexture.monitoring import RunTables, TransactionStatus
from contexture.sending.target import KafkaTarget
from contexture.storage.home import Home
from contexture.storage.manifests import Manifest
from contexture_airflow.run import StagedOutbox
from contexture_airflow.run_events import open_run_events
from contexture_airflow.steps.publish import build_shard_attempts, send_shard
from contexture_airflow.steps.quality_gate import apply_verdict
from contexture_sandbox.kafka import EmbeddedKafka

pytestmark = pytest.mark.integration

MEGABYTE = 1_000_000
SENT, PENDING = TransactionStatus.SENT, TransactionStatus.PENDING


def noise(size: int) -> bytes:
    """A body that no codec makes smaller, so that every limit is met by its full size."""
    return random.Random(size).randbytes(size)


class Registry:
    """A registry publication on a broker of the tests, sent as its tasks send it."""

    def __init__(self, folder: Path, kafka: EmbeddedKafka, **connection: object) -> None:
        self.name = f"large-{uuid4().hex[:8]}"
        self.storage = Home(str(folder))
        self.settings = ClientSettings.from_extra({**kafka.client_settings(), **connection})
        self.readers = ClientSettings.from_extra(kafka.client_settings())
        self.publication = structures(self.name, self.name)

    def publish(self, *log: RegistryChange, flush: bool = False) -> Manifest:
        manifest = registry_outbox(self.storage, self.publication, 1, log, flush=flush)
        staged = StagedOutbox(
            publication=self.name, run=manifest.run, outbox=manifest.outbox, sequence=1, records=1, shards=(0,)
        )
        target = KafkaTarget(self.settings, self.publication)
        apply_verdict(
            self.storage.publication(staged.publication),
            staged,
            dry_run=False,
            target_for=lambda *_: target,
            report=lambda sentence: None,
        )
        store = self.storage.publication(self.name)
        with open_run_events(self.storage, pytest.fail) as events:
            shard_events = events.shard(manifest, 0)
            send_shard(
                self.storage.publication(manifest.publication),
                manifest,
                0,
                target,
                build_shard_attempts(store, manifest.outbox, 0, self.publication),
                shard_events,
            )
        return manifest

    def read(self) -> Iterator[tuple[str, str]]:
        """Keys and digests of what a reader gets."""
        for record in read_committed(self.readers, [self.name]):
            yield (record.key or b"").decode(), sha256(record.value or b"").hexdigest()

    def statuses(self) -> list[tuple[int | None, TransactionStatus]]:
        store = RunTables.of_home(self.storage.root)
        assert store is not None
        rows = sorted(store.transactions(self.name), key=lambda row: row.number)
        return [(row.source_transaction, row.status) for row in rows]


def around(body: bytes) -> tuple[RegistryChange, RegistryChange, RegistryChange]:
    """A large artefact between two small ones, each a transaction."""
    return RegistryChange(1, ("FIRST",)), RegistryChange(2, ("LARGE",), body=body), RegistryChange(3, ("LAST",))


def digests(*log: RegistryChange) -> list[tuple[str, str]]:
    return [(key.decode(), sha256(value or b"").hexdigest()) for each in log for key, value in each.records()]


def test_an_artefact_of_25_megabytes_needs_no_setting(tmp_path: Path, kafka: EmbeddedKafka) -> None:
    registry, log = Registry(tmp_path, kafka), around(noise(25 * MEGABYTE))
    registry.publish(*log)
    assert list(registry.read()) == digests(*log)
    assert registry.statuses() == [(1, SENT), (2, SENT), (3, SENT)]


@pytest.mark.slow
@pytest.mark.parametrize("codec", ["lz4", "zstd", "none"])
def test_an_artefact_of_190_megabytes_is_within_the_limit(tmp_path: Path, kafka: EmbeddedKafka, codec: str) -> None:
    registry = Registry(tmp_path, kafka, **{"compression.type": codec})
    log = around(noise(190 * MEGABYTE))
    registry.publish(*log)
    assert list(registry.read()) == digests(*log)


def assert_stopped(registry: Registry, log: tuple[RegistryChange, ...], status: TransactionStatus, match: str) -> None:
    """What came before is sent; of the large transaction nothing shows; nothing later is sent."""
    with pytest.raises(RejectedError, match=match) as refused:
        registry.publish(*log)
    assert refused.value.context["topic"] == registry.name
    assert list(registry.read()) == digests(log[0])
    assert registry.statuses() == [(1, SENT), (2, status), (3, PENDING)]


@pytest.mark.slow
def test_an_artefact_of_211_megabytes_stops_the_producer(tmp_path: Path, kafka: EmbeddedKafka) -> None:
    registry, urn = Registry(tmp_path, kafka), URN.format("LARGE").replace("(", r"\(").replace(")", r"\)")
    match = f"MSG_SIZE_TOO_LARGE.*the largest is {urn} with 2110000"
    assert_stopped(registry, around(noise(211 * MEGABYTE)), TransactionStatus.LOCAL_FAILURE, match)


def test_the_connections_own_limit_stops_the_producer_before_the_record_leaves(
    tmp_path: Path, kafka: EmbeddedKafka
) -> None:
    registry = Registry(tmp_path, kafka, **{"message.max.bytes": 1_000_000})
    assert_stopped(registry, around(noise(2 * MEGABYTE)), TransactionStatus.LOCAL_FAILURE, "MSG_SIZE_TOO_LARGE")


def test_a_topic_with_a_lower_limit_stops_the_producer_by_the_brokers_word(
    tmp_path: Path, kafka: EmbeddedKafka
) -> None:
    registry = Registry(tmp_path, kafka)
    ensure_topics(registry.readers, [TopicSpec(registry.name, config={"max.message.bytes": "1000000"}, keep="latest")])
    assert_stopped(registry, around(noise(2 * MEGABYTE)), TransactionStatus.BROKER_ERROR, "MSG_SIZE_TOO_LARGE")


@pytest.mark.slow
def test_brokers_that_take_no_such_request_stop_the_producer_at_once(tmp_path: Path) -> None:
    with EmbeddedKafka(broker_config={"socket.request.max.bytes": "60000000"}) as kafka:
        registry, log = Registry(tmp_path, kafka), around(noise(70 * MEGABYTE))
        assert_stopped(registry, log, TransactionStatus.LOCAL_FAILURE, r"socket\.request\.max\.bytes")


def test_brokers_compare_what_is_compressed(tmp_path: Path, kafka: EmbeddedKafka) -> None:
    registry, log = Registry(tmp_path, kafka), around(b"<code/>" * MEGABYTE)
    ensure_topics(registry.readers, [TopicSpec(registry.name, config={"max.message.bytes": "1000000"}, keep="latest")])
    registry.publish(*log)
    assert list(registry.read()) == digests(*log)


def flush(structures_in_it: int, body_bytes: int) -> RegistryChange:
    """All that a registry holds: bodies that differ and compress as structures do."""
    names = tuple(f"S{number}" for number in range(structures_in_it))
    return RegistryChange(40, names, body=noise(body_bytes // 10) + b"<code/>" * (body_bytes * 9 // 70))


@pytest.mark.parametrize(
    ("structures_in_it", "body_bytes"),
    [(1_500, 2_000), pytest.param(15_000, 20_000, marks=pytest.mark.slow)],
    ids=["short", "whole"],
)
def test_a_full_flush_is_one_transaction(
    tmp_path: Path, kafka: EmbeddedKafka, structures_in_it: int, body_bytes: int
) -> None:
    registry, whole = Registry(tmp_path, kafka), flush(structures_in_it, body_bytes)
    registry.publish(whole, flush=True)
    assert list(registry.read()) == digests(whole)
    assert registry.statuses() == [(40, SENT)]
