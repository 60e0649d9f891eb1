"""What this package requires of a client of confluent-kafka, as protocols: tests have their own."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from contexture.kafka.callbacks import ClientCallbacks
    from contexture.kafka.settings import ClientSettings

Headers = Sequence[tuple[str, bytes | None]]

Place = tuple[str, int]
"""A partition: topic and number."""


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


OpenProducer = Callable[["ClientSettings", str, "ClientCallbacks"], TransactionalProducer]

Delivered = Callable[[KafkaErrorLike | None, MessageLike], None]
"""Receives each record that a broker has taken (error None) or not; within a transaction no reader sees it yet. Must
return soon; what it raises is logged and changes nothing. Requesting these reports costs time for every record."""
