"""The sending protocol, against a cluster in memory that keeps transactions, fencing and the ledger."""

from __future__ import annotations

import pytest
from confluent_kafka import KafkaError

from contexture.errors import DefectError, RejectedError, RetriableError
from contexture.kafka import BrokersAwayError, ClientSettings, FencedError, KafkaConfigurationError, SequenceTakenError
from contexture.kafka.producer import ABORTED_KEY
from contexture.sending import Claims, Publisher, SenderNames
from contexture.sending.interfaces import OffsetSpan
from contexture.sending.shard_records import fingerprint
from contexture.sending.testing import MemoryShard, OutboxRow
from fakes.clock import TickingClock
from fakes.kafka_cluster import TIMED_OUT, FakeCluster, FakeHidden, FakeLedger, Report, failure

NAMES = SenderNames("vehicles")
SETTINGS = ClientSettings.from_extra({"bootstrap.servers": "nowhere:1"})
ROWS = [OutboxRow("cars", b"k%d" % n, b"v%d" % n, transaction=n // 10) for n in range(40)]
VALUES = [b"v%d" % n for n in range(40)]


@pytest.fixture
def cluster():
    return FakeCluster()


@pytest.fixture
def reported():
    return []


@pytest.fixture
def publisher(cluster, reported):
    return publisher_of(cluster, reported)


def publisher_of(cluster, reported=None, names=NAMES, **options):
    reported = [] if reported is None else reported
    options = {"broker_wait_seconds": 30.0, "clock": TickingClock(), "sleep": reported.append, **options}
    return Publisher(
        SETTINGS,
        names,
        shards=2,
        ledger=FakeLedger(cluster, names),
        hidden=FakeHidden(cluster),
        open_producer=cluster.open_producer,
        progress=reported.append,
        **options,
    )


def undelivered(name, topic="cars"):
    """What a client does whose record was refused: the report by callback, then a commit that only counts."""

    def act(producer):
        class Message:
            def topic(self):
                return topic

        producer.watch.on_delivery(KafkaError(getattr(KafkaError, name), "a reason"), Message())
        raise failure("_INCONSISTENT", abortable=True)

    return act


@pytest.mark.parametrize("full", [False, True])
def test_a_topic_that_the_client_knows_to_be_denied_is_named_though_the_client_does_not(cluster, publisher, full):
    # Once brokers refused a topic, the client takes no record for it, and neither report nor log names it.
    def denied(producer):
        raise failure("TOPIC_AUTHORIZATION_FAILED")

    def queue_full(producer):
        raise BufferError("Local: Queue full")

    cluster.script["produce"] = [None, queue_full, denied] if full else [None, denied]
    with pytest.raises(KafkaConfigurationError, match=r"\(topic buses\) failed: TOPIC_AUTHORIZATION_FAILED"):
        publisher.publish(MemoryShard([OutboxRow("cars", b"k", b"v"), OutboxRow("buses", b"k", b"v")], shard=1))
    assert cluster.committed == []


def test_everything_is_sent_in_order_with_one_kafka_transaction_for_each_of_the_outbox(cluster, publisher):
    result = publisher.publish(MemoryShard(ROWS, shard=1, batch_rows=7))
    assert cluster.values("cars") == VALUES
    assert [len(transaction) for transaction in cluster.transactions] == [11, 11, 11, 11]
    assert (result.records_sent, result.records_skipped, result.transactions) == (40, 0, 4)
    assert result.bytes == sum(len(row.key) + len(row.value) for row in ROWS)
    assert not result.superseded


def test_the_ledgers_row_is_the_last_of_each_transaction(cluster, publisher):
    publisher.publish(MemoryShard(ROWS, shard=1, outbox_id="o", sequence=5))
    rows = [transaction[-1] for transaction in cluster.transactions]
    assert {(row.topic, row.key, row.partition) for row in rows} == {("contexture.ledger.vehicles", b"1", 1)}
    entry = FakeLedger(cluster, NAMES).read(1)
    assert (entry.outbox, entry.sequence, entry.position, entry.records, entry.transaction) == ("o", 5, 40, 10, 3)


def test_no_client_is_given_more_topics_than_pay(cluster, publisher):
    rows = [
        OutboxRow(f"t{number}", b"k", b"v", transaction=transaction)
        for transaction, topics in enumerate([range(600), range(300, 1_000), range(1_000, 1_001), range(1_000, 1_900)])
        for number in topics
    ]
    result = publisher.publish(MemoryShard(rows))
    assert (result.records_sent, result.transactions) == (2_201, 4)
    assert [len(transaction) - 1 for transaction in cluster.transactions] == [600, 700, 1, 900]
    # The first client knows 1,000 topics after two transactions; the second 900 after two more.
    assert len(cluster.producers) == 2


def test_a_client_learns_all_topics_at_once_before_it_sends_to_many(cluster, publisher):
    few = [OutboxRow(f"t{number}", b"k", b"v") for number in range(50)]
    many = [OutboxRow(f"t{number}", b"k", b"v") for number in range(51)]
    publisher.publish(MemoryShard(few))
    publisher.publish(MemoryShard(many, sequence=2, outbox_id="next"))
    ledger = NAMES.ledger_topic
    assert [producer.listed for producer in cluster.producers] == [[ledger, ledger], [ledger, ledger, None]]


def test_the_client_after_one_with_many_topics_learns_all_of_them_before_it_begins(cluster, publisher):
    rows = [
        OutboxRow(f"t{transaction}.{number}", b"k", b"v", transaction=transaction)
        for transaction in range(2)
        for number in range(600)
    ]
    publisher.publish(MemoryShard(rows))
    ledger = NAMES.ledger_topic
    assert [producer.listed for producer in cluster.producers] == [[ledger, ledger, None], [ledger, None]]


def test_an_empty_shard_sends_nothing(cluster, publisher):
    assert publisher.publish(MemoryShard([])).records_sent == 0
    assert cluster.committed == []


def test_what_is_sent_already_is_not_sent_again(cluster, publisher):
    publisher.publish(MemoryShard(ROWS))
    again = publisher.publish(MemoryShard(ROWS))
    assert (again.records_sent, again.records_skipped) == (0, 40)
    assert cluster.values("cars") == VALUES


def test_a_killed_sender_is_continued_at_its_last_committed_transaction(cluster, publisher):
    cluster.script["commit_transaction"] = [None, None, KeyboardInterrupt()]
    with pytest.raises(KeyboardInterrupt):
        publisher.publish(MemoryShard(ROWS))
    shard = MemoryShard(ROWS)
    result = publisher.publish(shard)
    # What the killed one sent is read for its topics, before and at the end: readers must see it too.
    assert set(shard.reads) == {0, 20}
    assert (result.records_sent, result.records_skipped) == (20, 20)
    assert cluster.values("cars") == VALUES


def test_an_outbox_below_the_ledgers_sequence_is_superseded(cluster, publisher, reported):
    publisher.publish(MemoryShard(ROWS, outbox_id="new", sequence=2))
    result = publisher.publish(MemoryShard([OutboxRow("cars", b"k0", b"old")], outbox_id="old", sequence=1))
    assert result.superseded
    assert result.records_sent == 0
    assert b"old" not in cluster.values("cars")
    assert any("later outbox" in progress.detail for progress in reported)


def test_a_later_outbox_starts_at_its_beginning(cluster, publisher):
    publisher.publish(MemoryShard(ROWS, outbox_id="old", sequence=1))
    assert publisher.publish(MemoryShard(ROWS, outbox_id="new", sequence=2)).records_sent == 40


def test_another_outbox_of_the_same_sequence_is_not_sent(cluster, publisher):
    publisher.publish(MemoryShard(ROWS, outbox_id="one", sequence=1))
    with pytest.raises(SequenceTakenError, match="contexture outbox abandon two"):
        publisher.publish(MemoryShard(ROWS, outbox_id="two", sequence=1))


def test_backfills_do_not_supersede_each_other(cluster):
    names = SenderNames("vehicles", backfill="2026-01-01")
    publisher_of(cluster, names=names).publish(MemoryShard(ROWS, outbox_id="one", sequence=9))
    assert publisher_of(cluster, names=names).publish(MemoryShard(ROWS, outbox_id="two", sequence=1)).records_sent == 40


def test_a_call_that_timed_out_is_called_again(cluster, publisher):
    cluster.script["init_transactions"] = [TIMED_OUT, TIMED_OUT]
    cluster.script["commit_transaction"] = [TIMED_OUT, None, TIMED_OUT]
    publisher.publish(MemoryShard(ROWS))
    assert cluster.values("cars") == VALUES
    assert len(cluster.producers) == 1


def test_brokers_that_stay_away_are_waited_for_visibly_and_then_given_up(cluster, publisher, reported):
    cluster.script["init_transactions"] = [TIMED_OUT] * 1000
    with pytest.raises(BrokersAwayError, match=r"did not respond for 3\d s") as caught:
        publisher.publish(MemoryShard(ROWS))
    assert "clear the task" in caught.value.next_step
    assert [progress.step for progress in reported].count("waiting") >= 10


def test_each_failure_that_counts_takes_one_delay_of_the_caller(cluster, reported):
    publisher = publisher_of(cluster, reported)
    cluster.script["commit_transaction"] = [failure("_INCONSISTENT", abortable=True)] * 3
    delays = iter([5000, 10000, 20000, 40000])
    publisher.publish(MemoryShard(ROWS), attempts=delays)
    assert [item for item in reported if isinstance(item, float)] == [5.0, 10.0, 20.0]
    assert list(delays) == [40000]
    assert cluster.values("cars") == VALUES


def test_used_up_attempts_end_with_the_reason(cluster, publisher):
    cluster.script["commit_transaction"] = [failure("_INCONSISTENT", abortable=True)] * 3
    with pytest.raises(RetriableError, match="_INCONSISTENT"):
        publisher.publish(MemoryShard(ROWS), attempts=[1, 1])
    assert cluster.values("cars") == []
    assert all(producer.aborted for producer in cluster.producers)


def test_an_abortable_failure_gets_a_new_client(cluster, publisher):
    cluster.script["commit_transaction"] = [None, failure("_INCONSISTENT", abortable=True)]
    publisher.publish(MemoryShard(ROWS), attempts=[1])
    assert len(cluster.producers) == 2
    assert cluster.values("cars") == VALUES


def test_a_commit_whose_answer_was_lost_is_not_done_twice(cluster, publisher):
    def commit_but_fail(producer):
        producer.finish()
        raise failure("_INCONSISTENT", abortable=True)

    cluster.script["commit_transaction"] = [None, commit_but_fail]
    result = publisher.publish(MemoryShard(ROWS), attempts=[1])
    assert cluster.values("cars") == VALUES
    assert (result.records_sent, result.transactions) == (40, 4)


def test_records_that_timed_out_are_sent_again_without_counting(cluster, publisher):
    cluster.script["commit_transaction"] = [undelivered("_MSG_TIMED_OUT")]
    publisher.publish(MemoryShard(ROWS))
    assert cluster.values("cars") == VALUES


def test_a_sender_fenced_by_another_stops_and_is_not_repeated(cluster, publisher):
    def another_sends(producer):
        cluster.script["commit_transaction"] = [None, KeyboardInterrupt()]
        with pytest.raises(KeyboardInterrupt):
            publisher_of(cluster).publish(MemoryShard(ROWS))
        raise failure("_FENCED", fatal=True)

    cluster.script["commit_transaction"] = [None, another_sends]
    with pytest.raises(FencedError, match="another sender took over"):
        publisher.publish(MemoryShard(ROWS), attempts=[1, 1, 1])
    assert len(cluster.producers) == 2
    assert cluster.values("cars") == VALUES[:20]


@pytest.mark.parametrize("call", ["init_transactions", "begin_transaction", "produce", "commit_transaction"])
def test_a_fencing_without_a_row_of_another_sender_is_no_takeover(cluster, call):
    """As by an InitProducerId of a client that is gone, which the network held back."""
    waits = []
    cluster.script[call] = [failure("_FENCED", fatal=True)] * 3
    publisher_of(cluster, sleep=waits.append).publish(MemoryShard(ROWS))
    assert cluster.values("cars") == VALUES
    assert waits == [2.0, 6.0, 18.0]


def test_a_sender_that_is_fenced_again_and_again_stops(cluster, publisher):
    cluster.script["commit_transaction"] = [None, *[failure("_FENCED", fatal=True)] * 4]
    with pytest.raises(FencedError, match="fenced 4 times in a row, and the ledger shows no row of another one"):
        publisher.publish(MemoryShard(ROWS), attempts=[1, 1, 1])
    assert cluster.values("cars") == VALUES[:10]


def test_a_sender_that_was_fenced_may_be_fenced_as_often_in_the_next_transaction(cluster, publisher):
    fenced = failure("_FENCED", fatal=True)
    cluster.script["commit_transaction"] = [fenced, fenced, fenced, None, fenced, fenced, fenced]
    publisher.publish(MemoryShard(ROWS))
    assert cluster.values("cars") == VALUES


def test_a_sender_whose_place_is_taken_while_it_waits_fences_no_one(cluster):
    def other_sends(seconds):
        cluster.script["commit_transaction"] = [None, KeyboardInterrupt()]
        with pytest.raises(KeyboardInterrupt):
            publisher_of(cluster).publish(MemoryShard(ROWS))

    cluster.script["commit_transaction"] = [None, failure("_FENCED", fatal=True)]
    with pytest.raises(FencedError, match="another sender took over"):
        publisher_of(cluster, sleep=other_sends).publish(MemoryShard(ROWS))
    assert cluster.values("cars") == VALUES[:20]
    assert len(cluster.producers) == 2


def test_a_later_outbox_that_was_begun_is_a_takeover(cluster, publisher):
    def later_begins(producer):
        publisher_of(cluster).publish(MemoryShard(ROWS[:10], outbox_id="later", sequence=2))
        raise failure("_FENCED", fatal=True)

    cluster.script["commit_transaction"] = [None, later_begins]
    with pytest.raises(FencedError):
        publisher.publish(MemoryShard(ROWS, sequence=1))
    assert cluster.values("cars") == VALUES[:10] + VALUES[:10]


def test_a_fencing_reported_while_reports_are_taken_is_a_fencing(cluster, publisher):
    def fenced_by_poll(producer):
        raise failure("_FENCED", fatal=True)

    def aborted(producer):
        cluster.script["poll"] = [fenced_by_poll]
        raise failure("_INCONSISTENT", abortable=True)

    cluster.script["commit_transaction"] = [None, aborted, *[failure("_FENCED", fatal=True)] * 3]
    with pytest.raises(FencedError, match="fenced 4 times"):
        publisher.publish(MemoryShard(ROWS))


def test_a_transaction_older_than_its_time_out_is_no_fencing_and_is_done_again(cluster):
    clock = TickingClock()

    def too_late(producer):
        clock.now += 200.0
        raise failure("_FENCED", fatal=True)

    cluster.script["commit_transaction"] = [None, too_late]
    publisher_of(cluster, clock=clock).publish(MemoryShard(ROWS))
    assert cluster.values("cars") == VALUES


def test_a_sender_that_was_replaced_while_it_was_paused_does_not_fence_the_other(cluster):
    clock = TickingClock()
    other = publisher_of(cluster)

    def pauses(producer):
        clock.now += 200.0
        cluster.script["commit_transaction"] = [None, KeyboardInterrupt()]
        with pytest.raises(KeyboardInterrupt):
            other.publish(MemoryShard(ROWS))
        raise failure("_FENCED", fatal=True)

    cluster.script["commit_transaction"] = [None, pauses]
    with pytest.raises(FencedError, match=r"was paused for longer than transaction\.timeout\.ms"):
        publisher_of(cluster, clock=clock).publish(MemoryShard(ROWS))
    assert cluster.values("cars") == VALUES[:20]
    assert len(cluster.producers) == 2


def test_a_commit_that_happened_before_its_sender_was_paused_is_its_own(cluster):
    clock = TickingClock()

    def committed_unheard(producer):
        producer.finish()
        clock.now += 200.0
        raise failure("_FENCED", fatal=True)

    cluster.script["commit_transaction"] = [None, committed_unheard]
    result = publisher_of(cluster, clock=clock).publish(MemoryShard(ROWS))
    assert cluster.values("cars") == VALUES
    assert (result.records_sent, result.transactions) == (40, 4)


def test_a_transaction_that_is_always_too_slow_ends_some_day(cluster):
    clock = TickingClock()

    def too_late(producer):
        clock.now += 200.0
        raise failure("_FENCED", fatal=True)

    cluster.script["commit_transaction"] = [too_late] * 100
    with pytest.raises(RetriableError, match=r"longer than transaction\.timeout\.ms"):
        publisher_of(cluster, clock=clock).publish(MemoryShard(ROWS))
    assert len(cluster.producers) == 4


def test_a_record_the_client_refuses_fails_its_transaction(cluster, publisher):
    cluster.script["produce"] = [None] * 15 + [failure("MSG_SIZE_TOO_LARGE")]
    with pytest.raises(RejectedError, match="MSG_SIZE_TOO_LARGE"):
        publisher.publish(MemoryShard(ROWS), attempts=[1, 1])
    assert cluster.values("cars") == VALUES[:10]


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("MSG_SIZE_TOO_LARGE", RejectedError),
        ("TOPIC_AUTHORIZATION_FAILED", KafkaConfigurationError),
        ("UNKNOWN_TOPIC_OR_PART", KafkaConfigurationError),
    ],
)
def test_what_never_succeeds_is_not_repeated_and_names_the_topic(cluster, publisher, name, kind):
    cluster.script["commit_transaction"] = [None, undelivered(name)]
    with pytest.raises(kind, match=f"topic cars.*{name}") as caught:
        publisher.publish(MemoryShard(ROWS), attempts=[1, 1])
    assert caught.value.context["topic"] == "cars"
    assert len(cluster.producers) == 1
    assert cluster.values("cars") == VALUES[:10]


