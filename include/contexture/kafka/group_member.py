"""A member of a consumer group: partitions are shared, and move one by one when members come and go."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from types import TracebackType
from typing import TYPE_CHECKING, Final

from contexture.errors import ContextureError
from contexture.kafka.clients import asked, client_error, error_in, reader
from contexture.kafka.error_table import translated
from contexture.kafka.leaving import leave
from contexture.kafka.patience import Patience
from contexture.kafka.replica import ReplicaRecord, record_of
from contexture.kafka.settings import ClientSettings, Option
from contexture.kafka.starts import raise_uncommitted
from contexture.kafka.topic_admin import TopicAdmin
from contexture.kafka.topic_filter import TopicFilter
from contexture.kafka.unreadable import raise_unreadable
from contexture.kafka.watch import ClientWatch

if TYPE_CHECKING:
    from confluent_kafka import Consumer, Message, TopicPartition

OpenConsumer = Callable[..., "Consumer"]
"""Makes the client of a member, as `clients.reader` does."""

_POLL_SECONDS: Final = 0.5
_COMMITTED_SECONDS: Final = 30.0


class GroupMember:
    """One of those that read topics together; made by `ReplicaReader.member`.

        with ReplicaReader(settings, ["cars"]).member("audit") as member:
            for record in member.records():
                store(record)
                member.commit()

    Offsets are committed by `commit` alone. A member that dies after its work and before that leaves records that the
    next one gets again: nothing is lost.
    """

    def __init__(
        self,
        settings: ClientSettings,
        topics: tuple[str, ...] | TopicFilter,
        group: str,
        instance: str | None,
        refresh_seconds: float,
        patience: Patience,
        *,
        open_consumer: OpenConsumer = reader,
    ) -> None:
        self._open_consumer = open_consumer
        self._settings = settings
        self._topics = topics
        self._refresh_seconds = refresh_seconds
        self._patience = patience
        self._watch = ClientWatch()
        self._options: dict[str, Option] = {
            "group.id": group,
            "partition.assignment.strategy": "cooperative-sticky",
            "auto.offset.reset": "error",
            "enable.partition.eof": False,
        }
        if instance is not None:
            self._options["group.instance.id"] = instance
        self._subscribed: list[str] = []
        self._looked = 0.0
        self._consumer: Consumer | None = None
        self._is_leaving = False
        self._failure: ContextureError | None = None

    def __enter__(self) -> GroupMember:
        self._consumer = self._open_consumer(self._settings, self._watch, own=self._options)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._is_leaving = True
        leave(self._live())

    def assigned(self) -> list[tuple[str, int]]:
        """The partitions that this member reads now."""
        return sorted((place.topic, place.partition) for place in self._live().assignment())

    def records(self, *, idle_seconds: float | None = None) -> Iterator[ReplicaRecord]:
        """Committed records of the member's partitions, as they come.

        Args:
            idle_seconds: ends when none came for so long; None: goes on for ever.

        Raises:
            OffsetGoneError: records after what the group has committed are gone.
            DamagedRecordsError: the brokers gave other bytes than were written.
            KafkaConfigurationError: a topic or the group may not be read.
            RetriableError: brokers did not tell where the group stands in partitions that this member was given.
        """
        last = time.monotonic()
        while idle_seconds is None or time.monotonic() - last < idle_seconds:
            self._subscribe()
            message = self._live().poll(_POLL_SECONDS)
            self._watch.raise_refusal("reading")
            if self._failure is not None:
                raise self._failure
            if message is None:
                continue
            if message.error() is not None:
                self._on_error(message)
                continue
            last = time.monotonic()
            self._live().store_offsets(message=message)
            yield record_of(message)

    def commit(self) -> None:
        """Says that all records given so far are done with; returns when the brokers know.

        Raises:
            RetriableError: they could not be told; the records will come again.
        """
        try:
            self._live().commit(asynchronous=False)
        except client_error() as failure:
            error = error_in(failure)
            if error.name() != "_NO_OFFSET":
                raise translated(error, "committing offsets") from failure

    def _live(self) -> Consumer:
        if self._consumer is None:
            raise RuntimeError("use the member as a context manager")
        return self._consumer

    def _subscribe(self) -> None:
        """Names are chosen here rather than by the client, whose patterns are of another kind."""
        now = time.monotonic()
        every = self._refresh_seconds if isinstance(self._topics, TopicFilter) else float("inf")
        if self._subscribed and now - self._looked < every:
            return
        self._looked = now
        names = self._names()
        if names and names != self._subscribed:
            self._live().subscribe(names, on_assign=self._begin)
            self._subscribed = names

    def _names(self) -> list[str]:
        if not isinstance(self._topics, TopicFilter):
            return list(self._topics)
        return self._topics.chosen(TopicAdmin(self._settings, self._patience).listed())

    def _begin(self, consumer: Consumer, places: list[TopicPartition]) -> None:
        """What nobody has committed anything for is read from its beginning; anything else must be there.

        Returning without an assignment leaves it to the client, which gives back what comes while it closes; asked
        then where the group stands, it never answers.
        """
        from confluent_kafka import OFFSET_BEGINNING

        if self._is_leaving:
            return
        try:
            found = asked(lambda: consumer.committed(places, timeout=_COMMITTED_SECONDS)) if places else []
            raise_uncommitted(found)
        except client_error() as failure:
            # Out of here it would come as something that no `except` catches.
            self._failure = translated(error_in(failure), "asking where the group stands")
            return
        except ContextureError as failure:
            self._failure = failure
            return
        for place in found:
            if place.offset < 0:
                place.offset = OFFSET_BEGINNING
        consumer.incremental_assign(found)

    def _on_error(self, message: Message) -> None:
        error = message.error()
        assert error is not None  # asked by the caller
        raise_unreadable(error, message)
