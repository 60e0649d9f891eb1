"""How `contexture outbox show` tells which transactions of a registry an outbox carries."""

from __future__ import annotations

from collections.abc import Iterator

from contexture.storage.manifests import Manifest, ShardManifest

TRANSACTIONS_SHOWN = 20


def registry_lines(manifest: Manifest) -> Iterator[str]:
    """What a registry's outbox is, and the registry's transaction behind each of Kafka's; nothing for a broker's."""
    if manifest.baseline:
        yield "what the registry holds is noted as the start; nothing is sent until it changes"
    if manifest.flush:
        yield "everything that the registry holds, in one transaction"
    lines = [line for shard in manifest.shards for line in _of_shard(shard)]
    yield from lines[:TRANSACTIONS_SHOWN]
    if len(lines) > TRANSACTIONS_SHOWN:
        yield f"  and {len(lines) - TRANSACTIONS_SHOWN} more; --json has all"


def _of_shard(shard: ShardManifest) -> Iterator[str]:
    ends = [part.first_position for part in shard.registry[1:]]
    for part, end in zip(shard.registry, [*ends, shard.records], strict=False):
        records = end - part.first_position
        what = "tombstones" if part.deletions else "additions and modifications"
        at = f" of {part.at:%Y-%m-%d %H:%M:%S} UTC" if part.at else ""
        yield f"  registry transaction {part.id}{at}: {records} {'record' if records == 1 else 'records'}, {what}"
