"""Administration of topics over one connection: listing, creating, growing, configuring, offsets."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from itertools import islice
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from contexture.errors import RetriableError
from contexture.kafka.broker_wait import BrokerWait
from contexture.kafka.callbacks import ClientCallbacks
from contexture.kafka.clients import admin, client_error, error_in
from contexture.kafka.error_codes import ErrorClass, classify_error, translate_error
from contexture.kafka.interfaces import KafkaErrorLike, Place
from contexture.kafka.settings import ClientSettings

if TYPE_CHECKING:
    from confluent_kafka import TopicPartition
    from confluent_kafka.admin import (
        AdminClient,
        ClusterMetadata,
        ConfigResource,
        ListOffsetsResultInfo,
        OffsetSpec,
        TopicMetadata,
    )

CALL_SECONDS = 10.0
# Short enough that a refused login or a missing broker is soon reported; a listing that timed out is repeated.
LISTING_SECONDS = 3.0
BULK = 500
# What a user has to be allowed, by what is tried; DESCRIBE is enough for anything else.
_NEEDED: Mapping[str, str] = {
    "making": "CREATE",
    "growing": "ALTER",
    "configuring": "ALTER_CONFIGS",
    "reading the configuration of": "DESCRIBE_CONFIGS",
}

T = TypeVar("T")


class AdminCalls:
    """The calls of one admin client, which is made with the first call."""

    def __init__(self, settings: ClientSettings, broker_wait: BrokerWait) -> None:
        self._settings = settings
        self._broker_wait = broker_wait
        self._watch = ClientCallbacks()

    @cached_property
    def _client(self) -> AdminClient:
        return admin(self._settings, self._watch)

    def _until_answered(self, call: Callable[[], T], doing: str, topic: str | None = None) -> T:
        while True:
            try:
                answer = call()
            except client_error() as failure:
                self._client.poll(0)
                self._wait_or_raise(error_in(failure), doing, topic)
            else:
                self._broker_wait.reset()
                return answer

    def _settle(self, call: Callable[[], Mapping[str, Future[None]]], doing: str) -> None:
        """Repeats the call until every response is a success or says that it was done before."""
        waiting = call()
        while waiting:
            again = [name for name, future in waiting.items() if not self._settled(future, doing, name)]
            if not again:
                break
            waiting = {name: future for name, future in call().items() if name in set(again)}
        self._broker_wait.reset()

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

    def _wait_or_raise(self, error: KafkaErrorLike, doing: str, topic: str | None = None) -> None:
        self._client.poll(0)
        self._watch.raise_refusal(f"{doing} topics")
        if classify_error(error) not in {ErrorClass.SAME_CALL_AGAIN, ErrorClass.SEND_AGAIN, ErrorClass.BROKERS_AWAY}:
            raise translate_error(error, f"{doing} topics", topic=topic, needs=_NEEDED.get(doing, "DESCRIBE"))
        self._broker_wait.check(self._watch.last_error(error))


def _was_done_before(error: KafkaErrorLike) -> bool:
    return error.name() == "TOPIC_ALREADY_EXISTS" or (
        error.name() == "INVALID_PARTITIONS" and "already has" in error.str()
    )


class TopicConfigs(AdminCalls):
    """What topics and brokers are configured to do."""

    def configure(self, changes: Mapping[str, Mapping[str, str]]) -> None:
        """Sets configuration of existing topics; what isn't named stays.

        Raises:
            KafkaConfigurationError: the brokers refuse a value, or this user.
        """
        waiting = iter(changes.items())
        while bulk := dict(islice(waiting, BULK)):

            def alter(bulk: Mapping[str, Mapping[str, str]] = bulk) -> dict[str, Future[None]]:
                resources = [_with_values(topic, config) for topic, config in bulk.items()]
                answers = self._client.incremental_alter_configs(resources, request_timeout=CALL_SECONDS)
                return {resource.name: future for resource, future in answers.items()}

            self._settle(alter, "configuring")

    def configs(self, names: Sequence[str]) -> dict[str, dict[str, str]]:
        """Returns the configuration in force of existing topics."""
        from confluent_kafka.admin import ConfigResource, ResourceType

        found: dict[str, dict[str, str]] = {}
        waiting = iter(names)
        while bulk := list(islice(waiting, BULK)):
            resources = [ConfigResource(ResourceType.TOPIC, name) for name in bulk]
            answers = self._client.describe_configs(resources, request_timeout=CALL_SECONDS)
            for resource, future in answers.items():
                entries = self._until_answered(future.result, "reading the configuration of", resource.name)
                found[resource.name] = {key: str(entry.value) for key, entry in entries.items()}
        return found

    def lowest_of_brokers(self, name: str) -> int | None:
        """The lowest value that a broker's configuration has for a number; None when this user may not see it."""
        from confluent_kafka.admin import ConfigResource, ResourceType

        metadata = self._until_answered(lambda: self._client.list_topics(timeout=LISTING_SECONDS), "listing")
        found: list[int] = []
        for broker in metadata.brokers:
            # The client takes one broker in a call.
            resource = ConfigResource(ResourceType.BROKER, str(broker))
            (future,) = self._client.describe_configs([resource], request_timeout=CALL_SECONDS).values()
            try:
                found.append(int(future.result()[name].value))
            except (client_error(), KeyError, ValueError, TypeError):
                return None
        return min(found, default=None)


