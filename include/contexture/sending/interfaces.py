"""What a sender requires of others, as protocols: an outbox shard, the ledger, hidden records."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from datetime import datetime
from typing import TYPE_CHECKING, NamedTuple, Protocol

if TYPE_CHECKING:
    import pyarrow as pa

    from contexture.kafka.interfaces import Place
    from contexture.kafka.reader import TopicRecord
    from contexture.sending.ledger import LedgerEntry
    from contexture.sending.shard_records import Fingerprint
    from contexture.storage.manifests import RegistryPart


class ShardReader(Protocol):
    """One shard of an outbox, in sending order."""

    @property
    def outbox_id(self) -> str:
        """The content-derived id of the outbox."""

    @property
    def sequence(self) -> int:
        """The place of the outbox in its publication's order; a lower one never overtakes a higher one."""

    @property
    def shard(self) -> int:
        """Which shard of the outbox this is, from 0."""

    @property
    def records(self) -> int:
        """How many records the shard holds."""

    @property
    def headers(self) -> tuple[tuple[str, bytes], ...]:
        """Headers that every record of the outbox carries."""

    @property
    def registry(self) -> tuple[RegistryPart, ...]:
        """The registry transaction of each Kafka transaction, in order; empty where the source numbers none."""

    @property
    def flush(self) -> bool:
        """Whether it was read outside of a registry's log (all that it holds, or what was refused before): then it is
        sent whole, or not at all."""

    def batches(self, from_position: int) -> Iterator[pa.RecordBatch]:
        """Returns the rows in order, starting exactly at `from_position` (columns: DESIGN section 6, `outbox`)."""


class LedgerPort(Protocol):
    """The methods of the ledger that sending uses."""

    @property
    def topic(self) -> str: ...
    def prepare(self, shards: int) -> None: ...
    def key(self, shard: int) -> bytes: ...
    def partitions(self) -> int: ...
    def read(self, shard: int) -> LedgerEntry | None: ...
    def read_committed(self, shard: int) -> LedgerEntry | None: ...
    def read_uncommitted(self, shard: int) -> LedgerEntry | None: ...
    def read_unseen(self, shard: int) -> list[LedgerEntry]: ...


class OffsetSpan(NamedTuple):
    """Some offsets of a partition: the first one, and the one after the last."""

    start: int
    end: int


class RecordCopy(NamedTuple):
    """A record in a topic, and whether readers see it."""

    record: TopicRecord
    is_seen: bool


class HiddenPort(Protocol):
    """What is asked about hidden records."""

    def spans(self, topics: Collection[str]) -> Mapping[Place, OffsetSpan]: ...
    def matching(
        self, spans: Mapping[Place, OffsetSpan], sought: Mapping[str, set[Fingerprint]]
    ) -> Collection[Place]: ...
    def firsts(self, spans: Mapping[Place, OffsetSpan]) -> Mapping[Place, Fingerprint]: ...
    def moved(self, topics: Collection[str], since: datetime | None) -> Mapping[Place, OffsetSpan]: ...
    def copies(self, spans: Mapping[Place, OffsetSpan]) -> Iterator[RecordCopy]: ...
    def is_committed(
        self,
        sought: Mapping[str, set[Fingerprint]],
        are_own: Callable[[Mapping[Place, Fingerprint]], bool],
        since: datetime | None,
        longest_open_seconds: float,
    ) -> bool: ...
