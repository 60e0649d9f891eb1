"""The topic of a ledger: compacted, a partition for each shard."""

from __future__ import annotations

from contexture.kafka.topic_admin import NewTopicOrder, TopicAdmin

_CONFIG = {"cleanup.policy": "compact"}


def ledger_partitions(admin: TopicAdmin, name: str) -> int:
    """How many partitions the ledger has; 0 when there is no such topic."""
    listed = admin.listed(name).get(name)
    return 0 if listed is None else listed.partitions


def ensure_ledger(admin: TopicAdmin, name: str, shards: int, replication_factor: int) -> None:
    """Gives every shard a partition that can be used; makes or grows the topic where needed."""
    listed = admin.listed(name).get(name)
    if listed is not None and listed.partitions >= shards and listed.usable:
        return
    if listed is None:
        admin.create([NewTopicOrder(name, shards, replication_factor, _CONFIG)])
    elif listed.partitions < shards:
        admin.grow(name, shards)
    admin.await_usable({name: shards})