def test_a_refused_user_is_reported_without_waiting(cluster, publisher):
    def refused(producer):
        producer.watch.on_error(KafkaError(KafkaError._AUTHENTICATION, "wrong password"))
        raise TIMED_OUT

    cluster.script["init_transactions"] = [refused]
    with pytest.raises(KafkaConfigurationError, match="check user, password"):
        publisher.publish(MemoryShard(ROWS))


def test_a_full_queue_is_waited_for(cluster, publisher):
    cluster.capacity = 4
    publisher.publish(MemoryShard(ROWS))
    assert cluster.values("cars") == VALUES


def test_a_record_larger_than_the_queue_is_refused(cluster, publisher):
    cluster.capacity = 0
    with pytest.raises(RejectedError, match=r"queue\.buffering\.max\.kbytes"):
        publisher.publish(MemoryShard(ROWS))


def test_a_shard_with_a_hole_is_not_sent_on(cluster, publisher):
    class Holed(MemoryShard):
        def batches(self, from_position):
            batches = list(super().batches(from_position))
            yield batches[0]
            yield batches[2]

    with pytest.raises(DefectError, match="position 20 where 10 was expected"):
        publisher.publish(Holed(ROWS, batch_rows=10))
    assert cluster.values("cars") == []


def test_a_shard_that_ends_early_is_no_success(cluster, publisher):
    class Short(MemoryShard):
        records = 50

    with pytest.raises(DefectError, match="ended at position 40 of 50"):
        publisher.publish(Short(ROWS))


