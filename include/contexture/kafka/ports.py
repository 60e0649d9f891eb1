"""What the publisher needs from others: an outbox shard to read, and a producer to send with."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    import pyarrow as pa

    from contexture.kafka.ledger_entry import LedgerEntry
    from contexture.kafka.replica import ReplicaRecord
    from contexture.kafka.settings import ClientSettings
    from contexture.kafka.shard_records import Fingerprint
    from contexture.kafka.starts import Place
    from contexture.kafka.watch import ClientWatch
    from contexture.storage.manifests import RegistryPart

Headers = Sequence[tuple[str, bytes | None]]


class ShardReader(Protocol):
    """One shard of an outbox, in sending order."""

    @property
    def outbox_id(self) -> str:
        """The content-derived id of the outbox."""
        ...

    @property
    def sequence(self) -> int:
        """The place of the outbox in its publication's order; a lower one never overtakes a higher one."""
        ...

    @property
    def shard(self) -> int:
        """Which shard of the outbox this is, from 0."""
        ...

    @property
    def records(self) -> int:
        """How many records the shard holds."""
        ...

    @property
    def headers(self) -> tuple[tuple[str, bytes], ...]:
        """Headers that every record of the outbox carries."""
        ...

    @property
    def registry(self) -> tuple[RegistryPart, ...]:
        """The registry transaction of each Kafka transaction, in order; empty where the source numbers none."""
        ...

    @property
    def flush(self) -> bool:
        """Whether it was read outside of a registry's log (all that it holds, or what was refused before): then it is
        sent whole, or not at all."""
        ...

    def batches(self, from_position: int) -> Iterator[pa.RecordBatch]:
        """The rows in order, starting exactly at `from_position` (columns: DESIGN section 6, `outbox`)."""
        ...


class KafkaErrorLike(Protocol):
    """What is asked of a `confluent_kafka.KafkaError`."""

    def code(self) -> int: ...
    def name(self) -> str: ...
    def str(self) -> str: ...
    def fatal(self) -> bool: ...
    def retriable(self) -> bool: ...
    def txn_requires_abort(self) -> bool: ...


class MessageLike(Protocol):
    """What is asked of a `confluent_kafka.Message` in a delivery report."""

    def topic(self) -> str | None: ...
    def error(self) -> KafkaErrorLike | None: ...


class ListsTopics(Protocol):
    """What every client can do first."""

    def list_topics(self, topic: str | None = None, timeout: float = -1) -> object: ...


class TransactionalProducer(ListsTopics, Protocol):
    """What is asked of a `confluent_kafka.Producer`; `produce` is positional in the client's own order."""

    def init_transactions(self, timeout: float) -> None: ...
    def begin_transaction(self) -> None: ...
    def produce(
        self,
        topic: str,
        value: bytes | None = None,
        key: bytes | None = None,
        partition: int = -1,
        callback: Callable[[KafkaErrorLike | None, MessageLike], None] | None = None,
        on_delivery: None = None,
        timestamp: int = 0,
        headers: Headers | None = None,
    ) -> None: ...
    def poll(self, timeout: float) -> int: ...
    def flush(self, timeout: float) -> int: ...
    def commit_transaction(self, timeout: float) -> None: ...
    def abort_transaction(self, timeout: float) -> None: ...
    def purge(self) -> None: ...
    def __len__(self) -> int: ...


class LedgerPort(Protocol):
    """What the publisher asks of the ledger."""

    @property
    def topic(self) -> str: ...
    def prepare(self, shards: int) -> None: ...
    def key(self, shard: int) -> bytes: ...
    def partitions(self) -> int: ...
    def read(self, shard: int) -> LedgerEntry | None: ...
    def settled(self, shard: int) -> LedgerEntry | None: ...
    def hidden(self, shard: int) -> LedgerEntry | None: ...
    def unseen(self, shard: int) -> list[LedgerEntry]: ...


class HiddenPort(Protocol):
    """What is asked about hidden records."""

    def spans(self, topics: Collection[str]) -> Mapping[Place, tuple[int, int]]: ...
    def matching(
        self, spans: Mapping[Place, tuple[int, int]], sought: Mapping[str, set[Fingerprint]]
    ) -> Collection[Place]: ...
    def firsts(self, spans: Mapping[Place, tuple[int, int]]) -> Mapping[Place, Fingerprint]: ...
    def moved(self, topics: Collection[str], since: datetime | None) -> Mapping[Place, tuple[int, int]]: ...
    def copies(self, spans: Mapping[Place, tuple[int, int]]) -> Iterator[tuple[ReplicaRecord, bool]]: ...
    def is_committed(
        self,
        sought: Mapping[str, set[Fingerprint]],
        are_own: Callable[[Mapping[Place, Fingerprint]], bool],
        since: datetime | None,
        longest_open_seconds: float,
    ) -> bool: ...


OpenProducer = Callable[["ClientSettings", str, "ClientWatch"], TransactionalProducer]
