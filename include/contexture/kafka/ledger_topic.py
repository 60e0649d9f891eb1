"""The topic of a ledger: compacted, a partition for each shard."""

from __future__ import annotations

from contexture.kafka.patience import Patience
from contexture.kafka.settings import ClientSettings
from contexture.kafka.topic_admin import NewTopicOrder, TopicAdmin

_CONFIG = {"cleanup.policy": "compact"}


class LedgerTopic:
    """Makes and grows the topic of one ledger.

    Args:
        settings: the connection.
        name: the topic.
        replication_factor: for making it; -1 takes the brokers' default.
    """

    def __init__(self, settings: ClientSettings, name: str, replication_factor: int) -> None:
        self._settings = settings
        self._name = name
        self._replication_factor = replication_factor

    def partitions(self, patience: Patience) -> int:
        """How many partitions it has; 0 when there is no such topic."""
        listed = TopicAdmin(self._settings, patience).listed(self._name).get(self._name)
        return 0 if listed is None else listed.partitions

    def ensure(self, shards: int, patience: Patience) -> None:
        """Gives every shard a partition that can be used."""
        admin = TopicAdmin(self._settings, patience)
        listed = admin.listed(self._name).get(self._name)
        if listed is not None and listed.partitions >= shards and listed.usable:
            return
        if listed is None:
            admin.create([NewTopicOrder(self._name, shards, self._replication_factor, _CONFIG)])
        elif listed.partitions < shards:
            admin.grow(self._name, shards)
        admin.await_usable({self._name: shards})