def test_shards_without_records_are_claimed_against_older_outboxes(cluster, publisher):
    ledger = FakeLedger(cluster, NAMES)
    ledger.prepare(4)
    publisher.publish(MemoryShard(ROWS, outbox_id="old", sequence=1, shard=0))
    claims = Claims(SETTINGS, NAMES, ledger, open_producer=cluster.open_producer)
    assert claims.claim("new", 2, shards=2, used=[0]).claimed == (1, 2, 3)
    assert claims.claim("new", 2, shards=2, used=[0]).claimed == ()
    assert publisher.publish(MemoryShard(ROWS, outbox_id="old", sequence=1, shard=3)).superseded
    assert publisher.publish(MemoryShard(ROWS, outbox_id="new", sequence=2, shard=0)).records_sent == 40


def test_claiming_fences_a_sender_that_is_still_at_work(cluster, publisher):
    ledger = FakeLedger(cluster, NAMES)

    def claimed_meanwhile(producer):
        Claims(SETTINGS, NAMES, ledger, open_producer=cluster.open_producer).claim("new", 2, shards=2, used=[])
        raise failure("_FENCED", fatal=True)

    cluster.script["produce"] = [None] * 25 + [claimed_meanwhile]
    with pytest.raises(FencedError):
        publisher.publish(MemoryShard(ROWS, outbox_id="old", sequence=1, shard=1))
    assert ledger.read(1).sequence == 2


