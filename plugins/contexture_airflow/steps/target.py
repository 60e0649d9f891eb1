"""What the tasks ask of Kafka for one publication."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Protocol

from contexture.publications import Publication
from contexture.sending import AfterFailure, LedgerEntry, SenderNames, ShardReader, ShardResult
from contexture.sending.expected_row import ExpectedRow
from contexture.sending.ledger import LedgerStanding
from contexture.sending.ledger_copies import LedgerCopies
from contexture.storage.manifests import Manifest
from contexture_airflow.steps.run import Interval

Report = Callable[[str], None]
"""Takes one sentence for the log of the task; never data, never a secret."""


@dataclass(frozen=True, slots=True)
class Sending:
    """One send of a shard.

    Attributes:
        reader: the shard.
        shards: how many the outbox has.
        after_failure: milliseconds to wait after a failure, as of `Publisher.publish`.
        committed: is told of each committed transaction.
        skipped: is told how many transactions are in Kafka before anything is sent.
        bytes: of keys and values of the shard, before compression.
        row: what is known of the ledger's row of the shard.
    """

    reader: ShardReader
    shards: int
    after_failure: AfterFailure
    committed: Callable[[LedgerEntry], None] = lambda entry: None
    skipped: Callable[[int], None] = lambda transactions: None
    bytes: int = 0
    row: ExpectedRow = ExpectedRow.NONE


class Target(Protocol):
    """Where a publication's records go."""

    def cluster(self) -> str | None:
        """The id of the Kafka cluster."""
        ...

    def names(self) -> SenderNames:
        """The names of its senders and its ledger."""
        ...

    def identity(self) -> str:
        """Which cluster as whom, without secrets."""
        ...

    def settings_shown(self) -> Mapping[str, str]:
        """The options of its connection, without secrets."""
        ...

    def highest_sequence(self) -> int:
        """The highest sequence that was ever sent or claimed; 0 for none."""
        ...

    def ledger_standing(self) -> LedgerStanding:
        """What there is of the ledger."""
        ...

    def ledger_id(self) -> str | None:
        """Kafka's own id of the ledger's topic; None when it is not there."""
        ...

    def ledger_policy(self) -> str | None:
        """The `cleanup.policy` of the ledger's topic; None when it is not there, or this user may not see it."""
        ...

    def ledger_copies(self) -> LedgerCopies | None:
        """How many replicas the ledger has and needs; None when it is not there."""
        ...

    def prepare_ledger(self, shards: int) -> None:
        """The ledger has room for so many shards when this returns."""
        ...

    def log_told(self) -> int | None:
        """The registry transaction up to which the ledger says that the log is told; None where it says nothing."""
        ...

    def progress(self, shard: int) -> LedgerEntry | None:
        """How far a shard got, once everything before this call is settled."""
        ...

    def ensure_topics(self, topics: Iterable[str]) -> None:
        """Every topic exists when this returns."""
        ...

    def topic_ids(self, topics: Iterable[str], *, all_exist: bool = False) -> dict[str, str]:
        """Kafka's own ids of topics, without those that do not exist; `HIDDEN` for those that may not be seen.

        Args:
            topics: their names.
            all_exist: every topic was made or found a moment ago, so brokers that do not know one yet are behind.
        """
        ...

    def claim(self, manifest: Manifest, *, clears: Collection[str] | None = None) -> bool:
        """Fences the senders of earlier outboxes in the shards that this one does not use; False for a later one.

        Args:
            manifest: of the outbox.
            clears: names of topics: all shards are claimed before any of them is sent, and what their senders left
                undecided in these topics is aborted.
        """
        ...

    def begin_log(self, manifest: Manifest, transaction: int) -> int:
        """Agrees that what a registry did up to a transaction is told by nobody; how far its log is told now."""
        ...

    def send(self, sending: Sending) -> ShardResult:
        """Sends what is not yet sent of a shard; raises as `Publisher.publish`."""
        ...


TargetFor = Callable[[Publication, Interval | None], Target]
"""Opens the target of a publication, for a backfilled interval or for normal runs."""
