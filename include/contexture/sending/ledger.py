"""The ledger: how far each outbox shard got, written by Kafka's own transactions.

One compacted topic for each publication. A shard's rows go to the partition of the shard's number and nowhere else:
with a partition of its own, no other sender's open transaction can hide a shard's last committed row.
"""

from __future__ import annotations

import builtins
import json
import time
from collections.abc import Iterator
from contextlib import closing, suppress
from dataclasses import asdict, dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import msgspec

from contexture.errors import DefectError
from contexture.kafka.admin import NewTopicOrder, TopicAdmin
from contexture.kafka.broker_wait import BrokerWait
from contexture.kafka.callbacks import ClientCallbacks
from contexture.kafka.clients import connect, reader
from contexture.kafka.consumer_group import LEDGER_PREFIX
from contexture.kafka.errors import KafkaConfigurationError
from contexture.kafka.reader import raise_unreadable, read_committed
from contexture.kafka.settings import ClientSettings
from contexture.sending.ledger_copies import LedgerCopies, ledger_copies
from contexture.storage.documents import check_format

if TYPE_CHECKING:
    from confluent_kafka import Consumer, Message

    from contexture.kafka.interfaces import KafkaErrorLike, Place
    from contexture.kafka.producer import ProducerSession
    from contexture.sending.interfaces import LedgerPort

FORMAT: Final = 1
"""Increased when an entry changes in a way that an earlier Contexture could not continue from."""


@dataclass(frozen=True, slots=True)
class LedgerEntry:
    """The row that the last committed transaction of a shard wrote.

    Attributes:
        outbox: id of the outbox.
        sequence: its place in the publication's order.
        position: the next position to send.
        records, bytes: what that transaction held (bytes of keys and values, before compression).
        transaction: its number in the outbox; -1 when nothing was sent (a claim).
        source_transaction: the registry's own transaction it carried, if any.
        at: when it was about to be committed, with a time zone.
        source_deletions: whether that was the deletions of the registry's transaction, which follow its additions and
            modifications.
        dead_letters: positions of this outbox's shard whose records went to the dead-letter topic, with this
            transaction or an earlier one.
        format: of the entry.
        since: when the sending of the outbox's shard began, with a time zone; None in rows of earlier versions, and in
            those that no sending wrote.
    """

    outbox: str
    sequence: int
    position: int
    records: int
    bytes: int
    transaction: int
    source_transaction: int | None
    at: datetime
    source_deletions: bool = False
    dead_letters: tuple[int, ...] = ()
    format: int = FORMAT
    since: datetime | None = None

    @property
    def source_place(self) -> tuple[int, bool] | None:
        """Its place in the registry's order: greater is later; None where the registry gave no number."""
        return None if self.source_transaction is None else (self.source_transaction, self.source_deletions)

    def to_json(self) -> builtins.bytes:
        """Returns the value of the ledger's record."""
        members = {**asdict(self), "at": self.at.isoformat()}
        if not self.dead_letters:
            del members["dead_letters"]
        if self.since is None:
            del members["since"]
        else:
            members["since"] = self.since.isoformat()
        return json.dumps(members, separators=(",", ":")).encode()

    @classmethod
    def from_json(cls, value: builtins.bytes) -> LedgerEntry:
        """Returns the entry that `to_json` wrote; members added by later versions are passed over.

        Members that earlier versions did not write are read as their defaults.

        Raises:
            DefectError: the value is not a ledger entry.
            UnknownFormatError: another version of Contexture wrote it.
        """
        try:
            check_format("a row of the ledger", msgspec.json.decode(value, type=_RowFormat).format, FORMAT)
            entry = msgspec.json.decode(value, type=cls)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as problem:
            # `from None`: the decoder's text may quote what another party wrote.
            raise _no_entry(type(problem).__name__) from None
        if entry.at.tzinfo is None or (entry.since is not None and entry.since.tzinfo is None):
            raise _no_entry("a time without its zone")
        return entry


class _RowFormat(msgspec.Struct):
    format: Any = None  # whatever another version or party wrote


def produce_row(session: ProducerSession, ledger: LedgerPort, shard: int, entry: LedgerEntry) -> None:
    """Adds a shard's row to the open transaction."""
    session.produce_one(ledger.topic, key=ledger.key(shard), value=entry.to_json(), partition=shard)


def commit_row(session: ProducerSession, ledger: LedgerPort, shard: int, entry: LedgerEntry) -> None:
    """Writes a shard's row in a transaction of its own."""
    session.begin()
    produce_row(session, ledger, shard, entry)
    session.commit()