def test_a_claim_that_a_late_request_fences_is_made_again(cluster):
    """A late InitProducerId of a dead client raises the epoch; no other sender wrote to the ledger."""
    ledger, slept = FakeLedger(cluster, NAMES), []
    cluster.script["commit_transaction"] = [failure("_FENCED", fatal=True)]
    claims = Claims(SETTINGS, NAMES, ledger, open_producer=cluster.open_producer, sleep=slept.append)
    assert claims.claim("new", 2, shards=2, used=[]).claimed == (0, 1)
    assert slept == [2.0]
    assert [ledger.read(shard).sequence for shard in (0, 1)] == [2, 2]


def test_a_claim_that_is_fenced_for_a_later_outbox_gives_way_to_it(cluster):
    ledger, slept = FakeLedger(cluster, NAMES), []

    def later_meanwhile(producer):
        Claims(SETTINGS, NAMES, ledger, open_producer=cluster.open_producer).claim("later", 3, shards=1, used=[])
        raise failure("_FENCED", fatal=True)

    cluster.script["commit_transaction"] = [later_meanwhile]
    claims = Claims(SETTINGS, NAMES, ledger, open_producer=cluster.open_producer, sleep=slept.append)
    assert claims.claim("new", 2, shards=1, used=[]).superseded
    assert ledger.read(0).sequence == 3


