"""What the ledger calls done and readers don't see is put back, once, in order, before anything else is sent."""

from __future__ import annotations

from dataclasses import replace

import pytest

from contexture.errors import RetriableError
from contexture.kafka import ClientSettings
from contexture.kafka.errors import KafkaConfigurationError
from contexture.kafka.reader import TopicRecord
from contexture.sending import Publisher, SenderNames
from contexture.sending.dead_letters import HEADER, DeadLetters
from contexture.sending.interfaces import OffsetSpan
from contexture.sending.shard_records import fingerprint
from contexture.sending.testing import MemoryShard, OutboxRow
from fakes.clock import TickingClock
from fakes.kafka_cluster import FakeCluster, FakeHidden, FakeLedger

NAMES = SenderNames("vehicles")
SETTINGS = ClientSettings.from_extra({"bootstrap.servers": "nowhere:1"})
ROWS = [OutboxRow("cars", b"k%d" % n, b"v%d" % n, transaction=n // 10) for n in range(40)]
VALUES = [b"v%d" % n for n in range(40)]


class Moved(FakeHidden):
    """Partitions that had no leader for a moment.

    `log` has key, value and whether readers see the record, by partition; `undecided` the first hidden record.
    """

    def __init__(self, cluster, log, undecided=None):
        super().__init__(cluster)
        self.log = log
        self.undecided = undecided or {}
        self.since = []

    def moved(self, topics, since):
        self.since.append(since)
        # What was sent again is seen.
        return {} if self._is_restored() else {place: OffsetSpan(0, 1_000) for place in self.log if place[0] in topics}

    def _is_restored(self):
        return len(self.cluster.transactions) > 2

    def spans(self, topics):
        self.asked.append(set(topics))
        aborted = {place for places in self.cluster.aborted for place in places}
        open_places = [place for place in self.undecided if place[0] in topics and place not in aborted]
        return dict.fromkeys(open_places, OffsetSpan(0, 1000))

    def matching(self, spans, sought):
        return set()

    def firsts(self, spans):
        return {place: fingerprint(*self.undecided[place]) for place in spans}

    def copies(self, spans):
        for place in sorted(spans):
            for offset, (key, value, is_seen, *headers) in enumerate(self.log[place]):
                yield TopicRecord(*place, offset, key, value, tuple(headers), 0), is_seen


@pytest.fixture
def cluster():
    """Two of four transactions are committed; then the sender was killed."""
    cluster = FakeCluster()
    cluster.script["commit_transaction"] = [None, None, KeyboardInterrupt()]
    with pytest.raises(KeyboardInterrupt):
        publisher(cluster, FakeHidden(cluster)).publish(MemoryShard(ROWS))
    cluster.script.clear()
    cluster.aborted.clear()
    return cluster


def publisher(cluster, hidden, **options):
    options = {"ledger": FakeLedger(cluster, NAMES), **options}
    return Publisher(
        SETTINGS,
        NAMES,
        shards=1,
        hidden=hidden,
        open_producer=cluster.open_producer,
        clock=TickingClock(),
        sleep=lambda seconds: None,
        **options,
    )


def log_of(seen, unseen):
    return [(b"k%d" % n, b"v%d" % n, n in seen) for n in sorted([*seen, *unseen])]


def test_records_of_a_done_transaction_that_an_abort_took_away_are_sent_again(cluster):
    hidden = Moved(cluster, {("cars", 1): log_of(range(12), range(12, 18))})
    publisher(cluster, hidden).publish(MemoryShard(ROWS))
    assert [sent.value for sent in cluster.transactions[2]] == VALUES[12:18]
    assert cluster.values("cars")[26:] == VALUES[20:]


def test_what_kafka_left_undecided_is_aborted_before_it_is_sent_again(cluster):
    log = {("cars", 1): log_of(range(12), range(12, 18))}
    hidden = Moved(cluster, log, undecided={("cars", 1): (b"k12", b"v12")})
    publisher(cluster, hidden).publish(MemoryShard(ROWS))
    assert [("cars", 1)] in cluster.aborted
    assert [sent.value for sent in cluster.transactions[2]] == VALUES[12:18]


def test_a_record_of_an_abort_without_marker_is_aborted_by_the_sender_that_left_it(cluster):
    log = {("cars", 1): log_of(range(20), [])}
    hidden = Moved(cluster, log, undecided={("cars", 1): (b"contexture: aborted", b"tx.vehicles.0")})
    publisher(cluster, hidden).publish(MemoryShard(ROWS))
    assert [("cars", 1)] in cluster.aborted
    assert cluster.values("cars") == VALUES


def test_what_another_sender_has_open_is_waited_for_and_not_aborted(cluster):
    log = {("cars", 1): log_of(range(20), [])}
    hidden = Moved(cluster, log, undecided={("cars", 1): (b"k3", b"of another shard")})
    with pytest.raises(RetriableError, match=r"readers do not see .* 1 partitions, the first is cars\[1\]"):
        publisher(cluster, hidden).publish(MemoryShard(ROWS))
    assert [places for places in cluster.aborted if places] == []
    assert cluster.values("cars") == VALUES[:20]


def test_nothing_is_sent_again_where_readers_see_all_of_it(cluster):
    log = {("cars", 1): [*log_of([], range(20)), *log_of(range(20), [])]}
    publisher(cluster, Moved(cluster, log)).publish(MemoryShard(ROWS))
    assert cluster.values("cars") == VALUES


def test_records_that_are_in_no_log_any_more_are_not_sent_again(cluster):
    """Compaction or retention removed them: sending them again would double what readers had."""
    publisher(cluster, Moved(cluster, {("cars", 1): log_of(range(5), [])})).publish(MemoryShard(ROWS))
    assert cluster.values("cars") == VALUES


def test_a_record_is_not_put_behind_a_later_one_of_its_key(cluster):
    rows = [OutboxRow("cars", b"k", b"v%d" % n, transaction=n // 10) for n in range(40)]
    log = {("cars", 1): [(b"k", b"v%d" % n, n == 19) for n in range(20)]}
    cluster = FakeCluster()
    cluster.script["commit_transaction"] = [None, None, KeyboardInterrupt()]
    with pytest.raises(KeyboardInterrupt):
        publisher(cluster, FakeHidden(cluster)).publish(MemoryShard(rows))
    cluster.script.clear()
    publisher(cluster, Moved(cluster, log)).publish(MemoryShard(rows))
    assert cluster.values("cars") == VALUES


@pytest.mark.parametrize(("seen_in_another", "sent"), [([], [b"a", b"c"]), ([b"a", b"c"], [])])
def test_records_without_a_key_count_as_seen_in_any_partition(seen_in_another, sent):
    cluster = FakeCluster()
    rows = [OutboxRow("cars", None, value, transaction=number) for number, value in enumerate([b"a", b"c", b"e"])]
    cluster.script["commit_transaction"] = [None, None, KeyboardInterrupt()]
    with pytest.raises(KeyboardInterrupt):
        publisher(cluster, FakeHidden(cluster)).publish(MemoryShard(rows))
    cluster.script.clear()
    log = {
        ("cars", 0): [(None, value, True) for value in seen_in_another],
        ("cars", 1): [(None, b"a", False), (None, b"c", False)],
    }
    publisher(cluster, Moved(cluster, log)).publish(MemoryShard(rows))
    assert cluster.values("cars") == [b"a", b"c", *sent, b"e"]


class Forbidden(Moved):
    """This user may not read."""

    def copies(self, spans):
        raise KafkaConfigurationError("may not read cars", next_step="allow READ")

    def is_committed(self, *asked):
        raise KafkaConfigurationError("may not read cars", next_step="allow READ")


class TakenAway(FakeLedger):
    """Holds a row that was aborted."""

    def read_uncommitted(self, shard):
        return None

    def read_unseen(self, shard):
        row = self.cluster.hidden_rows.get(shard)
        return [] if row is None else [row]


def test_an_aborted_row_counts_where_readers_see_its_records(cluster):
    row = FakeLedger(cluster, NAMES).read(0)
    cluster.hidden_rows = {0: replace(row, position=30, transaction=2)}
    cluster.seen = {"cars": {fingerprint(b"k%d" % n, b"v%d" % n) for n in range(20, 30)}}
    publisher(cluster, Moved(cluster, {}), ledger=TakenAway(cluster, NAMES)).publish(MemoryShard(ROWS))
    assert cluster.values("cars") == VALUES[:20] + VALUES[30:]


def test_a_user_who_may_not_read_is_warned_and_sends_all_the_same(cluster, caplog):
    log = {("cars", 1): log_of(range(20), [])}
    publisher(cluster, Forbidden(cluster, log)).publish(MemoryShard(ROWS))
    assert cluster.values("cars") == VALUES
    assert "1 partitions had no leader for a moment" in caplog.text
    assert "allow READ on the topics" in caplog.text


def test_an_undecided_row_that_this_user_may_not_judge_stops_the_sending(cluster):
    row = FakeLedger(cluster, NAMES).read(0)
    cluster.hidden_rows = {0: replace(row, position=30, transaction=2)}
    with pytest.raises(KafkaConfigurationError, match="may not read cars"):
        publisher(cluster, Forbidden(cluster, {})).publish(MemoryShard(ROWS))


def test_an_aborted_row_that_this_user_may_not_judge_counts_as_aborted(cluster, caplog):
    row = FakeLedger(cluster, NAMES).read(0)
    cluster.hidden_rows = {0: replace(row, position=30, transaction=2)}
    publisher(cluster, Forbidden(cluster, {}), ledger=TakenAway(cluster, NAMES)).publish(MemoryShard(ROWS))
    assert cluster.values("cars") == VALUES
    assert "transaction 2 counts as aborted, because this user may not see whether it was" in caplog.text


ASIDE = "contexture.dead-letter.vehicles"


def letter(position, is_seen, shard=0):
    named = {"outbox": "outbox-1", "shard": str(shard), "position": str(position)}
    return (b"k3", b"v3", is_seen, *((f"{HEADER}{name}", text.encode()) for name, text in named.items()))


@pytest.mark.parametrize(
    ("letters", "restored"),
    [
        ([letter(3, False)], 1),
        ([letter(3, False), letter(3, True)], 0),
        ([letter(3, False, shard=2)], 0),
        ([letter(4, False)], 0),
    ],
)
def test_dead_letters_of_done_transactions_are_put_back_as_they_were(letters, restored):
    cluster = FakeCluster()
    cluster.limits["cars"] = 100
    rows = [
        OutboxRow("cars", b"k%d" % n, b"v%d" % n + b"x" * (200 if n == 3 else 0), transaction=n // 10)
        for n in range(40)
    ]
    options = {"dead_letters": DeadLetters(ASIDE, 10)}
    # The first transaction is tried three times: as a whole, record by record, and without the refused one.
    cluster.script["commit_transaction"] = [None, None, None, None, KeyboardInterrupt()]
    with pytest.raises(KeyboardInterrupt):
        publisher(cluster, FakeHidden(cluster), **options).publish(MemoryShard(rows))
    cluster.script.clear()
    before = len(cluster.values(ASIDE))
    done = len(cluster.transactions)
    hidden = Moved(cluster, {(ASIDE, 0): letters})
    hidden._is_restored = lambda: len(cluster.transactions) > done
    publisher(cluster, hidden, **options).publish(MemoryShard(rows))
    assert len(cluster.values(ASIDE)) == before + restored


def test_the_time_since_which_leaders_are_looked_at_is_when_the_outbox_was_begun(cluster):
    hidden = Moved(cluster, {})
    first = FakeLedger(cluster, NAMES).read(0)
    publisher(cluster, hidden).publish(MemoryShard(ROWS))
    assert hidden.since[0] == first.since
    assert FakeLedger(cluster, NAMES).read(0).since == first.since
