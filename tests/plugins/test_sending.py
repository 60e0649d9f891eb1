"""What is sent, and what is noted when it fails."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from builders.fake_target import FakeTarget
from builders.outboxes import NOON, outbox, publication, records
from contexture.errors import ConfigurationError, RejectedError, RetriableError
from contexture.kafka import FencedError
from contexture.storage.home import Home
from contexture.storage.manifests import Manifest
from contexture_airflow.steps.publish import ShardAttempts, build_shard_attempts, send_shard


@pytest.fixture
def storage(tmp_path: Path) -> Home:
    return Home(str(tmp_path))


def attempts(storage: Home) -> ShardAttempts:
    return build_shard_attempts(storage.publication("vehicles"), "outbox1", 0, publication())


def approved(storage: Home) -> Manifest:
    manifest = outbox(storage, publication(), 1, [records("car1")])
    storage.publication("vehicles").outboxes.set_status("outbox1", "approved", reason="test")
    return manifest


def test_what_no_attempt_can_heal_is_noted_as_stopped(storage: Home) -> None:
    kafka = FakeTarget(failures=[RejectedError("too large", next_step="raise the limit")])
    manifest, sending = approved(storage), attempts(storage)
    # The target asks for a wait only after what counts, so here it raises at once.
    kafka.send = raising(kafka.failures[0])  # type: ignore[method-assign]
    with pytest.raises(RejectedError):
        send_shard(storage.publication(manifest.publication), manifest, 0, kafka, sending)
    noted = storage.publication("vehicles").attempts.of_shard("outbox1", 0)
    assert noted is not None
    assert (noted.state, noted.attempt, noted.message) == ("stopped", 1, "too large. Next: raise the limit")


def test_a_fenced_sender_leaves_the_notes_to_the_other_one(storage: Home) -> None:
    kafka, manifest = FakeTarget(), approved(storage)
    kafka.send = raising(FencedError("another sender", next_step="leave it"))  # type: ignore[method-assign]
    with pytest.raises(FencedError):
        send_shard(storage.publication(manifest.publication), manifest, 0, kafka, attempts(storage))
    assert storage.publication("vehicles").attempts.of_outbox("outbox1") == ()


def test_success_ends_the_story_of_a_shard_that_failed(storage: Home) -> None:
    manifest = approved(storage)
    kafka = FakeTarget(failures=[RetriableError("no broker", next_step="wait")], topics={"cars"})
    send_shard(storage.publication(manifest.publication), manifest, 0, kafka, attempts(storage))
    noted = storage.publication("vehicles").attempts.of_shard("outbox1", 0)
    assert noted is not None
    assert (noted.state, noted.failed, kafka.waited_ms) == ("sent", 1, [10])


def raising(error: Exception) -> Callable[..., Any]:
    def send(*_: object) -> None:
        raise error

    return send


def test_what_is_concluded_is_not_sent_again_though_the_ledger_of_a_backfill_is_lost(storage: Home) -> None:
    """A person clears its publish task; ledgers of backfills are not watched."""
    interval = (NOON, NOON + timedelta(minutes=5))
    manifest = outbox(storage, publication(), 1, [records("car1")], mode="backfill", interval=interval)
    for status in ("approved", "concluded"):
        storage.publication("vehicles").outboxes.set_status("outbox1", status, reason="test")
    lost = FakeTarget(topics={"cars"})
    result = send_shard(storage.publication(manifest.publication), manifest, 0, lost, attempts(storage))
    assert (result.records_sent, result.records_skipped, result.superseded) == (0, 1, False)
    assert (lost.sent, lost.ledger) == ([], {})


def test_changes_for_one_cluster_are_not_sent_to_another(storage: Home) -> None:
    """A publish task that is cleared after the connection was changed: the new cluster lacks everything else."""
    manifest = outbox(storage, publication(), 1, [records("car1")], cluster="cluster-a")
    storage.publication("vehicles").outboxes.set_status("outbox1", "approved", reason="test")
    elsewhere = FakeTarget(cluster_id="cluster-b", topics={"cars"})
    with pytest.raises(ConfigurationError, match="made for another Kafka cluster") as refused:
        send_shard(storage.publication(manifest.publication), manifest, 0, elsewhere, attempts(storage))
    assert (elsewhere.sent, elsewhere.ledger_topic) == ([], None)
    assert "start a new run: it abandons this outbox and sends everything" in refused.value.next_step
    back = FakeTarget(topics={"cars"})
    assert send_shard(storage.publication(manifest.publication), manifest, 0, back, attempts(storage)).records_sent == 1


@pytest.mark.parametrize("end", ["prepared", "rejected", "abandoned"])
def test_only_an_approved_outbox_is_sent(storage: Home, end: str, move: Callable[..., None]) -> None:
    manifest, kafka = outbox(storage, publication(), 1, [records("car1")]), FakeTarget()
    move(storage, "outbox1", end)
    with pytest.raises(ConfigurationError, match=f"outbox outbox1 is {end}"):
        send_shard(storage.publication(manifest.publication), manifest, 0, kafka, attempts(storage))
    assert kafka.sent == []


@pytest.fixture
def move() -> Callable[..., None]:
    def moved(storage: Home, name: str, to: str) -> None:
        if to != "prepared":
            storage.publication("vehicles").outboxes.set_status(name, to, reason="test")  # type: ignore[arg-type]

    return moved


def test_topics_are_counted_over_all_shards(storage: Home) -> None:
    manifest = outbox(storage, publication(), 1, [records("car1", "car2"), records("bike1", topic="bikes")])
    assert storage.publication(manifest.publication).outbox(manifest.outbox).topic_counts() == {"bikes": 1, "cars": 2}