def _no_entry(why: str) -> DefectError:
    return DefectError(
        f"a record of the ledger is not an entry of it ({why})",
        next_step="find out which other program writes to contexture.ledger.*, and abandon the outbox if in doubt",
    )


_CALL_SECONDS = 2.0
_STABLE_POLL_SECONDS = 0.05
# How long a transaction on the ledger may take to end, before it is read.
_GRACE_SECONDS = 5.0
# The wanted row is nearly always among the last few: only when it is not, more is read.
_FIRST_WINDOW = 64
_WINDOW_GROWTH = 64


class _FoundValue(NamedTuple):
    offset: int
    value: bytes


@dataclass
class LedgerReader:
    """Finds the last committed value of a key in a partition."""

    settings: ClientSettings
    admin: TopicAdmin
    broker_wait: BrokerWait
    watch: ClientCallbacks = field(default_factory=ClientCallbacks)

    def last_value(self, topic: str, partition: int, key: bytes, *, settled: bool) -> bytes | None:
        """Returns the last committed value of `key` in a partition, None when there is none.

        Args:
            topic: the ledger.
            partition: the shard.
            key: the shard's key.
            settled: wait until no transaction that began before this call is open, so that nothing committed is
                hidden behind it. A transaction of this key that no one will settle any more is not waited for.
        """
        place = (topic, partition)
        end = self._settled_end(place, key) if settled else self._end(place, committed=True)
        found = self._last_seen(place, key, end)
        return None if found is None else found.value

    def unseen_values(self, topic: str, partition: int, key: bytes) -> list[bytes]:
        """The values of `key` that follow the last one that readers see, in their order: undecided ones and aborted."""
        place = (topic, partition)
        end = self._end(place, committed=False)
        seen = self._last_seen(place, key, self._end(place, committed=True))
        start = 0 if seen is None else seen.offset + 1
        # What follows a committed row is its marker.
        if start >= end or (seen is not None and end - start == 1):
            return []
        return self._uncommitted(place, start, end, key)

    def _last_seen(self, place: Place, key: bytes, end: int) -> _FoundValue | None:
        window = _FIRST_WINDOW
        with closing(reader(self.settings, self.watch)) as consumer:
            while end > 0:
                found = self._between(consumer, place, max(0, end - window), end, key)
                if found or window >= end:
                    return found[-1] if found else None
                window *= _WINDOW_GROWTH
        return None

    def hidden_values(self, topic: str, partition: int, key: bytes) -> list[bytes]:
        """Returns the values of `key` that a partition hides behind its last stable offset, in their order."""
        place = (topic, partition)
        end = self._end(place, committed=False)
        stable = self._end(place, committed=True)
        if stable >= end:
            return []
        return self._uncommitted(place, stable, end, key)

    def _uncommitted(self, place: Place, start: int, end: int, key: bytes) -> list[bytes]:
        with closing(reader(self.settings, self.watch, isolation="read_uncommitted")) as consumer:
            return [found.value for found in self._between(consumer, place, start, end, key)]

    def _end(self, place: Place, *, committed: bool) -> int:
        return self.admin.ends([place], committed=committed)[place]

    def _settled_end(self, place: Place, key: bytes) -> int:
        """The end of now, once the last stable offset has come up to it, or once it is known that it never will."""
        target = self._end(place, committed=False)
        started, looks_at = self.broker_wait.now(), _GRACE_SECONDS
        while (end := self._end(place, committed=True)) < target:
            waited = self.broker_wait.now() - started
            # The key has one sender, and that one has none open: a row of it that is hidden stays so.
            if waited >= looks_at and self.hidden_values(*place, key):
                return end
            looks_at = max(looks_at, waited + _GRACE_SECONDS) if waited >= looks_at else looks_at
            time.sleep(_STABLE_POLL_SECONDS)
            # Brokers respond, so it is not their fault; but a hanging transaction would block this loop without limit.
            self.broker_wait.check_since(started, "an earlier transaction on the ledger is not settled")
        return end

    def _between(self, consumer: Consumer, place: Place, start: int, end: int, key: bytes) -> list[_FoundValue]:
        from confluent_kafka import KafkaError, TopicPartition

        connect(consumer, place[0], _CALL_SECONDS)
        consumer.assign([TopicPartition(*place, start)])
        found: list[_FoundValue] = []
        while True:
            message = consumer.poll(_CALL_SECONDS)
            error = None if message is None else message.error()
            if message is None:
                self.watch.raise_refusal("reading the ledger")
                self.broker_wait.check("the ledger did not respond")
            elif error is None:
                if message.key() == key:
                    found.append(_FoundValue(int(message.offset() or 0), bytes(message.value() or b"")))
            elif error.code() == KafkaError._PARTITION_EOF:
                # A broker that has just come back may know of less at first.
                if int(message.offset() or 0) >= end:
                    self.broker_wait.reset()
                    return found
            else:
                self._wait_or_raise(error, message)

    def _wait_or_raise(self, error: KafkaErrorLike, message: Message) -> None:
        self.watch.raise_refusal("reading the ledger")
        raise_unreadable(error, message, "reading the ledger")
        self.broker_wait.check(self.watch.last_error(error))


