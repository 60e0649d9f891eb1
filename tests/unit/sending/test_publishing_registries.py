"""Changes of a registry are sent once and in its order, by however many instances, against a cluster in memory."""

from __future__ import annotations

import pytest

from builders.registry_outboxes import RegistryChange, shard
from contexture.errors import DefectError
from contexture.kafka import ClientSettings, FencedError
from contexture.sending import Claims, Publisher, SenderNames
from contexture.sending.testing import MemoryShard
from fakes.kafka_cluster import FakeCluster, FakeHidden, FakeLedger, failure

NAMES = SenderNames("codelists")
SETTINGS = ClientSettings.from_extra({"bootstrap.servers": "nowhere:1"})
LOG = [
    RegistryChange(11, ("FREQ", "AREA")),
    RegistryChange(12, ("UNIT",)),
    RegistryChange(12, ("AREA",), deletions=True),
    RegistryChange(13, ("FREQ",)),
]
VALUES = [b"11", b"11", b"12", None, b"13"]


@pytest.fixture
def cluster():
    return FakeCluster()


def publisher(cluster):
    return Publisher(
        SETTINGS,
        NAMES,
        shards=1,
        ledger=FakeLedger(cluster, NAMES),
        hidden=FakeHidden(cluster),
        open_producer=cluster.open_producer,
        sleep=lambda seconds: None,
    )


def publish(cluster, transactions, **shard_options):
    return publisher(cluster).publish(shard(transactions, **shard_options))


def place(cluster):
    entry = FakeLedger(cluster, NAMES).read(0)
    return entry.source_transaction, entry.source_deletions


def test_each_transaction_of_the_ledger_says_how_far_the_log_is_reported(cluster):
    publish(cluster, LOG[:3])
    assert cluster.values("structures") == VALUES[:4]
    assert [len(transaction) for transaction in cluster.transactions] == [3, 2, 2]
    assert place(cluster) == (12, True)


def test_a_second_instance_sends_only_what_the_first_has_not_sent(cluster):
    publish(cluster, LOG[:2], outbox="of A", sequence=7)
    result = publish(cluster, LOG, outbox="of B", sequence=2)
    assert cluster.values("structures") == VALUES
    assert (result.records_sent, result.records_skipped) == (2, 3)
    assert (result.transactions, result.transactions_elsewhere) == (2, 2)
    assert not result.superseded


def test_an_instance_that_lags_behind_sends_nothing_and_disturbs_no_one(cluster):
    publish(cluster, LOG, outbox="of A")
    result = publish(cluster, LOG[:3], outbox="of B", sequence=9)
    assert cluster.values("structures") == VALUES
    assert (result.records_sent, result.records_skipped, result.transactions_elsewhere) == (0, 4, 3)
    assert len(cluster.producers) == 1


def test_a_fenced_instance_goes_on_after_what_the_other_sent(cluster):
    """Fenced in its third transaction by one that sends the third and the fourth."""

    def other_instance(producer):
        publish(cluster, LOG[2:], outbox="of B", sequence=4)
        raise failure("_FENCED", fatal=True)

    cluster.script["commit_transaction"] = [None, None, other_instance]
    with pytest.raises(FencedError):
        publish(cluster, LOG, outbox="of A")
    result = publish(cluster, LOG, outbox="of A")
    assert cluster.values("structures") == VALUES
    assert (result.records_sent, result.transactions_elsewhere) == (0, 4)


def test_a_killed_instance_goes_on_by_its_own_position(cluster):
    cluster.script["commit_transaction"] = [None, KeyboardInterrupt()]
    with pytest.raises(KeyboardInterrupt):
        publish(cluster, LOG)
    result = publish(cluster, LOG)
    assert cluster.values("structures") == VALUES
    assert (result.records_sent, result.records_skipped, result.transactions_elsewhere) == (3, 2, 0)


def test_a_commit_whose_answer_was_lost_counts_once(cluster):
    def commit_but_fail(producer):
        producer.finish()
        raise failure("_INCONSISTENT", abortable=True)

    cluster.script["commit_transaction"] = [None, commit_but_fail]
    result = publisher(cluster).publish(shard(LOG), attempts=[1])
    assert cluster.values("structures") == VALUES
    assert (result.records_sent, result.records_skipped, result.transactions) == (5, 0, 4)


def test_a_flush_is_sent_whole_even_if_its_transactions_are_reported(cluster):
    publish(cluster, LOG[:3], outbox="changes")
    result = publish(cluster, [RegistryChange(12, ("FREQ", "UNIT"))], outbox="flush", sequence=2, flush=True)
    assert result.records_sent == 2
    assert cluster.values("structures")[-2:] == [b"12", b"12"]


def test_a_flush_takes_nothing_back_of_how_far_the_log_is_reported(cluster):
    publish(cluster, LOG[:3], outbox="changes")
    publish(cluster, [RegistryChange(12, ("FREQ", "UNIT"))], outbox="flush", sequence=2, flush=True)
    assert place(cluster) == (12, True)
    assert publish(cluster, LOG[1:3], outbox="late changes").records_sent == 0


def test_a_flush_of_less_than_what_was_sent_sends_nothing(cluster):
    publish(cluster, LOG, outbox="changes")
    result = publish(cluster, [RegistryChange(12, ("FREQ",))], outbox="flush", sequence=9, flush=True)
    assert result.superseded
    assert (result.records_sent, result.records_skipped) == (0, 0)
    assert cluster.values("structures") == VALUES


def test_callers_are_reported_what_is_skipped_before_anything_is_sent(cluster):
    publish(cluster, LOG[:2], outbox="of A")
    seen = []
    publisher(cluster).publish(
        shard(LOG, outbox="of B"),
        committed=lambda entry: seen.append(("sent", entry.transaction)),
        skipped=lambda transactions: seen.append(("skipped", transactions)),
    )
    assert seen == [("skipped", 2), ("sent", 2), ("sent", 3)]


def test_a_claim_keeps_how_far_the_log_is_reported(cluster):
    publish(cluster, LOG[:3], outbox="of A")
    ledger = FakeLedger(cluster, NAMES)
    Claims(SETTINGS, NAMES, ledger, open_producer=cluster.open_producer).claim("empty", 2, shards=1, used=[])
    assert place(cluster) == (12, True)
    assert publish(cluster, LOG, outbox="of B").records_sent == 1


def set_log_start(cluster, transaction):
    claims = Claims(SETTINGS, NAMES, FakeLedger(cluster, NAMES), open_producer=cluster.open_producer)
    return claims.set_log_start(f"baseline {transaction}", 1, transaction)


def test_instances_that_have_sent_nothing_agree_where_they_begin(cluster):
    assert set_log_start(cluster, 11) == 11
    assert set_log_start(cluster, 12) == 11
    assert place(cluster) == (11, True)
    assert publish(cluster, LOG, outbox="of A", sequence=2).records_sent == 3
    assert cluster.values("structures") == VALUES[2:]


def test_beginning_changes_nothing_of_what_is_reported(cluster):
    publish(cluster, LOG, outbox="of A")
    committed = list(cluster.committed)
    assert set_log_start(cluster, 20) == 13
    assert cluster.committed == committed


def test_a_transaction_that_the_manifest_does_not_name_is_not_sent(cluster):
    whole = shard(LOG)
    damaged = MemoryShard(whole.rows, registry=whole.registry[:2])
    with pytest.raises(DefectError, match="names no registry transaction for transaction 2"):
        publisher(cluster).publish(damaged)
    assert cluster.values("structures") == VALUES[:3]
