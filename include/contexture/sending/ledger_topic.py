"""The topic of a ledger: compacted, a partition for each shard."""

from __future__ import annotations

from contexture.kafka.errors import KafkaConfigurationError
from contexture.kafka.topic_admin import NewTopicOrder, TopicAdmin

_POLICY = "cleanup.policy"
_CONFIG = {_POLICY: "compact"}
# A partition without a leader loses the markers of transactions that are settled meanwhile.
_REPLICAS = 3
_IN_SYNC = {"min.insync.replicas": "2"}


def ledger_partitions(admin: TopicAdmin, name: str) -> int:
    """How many partitions the ledger has; 0 when there is no such topic."""
    found = admin.found(name)
    return 0 if found is None else found.partitions


def cleanup_policy(admin: TopicAdmin, name: str) -> str | None:
    """The ledger's `cleanup.policy`; None when there is no such topic, or this user may not see it."""
    if admin.found(name) is None:
        return None
    try:
        return admin.configs([name])[name].get(_POLICY)
    except KafkaConfigurationError:
        # Without DESCRIBE_CONFIGS nothing else is wrong; rows that are missing are noticed all the same.
        return None


def ensure_ledger(admin: TopicAdmin, name: str, shards: int, replication_factor: int) -> None:
    """Gives every shard a partition that can be used; makes or grows the topic where needed.

    Args:
        admin: of the cluster.
        name: of the topic.
        shards: how many partitions it needs.
        replication_factor: of a topic that is made; -1: three, or as many as there are brokers.
    """
    listed = admin.listed(name).get(name)
    if listed is not None and listed.partitions >= shards and listed.usable:
        return
    if listed is None:
        replicas = replication_factor if replication_factor > 0 else min(_REPLICAS, admin.brokers())
        config = _CONFIG | (_IN_SYNC if replicas >= _REPLICAS else {})
        admin.create([NewTopicOrder(name, shards, replicas, config)])
    elif listed.partitions < shards:
        admin.grow(name, shards)
    admin.await_usable({name: shards})
