"""Reading topics as a careful consumer does: committed records only, alone or as a member of a group."""

from __future__ import annotations

import logging
import re
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from threading import Thread
from typing import TYPE_CHECKING, Final, Protocol

from contexture.errors import ConfigurationError, ContextureError
from contexture.kafka.admin import TopicAdmin
from contexture.kafka.broker_wait import BrokerWait
from contexture.kafka.callbacks import ClientCallbacks
from contexture.kafka.clients import call_client, client_error, error_in, reader
from contexture.kafka.error_codes import translate_error
from contexture.kafka.interfaces import Place
from contexture.kafka.reader import (
    RESETS,
    GroupOffsets,
    OutOfRange,
    Start,
    TopicRecord,
    in_groups,
    places_of,
    raise_uncommitted,
    raise_unreadable,
    read_places,
    record_of,
    starts_of,
)
from contexture.kafka.settings import ClientSettings, Option

if TYPE_CHECKING:
    from confluent_kafka import Consumer, Message, TopicPartition

LEAVE_SECONDS: Final = 30.0

_LOG: Final = logging.getLogger(__name__)


class Closes(Protocol):
    """What has an end that may wait for brokers."""

    def close(self) -> None:
        """Releases what is held and waits until that is done."""


def close_within(client: Closes, seconds: float = LEAVE_SECONDS) -> bool:
    """Closes a client, but waits for it no longer than so many seconds; returns whether it is closed.

    While partitions move, the client library has been seen never to come back from this call (librdkafka 2.16: some one
    in a hundred), and no signal reaches a thread that waits in there. Nothing is lost by continuing: what was done is
    committed by itself, and brokers give the partitions away when they no longer hear that they are read. For the same
    reason an error of the call is reported in the log only.
    """
    # A daemon: Python's own end must not wait for it either.
    closing = Thread(target=_close, args=(client,), name="leaving a group", daemon=True)
    closing.start()
    closing.join(seconds)
    if closing.is_alive():
        _LOG.warning(
            "the Kafka client has not left its group within %.0f s; Contexture waits no longer for it", seconds
        )
    return not closing.is_alive()


def _close(client: Closes) -> None:
    try:
        call_client(client.close)
    except Exception as problem:
        _LOG.warning("the Kafka client left its group with %s", type(problem).__name__)


LEDGER_PREFIX = "contexture.ledger."

# Kafka's own topics, and ours that show how far senders are: no pattern selects them.
_INTERNAL: Final = ("__", LEDGER_PREFIX)


@dataclass(frozen=True, slots=True)
class TopicFilter:
    r"""Patterns of whole names, in Python's syntax (Kafka's clients each have one of their own).

        TopicFilter(r"ngsi\..*", exclude=r".*\.test")

    Attributes:
        include: what a name has to match.
        exclude: names that match it are left out.

    Raises:
        ConfigurationError: a pattern that can not be read.
    """

    include: str
    exclude: str = ""

    def __post_init__(self) -> None:
        for pattern in (self.include, self.exclude):
            try:
                re.compile(pattern)
            except re.error as problem:
                raise ConfigurationError(
                    f"{pattern!r} is not a pattern of topics: {problem}", next_step="correct it, in Python's syntax"
                ) from None

    def chosen(self, names: Iterable[str]) -> list[str]:
        """Returns the names that match, sorted; never topics of Kafka or of ledgers."""
        return sorted(name for name in names if self._matches(name))

    def _matches(self, name: str) -> bool:
        if name.startswith(_INTERNAL) or not re.fullmatch(self.include, name):
            return False
        return not (self.exclude and re.fullmatch(self.exclude, name))


OpenConsumer = Callable[..., "Consumer"]
"""Makes the client of a member, as `clients.reader` does."""

_POLL_SECONDS: Final = 0.5
_COMMITTED_SECONDS: Final = 30.0


