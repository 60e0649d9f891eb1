"""Asking brokers for topics: list, create, grow, and wait until they can be used."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from itertools import islice
from typing import TYPE_CHECKING, TypeVar

from contexture.errors import RetriableError
from contexture.kafka.clients import admin, client_error, error_in
from contexture.kafka.error_table import Meaning, meaning, translated
from contexture.kafka.patience import Patience
from contexture.kafka.ports import KafkaErrorLike
from contexture.kafka.settings import ClientSettings
from contexture.kafka.watch import ClientWatch

if TYPE_CHECKING:
    from confluent_kafka import TopicPartition
    from confluent_kafka.admin import AdminClient, ListOffsetsResultInfo, OffsetSpec

_CALL_SECONDS = 10.0
# Short enough that a refused login or a missing broker is soon told; a listing that timed out is asked for again.
_LISTING_SECONDS = 3.0
_BULK = 500
_VISIBLE_POLL_SECONDS = 0.1
# A listing of 10,000 topics takes brokers and client 0.14 s: it is asked for the less often, the more are missing.
_VISIBLE_POLL_SECONDS_PER_TOPIC = 0.001
_VISIBLE_SECONDS = 120.0
# Each listing is answered by any broker, and the one that answers may be the one that is behind.
_LOOKS_FOR_A_TOPIC = 3
# What a user has to be allowed, by what is tried; DESCRIBE is enough for anything else.
_NEEDED: Mapping[str, str] = {
    "making": "CREATE",
    "growing": "ALTER",
    "configuring": "ALTER_CONFIGS",
    "reading the configuration of": "DESCRIBE_CONFIGS",
}

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class ListedTopic:
    """A topic as the brokers list it.

    Attributes:
        partitions: how many it has.
        replication_factor: of its first partition.
        usable: every partition has a leader.
    """

    partitions: int
    replication_factor: int
    usable: bool


@dataclass(frozen=True, slots=True)
class NewTopicOrder:
    """A topic to be made; a replication factor of -1 takes the brokers' default."""

    name: str
    partitions: int
    replication_factor: int
    config: Mapping[str, str]


