"""A ledger that is lost is noticed before anything is sent again."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import pytest

from builders.fake_target import FakeTarget
from builders.outboxes import NOON, outbox, publication, records
from contexture.kafka.errors import KafkaConfigurationError, LedgerLostError
from contexture.storage.home import Home
from contexture.storage.manifests import Manifest
from contexture_airflow.steps.publish import build_shard_attempts, check_ledger, send_shard, shard_row

INTERVAL = (NOON, NOON + timedelta(minutes=5))


@pytest.fixture
def storage(tmp_path: Path) -> Home:
    return Home(str(tmp_path))


@pytest.fixture
def kafka() -> FakeTarget:
    return FakeTarget(topics={"cars"})


def send(storage: Home, kafka: FakeTarget, manifest: Manifest) -> int:
    store = storage.publication("vehicles")
    store.outboxes.set_status(manifest.outbox, "approved", reason="test")
    attempts = build_shard_attempts(store, manifest.outbox, 0, publication())
    return send_shard(storage.publication(manifest.publication), manifest, 0, kafka, attempts).records_sent


def test_the_first_send_makes_the_ledger_and_notes_which_it_is(storage: Home, kafka: FakeTarget) -> None:
    assert send(storage, kafka, outbox(storage, publication(), 1, [records("car1")])) == 1

    seen = storage.publication("vehicles").ledger.known()
    assert seen is not None
    assert (seen.cluster, seen.topic_id) == ("cluster-a", "ledger-a")
    assert storage.publication("vehicles").ledger.committed_shards("ledger-a") == {0}
    check_ledger(storage.publication("vehicles"), kafka)


def removed(kafka: FakeTarget) -> None:
    kafka.ledger_topic = None


def made_again(kafka: FakeTarget) -> None:
    kafka.ledger_topic = "ledger-b"


@pytest.mark.parametrize(
    ("lose", "how"), [(removed, "does not exist any more"), (made_again, "was deleted and created again")]
)
def test_a_lost_ledger_stops_sending_and_says_how_to_rebuild_it(
    storage: Home, kafka: FakeTarget, lose: Callable[[FakeTarget], None], how: str
) -> None:
    send(storage, kafka, outbox(storage, publication(), 1, [records("car1")]))
    lose(kafka)

    with pytest.raises(LedgerLostError, match=how) as refused:
        send(storage, kafka, outbox(storage, publication(), 2, [records("car2")]))
    with pytest.raises(LedgerLostError, match=how):
        check_ledger(storage.publication("vehicles"), kafka)

    assert "contexture ledger rebuild vehicles --dry-run" in refused.value.next_step
    assert [key for _, key, _ in kafka.sent] == [b"car1"]


def test_a_ledger_that_holds_nothing_is_lost_once_it_was_written(storage: Home, kafka: FakeTarget) -> None:
    check_ledger(storage.publication("vehicles"), kafka)
    send(storage, kafka, outbox(storage, publication(), 1, [records("car1")]))
    kafka.ledger.clear()

    with pytest.raises(LedgerLostError, match="holds nothing of shard 0 any more"):
        check_ledger(storage.publication("vehicles"), kafka)


def test_another_cluster_has_a_ledger_of_its_own(storage: Home, kafka: FakeTarget) -> None:
    send(storage, kafka, outbox(storage, publication(), 1, [records("car1")]))
    elsewhere = FakeTarget(cluster_id="cluster-b", topics={"cars"}, ledger_topic="ledger-c")

    check_ledger(storage.publication("vehicles"), elsewhere)
    assert send(storage, elsewhere, outbox(storage, publication(), 2, [records("car2")])) == 1

    seen = storage.publication("vehicles").ledger.known()
    assert seen is not None
    assert (seen.cluster, seen.topic_id) == ("cluster-b", "ledger-c")


def test_backfills_have_a_ledger_that_is_not_watched(storage: Home, kafka: FakeTarget) -> None:
    past = outbox(storage, publication(), 1, [records("car1")], mode="backfill", interval=INTERVAL)

    assert send(storage, kafka, past) == 1
    assert storage.publication("vehicles").ledger.known() is None


def test_a_sender_is_given_what_earlier_ones_left_in_the_ledger(storage: Home, kafka: FakeTarget) -> None:
    send(storage, kafka, outbox(storage, publication(), 1, [records("car1")]))
    send(storage, kafka, outbox(storage, publication(), 2, [records("car2")]))

    assert kafka.expected_rows == ["none", "certain"]


def test_a_row_is_possible_where_a_sender_ended_before_its_first_commit_was_kept(
    storage: Home, kafka: FakeTarget
) -> None:
    half = outbox(storage, publication(), 1, [records("car1")])
    kafka.topics.clear()
    with pytest.raises(AssertionError, match="topics are there"):
        send(storage, kafka, half)
    kafka.topics.add("cars")
    send_shard(
        storage.publication(half.publication),
        half,
        0,
        kafka,
        build_shard_attempts(storage.publication("vehicles"), half.outbox, 0, publication()),
    )

    assert kafka.expected_rows == ["none", "possible"]


def test_each_backfill_has_rows_of_its_own(storage: Home, kafka: FakeTarget) -> None:
    past = outbox(storage, publication(), 1, [records("car1")], mode="backfill", interval=INTERVAL)
    send(storage, kafka, past)
    again = outbox(storage, publication(), 2, [records("car1")], mode="backfill", interval=INTERVAL)
    send(storage, kafka, again)

    assert kafka.expected_rows == ["none", "none"]
    assert shard_row(storage.publication(past.publication), past, 0).expected == "certain"


@pytest.mark.parametrize("policy", ["delete", "compact,delete"])
def test_a_ledger_of_which_kafka_would_remove_rows_stops_sending(storage: Home, kafka: FakeTarget, policy: str) -> None:
    send(storage, kafka, outbox(storage, publication(), 1, [records("car1")]))
    kafka.policy = policy

    with pytest.raises(KafkaConfigurationError, match=f"cleanup.policy={policy}") as refused:
        send(storage, kafka, outbox(storage, publication(), 2, [records("car2")]))
    with pytest.raises(KafkaConfigurationError, match=f"cleanup.policy={policy}"):
        check_ledger(storage.publication("vehicles"), kafka)

    assert "--add-config cleanup.policy=compact" in refused.value.next_step
    assert [key for _, key, _ in kafka.sent] == [b"car1"]
