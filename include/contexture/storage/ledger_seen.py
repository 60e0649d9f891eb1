"""Which ledger in Kafka a publication writes to, and which shards have rows there, so that lost ones are noticed."""

from __future__ import annotations

from collections.abc import Collection

from contexture.storage.document import Versioned
from contexture.storage.layout import PublicationFolder
from contexture.storage.storage import Storage

_SUFFIX = ".json"


class LedgerSeen(Versioned):
    """The ledger that the publication's senders write to.

    `cluster`: id of the Kafka cluster; on another one there may be none. `topic_id`: Kafka's own id of the topic.
    """

    format: int = 1
    cluster: str | None
    topic_id: str


class ShardBegun(Versioned):
    """That a shard was sent; each shard has a document of its own, so that those sent side by side don't collide.

    `topic_id`: of the ledger that it was sent by. `committed`: whether a transaction of it was committed, so that the
    ledger must hold a row; without it a sender began, and may have been killed before it noted more.
    """

    format: int = 1
    topic_id: str
    committed: bool = False


def ledger_seen(storage: Storage, publication: str) -> LedgerSeen | None:
    """What is known of a publication's ledger; None before its first send."""
    try:
        return LedgerSeen.from_file(storage, PublicationFolder(publication).ledger_seen())
    except FileNotFoundError:
        return None


def note_ledger(storage: Storage, publication: str, seen: LedgerSeen) -> None:
    """Keeps it."""
    storage.write(PublicationFolder(publication).ledger_seen(), seen.to_json())


def shard_begun(storage: Storage, path: str) -> ShardBegun | None:
    """What is known of one shard; None when it was never sent.

    Args:
        storage: the home.
        path: as of `PublicationFolder.shard_begun`.
    """
    try:
        return ShardBegun.from_file(storage, path)
    except FileNotFoundError:
        return None


def committed_shards(storage: Storage, publication: str, topic_id: str) -> frozenset[int]:
    """The shards of which a ledger must hold rows."""
    folder = PublicationFolder(publication)
    found: set[int] = set()
    for name in storage.files(folder.shards_begun(), _SUFFIX):
        shard = int(name.rsplit("=", 1)[1].removesuffix(_SUFFIX))
        begun = shard_begun(storage, folder.shard_begun(shard))
        if begun is not None and begun.committed and begun.topic_id == topic_id:
            found.add(shard)
    return frozenset(found)


def note_rows(storage: Storage, publication: str, topic_id: str, shards: Collection[int]) -> None:
    """Keeps that a ledger holds rows of these shards, and of no others."""
    folder = PublicationFolder(publication)
    storage.remove(folder.shards_begun())
    for shard in shards:
        storage.write(folder.shard_begun(shard), ShardBegun(topic_id=topic_id, committed=True).to_json())
