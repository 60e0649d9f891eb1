"""Records that can never be sent: found exactly, left out of their transaction, and dead-lettered within it."""

from __future__ import annotations

from hashlib import sha256

import pytest
from hypothesis import given
from hypothesis import strategies as st

from contexture.errors import RejectedError
from contexture.kafka import ClientSettings, KafkaConfigurationError
from contexture.kafka.reader import TopicRecord
from contexture.sending import Publisher, SenderNames
from contexture.sending.dead_letters import DeadLetters, RefusedPlace, dead_letter, dead_letters_found, one_by_one
from contexture.sending.testing import MemoryShard, OutboxRow
from fakes.kafka_cluster import FakeCluster, FakeHidden, FakeLedger, Report, failure

NAMES = SenderNames("vehicles")
SETTINGS = ClientSettings.from_extra({"bootstrap.servers": "nowhere:1"})
ASIDE = "contexture.dead-letter.vehicles"
LARGE = b"x" * 100
REFUSED = {12, 17, 31}
ROWS = [OutboxRow("cars", b"k%d" % n, LARGE if n in REFUSED else b"v%d" % n, transaction=n // 10) for n in range(40)]
SMALL = [b"v%d" % n for n in range(40) if n not in REFUSED]


@pytest.fixture
def cluster():
    return FakeCluster()


def publisher_of(cluster, *, limit=10, topic=ASIDE, reported=None):
    return Publisher(
        SETTINGS,
        NAMES,
        shards=1,
        broker_wait_seconds=30.0,
        ledger=FakeLedger(cluster, NAMES),
        hidden=FakeHidden(cluster),
        open_producer=cluster.open_producer,
        progress=(lambda progress: None) if reported is None else reported.append,
        dead_letters=DeadLetters(topic, limit),
        sleep=lambda seconds: None,
    )


def letters(cluster):
    return [sent for sent in cluster.committed if sent.topic == ASIDE]


def why(sent):
    return {name.removeprefix("contexture_refused_"): value.decode() for name, value in sent.headers}


def entry(cluster):
    return FakeLedger(cluster, NAMES).read(0)


@pytest.mark.parametrize("refuses", ["client", "broker"])
def test_what_can_never_be_sent_goes_to_the_dead_letters_and_everything_else_where_it_belongs(cluster, refuses):
    if refuses == "client":
        cluster.client_limit = 50
    else:
        cluster.limits = {"cars": 50}
    result = publisher_of(cluster).publish(MemoryShard(ROWS, batch_rows=7))
    assert cluster.values("cars") == SMALL
    assert [sent.key for sent in letters(cluster)] == [b"k12", b"k17", b"k31"]
    assert [why(sent)["position"] for sent in letters(cluster)] == ["12", "17", "31"]
    assert {why(sent)["by"] for sent in letters(cluster)} == {refuses}
    assert (result.records_sent, result.transactions, result.dead_letters) == (40, 4, 3)


def test_a_dead_letter_is_in_the_transaction_of_its_record(cluster):
    cluster.limits = {"cars": 50}
    publisher_of(cluster).publish(MemoryShard(ROWS))
    topics = [[sent.topic for sent in transaction] for transaction in cluster.transactions]
    assert [len(of_one) for of_one in topics] == [11, 11, 11, 11]
    assert [of_one.count(ASIDE) for of_one in topics] == [0, 2, 0, 1]


def test_the_ledger_says_which_records_were_left_out(cluster):
    cluster.limits = {"cars": 50}
    publisher_of(cluster).publish(MemoryShard(ROWS))
    assert (entry(cluster).position, entry(cluster).dead_letters) == (40, (12, 17, 31))


def test_a_later_outbox_begins_with_none_left_out(cluster):
    cluster.limits = {"cars": 50}
    publisher_of(cluster).publish(MemoryShard(ROWS))
    publisher_of(cluster).publish(MemoryShard(ROWS[:5], outbox_id="next", sequence=2))
    assert entry(cluster).dead_letters == ()


def test_what_was_refused_only_for_its_neighbours_is_sent(cluster):
    def refuse_the_batch(producer):
        producer.watch.on_delivery(failure("MSG_SIZE_TOO_LARGE").args[0], Report("cars"))
        raise failure("_INCONSISTENT", abortable=True)

    cluster.script["commit_transaction"] = [None, refuse_the_batch]
    result = publisher_of(cluster).publish(MemoryShard(ROWS))
    assert cluster.values("cars") == [row.value for row in ROWS]
    assert result.dead_letters == 0
    # Only the transaction with the refusal is sent one by one.
    assert [producer.is_one_by_one for producer in cluster.producers] == [False, True, False]


@pytest.mark.parametrize("refuses", ["client", "broker"])
@pytest.mark.parametrize("kill_at", range(12))
def test_a_killed_sender_is_continued_without_doubling_or_losing_anything(refuses, kill_at):
    cluster = FakeCluster()
    if refuses == "client":
        cluster.client_limit = 50
    else:
        cluster.limits = {"cars": 50}
    cluster.script["commit_transaction"] = [None] * kill_at + [KeyboardInterrupt()]
    try:
        publisher_of(cluster).publish(MemoryShard(ROWS))
    except KeyboardInterrupt:
        publisher_of(cluster).publish(MemoryShard(ROWS))
    assert cluster.values("cars") == SMALL
    assert [sent.key for sent in letters(cluster)] == [b"k12", b"k17", b"k31"]
    assert entry(cluster).dead_letters == (12, 17, 31)


def test_a_commit_whose_answer_was_lost_puts_nothing_aside_twice(cluster):
    def commit_but_fail(producer):
        if producer.is_one_by_one and any(sent.topic == ASIDE for sent in producer.open):
            producer.finish()
            raise failure("_INCONSISTENT", abortable=True)

    cluster.client_limit = 50
    cluster.script["commit_transaction"] = [commit_but_fail] * 20
    result = publisher_of(cluster).publish(MemoryShard(ROWS), attempts=[1] * 10)
    assert [sent.key for sent in letters(cluster)] == [b"k12", b"k17", b"k31"]
    assert cluster.values("cars") == SMALL
    assert (result.records_sent, result.dead_letters) == (40, 3)


def test_a_successor_sends_what_is_no_longer_refused(cluster):
    cluster.limits = {"cars": 50}
    cluster.script["commit_transaction"] = [None] * 4 + [KeyboardInterrupt()]
    with pytest.raises(KeyboardInterrupt):
        publisher_of(cluster).publish(MemoryShard(ROWS))
    cluster.limits = {}
    publisher_of(cluster).publish(MemoryShard(ROWS))
    whole = {row.value for row in ROWS}
    assert set(cluster.values("cars")) | {LARGE} == whole
    assert len(cluster.values("cars")) + len(letters(cluster)) == 40
    assert len(entry(cluster).dead_letters) == len(letters(cluster))


def test_more_than_may_be_left_out_stop_the_sending(cluster):
    cluster.limits = {"cars": 50}
    with pytest.raises(RejectedError, match=r"3 records of the shard.*allows 2 in") as caught:
        publisher_of(cluster, limit=2).publish(MemoryShard(ROWS))
    assert caught.value.context["topic"] == "cars"
    # The transactions before are sent, with their dead letters; the next send meets the same limit.
    assert entry(cluster).position == 30
    assert len(letters(cluster)) == 2
    with pytest.raises(RejectedError, match="3 records of the shard"):
        publisher_of(cluster, limit=2).publish(MemoryShard(ROWS))
    assert len(letters(cluster)) == 2


def test_an_outbox_of_which_nothing_can_be_sent_stops(cluster):
    cluster.limits = {"cars": 1}
    with pytest.raises(RejectedError, match=r"publish\.max_dead_letters"):
        publisher_of(cluster, limit=9).publish(MemoryShard(ROWS))
    assert cluster.committed == []


def test_a_limit_of_none_stops_as_if_there_were_no_dead_letters(cluster):
    cluster.limits = {"cars": 50}
    with pytest.raises(RejectedError):
        publisher_of(cluster, limit=0).publish(MemoryShard(ROWS))
    assert letters(cluster) == []


@pytest.mark.parametrize("name", ["UNKNOWN_TOPIC_OR_PART", "TOPIC_AUTHORIZATION_FAILED"])
def test_faults_of_configuration_are_no_dead_letters(cluster, name):
    def undelivered(producer):
        producer.watch.on_delivery(failure(name).args[0], Report("cars"))
        raise failure("_INCONSISTENT", abortable=True)

    cluster.script["commit_transaction"] = [undelivered]
    with pytest.raises(KafkaConfigurationError):
        publisher_of(cluster).publish(MemoryShard(ROWS))
    assert cluster.committed == []
    assert len(cluster.producers) == 1


def test_a_value_that_the_dead_letter_topic_refuses_too_is_left_out_with_its_size_and_digest(cluster):
    cluster.limits = {"cars": 50, ASIDE: 60}
    publisher_of(cluster).publish(MemoryShard(ROWS))
    assert [sent.value for sent in letters(cluster)] == [None, None, None]
    reported = why(letters(cluster)[0])
    assert (reported["value_bytes"], reported["value_sha256"]) == ("100", sha256(LARGE).hexdigest())


def test_a_value_that_fits_is_kept(cluster):
    cluster.limits = {"cars": 50}
    publisher_of(cluster).publish(MemoryShard(ROWS))
    assert [sent.value for sent in letters(cluster)] == [LARGE] * 3
    assert "value_sha256" not in why(letters(cluster)[0])


def test_what_even_the_dead_letter_topic_refuses_stops_the_sending(cluster):
    cluster.limits = {"cars": 50, ASIDE: 0}
    with pytest.raises(RejectedError, match=f"topic {ASIDE}"):
        publisher_of(cluster).publish(MemoryShard(ROWS))
    assert cluster.values("cars") == [b"v%d" % n for n in range(10)]


def test_a_refused_tombstone_is_reported_as_one(cluster):
    rows = [OutboxRow("cars", b"k" * 100, None), OutboxRow("cars", b"k1", b"v1")]
    cluster.limits = {"cars": 50}
    publisher_of(cluster).publish(MemoryShard(rows))
    assert (letters(cluster)[0].value, why(letters(cluster)[0])["value"]) == (None, "tombstone")
    assert cluster.values("cars") == [b"v1"]


def test_what_is_done_is_reported(cluster):
    reported = []
    cluster.limits = {"cars": 50}
    publisher_of(cluster, reported=reported).publish(MemoryShard(ROWS))
    assert any("position 12 went to the dead-letter topic" in progress.detail for progress in reported)


def test_a_dead_letter_says_why_and_keeps_key_and_headers():
    row = ("cars", b"body", b"k7", 3, None, None, 1_700_000_000_000, [("ce_id", b"1")])
    refused = RejectedError("too large", next_step="raise it", topic="cars", status=3, error="MSG_SIZE_TOO_LARGE")
    topic, value, key, partition, _, _, timestamp, headers = dead_letter(
        ASIDE, row, refused, RefusedPlace("ab12", 1, 500)
    )
    assert (topic, value, key, partition, timestamp) == (ASIDE, b"body", b"k7", -1, 0)
    assert headers == [
        ("ce_id", b"1"),
        ("contexture_refused_error", b"MSG_SIZE_TOO_LARGE"),
        ("contexture_refused_message", b"too large"),
        ("contexture_refused_by", b"broker"),
        ("contexture_refused_topic", b"cars"),
        ("contexture_refused_outbox", b"ab12"),
        ("contexture_refused_shard", b"1"),
        ("contexture_refused_position", b"500"),
        ("contexture_refused_timestamp", b"1700000000000"),
    ]


def test_a_key_that_may_be_what_is_too_large_is_left_out_with_the_value():
    refused = RejectedError("too large", next_step="raise it", status=2)
    letter = dead_letter(ASIDE, ("cars", b"v", b"k" * 65_537), refused, RefusedPlace("ab12", 0, 0), bare=True)
    assert letter[1:3] == (None, None)
    assert ("contexture_refused_key_bytes", b"65537") in letter[7]


def test_a_dead_letter_topic_shows_which_records_of_an_outbox_it_holds():
    def record(outbox, shard, position):
        refused = RejectedError("too large", next_step="raise it", status=3)
        letter = dead_letter(ASIDE, ("cars", b"v", b"k"), refused, RefusedPlace(outbox, shard, position))
        return TopicRecord(ASIDE, 0, position, letter[2], letter[1], tuple(letter[7]), None)

    other = TopicRecord(ASIDE, 0, 9, b"k", b"v", (("by", b"hand"),), None)
    records = [record("one", 0, 5), record("two", 0, 6), record("one", 1, 7), record("one", 0, 8), other]
    assert dead_letters_found(records, "one") == {0: {5, 8}, 1: {7}}


def test_one_by_one_is_a_batch_for_each_record():
    assert one_by_one(SETTINGS).producer()["batch.num.messages"] == 1
    assert one_by_one(SETTINGS).bootstrap_servers == "nowhere:1"


@given(
    large=st.sets(st.integers(0, 29), max_size=12),
    sizes=st.sampled_from([1, 3, 10, 30]),
    kills=st.lists(st.integers(0, 6), max_size=3),
    refuses=st.sampled_from(["client", "broker"]),
)
def test_each_record_is_in_kafka_once_whatever_is_killed_when(large, sizes, kills, refuses):
    cluster = FakeCluster()
    if refuses == "client":
        cluster.client_limit = 50
    else:
        cluster.limits = {"cars": 50}
    rows = [
        OutboxRow("cars", b"k%d" % n, LARGE if n in large else b"v%d" % n, transaction=n // sizes) for n in range(30)
    ]
    for kill in kills:
        cluster.script["commit_transaction"] = [None] * kill + [KeyboardInterrupt()]
        try:
            publisher_of(cluster, limit=12).publish(MemoryShard(rows))
        except KeyboardInterrupt:
            continue
    cluster.script.clear()
    publisher_of(cluster, limit=12).publish(MemoryShard(rows))
    assert cluster.values("cars") == [row.value for n, row in enumerate(rows) if n not in large]
    assert [sent.key for sent in letters(cluster)] == [b"k%d" % n for n in sorted(large)]
    assert entry(cluster).dead_letters == tuple(sorted(large))
