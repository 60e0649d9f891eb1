"""A Kafka in memory with transactions, fencing, a ledger and scripted failures, behind the ports of our publisher."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass

from confluent_kafka import KafkaError, KafkaException

from contexture.sending.interfaces import OffsetSpan
from contexture.sending.ledger import LedgerEntry, SenderNames


@dataclass(frozen=True)
class Sent:
    topic: str
    value: bytes | None
    key: bytes | None
    partition: int = -1
    callback: object = None
    on_delivery: None = None
    timestamp: int = 0
    headers: object = None

    @property
    def size(self):
        return len(self.key or b"") + len(self.value or b"")


@dataclass(frozen=True)
class Report:
    """The message of a delivery report."""

    name: str

    def topic(self):
        return self.name

    def error(self):
        return None


def failure(name, *, fatal=False, retriable=False, abortable=False):
    """The client's exception for an error named as in its API, `_FENCED` or `MSG_SIZE_TOO_LARGE`."""
    return KafkaException(KafkaError(getattr(KafkaError, name), "a reason", fatal, retriable, abortable))


TIMED_OUT = failure("_TIMED_OUT", retriable=True)


class FakeCluster:
    """What was committed, who is the living sender of each transactional id, and what is to fail next.

    `script["commit_transaction"]` and so on hold exceptions (or callables) that the next calls of that name meet; None
    lets a call through.

    `client_limit` and `limits` (of topics) are bytes of key and value. A client refuses a record over its own at once;
    brokers refuse what comes in one batch: one record of a client that sends one by one, else all of a topic.

    `seen` are the fingerprints, by topic, of records that readers see though the ledger's row is hidden.

    `ends` holds what the next requests to end a transaction are answered with, by transaction; well when it is empty.
    """

    def __init__(self):
        self.committed: list[Sent] = []
        self.transactions: list[list[Sent]] = []
        self.aborted: list[list[tuple[str, int]]] = []
        self.epochs = defaultdict(int)
        self.script = defaultdict(list)
        self.ends: list[list[str]] = []
        self.producers: list[FakeProducer] = []
        self.capacity = 10**9
        self.client_limit = 10**9
        self.limits: dict[str, int] = {}
        self.hidden: dict[tuple[str, int], set] = {}
        self.hidden_rows: dict[int, LedgerEntry] = {}
        self.seen: dict[str, set] = {}

    def open_producer(self, settings, transactional_id, watch):
        producer = FakeProducer(self, transactional_id, watch)
        producer.is_one_by_one = settings is not None and settings.options.get("batch.num.messages") == 1
        self.producers.append(producer)
        return producer

    def values(self, topic):
        return [sent.value for sent in self.committed if sent.topic == topic]

    def next_failure(self, call, producer):
        if self.script[call]:
            scripted = self.script[call].pop(0)
            if callable(scripted):
                scripted(producer)
            elif scripted is not None:
                raise scripted


