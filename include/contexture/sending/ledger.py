"""The ledger: how far each outbox shard got, written by Kafka's own transactions.

One compacted topic for each publication. A shard's rows go to the partition of the shard's number and nowhere else:
with a partition of its own, no other sender's open transaction can hide a shard's last committed row.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass

from contexture.errors import DefectError
from contexture.kafka.patience import Patience
from contexture.kafka.settings import ClientSettings
from contexture.kafka.topic_admin import TopicAdmin
from contexture.sending.ledger_copies import LedgerCopies, ledger_copies
from contexture.sending.ledger_entry import LedgerEntry
from contexture.sending.ledger_reader import LedgerReader
from contexture.sending.ledger_topic import cleanup_policy, ensure_ledger, ledger_partitions
from contexture.sending.senders import SenderNames


@dataclass(frozen=True, slots=True)
class LedgerStanding:
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

    Args:
        settings: the connection.
        names: whose ledger.
        patience: how long brokers are waited for.
        replication_factor: for making the topic; -1: three, or as many as there are brokers.
    """

    def __init__(
        self,
        settings: ClientSettings,
        names: SenderNames,
        *,
        patience: Patience | None = None,
        replication_factor: int = -1,
    ) -> None:
        patience = patience or Patience(300.0)
        self._names = names
        self._replication_factor = replication_factor
        self._admin = TopicAdmin(settings, patience)
        self._reader = LedgerReader(settings, self._admin, patience)

    @property
    def topic(self) -> str:
        """The name of its topic."""
        return self._names.ledger_topic

    def key(self, shard: int) -> bytes:
        """The key of a shard's rows."""
        return self._names.ledger_key(shard)

    def prepare(self, shards: int) -> None:
        """Makes the topic, or gives it more partitions, so that each shard has one."""
        ensure_ledger(self._admin, self.topic, shards, self._replication_factor)

    def partitions(self) -> int:
        """How many shards it has room for; 0 when nothing was ever sent."""
        return ledger_partitions(self._admin, self.topic)

    def copies(self) -> LedgerCopies | None:
        """How many replicas it has and needs; None when there is no topic."""
        return ledger_copies(self._admin, self.topic)

    def topic_id(self) -> str | None:
        """Kafka's own id of its topic; None when there is none."""
        return self._admin.topic_id(self.topic)

    def standing(self) -> LedgerStanding:
        """What there is of it."""
        found = self.topic_id()
        if found is None:
            return LedgerStanding(None)
        written = frozenset(shard for shard in range(self.partitions()) if self._has_row(shard))
        return LedgerStanding(found, written, self.policy())

    def _has_row(self, shard: int) -> bool:
        """Whether there is a row of a shard, also one that readers don't see (yet), or that an abort took away.

        Between the first two looks a hidden row may become visible: a commit is answered before it is carried out.
        """
        looks = (self.read, self.unseen, self.read)
        return any(look(shard) for look in looks)

    def policy(self) -> str | None:
        """Its `cleanup.policy`; None when there is no topic, or this user may not see it."""
        return cleanup_policy(self._admin, self.topic)

    def settled(self, shard: int) -> LedgerEntry | None:
        """What a shard's last committed transaction left, once everything before this call is settled.

        Call it after `init_transactions` of that shard: then nothing of an earlier sender can follow, but for what
        `hidden` gives.
        """
        return self._entry(shard, settled=True)

    def hidden(self, shard: int) -> LedgerEntry | None:
        """A shard's row that Kafka neither committed nor aborted, and that no reader sees; nearly always None.

        Call it after `init_transactions` of that shard: before, it may be of a transaction that is open.
        """
        values = self._reader.hidden_values(self.topic, shard, self.key(shard))
        return LedgerEntry.from_json(values[-1]) if values else None

    def unseen(self, shard: int) -> list[LedgerEntry]:
        """A shard's rows after the last one that readers see, in their order: hidden ones, and aborted ones.

        Call it after `init_transactions` of that shard. What is no row is left out: nothing of it was committed.
        """
        found: list[LedgerEntry] = []
        for value in self._reader.unseen_values(self.topic, shard, self.key(shard)):
            with suppress(DefectError):
                found.append(LedgerEntry.from_json(value))
        return found

    def read(self, shard: int) -> LedgerEntry | None:
        """What a shard's last visible transaction left; an open one may follow."""
        return self._entry(shard, settled=False)

    def entries(self) -> dict[int, LedgerEntry]:
        """What each shard's last visible transaction left."""
        found = {shard: self.read(shard) for shard in range(self.partitions())}
        return {shard: entry for shard, entry in found.items() if entry is not None}

    def highest_sequence(self) -> int:
        """The highest sequence of any shard; 0 when nothing was ever sent."""
        return max((entry.sequence for entry in self.entries().values()), default=0)

    def _entry(self, shard: int, *, settled: bool) -> LedgerEntry | None:
        value = self._reader.last_value(self.topic, shard, self.key(shard), settled=settled)
        return None if value is None else LedgerEntry.from_json(value)