def test_a_claim_that_is_always_fenced_ends_after_the_waits(cluster):
    ledger, slept = FakeLedger(cluster, NAMES), []
    cluster.script["commit_transaction"] = [failure("_FENCED", fatal=True)] * 4
    claims = Claims(SETTINGS, NAMES, ledger, open_producer=cluster.open_producer, sleep=slept.append)
    with pytest.raises(FencedError):
        claims.claim("new", 2, shards=1, used=[])
    assert slept == [2.0, 6.0, 18.0]


def test_nothing_is_claimed_for_a_superseded_outbox(cluster, publisher):
    publisher.publish(MemoryShard(ROWS, outbox_id="new", sequence=2))
    ledger = FakeLedger(cluster, NAMES)
    report = Claims(SETTINGS, NAMES, ledger, open_producer=cluster.open_producer).claim("old", 1, shards=2, used=[0])
    assert report.superseded
    assert report.claimed == ()


def test_a_bare_fatal_error_in_mid_send_is_reported_as_fencing(cluster, publisher):
    def fenced(producer):
        raise KafkaError(KafkaError._FENCED, "a reason", True)

    cluster.script["produce"] = [None, *[fenced] * 4]
    with pytest.raises(FencedError, match="fenced 4 times"):
        publisher.publish(MemoryShard(ROWS))