_POLICY = "cleanup.policy"
_CONFIG = {_POLICY: "compact"}
# A partition without a leader loses the markers of transactions that are settled meanwhile.
_REPLICAS = 3
_IN_SYNC = {"min.insync.replicas": "2"}


def ledger_partitions(admin: TopicAdmin, name: str) -> int:
    """Returns how many partitions the ledger has; 0 when there is no such topic."""
    found = admin.found(name)
    return 0 if found is None else found.partitions


@dataclass(frozen=True, slots=True)
class SenderNames:
    """How the senders of one publication are called in Kafka.

    Args:
        publication: its name.
        prefix: what transactional ids begin with (`publish.transactional_id_prefix`), never empty.
        backfill: start of the backfilled interval, or None for normal runs. Backfills run beside normal runs, so they
            have ids, keys and a ledger of their own.
    """

    publication: str
    prefix: str = "tx"
    backfill: str | None = None

    def __post_init__(self) -> None:
        if not self.publication or not self.prefix or self.backfill == "":
            raise ValueError("publication, prefix and backfill must not be empty")

    @property
    def ledger_topic(self) -> str:
        """The topic that says how far each shard got."""
        return f"{LEDGER_PREFIX}{self.publication}{'' if self.backfill is None else '.backfill'}"

    def transactional_id(self, shard: int) -> str:
        """Returns the id that only one living sender of this shard may have."""
        middle = "" if self.backfill is None else f"backfill.{self.backfill}."
        return f"{self.prefix}.{self.publication}.{middle}{shard}"

    def ledger_key(self, shard: int) -> bytes:
        return (str(shard) if self.backfill is None else f"{self.backfill}/{shard}").encode()


@dataclass(frozen=True, slots=True)
class LedgerStatus:
    """What there is of a ledger.

    Attributes:
        topic_id: Kafka's own id of its topic; None when there is no topic.
        shards: those of which it says how far they got.
        policy: its `cleanup.policy`; None when there is no topic, or this user may not see it.
    """

    topic_id: str | None
    shards: frozenset[int] = frozenset()
    policy: str | None = None


