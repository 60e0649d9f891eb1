"""Whether other runs sent what a backfill sent, while it was under way.

On a replica a backfill leaves out what the target holds newer, as state tells when it is prepared. What a run sends
after that, or is sending just then, state does not tell yet; and nobody holds the backfill's records and the run's in
one order. So the earlier value may lie on top of the newer one, and no later run would notice: state has the newer one.
"""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
import pyarrow.parquet as pq

from contexture.storage.layout import PublicationFolder
from contexture.storage.lifecycle import Outboxes
from contexture.storage.manifest import Manifest
from contexture.storage.state import State
from contexture.storage.storage import Storage

Place = tuple[str, bytes | None]
"""A topic and a key."""


def was_overtaken(storage: Storage, backfill: Manifest) -> bool:
    """Whether a normal run that was not concluded when a backfill was prepared has records for a key of it.

    Where the archive has lost such a run, it is taken for one that has.

    Raises:
        DefectError: a document or a file of an outbox is damaged.
        RetriableError: the storage failed.
    """
    outboxes = Outboxes(storage, backfill.publication)
    concluded = State(storage, backfill.publication).pointer().generation - backfill.state_generation
    if concluded == 0 and not _is_sending(outboxes):
        return False
    sent: frozenset[Place] | None = None
    for run in _newest_first(outboxes):
        if run.state_generation < backfill.state_generation:
            break
        concluded -= outboxes.status(run.outbox).status == "concluded"
        if run.records:
            sent = frozenset(_places(storage, backfill)) if sent is None else sent
            if any(place in sent for place in _places(storage, run)):
                return True
    return concluded > 0


def _is_sending(outboxes: Outboxes) -> bool:
    """Whether a normal run is being sent, which costs less to see than what all runs were."""
    approved = (item.outbox for item in outboxes.pending() if item.status == "approved")
    return any(outboxes.manifest(outbox).mode != "backfill" for outbox in approved)


def _newest_first(outboxes: Outboxes) -> Iterator[Manifest]:
    """The normal runs that were approved or concluded."""
    for item in reversed(outboxes.all()):
        if item.status in {"approved", "concluded"}:
            manifest = outboxes.manifest(item.outbox)
            if manifest.mode != "backfill":
                yield manifest


def _places(storage: Storage, manifest: Manifest) -> Iterator[Place]:
    folder = PublicationFolder(manifest.publication)
    for shard in manifest.shards:
        if shard.file is None:
            continue
        path = f"{folder.shard(manifest.outbox, shard.shard)}/{shard.file}"
        with storage.reading(path):
            known, filesystem = storage.path(path), storage.filesystem
            table = pq.read_table(known, columns=["topic", "key"], filesystem=filesystem, partitioning=None)
        yield from zip(
            table.column("topic").cast(pa.string()).to_pylist(), table.column("key").to_pylist(), strict=True
        )