class GroupMember:
    """One of those that read topics together; made by `CommittedReader.member`.

        with CommittedReader(settings, ["cars"]).member("audit") as member:
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
        broker_wait: BrokerWait,
        *,
        out_of_range: OutOfRange = "fail",
        open_consumer: OpenConsumer = reader,
    ) -> None:
        self._open_consumer = open_consumer
        self._settings = settings
        self._topics = topics
        self._refresh_seconds = refresh_seconds
        self._broker_wait = broker_wait
        self._watch = ClientCallbacks()
        self._options: dict[str, Option] = {
            "group.id": group,
            "partition.assignment.strategy": "cooperative-sticky",
            "auto.offset.reset": RESETS[out_of_range],
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

    def __exit__(self, *raised: object) -> None:
        self._is_leaving = True
        close_within(self._live())

    def assigned(self) -> list[Place]:
        """Returns the partitions that this member reads now."""
        return sorted((place.topic, place.partition) for place in self._live().assignment())

    def records(self, *, idle_seconds: float | None = None) -> Iterator[TopicRecord]:
        """Committed records of the member's partitions, as they come.

        Args:
            idle_seconds: ends when none came for so long; None: never.

        Raises:
            OffsetGoneError: records after what the group has committed are gone, and `out_of_range` is `fail`.
            DamagedRecordsError: the brokers gave other bytes than were written.
            KafkaConfigurationError: a topic or the group may not be read.
            RetriableError: brokers did not return the group's offsets of partitions that this member was assigned.
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
        """Commits the offsets of all records returned so far; returns when the brokers have stored them.

        Raises:
            RetriableError: brokers could not be reached; the records will come again.
        """
        try:
            self._live().commit(asynchronous=False)
        except client_error() as failure:
            error = error_in(failure)
            if error.name() != "_NO_OFFSET":
                raise translate_error(error, "committing offsets") from failure

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
        return self._topics.chosen(TopicAdmin(self._settings, self._broker_wait).listed())

    def _begin(self, consumer: Consumer, places: list[TopicPartition]) -> None:
        """What no one has committed anything for is read from its beginning; anything else must be there.

        Returning without an assignment leaves it to the client, which gives back what comes while it closes; a
        request for the group's offsets would then never return.
        """
        from confluent_kafka import OFFSET_BEGINNING

        if self._is_leaving:
            return
        try:
            found = call_client(lambda: consumer.committed(places, timeout=_COMMITTED_SECONDS)) if places else []
            raise_uncommitted(found)
        except client_error() as failure:
            # Out of here it would come as something that no `except` catches.
            self._failure = translate_error(error_in(failure), "reading the group's offsets")
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


class CommittedReader:
    """Reads topics, named or chosen by a pattern.

        reader = CommittedReader(settings, TopicFilter(r"ngsi\\..*"))
        for record in reader.records(since=datetime(2026, 11, 1, tzinfo=UTC)):
            ...

    Args:
        settings: the connection.
        topics: their names, or a filter that is applied to what the cluster has when reading begins.
        timeout_seconds: how long brokers may be silent, or a transaction stay open, before it is given up.
        out_of_range: what happens where the offset to read, or that of a group, is not there.
    """

    def __init__(
        self,
        settings: ClientSettings,
        topics: Iterable[str] | TopicFilter,
        *,
        timeout_seconds: float = 60.0,
        out_of_range: OutOfRange = "fail",
    ) -> None:
        self._settings = settings
        self._out_of_range: OutOfRange = out_of_range
        self._topics = topics if isinstance(topics, TopicFilter) else tuple(sorted(set(topics)))
        self._timeout_seconds = timeout_seconds

    def topics(self) -> list[str]:
        return self._names(self._admin(BrokerWait(self._timeout_seconds)))

    def records(self, since: Start = None) -> Iterator[TopicRecord]:
        """Yields the records from a `Start` to the topics' ends at the time of the call.

        Records of one partition come in their order; partitions are mixed. Nothing is left behind in the cluster.
        Memory stays the same however much there is.

        Raises:
            OffsetGoneError: records between the start and what is there are gone, and `out_of_range` is `fail`.
            KafkaConfigurationError: a topic is not there, or may not be read.
            BrokersAwayError: brokers were silent for too long, or an open transaction hides the rest.
        """
        broker_wait = BrokerWait(self._timeout_seconds)
        admin = self._admin(broker_wait)
        places = places_of(admin, self._names(admin))
        for some in in_groups(places):
            starts = self._starts(admin, some, since)
            ends = admin.ends(some, committed=False)
            yield from read_places(self._settings, broker_wait, starts, ends, out_of_range=self._out_of_range)

    def member(self, group: str, *, instance: str | None = None, refresh_seconds: float = 30.0) -> GroupMember:
        """A member of a consumer group that shares the partitions of the topics; to be used as a context manager.

        Args:
            group: its name.
            instance: a name that this member keeps when it comes again soon, so that nothing moves meanwhile.
            refresh_seconds: how often a filter is applied anew, so that new topics are read too.
        """
        return GroupMember(
            self._settings,
            self._topics,
            group,
            instance,
            refresh_seconds,
            BrokerWait(self._timeout_seconds),
            out_of_range=self._out_of_range,
        )

    def _admin(self, broker_wait: BrokerWait) -> TopicAdmin:
        return TopicAdmin(self._settings, broker_wait)

    def _names(self, admin: TopicAdmin) -> list[str]:
        if isinstance(self._topics, TopicFilter):
            return self._topics.chosen(admin.listed())
        return list(self._topics)

    def _starts(self, admin: TopicAdmin, places: Sequence[Place], since: Start) -> dict[Place, int]:
        group = {"group.id": since.group} if isinstance(since, GroupOffsets) else {}
        try:
            with closing(reader(self._settings, ClientCallbacks(), own=group)) as consumer:
                return starts_of(admin, consumer, places, since, self._out_of_range)
        except client_error() as failure:
            raise translate_error(error_in(failure), "reading a group's offsets") from failure