def test_a_fenced_client_that_says_only_that_it_has_failed_is_asked_for_the_reason(cluster, publisher):
    """It refuses the ledger's row; the callback that says why was lost in another call."""
    ledger = FakeLedger(cluster, NAMES)

    def fenced_meanwhile(producer):
        Claims(SETTINGS, NAMES, ledger, open_producer=cluster.open_producer).claim("new", 2, shards=1, used=[])
        cluster.script["begin_transaction"] = [failure("_FENCED", fatal=True)]
        raise failure("_FATAL")

    cluster.script["produce"] = [*[None] * 10, fenced_meanwhile]
    with pytest.raises(FencedError):
        publisher.publish(MemoryShard(ROWS, outbox_id="old", sequence=1))


def test_all_shards_are_claimed_when_none_is_left_to_its_own_sending(cluster, publisher):
    """A sender of an abandoned outbox is alive in shard 0, whose keys are in shard 1 of the next outbox."""
    ledger = FakeLedger(cluster, NAMES)

    def abandoned_meanwhile(producer):
        claims = Claims(SETTINGS, NAMES, ledger, open_producer=cluster.open_producer)
        assert claims.claim("new", 2, shards=2, used=[]).claimed == (0, 1)
        assert publisher.publish(MemoryShard(ROWS, outbox_id="new", sequence=2, shard=1)).records_sent == 40
        raise failure("_FENCED", fatal=True)

    cluster.script["produce"] = [None] * 25 + [abandoned_meanwhile]
    with pytest.raises(FencedError):
        publisher.publish(MemoryShard(ROWS, outbox_id="old", sequence=1, shard=0))
    assert publisher.publish(MemoryShard(ROWS, outbox_id="old", sequence=1, shard=0)).superseded


