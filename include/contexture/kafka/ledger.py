"""The ledger: how far each outbox shard got, written by Kafka's own transactions.

One compacted topic for each publication. A shard's rows go to the partition of the shard's number and nowhere else:
with a partition of its own, no other sender's open transaction can hide a shard's last committed row.
"""

from __future__ import annotations

from contexture.kafka.ledger_entry import LedgerEntry
from contexture.kafka.ledger_reader import LedgerReader
from contexture.kafka.ledger_topic import LedgerTopic
from contexture.kafka.patience import Patience
from contexture.kafka.senders import SenderNames
from contexture.kafka.settings import ClientSettings

_DEFAULT_WAIT_SECONDS = 300.0


class Ledger:
    """The ledger of one publication.

    Args:
        settings: the connection.
        names: whose ledger.
        replication_factor: for making the topic; -1 takes the brokers' default.
    """

    def __init__(self, settings: ClientSettings, names: SenderNames, *, replication_factor: int = -1) -> None:
        self._settings = settings
        self._names = names
        self._topic = LedgerTopic(settings, names.ledger_topic, replication_factor)

    @property
    def topic(self) -> str:
        """The name of its topic."""
        return self._names.ledger_topic

    def key(self, shard: int) -> bytes:
        """The key of a shard's rows."""
        return self._names.ledger_key(shard)

    def prepare(self, shards: int, patience: Patience | None = None) -> None:
        """Makes the topic, or gives it more partitions, so that each shard has one."""
        self._topic.ensure(shards, patience or Patience(_DEFAULT_WAIT_SECONDS))

    def partitions(self, patience: Patience | None = None) -> int:
        """How many shards it has room for; 0 when nothing was ever sent."""
        return self._topic.partitions(patience or Patience(_DEFAULT_WAIT_SECONDS))

    def settled(self, shard: int, patience: Patience | None = None) -> LedgerEntry | None:
        """What a shard's last committed transaction left, once everything before this call is settled.

        Call it after `init_transactions` of that shard: then nothing of an earlier sender can follow.
        """
        return self._entry(shard, patience, settled=True)

    def read(self, shard: int, patience: Patience | None = None) -> LedgerEntry | None:
        """What a shard's last visible transaction left; an open one may follow."""
        return self._entry(shard, patience, settled=False)

    def highest_sequence(self, patience: Patience | None = None) -> int:
        """The highest sequence in any partition; 0 when nothing was ever sent."""
        entries = [self.read(shard, patience) for shard in range(self.partitions(patience))]
        return max((entry.sequence for entry in entries if entry is not None), default=0)

    def _entry(self, shard: int, patience: Patience | None, *, settled: bool) -> LedgerEntry | None:
        source = LedgerReader(self._settings, patience or Patience(_DEFAULT_WAIT_SECONDS))
        value = source.last_value(self.topic, shard, self.key(shard), settled=settled)
        return None if value is None else LedgerEntry.from_json(value)