class Ledger:
    """The ledger of one publication.

    Every method raises `BrokersAwayError` when the brokers stay away for too long, and `KafkaConfigurationError` when
    this user may not do it.
    """

    def __init__(
        self,
        settings: ClientSettings,
        names: SenderNames,
        *,
        broker_wait: BrokerWait | None = None,
        replication_factor: int = -1,
    ) -> None:
        broker_wait = broker_wait or BrokerWait(300.0)
        self._names = names
        self._replication_factor = replication_factor
        self._admin = TopicAdmin(settings, broker_wait)
        self._reader = LedgerReader(settings, self._admin, broker_wait)

    @property
    def topic(self) -> str:
        return self._names.ledger_topic

    def key(self, shard: int) -> bytes:
        return self._names.ledger_key(shard)

    def prepare(self, shards: int) -> None:
        """Makes the topic, or gives it more partitions, so that each shard has one that can be used."""
        admin, name = self._admin, self.topic
        listed = admin.listed(name).get(name)
        if listed is not None and listed.partitions >= shards and listed.usable:
            return
        if listed is None:
            # -1: three, or as many as there are brokers.
            replicas = self._replication_factor if self._replication_factor > 0 else min(_REPLICAS, admin.brokers())
            config = _CONFIG | (_IN_SYNC if replicas >= _REPLICAS else {})
            admin.create([NewTopicOrder(name, shards, replicas, config)])
        elif listed.partitions < shards:
            admin.grow(name, shards)
        admin.await_usable({name: shards})

    def partitions(self) -> int:
        """Returns how many shards it has room for; 0 when nothing was ever sent."""
        return ledger_partitions(self._admin, self.topic)

    def copies(self) -> LedgerCopies | None:
        """Returns how many replicas it has and needs; None when there is no topic."""
        return ledger_copies(self._admin, self.topic)

    def topic_id(self) -> str | None:
        """Kafka's own id of its topic; None when there is none."""
        return self._admin.topic_id(self.topic)

    def status(self) -> LedgerStatus:
        """Returns the state of its topic, and which shards have a row."""
        found = self.topic_id()
        if found is None:
            return LedgerStatus(None)
        written = frozenset(shard for shard in range(self.partitions()) if self._has_row(shard))
        return LedgerStatus(found, written, self.policy())

    def _has_row(self, shard: int) -> bool:
        """Returns whether there is a row of a shard, also one that readers don't see (yet), or that an abort took away.

        Between the first two looks a hidden row may become visible: a commit is answered before it is carried out.
        """
        looks = (self.read, self.read_unseen, self.read)
        return any(look(shard) for look in looks)

    def policy(self) -> str | None:
        """Returns its `cleanup.policy`; None when there is no topic, or this user may not see it."""
        if self._admin.found(self.topic) is None:
            return None
        try:
            return self._admin.configs([self.topic])[self.topic].get(_POLICY)
        except KafkaConfigurationError:
            # Without DESCRIBE_CONFIGS nothing else is wrong; rows that are missing are noticed all the same.
            return None

    def read_committed(self, shard: int) -> LedgerEntry | None:
        """Returns a shard's last committed row, once every transaction that began before this call is ended.

        Call it after `init_transactions` of that shard: then nothing of an earlier sender can follow, except what
        `read_uncommitted` returns.
        """
        return self._entry(shard, settled=True)

    def read_uncommitted(self, shard: int) -> LedgerEntry | None:
        """Returns a shard's row that Kafka neither committed nor aborted, and that no reader sees; nearly always None.

        Call it after `init_transactions` of that shard: before, it may be of a transaction that is open.
        """
        values = self._reader.hidden_values(self.topic, shard, self.key(shard))
        return LedgerEntry.from_json(values[-1]) if values else None

    def read_unseen(self, shard: int) -> list[LedgerEntry]:
        """Returns a shard's rows after the last one that readers see, in order: uncommitted ones, and aborted ones.

        Call it after `init_transactions` of that shard. What is no row is left out: nothing of it was committed.
        """
        found: list[LedgerEntry] = []
        for value in self._reader.unseen_values(self.topic, shard, self.key(shard)):
            with suppress(DefectError):
                found.append(LedgerEntry.from_json(value))
        return found

    def read(self, shard: int) -> LedgerEntry | None:
        """Returns a shard's last visible row; that of an open transaction may follow."""
        return self._entry(shard, settled=False)

    def entries(self) -> dict[int, LedgerEntry]:
        """Returns each shard's last visible row."""
        found = {shard: self.read(shard) for shard in range(self.partitions())}
        return {shard: entry for shard, entry in found.items() if entry is not None}

    def highest_sequence(self) -> int:
        """Returns the highest sequence of any shard; 0 when nothing was ever sent."""
        return max((entry.sequence for entry in self.entries().values()), default=0)

    def _entry(self, shard: int, *, settled: bool) -> LedgerEntry | None:
        value = self._reader.last_value(self.topic, shard, self.key(shard), settled=settled)
        return None if value is None else LedgerEntry.from_json(value)


def ledger_history(
    settings: ClientSettings, publication: str, *, timeout_seconds: float = 60.0
) -> Iterator[tuple[int, LedgerEntry]]:
    """Every committed row of a publication's ledgers with its shard, also of backfills; those of a shard in order.

    What compaction has taken is missing: of each shard at least the last row is there. Nothing where no run ever sent.

    Raises:
        KafkaConfigurationError: this user may not read them.
        BrokersAwayError: the brokers were silent for too long.
        DefectError: a record of a ledger is not a row of it.
    """
    names = (SenderNames(publication), SenderNames(publication, backfill="any"))
    listed = TopicAdmin(settings, BrokerWait(timeout_seconds)).listed()
    there = [each.ledger_topic for each in names if each.ledger_topic in listed]
    for record in read_committed(settings, there, timeout_seconds=timeout_seconds) if there else ():
        if record.value is not None:
            yield record.partition, LedgerEntry.from_json(record.value)