class FakeProducer:
    def __init__(self, cluster, transactional_id, watch):
        self.cluster, self.transactional_id, self.watch = cluster, transactional_id, watch
        self.epoch = -1
        self.open: list[Sent] | None = None
        self.queued = 0
        self.polls = self.flushes = 0
        self.aborted = False
        self.listed = []
        self.is_one_by_one = False

    def list_topics(self, topic=None, timeout=-1):
        self.listed.append(topic)

    def init_transactions(self, timeout):
        self.cluster.next_failure("init_transactions", self)
        self.cluster.epochs[self.transactional_id] += 1
        self.epoch = self.cluster.epochs[self.transactional_id]

    def begin_transaction(self):
        self.cluster.next_failure("begin_transaction", self)
        self.open = []

    def produce(self, *row):
        if self.queued >= self.cluster.capacity:
            raise BufferError("Local: Queue full")
        self.cluster.next_failure("produce", self)
        assert self.open is not None
        sent = Sent(*row)
        if sent.size > self.cluster.client_limit and not sent.topic.startswith("contexture.ledger."):
            raise failure("MSG_SIZE_TOO_LARGE")
        self.open.append(sent)
        self.queued += 1

    def poll(self, timeout):
        self.polls += 1
        self.cluster.next_failure("poll", self)
        if timeout > 0:
            self.queued = max(0, self.queued - 3)
        return 0

    def flush(self, timeout):
        self.flushes += 1
        self.cluster.next_failure("flush", self)
        # The records of a transaction that has failed stay in the client's queue.
        if self.watch.undelivered is None:
            self.queued = 0
        return self.queued

    def commit_transaction(self, timeout):
        if self.epoch != self.cluster.epochs[self.transactional_id]:
            raise failure("_FENCED", fatal=True)
        self.cluster.next_failure("commit_transaction", self)
        self.deliver()
        self.finish()
        self.say_ended("CommittingTransaction")

    def say_ended(self, state):
        for name in self.cluster.ends.pop(0) if self.cluster.ends else ["NO_ERROR"]:
            self.watch.on_log(f"[thrd:main]: EndTxn returned {name} in state {state} (may_retry=true)")

    def deliver(self):
        """Lets the brokers refuse what is too large; the client then knows of the first two batches at most."""
        refused = [sent for sent in self.open if sent.size > self.cluster.limits.get(sent.topic, 10**9)]
        if not refused:
            return
        reported = refused[:2]
        if not self.is_one_by_one:
            reported = [sent for sent in self.open if sent.topic == refused[0].topic]
        for sent in reported:
            (sent.callback or self.watch.on_delivery)(
                KafkaError(KafkaError.MSG_SIZE_TOO_LARGE, "a reason"), Report(sent.topic)
            )
        raise failure("_INCONSISTENT", abortable=True)

    def finish(self):
        self.cluster.committed += self.open
        self.cluster.transactions.append(self.open)
        for sent in self.open:
            if sent.topic.startswith("contexture.ledger."):
                self.cluster.hidden_rows.pop(sent.partition, None)
        self.open, self.queued = None, 0

    def abort_transaction(self, timeout):
        self.cluster.aborted.append([(sent.topic, sent.partition) for sent in self.open or ()])
        for place in self.cluster.aborted[-1]:
            self.cluster.hidden.pop(place, None)
            self.cluster.hidden_rows.pop(place[1] if place[0].startswith("contexture.ledger.") else None, None)
        self.aborted, self.open = True, None
        self.say_ended("AbortingTransaction")

    def purge(self):
        self.queued = 0

    def __len__(self):
        return self.queued


class FakeLedger:
    """Reads what the cluster committed to the ledger's topic."""

    def __init__(self, cluster, names: SenderNames):
        self.cluster, self.names = cluster, names
        self.shards = 0

    @property
    def topic(self):
        return self.names.ledger_topic

    def key(self, shard):
        return self.names.ledger_key(shard)

    def prepare(self, shards):
        self.shards = max(self.shards, shards)

    def partitions(self):
        return self.shards

    def read(self, shard):
        found = [
            sent.value
            for sent in self.cluster.committed
            if (sent.topic, sent.partition, sent.key) == (self.topic, shard, self.key(shard))
        ]
        return LedgerEntry.from_json(found[-1]) if found else None

    def read_committed(self, shard):
        return self.read(shard)

    def read_uncommitted(self, shard):
        return self.cluster.hidden_rows.get(shard)

    def read_unseen(self, shard):
        row = self.read_uncommitted(shard)
        return [] if row is None else [row]


class FakeHidden:
    """Hides what the cluster's `hidden` says: fingerprints of records by topic and partition."""

    def __init__(self, cluster):
        self.cluster = cluster
        self.asked = []
        self.first = {}

    def spans(self, topics):
        self.asked.append(set(topics))
        return {
            place: OffsetSpan(0, len(records)) for place, records in self.cluster.hidden.items() if place[0] in topics
        }

    def matching(self, spans, sought):
        return {place for place in spans if self.cluster.hidden[place] & sought.get(place[0], set())}

    def firsts(self, spans):
        return {place: self.first[place] for place in spans if place in self.first}

    def moved(self, topics, since):
        return {}

    def copies(self, spans):
        return iter(())

    def is_committed(self, sought, are_own, since, longest_open_seconds):
        return all(prints <= self.cluster.seen.get(topic, set()) for topic, prints in sought.items())