class TopicAdmin:
    """Topic administration over one connection.

    Args:
        settings: the connection.
        patience: how long brokers are waited for.
    """

    def __init__(self, settings: ClientSettings, patience: Patience) -> None:
        self._settings = settings
        self._patience = patience
        self._watch = ClientWatch()

    @cached_property
    def _client(self) -> AdminClient:
        return admin(self._settings, self._watch)

    def listed(self, only: str | None = None) -> dict[str, ListedTopic]:
        """All topics this user may see (or the one named, if it exists), in one request."""
        metadata = self._until_answered(
            lambda: self._client.list_topics(topic=only, timeout=_LISTING_SECONDS), "listing"
        )
        return {
            name: ListedTopic(
                partitions=len(topic.partitions),
                replication_factor=len(topic.partitions[0].replicas) if 0 in topic.partitions else 0,
                usable=bool(topic.partitions) and all(part.leader >= 0 for part in topic.partitions.values()),
            )
            for name, topic in metadata.topics.items()
            if topic.error is None or topic.partitions
        }

    def brokers(self) -> int:
        """How many brokers the cluster has."""
        metadata = self._until_answered(lambda: self._client.list_topics(timeout=_LISTING_SECONDS), "listing")
        return max(1, len(metadata.brokers))

    def topic_id(self, name: str) -> str | None:
        """Kafka's own id of a topic, which is another one when it was removed and made again; None: it is not there."""
        from confluent_kafka import TopicCollection

        if name not in self.listed(name):
            return None

        def described() -> str:
            answer = self._client.describe_topics(TopicCollection([name]), request_timeout=_CALL_SECONDS)[name]
            return str(answer.result().topic_id)

        return self._until_answered(described, "describing")

    def create(self, orders: Sequence[NewTopicOrder], created: Callable[[int], None] = lambda count: None) -> None:
        """Makes topics in bulk; one that exists meanwhile is as good.

        Brokers answer before they have done it, and fall behind with their own heartbeats when they are given thousands
        at once: each bulk begins when the last topic of the one before is usable.

        Args:
            orders: the topics.
            created: is told after each bulk how many are made.

        Raises:
            KafkaConfigurationError: the brokers refuse a topic (configuration, permission, replication factor).
            RetriableError: topics do not become usable.
        """
        from confluent_kafka.admin import NewTopic

        waiting, count = iter(orders), 0
        while bulk := list(islice(waiting, _BULK)):
            topics = [
                NewTopic(order.name, order.partitions, order.replication_factor, config=dict(order.config))
                for order in bulk
            ]
            self._settle(
                lambda topics=topics: self._client.create_topics(topics, request_timeout=_CALL_SECONDS),  # type: ignore[misc]
                "making",
            )
            count += len(bulk)
            if count < len(orders):
                self.await_usable({bulk[-1].name: bulk[-1].partitions})
            created(count)

    def grow(self, name: str, partitions: int) -> None:
        """Gives a topic more partitions; having them already is as good."""
        from confluent_kafka.admin import NewPartitions

        self._settle(
            lambda: self._client.create_partitions([NewPartitions(name, partitions)], request_timeout=_CALL_SECONDS),
            "growing",
        )

    def configure(self, changes: Mapping[str, Mapping[str, str]]) -> None:
        """Sets configuration of existing topics; what isn't named stays.

        Raises:
            KafkaConfigurationError: the brokers refuse a value, or this user.
        """
        from confluent_kafka.admin import (
            AlterConfigOpType,
            ConfigEntry,
            ConfigResource,
            ResourceType,
        )

        waiting = iter(changes.items())
        while bulk := list(islice(waiting, _BULK)):
            resources = [
                ConfigResource(
                    ResourceType.TOPIC,
                    topic,
                    incremental_configs=[
                        ConfigEntry(name, value, incremental_operation=AlterConfigOpType.SET)
                        for name, value in config.items()
                    ],
                )
                for topic, config in bulk
            ]

            def alter(resources: list[ConfigResource] = resources) -> dict[str, Future[None]]:
                answers = self._client.incremental_alter_configs(resources, request_timeout=_CALL_SECONDS)
                return {resource.name: future for resource, future in answers.items()}

            self._settle(alter, "configuring")

    def configs(self, names: Sequence[str]) -> dict[str, dict[str, str]]:
        """The configuration in force of existing topics."""
        from confluent_kafka.admin import ConfigResource, ResourceType

        found: dict[str, dict[str, str]] = {}
        waiting = iter(names)
        while bulk := list(islice(waiting, _BULK)):
            resources = [ConfigResource(ResourceType.TOPIC, name) for name in bulk]
            answers = self._client.describe_configs(resources, request_timeout=_CALL_SECONDS)
            for resource, future in answers.items():
                entries = self._until_answered(future.result, "reading the configuration of", resource.name)
                found[resource.name] = {key: str(entry.value) for key, entry in entries.items()}
        return found

    def lowest_of_brokers(self, name: str) -> int | None:
        """The lowest value that a broker's configuration has for a number; None when this user may not see it."""
        from confluent_kafka.admin import ConfigResource, ResourceType

        metadata = self._until_answered(lambda: self._client.list_topics(timeout=_LISTING_SECONDS), "listing")
        found: list[int] = []
        for broker in metadata.brokers:
            # The client takes one broker in a call.
            resource = ConfigResource(ResourceType.BROKER, str(broker))
            (future,) = self._client.describe_configs([resource], request_timeout=_CALL_SECONDS).values()
            try:
                found.append(int(future.result()[name].value))
            except (client_error(), KeyError, ValueError, TypeError):
                return None
        return min(found, default=None)

    def ends(self, places: Sequence[tuple[str, int]], *, committed: bool) -> dict[tuple[str, int], int]:
        """The offset after the last record of each partition.

        Args:
            places: topic and partition.
            committed: up to the first open transaction (the last stable offset) instead of the very last record.
        """
        from confluent_kafka.admin import OffsetSpec

        latest: Callable[[], OffsetSpec] = OffsetSpec.latest
        return self._offsets(places, latest(), committed=committed)

    def beginnings(self, places: Sequence[tuple[str, int]]) -> dict[tuple[str, int], int]:
        """The offset of the first record of each partition: above 0 where records were removed from its beginning."""
        from confluent_kafka.admin import OffsetSpec

        earliest: Callable[[], OffsetSpec] = OffsetSpec.earliest
        return self._offsets(places, earliest(), committed=False)

    def offsets_at(self, places: Sequence[tuple[str, int]], moment: datetime) -> dict[tuple[str, int], int]:
        """The offset of the first record of that time or later in each partition; its end where there is none."""
        from confluent_kafka.admin import OffsetSpec

        at: Callable[[int], OffsetSpec] = OffsetSpec.for_timestamp
        milliseconds = round(moment.timestamp() * 1000)
        found = self._offsets(places, at(milliseconds), committed=False)
        later = [place for place, offset in found.items() if offset < 0]
        return found | (self.ends(later, committed=False) if later else {})

    def _offsets(
        self, places: Sequence[tuple[str, int]], what: OffsetSpec, *, committed: bool
    ) -> dict[tuple[str, int], int]:
        from confluent_kafka import IsolationLevel, TopicPartition

        level = IsolationLevel.READ_COMMITTED if committed else IsolationLevel.READ_UNCOMMITTED
        found: dict[tuple[str, int], int] = {}
        waiting, started = list(places), self._patience.now()
        while waiting:
            wanted, before = {TopicPartition(*place): what for place in waiting[:_BULK]}, len(found)
            answers = self._client.list_offsets(wanted, isolation_level=level, request_timeout=_CALL_SECONDS)
            for place, future in answers.items():
                offset = self._offset(future, place, started)
                if offset is not None:
                    found[place.topic, place.partition] = offset
            waiting = [place for place in waiting if place not in found]
            if len(found) == before:
                time.sleep(_VISIBLE_POLL_SECONDS)
        return found

    def await_usable(
        self,
        wanted: Mapping[str, int],
        seconds: float = _VISIBLE_SECONDS,
        waiting: Callable[[int], None] = lambda missing: None,
    ) -> None:
        """Waits until each topic is listed with at least that many partitions, all with a leader.

        A broker acknowledges a topic before it can be used, and sends to a topic not yet known fail.

        Args:
            wanted: partitions by topic.
            seconds: how long no further topic may become usable.
            waiting: is told now and then how many are missing.

        Raises:
            RetriableError: no further topic became usable for so long.
        """
        until, fewest = time.monotonic() + seconds, len(wanted)
        only = next(iter(wanted)) if len(wanted) == 1 else None
        while missing := _missing(self.listed(only), wanted):
            if len(missing) < fewest:
                until, fewest = time.monotonic() + seconds, len(missing)
            if time.monotonic() > until:
                raise _not_usable(missing, seconds)
            waiting(len(missing))
            time.sleep(_VISIBLE_POLL_SECONDS + len(missing) * _VISIBLE_POLL_SECONDS_PER_TOPIC)

    def _settle(self, call: Callable[[], Mapping[str, Future[None]]], doing: str) -> None:
        """Makes the call until every answer is a success or says that it was done before."""
        waiting = call()
        while waiting:
            again = [name for name, future in waiting.items() if not self._settled(future, doing, name)]
            if not again:
                break
            waiting = {name: future for name, future in call().items() if name in set(again)}
        self._patience.relieve()

    def _settled(self, future: Future[None], doing: str, name: str) -> bool:
        try:
            future.result()
        except client_error() as failure:
            error = error_in(failure)
            if _was_done_before(error):
                return True
            self._wait_or_raise(error, doing, name)
            return False
        return True

    def _offset(self, future: Future[ListOffsetsResultInfo], place: TopicPartition, started: float) -> int | None:
        topic, partition = place.topic, place.partition
        try:
            offset = int(future.result().offset)
        except client_error() as failure:
            error = error_in(failure)
            if not self._is_behind(error, topic, partition):
                self._wait_or_raise(error, "finding offsets in", topic)
                return None
            # Brokers answer all the while, so only the time since the first question counts.
            self._patience.waited_since(started, f"a broker does not know {topic} yet")
            return None
        self._patience.relieve()
        return offset

    def _is_behind(self, error: KafkaErrorLike, topic: str, partition: int) -> bool:
        """Whether a broker has not heard yet of a partition that another one lists: each learns of it by itself."""
        if error.name() != "UNKNOWN_TOPIC_OR_PART":
            return False
        for _ in range(_LOOKS_FOR_A_TOPIC):
            found = self.listed(topic).get(topic)
            if found is not None and partition < found.partitions:
                return True
            time.sleep(_VISIBLE_POLL_SECONDS)
        return False

    def _until_answered(self, call: Callable[[], T], doing: str, topic: str | None = None) -> T:
        while True:
            try:
                answer = call()
            except client_error() as failure:
                self._client.poll(0)
                self._wait_or_raise(error_in(failure), doing, topic)
            else:
                self._patience.relieve()
                return answer

    def _wait_or_raise(self, error: KafkaErrorLike, doing: str, topic: str | None = None) -> None:
        self._client.poll(0)
        self._watch.raise_refusal(f"{doing} topics")
        if meaning(error) not in {Meaning.SAME_CALL_AGAIN, Meaning.SEND_AGAIN, Meaning.BROKERS_AWAY}:
            raise translated(error, f"{doing} topics", topic=topic, needs=_NEEDED.get(doing, "DESCRIBE"))
        self._patience.waited(self._watch.last_words(error))


def _was_done_before(error: KafkaErrorLike) -> bool:
    return error.name() == "TOPIC_ALREADY_EXISTS" or (
        error.name() == "INVALID_PARTITIONS" and "already has" in error.str()
    )


def _not_usable(missing: Sequence[str], seconds: float) -> RetriableError:
    return RetriableError(
        f"{len(missing)} new topics are not usable after {seconds:.0f} s, the first is {missing[0]}",
        next_step="see that the brokers are healthy and below their limits of open files and memory maps",
    )


def _missing(listed: Mapping[str, ListedTopic], wanted: Mapping[str, int]) -> list[str]:
    return [
        name
        for name, partitions in wanted.items()
        if name not in listed or not listed[name].usable or listed[name].partitions < partitions
    ]