def _with_values(topic: str, config: Mapping[str, str]) -> ConfigResource:
    from confluent_kafka.admin import AlterConfigOpType, ConfigEntry, ConfigResource, ResourceType

    entries = [ConfigEntry(name, value, incremental_operation=AlterConfigOpType.SET) for name, value in config.items()]
    return ConfigResource(ResourceType.TOPIC, topic, incremental_configs=entries)


VISIBLE_POLL_SECONDS = 0.1
# A listing of 10,000 topics takes brokers and client 0.14 s: it is asked for the less often, the more are missing.
_VISIBLE_POLL_SECONDS_PER_TOPIC = 0.001
_VISIBLE_SECONDS = 120.0
_LOOKS_FOR_A_TOPIC = 3
_UNSAID = frozenset({"LEADER_NOT_AVAILABLE", "REPLICA_NOT_AVAILABLE"})


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


class TopicListing(AdminCalls):
    def listed(self, only: str | None = None) -> dict[str, ListedTopic]:
        """Returns all topics this user may see (or the one named, if it exists), in one request.

        A topic of which a broker can't say yet where it is (its leader is being chosen) is asked for again.
        """
        started = self._broker_wait.now()
        while True:
            metadata = self._until_answered(
                lambda: self._client.list_topics(topic=only, timeout=LISTING_SECONDS), "listing"
            )
            unsaid = [name for name, topic in metadata.topics.items() if _is_unsaid(topic)]
            if not unsaid:
                return _listed(metadata)
            self._broker_wait.check_since(started, f"no broker reports yet where {unsaid[0]} is")
            time.sleep(VISIBLE_POLL_SECONDS)

    def found(self, name: str) -> ListedTopic | None:
        """Returns the topic of this name; None when several listings in succession have none.

        Each listing is answered by any broker, and the one that answers may be the one that is behind.
        """
        for look in range(_LOOKS_FOR_A_TOPIC):
            time.sleep(VISIBLE_POLL_SECONDS if look else 0)
            topic = self.listed(name).get(name)
            if topic is not None:
                return topic
        return None

    def brokers(self) -> int:
        metadata = self._until_answered(lambda: self._client.list_topics(timeout=LISTING_SECONDS), "listing")
        return max(1, len(metadata.brokers))

    def topic_id(self, name: str) -> str | None:
        """Kafka's own id of a topic, which is another one when it was removed and made again; None: it is not there."""
        from confluent_kafka import TopicCollection

        if self.found(name) is None:
            return None

        def described() -> str:
            answer = self._client.describe_topics(TopicCollection([name]), request_timeout=CALL_SECONDS)[name]
            return str(answer.result().topic_id)

        return self._until_answered(described, "describing")

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
            waiting: receives now and then how many are missing.

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
            time.sleep(VISIBLE_POLL_SECONDS + len(missing) * _VISIBLE_POLL_SECONDS_PER_TOPIC)