def cleared(cluster, topics):
    cluster.hidden = {("t", 2): {fingerprint(b"k", b"v")}}
    slept = []
    claims = Claims(
        SETTINGS, NAMES, FakeLedger(cluster, NAMES), open_producer=cluster.open_producer, sleep=slept.append
    )
    claims.claim("new", 2, shards=2, used=[])
    cluster.aborted.clear()
    claims.clear(topics, FakeHidden(cluster))
    return [places for places in cluster.aborted if places], slept


def test_what_senders_of_an_abandoned_outbox_left_hidden_is_aborted_by_each_shard(cluster):
    aborted, slept = cleared(cluster, {"t"})
    assert aborted == [[("t", 2)], [("t", 2)]]
    assert slept == [0.5] * 10


def test_topics_of_others_are_not_cleared(cluster):
    assert cleared(cluster, {"bikes"}) == ([], [])


class StaysHidden(FakeHidden):
    """Kafka loses the marker of every abort."""

    def spans(self, topics):
        return {("t", 2): OffsetSpan(4, 9)}


def test_what_is_still_hidden_after_five_aborts_keeps_the_next_outbox_from_being_sent(cluster):
    """Its senders could never end it: the transaction is of a transactional id that none of them has."""
    claims = Claims(SETTINGS, NAMES, FakeLedger(cluster, NAMES), open_producer=cluster.open_producer, sleep=[].append)
    claims.claim("new", 2, shards=2, used=[])
    cluster.aborted.clear()
    with pytest.raises(RetriableError, match=r"1 partitions, the first is t\[2\].*clear the task"):
        claims.clear({"t"}, StaysHidden(cluster))
    assert [places for places in cluster.aborted if places] == [[("t", 2)]] * 10


def test_where_a_lost_abort_hides_records_only_its_own_shard_aborts(cluster):
    """Each abort may lose its marker in its turn."""
    claims = Claims(SETTINGS, NAMES, FakeLedger(cluster, NAMES), open_producer=cluster.open_producer, sleep=[].append)
    claims.claim("new", 2, shards=2, used=[])
    cluster.aborted.clear()
    hidden = StaysHidden(cluster)
    hidden.first = {("t", 2): fingerprint(ABORTED_KEY, NAMES.transactional_id(1).encode())}
    with pytest.raises(RetriableError):
        claims.clear({"t"}, hidden)
    assert [places for places in cluster.aborted if places] == [[("t", 2)]] * 5


def test_a_claim_says_whether_records_of_its_outbox_are_committed(cluster, publisher):
    claims = Claims(SETTINGS, NAMES, FakeLedger(cluster, NAMES), open_producer=cluster.open_producer)
    assert not claims.claim("new", 2, shards=2, used=[]).is_sent_in_part
    assert not claims.claim("new", 2, shards=2, used=[]).is_sent_in_part
    publisher.publish(MemoryShard(ROWS, outbox_id="new", sequence=2, shard=1))
    assert claims.claim("new", 2, shards=2, used=[]).is_sent_in_part


def test_the_ledgers_row_is_given_to_the_client_when_its_records_are_with_the_brokers(cluster, publisher):
    queued = []
    cluster.script["produce"] = [
        *[None] * 10,
        lambda producer: queued.append(producer.queued),
        *[None] * 10,
        lambda producer: queued.append(producer.queued),
    ]
    publisher.publish(MemoryShard(ROWS))
    assert [len(sent) for sent in cluster.transactions][:2] == [11, 11]
    assert queued == [0, 0]


def test_a_transaction_that_has_failed_is_not_waited_for(cluster, publisher):
    """The client keeps the records of such a transaction in its queue; the commit says why."""

    def refused(producer):
        producer.watch.on_delivery(KafkaError(KafkaError.TOPIC_AUTHORIZATION_FAILED, "a reason"), Report("t"))

    cluster.script["flush"] = [refused]
    cluster.script["commit_transaction"] = [failure("_INCONSISTENT", abortable=True)]
    with pytest.raises(KafkaConfigurationError, match="TOPIC_AUTHORIZATION_FAILED"):
        publisher.publish(MemoryShard(ROWS))
    assert cluster.producers[0].flushes == 1
