"""What storage records about sending: failed attempts and their schedule, dead letters, and the ledger in Kafka.

Each shard has a document of its own, so that shards sent beside each other never overwrite each other's count.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal

import numpy as np
import pyarrow as pa

from contexture.errors import ConfigurationError
from contexture.storage.documents import Versioned
from contexture.storage.file_tree import FileTree
from contexture.storage.paths import PublicationPaths

NO_LIMIT = -1


@dataclass(frozen=True, slots=True)
class RetrySchedule:
    """The attempts of one send: a first one, and `batch_ttl` more.

    The intervals come in order, and the last one again as long as retries are left.

    Args:
        batch_ttl: how many retries there are; 0 for none, -1 for no end of them.
        intervals: milliseconds, at least one, each above 0.

    Raises:
        ConfigurationError: the count is below -1, or there is no positive interval.
    """

    batch_ttl: int
    intervals: tuple[int, ...]

    def __post_init__(self) -> None:
        if self.batch_ttl < NO_LIMIT or not self.intervals or min(self.intervals) <= 0:
            raise ConfigurationError(
                f"batch_ttl {self.batch_ttl} with batch_retry_intervals {list(self.intervals)} is not a schedule",
                next_step="use a batch_ttl of -1 or more and intervals above 0 ms",
            )

    @property
    def attempts(self) -> int | None:
        """How many attempts there are, the first included; None when there is no end of them."""
        return None if self.batch_ttl == NO_LIMIT else self.batch_ttl + 1

    def delay_after(self, failed: int) -> int | None:
        """Returns the wait after that many failed attempts (1 or more), milliseconds; None when no attempt is left."""
        if self.attempts is not None and failed >= self.attempts:
            return None
        return self.intervals[min(failed, len(self.intervals)) - 1]


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

    def describe(self) -> str:
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

    def __init__(self, home: FileTree, publication: str) -> None:
        self._home = home
        self._paths = PublicationPaths(publication)

    def of_shard(self, outbox: str, shard: int) -> SendAttempts | None:
        """Returns what is recorded of a shard; None when no send of it has failed."""
        return SendAttempts.find_file(self._home, self._paths.shard_attempts(outbox, shard))

    def of_outbox(self, outbox: str) -> tuple[SendAttempts, ...]:
        """Returns what is recorded of every shard that failed at least once, by number."""
        folder = self._paths.attempts(outbox)
        paths = (f"{folder}/{name}" for name in self._home.files(folder, ".json"))
        found = [SendAttempts.from_file(self._home, path) for path in paths]
        return tuple(sorted(found, key=lambda each: each.shard))

    def keep(self, attempts: SendAttempts) -> None:
        """Writes the new state of a shard."""
        self._home.write(self._paths.shard_attempts(attempts.outbox, attempts.shard), attempts.to_json())

    def forget(self, outbox: str) -> None:
        """Removes what is recorded: the next send is due immediately and has all its attempts."""
        self._home.remove(self._paths.attempts(outbox))


class DeadLetterIndex(Versioned):
    """The positions of these records, by shard."""

    format: int = 1
    shards: Mapping[int, tuple[int, ...]] = {}

    @property
    def count(self) -> int:
        return sum(map(len, self.shards.values()))


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


class ShardRecord:
    """The document of one shard, on whether it was ever sent."""

    def __init__(self, home: FileTree, path: str) -> None:
        self._home = home
        self._path = path

    def read(self) -> ShardBegun | None:
        """Returns what is recorded of the shard; None when it was never sent."""
        return ShardBegun.find_file(self._home, self._path)

    def write(self, begun: ShardBegun) -> None:
        self._home.write(self._path, begun.to_json())


class LedgerRecord:
    """What storage records about the ledger that a publication's senders write to."""

    def __init__(self, home: FileTree, publication: str) -> None:
        self._home = home
        self._paths = PublicationPaths(publication)

    def known(self) -> KnownLedger | None:
        """Returns the ledger; None before the first send."""
        return KnownLedger.find_file(self._home, self._paths.ledger_seen())

    def write_known(self, known: KnownLedger) -> None:
        self._home.write(self._paths.ledger_seen(), known.to_json())

    def shard(self, shard: int) -> ShardRecord:
        return ShardRecord(self._home, self._paths.shard_begun(shard))

    def backfilled_shard(self, outbox: str, shard: int) -> ShardRecord:
        """Returns the record of a shard of a backfill: each interval has rows of its own in the ledger."""
        return ShardRecord(self._home, self._paths.backfilled_shard_begun(outbox, shard))

    def committed_shards(self, topic_id: str) -> frozenset[int]:
        """Returns the shards of which a ledger must hold rows."""
        found: set[int] = set()
        for name in self._home.files(self._paths.shards_begun(), _SUFFIX):
            shard = int(name.rsplit("=", 1)[1].removesuffix(_SUFFIX))
            begun = self.shard(shard).read()
            if begun is not None and begun.committed and begun.topic_id == topic_id:
                found.add(shard)
        return frozenset(found)

    def write_rows(self, topic_id: str, shards: Collection[int]) -> None:
        """Writes that a ledger holds rows of these shards, and of no others."""
        self._home.remove(self._paths.shards_begun())
        for shard in shards:
            self.shard(shard).write(ShardBegun(topic_id=topic_id, committed=True))