def _listed(metadata: ClusterMetadata) -> dict[str, ListedTopic]:
    return {
        name: ListedTopic(
            partitions=len(topic.partitions),
            replication_factor=len(topic.partitions[0].replicas) if 0 in topic.partitions else 0,
            usable=bool(topic.partitions) and all(part.leader >= 0 for part in topic.partitions.values()),
        )
        for name, topic in metadata.topics.items()
        if topic.error is None or topic.partitions
    }


def _is_unsaid(topic: TopicMetadata) -> bool:
    return topic.error is not None and not topic.partitions and topic.error.name() in _UNSAID


def _missing(listed: Mapping[str, ListedTopic], wanted: Mapping[str, int]) -> list[str]:
    return [
        name
        for name, partitions in wanted.items()
        if name not in listed or not listed[name].usable or listed[name].partitions < partitions
    ]


def _not_usable(missing: Sequence[str], seconds: float) -> RetriableError:
    return RetriableError(
        f"{len(missing)} new topics are not usable after {seconds:.0f} s, the first is {missing[0]}",
        next_step="check that the brokers are healthy and below their limits of open files and memory maps",
    )


# For a partition whose leader is lost the client answers -1001 without an error. An offset is 0 or more; that of a time
# may be -1, where no record is as late.
_LEAST_OFFSET = 0
_NOTHING_AS_LATE = -1

# Each listing is answered by any broker, and the one that answers may be the one that is behind.
_LOOKS_FOR_A_PARTITION = 3


class FirstOffset(NamedTuple):
    """Where records of a time begin in a partition, and whether it has had one leader since."""

    offset: int
    is_led_alike: bool


class TopicOffsets(TopicListing):
    def ends(self, places: Sequence[Place], *, committed: bool) -> dict[Place, int]:
        """Returns the offset after the last record of each partition; `committed`: its last stable offset."""
        from confluent_kafka.admin import OffsetSpec

        latest: Callable[[], OffsetSpec] = OffsetSpec.latest
        return self._offsets(places, latest(), committed=committed)

    def beginnings(self, places: Sequence[Place]) -> dict[Place, int]:
        """The offset of the first record of each partition: above 0 where records were removed from its beginning."""
        from confluent_kafka.admin import OffsetSpec

        earliest: Callable[[], OffsetSpec] = OffsetSpec.earliest
        return self._offsets(places, earliest(), committed=False)

    def offsets_at(self, places: Sequence[Place], moment: datetime) -> dict[Place, int]:
        """The offset of the first record of that time or later in each partition; its end where there is none."""
        from confluent_kafka.admin import OffsetSpec

        at: Callable[[int], OffsetSpec] = OffsetSpec.for_timestamp
        milliseconds = round(moment.timestamp() * 1000)
        found = self._offsets(places, at(milliseconds), committed=False, least=_NOTHING_AS_LATE)
        later = [place for place, offset in found.items() if offset == _NOTHING_AS_LATE]
        return found | (self.ends(later, committed=False) if later else {})

    def first_since(self, places: Sequence[Place], moment: datetime) -> dict[Place, FirstOffset]:
        """Where the records of a time or later begin in each partition, and whether it has had one leader since.

        A partition without such records begins at its end, and counts as one that has.
        """
        from confluent_kafka.admin import OffsetSpec

        at: Callable[[int], OffsetSpec] = OffsetSpec.for_timestamp
        latest: Callable[[], OffsetSpec] = OffsetSpec.latest
        first = self._answers(places, at(round(moment.timestamp() * 1000)), committed=False, least=_NOTHING_AS_LATE)
        last = self._answers(places, latest(), committed=False)
        return {
            place: FirstOffset(int(end.offset), True)
            if first[place].offset == _NOTHING_AS_LATE
            else _led(first[place], end)
            for place, end in last.items()
        }

    def _offsets(
        self, places: Sequence[Place], what: OffsetSpec, *, committed: bool, least: int = _LEAST_OFFSET
    ) -> dict[Place, int]:
        answers = self._answers(places, what, committed=committed, least=least)
        return {place: int(answer.offset) for place, answer in answers.items()}

    def _answers(
        self, places: Sequence[Place], what: OffsetSpec, *, committed: bool, least: int = _LEAST_OFFSET
    ) -> dict[Place, ListOffsetsResultInfo]:
        from confluent_kafka import IsolationLevel, TopicPartition

        level = IsolationLevel.READ_COMMITTED if committed else IsolationLevel.READ_UNCOMMITTED
        found: dict[Place, ListOffsetsResultInfo] = {}
        waiting, started = list(places), self._broker_wait.now()
        while waiting:
            wanted, before = {TopicPartition(*place): what for place in waiting[:BULK]}, len(found)
            answers = self._client.list_offsets(wanted, isolation_level=level, request_timeout=CALL_SECONDS)
            for place, future in answers.items():
                answer = self._answer(future, place, started, least)
                if answer is not None:
                    found[place.topic, place.partition] = answer
            waiting = [place for place in waiting if place not in found]
            if len(found) == before:
                time.sleep(VISIBLE_POLL_SECONDS)
        return found

    def _answer(
        self, future: Future[ListOffsetsResultInfo], place: TopicPartition, started: float, least: int
    ) -> ListOffsetsResultInfo | None:
        topic, partition = place.topic, place.partition
        try:
            answer = future.result()
        except client_error() as failure:
            error = error_in(failure)
            if not self._is_behind(error, topic, partition):
                self._wait_or_raise(error, "finding offsets in", topic)
                return None
            # Brokers answer all the while, so only the time since the first question counts.
            self._broker_wait.check_since(started, f"a broker does not have {topic} yet")
            return None
        if answer.offset < least:
            # No answer yet: taken for an offset, a ledger would be read as empty.
            self._broker_wait.check_since(started, f"{topic}[{partition}] has no leader that reports its end offset")
            return None
        self._broker_wait.reset()
        return answer

    def _is_behind(self, error: KafkaErrorLike, topic: str, partition: int) -> bool:
        """Returns whether a broker does not know a partition yet that another one lists: each learns of it alone."""
        if error.name() != "UNKNOWN_TOPIC_OR_PART":
            return False
        for _ in range(_LOOKS_FOR_A_PARTITION):
            found = self.listed(topic).get(topic)
            if found is not None and partition < found.partitions:
                return True
            time.sleep(VISIBLE_POLL_SECONDS)
        return False


