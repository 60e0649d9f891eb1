"""What an earlier transaction left undecided is ended before the shard is sent on."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from contexture.errors import RetriableError
from contexture.kafka import ClientSettings
from contexture.sending import Publisher, SenderNames
from contexture.sending.dead_letters import DeadLetters
from contexture.sending.interfaces import OffsetSpan
from contexture.sending.ledger import LedgerEntry
from contexture.sending.shard_records import fingerprint
from contexture.sending.testing import MemoryShard, OutboxRow
from fakes.clock import TickingClock
from fakes.kafka_cluster import FakeCluster, FakeHidden, FakeLedger

NAMES = SenderNames("vehicles")
SETTINGS = ClientSettings.from_extra({"bootstrap.servers": "nowhere:1"})
ROWS = [OutboxRow("cars", b"k%d" % n, b"v%d" % n, transaction=n // 10) for n in range(40)]
VALUES = [b"v%d" % n for n in range(40)]
LEDGER = "contexture.ledger.vehicles"


@pytest.fixture
def cluster():
    return FakeCluster()


def publisher(cluster, **options):
    options = {"hidden": FakeHidden(cluster), "ledger": FakeLedger(cluster, NAMES), **options}
    return Publisher(
        SETTINGS,
        NAMES,
        shards=1,
        open_producer=cluster.open_producer,
        clock=TickingClock(),
        sleep=lambda seconds: None,
        **options,
    )


def killed_after(cluster, transactions):
    cluster.script["commit_transaction"] = [None] * transactions + [KeyboardInterrupt()]
    with pytest.raises(KeyboardInterrupt):
        publisher(cluster).publish(MemoryShard(ROWS))
    cluster.script.clear()
    # The killed one's goodbye is no part of what is looked at.
    cluster.aborted.clear()


def row(number, outbox="outbox", sequence=1):
    return LedgerEntry(
        outbox, sequence, 10 * (number + 1), 10, 40, number, None, datetime(2026, 11, 22, tzinfo=UTC), False
    )


def test_a_hidden_first_try_of_the_next_transaction_is_aborted_before_it_is_sent(cluster):
    killed_after(cluster, 2)
    cluster.hidden = {("cars", 3): {fingerprint(b"k21", b"v21")}, ("cars", 1): {fingerprint(b"k20", b"v20")}}
    reported = []
    publisher(cluster, progress=reported.append).publish(MemoryShard(ROWS))
    assert cluster.aborted == [[("cars", 1), ("cars", 3)]]
    assert cluster.values("cars") == VALUES
    assert any("aborted what an earlier transaction left in 2 partitions" in progress.detail for progress in reported)


def test_what_is_committed_already_and_hidden_is_left_to_the_next_commit(cluster):
    killed_after(cluster, 2)
    cluster.hidden = {("cars", 1): {fingerprint(b"k19", b"v19")}}
    cluster.script["commit_transaction"] = [lambda producer: cluster.hidden.clear()]
    publisher(cluster).publish(MemoryShard(ROWS))
    assert cluster.aborted == []


def test_what_others_have_open_is_left_alone(cluster):
    cluster.hidden = {("cars", 1): {fingerprint(b"someone", b"else's")}, ("bikes", 0): {fingerprint(b"k0", b"v0")}}
    publisher(cluster).publish(MemoryShard(ROWS))
    assert cluster.aborted == []
    assert cluster.values("cars") == VALUES


def test_a_tombstone_is_reported_from_an_empty_value():
    assert fingerprint(b"k", None) != fingerprint(b"k", b"")


def test_only_topics_of_the_next_transaction_are_looked_at(cluster):
    rows = [OutboxRow(f"t{n}", b"k", b"v", transaction=n) for n in range(3)]
    hidden = FakeHidden(cluster)
    publisher(cluster, hidden=hidden).publish(MemoryShard(rows))
    assert hidden.asked == [{"t0"}, {"t0", "t1", "t2"}]


def test_a_hidden_row_of_the_next_transaction_is_aborted_with_it(cluster):
    killed_after(cluster, 2)
    cluster.hidden_rows = {0: row(2, outbox=MemoryShard(ROWS).outbox_id)}
    cluster.hidden = {("cars", 1): {fingerprint(b"k20", b"v20")}}
    publisher(cluster).publish(MemoryShard(ROWS))
    assert cluster.aborted == [[("cars", 1), (LEDGER, 0)]]
    assert cluster.values("cars") == VALUES


def test_a_hidden_row_of_a_transaction_that_readers_see_is_the_truth(cluster):
    killed_after(cluster, 2)
    cluster.hidden_rows = {0: row(2, outbox=MemoryShard(ROWS).outbox_id)}
    cluster.seen = {"cars": {fingerprint(b"k%d" % n, b"v%d" % n) for n in range(20, 30)}}
    result = publisher(cluster).publish(MemoryShard(ROWS))
    assert cluster.aborted == []
    assert cluster.values("cars") == VALUES[:20] + VALUES[30:]
    assert (result.records_sent, result.records_skipped) == (10, 30)
    # The row is written again, alone, before anything else is sent.
    assert [len(transaction) for transaction in cluster.transactions] == [11, 11, 1, 11]


def test_a_hidden_row_is_not_believed_where_a_record_of_its_transaction_is_not_seen(cluster):
    killed_after(cluster, 2)
    cluster.hidden_rows = {0: row(2, outbox=MemoryShard(ROWS).outbox_id)}
    cluster.seen = {"cars": {fingerprint(b"k%d" % n, b"v%d" % n) for n in range(20, 29)}}
    publisher(cluster).publish(MemoryShard(ROWS))
    assert cluster.aborted == [[(LEDGER, 0)]]
    assert cluster.values("cars") == VALUES


def test_a_hidden_row_of_another_outbox_counts_for_it_becomes_visible_with_the_next_commit(cluster):
    publisher(cluster).publish(MemoryShard(ROWS, sequence=1))
    cluster.hidden_rows = {0: row(0, outbox="later", sequence=5)}
    result = publisher(cluster).publish(MemoryShard(ROWS, outbox_id="old", sequence=2))
    assert result.superseded
    assert cluster.aborted == []


def test_a_shard_that_is_sent_already_is_looked_at_once(cluster):
    rows = [OutboxRow(f"t{n}", b"k", b"v", transaction=n) for n in range(3)]
    publisher(cluster).publish(MemoryShard(rows))
    hidden = FakeHidden(cluster)
    publisher(cluster, hidden=hidden).publish(MemoryShard(rows))
    assert hidden.asked == [{"t0", "t1", "t2"}]


def test_a_shard_that_is_sent_already_and_hidden_from_readers_fails(cluster):
    publisher(cluster).publish(MemoryShard(ROWS))
    cluster.hidden = {("cars", 1): {fingerprint(b"k35", b"v35")}}
    with pytest.raises(RetriableError, match=r"readers do not see .* 1 partitions, the first is cars\[1\]"):
        publisher(cluster).publish(MemoryShard(ROWS))


def test_a_sender_waits_for_what_a_killed_one_sent_before_it(cluster):
    killed_after(cluster, 2)
    cluster.hidden = {("cars", 1): {fingerprint(b"k5", b"v5")}}
    with pytest.raises(RetriableError, match="readers do not see"):
        publisher(cluster).publish(MemoryShard(ROWS))


def test_a_superseded_shard_looks_at_nothing(cluster):
    publisher(cluster).publish(MemoryShard(ROWS, outbox_id="later", sequence=5))
    hidden = FakeHidden(cluster)
    publisher(cluster, hidden=hidden).publish(MemoryShard(ROWS))
    assert hidden.asked == []


def test_the_encoders_values_are_what_is_looked_for(cluster):
    def shouted(rows):
        import pyarrow as pa

        values = pa.array([value.upper() for value in rows.column("value").to_pylist()], pa.binary())
        return rows.set_column(rows.schema.get_field_index("value"), "value", values)

    cluster.hidden = {("cars", 0): {fingerprint(b"k0", b"V0")}}
    publisher(cluster, encode=shouted).publish(MemoryShard(ROWS))
    assert cluster.aborted == [[("cars", 0)]]


class Forgetful(FakeLedger):
    """The first row of a transaction stays hidden until someone aborts a transaction in its partition."""

    def __init__(self, cluster, names, last):
        super().__init__(cluster, names)
        self.last = last

    def _rows(self):
        rows = [LedgerEntry.from_json(sent.value) for sent in self.cluster.committed if sent.topic == self.topic]
        forgotten = next((row for row in rows if row.transaction == self.last), None)
        return [row for row in rows if row is not forgotten], forgotten

    def read_uncommitted(self, shard):
        is_aborted = any((LEDGER, 0) in places for places in self.cluster.aborted)
        return None if is_aborted else self._rows()[1]

    def read(self, shard):
        return next(reversed(self._rows()[0]), None)


def test_a_last_transaction_that_no_reader_sees_is_aborted_and_sent_again(cluster):
    reported = []
    sender = publisher(cluster, ledger=Forgetful(cluster, NAMES, last=3), progress=reported.append)
    result = sender.publish(MemoryShard(ROWS))
    assert [len(transaction) - 1 for transaction in cluster.transactions] == [10, 10, 10, 10, 10]
    assert [places for places in cluster.aborted if places] == [[(LEDGER, 0)]]
    assert (result.records_skipped, result.transactions) == (0, 4)
    assert any("shows none of its records" in progress.detail for progress in reported)


ASIDE = "contexture.dead-letter.vehicles"
LETTERS = DeadLetters(ASIDE, 10)
LARGE_KEY = b"k" * 70_000


@pytest.mark.parametrize(
    ("rows", "letter"),
    [
        (ROWS, (b"k3", b"v3")),
        (ROWS, (b"k3", None)),
        ([OutboxRow("cars", LARGE_KEY, b"v")], (None, None)),
    ],
)
def test_a_hidden_dead_letter_of_the_next_transaction_is_aborted_too(cluster, rows, letter):
    cluster.hidden = {(ASIDE, 2): {fingerprint(*letter)}}
    publisher(cluster, dead_letters=LETTERS).publish(MemoryShard(rows))
    assert cluster.aborted == [[(ASIDE, 2)]]
    assert len(cluster.values("cars")) == len(rows)


def test_dead_letters_that_others_have_open_are_left_alone(cluster):
    cluster.hidden = {(ASIDE, 0): {fingerprint(b"k30", b"v30"), fingerprint(b"bike", b"v3")}}
    hidden = FakeHidden(cluster)
    publisher(cluster, hidden=hidden, dead_letters=LETTERS).publish(MemoryShard(ROWS))
    assert hidden.asked[0] == {"cars", ASIDE}
    assert cluster.aborted == []


class ReleasedAfter(FakeHidden):
    """Hides a record until it was asked so many times; it grows no longer meanwhile."""

    def __init__(self, cluster, asks, *records):
        super().__init__(cluster)
        self.asks = asks
        self.records = set(records)

    def spans(self, topics):
        self.asked.append(set(topics))
        return {("cars", 1): OffsetSpan(30, 40)} if 1 < len(self.asked) <= self.asks else {}

    def matching(self, spans, sought):
        return {place for place in spans if self.records & sought.get(place[0], set())}


def test_a_sender_waits_until_readers_see_its_records(cluster):
    hidden = ReleasedAfter(cluster, 20, fingerprint(b"k35", b"v35"))
    publisher(cluster, hidden=hidden).publish(MemoryShard(ROWS))
    assert len(hidden.asked) == 21


def test_a_sender_whose_records_stay_hidden_fails_and_may_be_tried_again(cluster):
    hidden = ReleasedAfter(cluster, 10_000, fingerprint(b"k35", b"v35"))
    with pytest.raises(RetriableError, match=r"readers do not see .* 1 partitions, the first is cars\[1\]"):
        publisher(cluster, hidden=hidden).publish(MemoryShard(ROWS))
    assert cluster.values("cars") == VALUES


def test_a_sender_does_not_wait_for_what_others_have_open(cluster):
    hidden = ReleasedAfter(cluster, 10_000, fingerprint(b"someone", b"else's"))
    publisher(cluster, hidden=hidden).publish(MemoryShard(ROWS))
    assert len(hidden.asked) < 10
