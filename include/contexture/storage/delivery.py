"""What storage records about sending: failed attempts, dead letters, and the ledger that the senders write to.

Each shard has a document of its own, so that shards sent beside each other never overwrite each other's count.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any, Literal

import numpy as np
import pyarrow as pa

from contexture.storage.documents import Versioned
from contexture.storage.home import Storage
from contexture.storage.manifests import Manifest
from contexture.storage.publication_store import PublicationFolder

AttemptState = Literal["waiting", "exhausted", "stopped", "sent"]


class SendAttempts(Versioned):
    """Where the attempts to send one shard stand.

    Attributes:
        attempt: the last attempt that failed, counted from 1; a new budget begins again at 1.
        allowed: how many attempts there are, `batch_ttl` + 1; None when there is no end of them.
        state: `waiting` for the next attempt; `exhausted`; `stopped` by what no attempt can heal; `sent` in the end.
        next_at: when the next attempt is due; None when none is.
        failed_at: when the last one failed.
        intent: of the error, as in `contexture.errors`.
        message: what happened and what to do; never data, never a secret.
        failed: all failed attempts of this shard, over all budgets.
    """

    format: int = 1
    outbox: str
    shard: int
    attempt: int
    allowed: int | None
    state: AttemptState
    next_at: datetime | None
    failed_at: datetime
    intent: str
    message: str
    failed: int

    @property
    def is_open(self) -> bool:
        """Whether the shard is still to be sent."""
        return self.state != "sent"

    def told(self) -> str:
        """For people: `attempt 3 of 11, next at 12:40:05Z`."""
        allowed = "without end" if self.allowed is None else str(self.allowed)
        then = f"next at {self.next_at:%H:%M:%SZ}" if self.next_at else self.state
        return f"attempt {self.attempt} of {allowed}, {then}"


def most_urgent(sends: Sequence[SendAttempts]) -> SendAttempts | None:
    """The shard that a person should hear of first: one that waits no more, else the one that failed most."""
    unsent = [each for each in sends if each.is_open]
    return max(unsent, key=lambda each: (each.state != "waiting", each.attempt), default=None)


class AttemptLog:
    """The failed sends of one publication's outboxes."""

    def __init__(self, storage: Storage, publication: str) -> None:
        self._storage = storage
        self._folder = PublicationFolder(publication)

    def of_shard(self, outbox: str, shard: int) -> SendAttempts | None:
        """What is noted of a shard; None when no send of it has failed."""
        path = self._folder.shard_attempts(outbox, shard)
        try:
            return SendAttempts.from_file(self._storage, path)
        except FileNotFoundError:
            return None

    def of_outbox(self, outbox: str) -> tuple[SendAttempts, ...]:
        """What is noted of every shard that failed at least once, by number."""
        folder = self._folder.attempts(outbox)
        paths = (f"{folder}/{name}" for name in self._storage.files(folder, ".json"))
        found = [SendAttempts.from_file(self._storage, path) for path in paths]
        return tuple(sorted(found, key=lambda each: each.shard))

    def keep(self, attempts: SendAttempts) -> None:
        """Puts the new standing of a shard in place."""
        self._storage.write(self._folder.shard_attempts(attempts.outbox, attempts.shard), attempts.to_json())

    def forget(self, outbox: str) -> None:
        """Removes what is noted: the next send is due at once and has all its attempts."""
        self._storage.remove(self._folder.attempts(outbox))


class DeadLetterIndex(Versioned):
    """The positions of these records, by shard."""

    format: int = 1
    shards: Mapping[int, tuple[int, ...]] = {}

    @property
    def count(self) -> int:
        """How many there are."""
        return sum(map(len, self.shards.values()))


def write_dead_letter_index(storage: Storage, manifest: Manifest, found: DeadLetterIndex) -> None:
    """Keeps them; nothing is written where there are none."""
    if found.count:
        storage.write(PublicationFolder(manifest.publication).dead_letters(manifest.outbox), found.to_json())


def dead_letters_of(storage: Storage, manifest: Manifest) -> DeadLetterIndex:
    """Those of a concluded outbox."""
    try:
        read = storage.read(PublicationFolder(manifest.publication).dead_letters(manifest.outbox))
    except FileNotFoundError:
        return DeadLetterIndex()
    return DeadLetterIndex.model_validate_json(read)


def without_dead_letters(batches: Iterator[Any], positions: tuple[int, ...]) -> Iterator[Any]:
    """The rows of a shard that are in their topics."""
    for batch in batches:
        kept = ~np.isin(np.asarray(batch.column("position")), positions) if positions else None
        yield batch if kept is None or kept.all() else batch.filter(pa.array(kept))


_SUFFIX = ".json"


class KnownLedger(Versioned):
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


def ledger_seen(storage: Storage, publication: str) -> KnownLedger | None:
    """What is known of a publication's ledger; None before its first send."""
    try:
        return KnownLedger.from_file(storage, PublicationFolder(publication).ledger_seen())
    except FileNotFoundError:
        return None


def write_known_ledger(storage: Storage, publication: str, seen: KnownLedger) -> None:
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