def _led(first: ListOffsetsResultInfo, last: ListOffsetsResultInfo) -> FirstOffset:
    """Returns where a partition's records begin, and whether its leader of then is that of now."""
    epochs = (first.leader_epoch, last.leader_epoch)
    return FirstOffset(int(first.offset), None not in epochs and epochs[0] == epochs[1])


@dataclass(frozen=True, slots=True)
class NewTopicOrder:
    """A topic to be made; a replication factor of -1 takes the brokers' default."""

    name: str
    partitions: int
    replication_factor: int
    config: Mapping[str, str]


class TopicAdmin(TopicOffsets, TopicConfigs):
    """All requests about topics: listing, offsets, configuration, creation."""

    def create(self, orders: Sequence[NewTopicOrder], created: Callable[[int], None] = lambda count: None) -> None:
        """Makes topics in bulk; one that exists by now counts as made.

        Brokers respond before the topics exist, and fall behind with their own heartbeats when they receive thousands
        in one call: each bulk begins when the last topic of the one before is usable.

        Args:
            orders: the topics.
            created: receives after each bulk how many are made.

        Raises:
            KafkaConfigurationError: the brokers refuse a topic (configuration, permission, replication factor).
            RetriableError: topics do not become usable.
        """
        from confluent_kafka.admin import NewTopic

        waiting, count = iter(orders), 0
        while bulk := list(islice(waiting, BULK)):
            topics = [
                NewTopic(order.name, order.partitions, order.replication_factor, config=dict(order.config))
                for order in bulk
            ]
            self._settle(
                # The default holds this bulk's topics; the checker can't infer the type of such a parameter.
                lambda topics=topics: self._client.create_topics(topics, request_timeout=CALL_SECONDS),  # type: ignore[misc]
                "making",
            )
            count += len(bulk)
            if count < len(orders):
                self.await_usable({bulk[-1].name: bulk[-1].partitions})
            created(count)

    def grow(self, name: str, partitions: int) -> None:
        """Gives a topic more partitions; a topic that has them already stays as it is."""
        from confluent_kafka.admin import NewPartitions

        self._settle(
            lambda: self._client.create_partitions([NewPartitions(name, partitions)], request_timeout=CALL_SECONDS),
            "growing",
        )
