"""librdkafka's admin client: topics, their configuration, and offsets."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from confluent_kafka import IsolationLevel, KafkaError, KafkaException
from confluent_kafka.admin._listoffsets import EarliestSpec, TimestampSpec

from tools.simulation.events import wall_seconds
from tools.simulation.producer import kafka_error

if TYPE_CHECKING:
    from tools.simulation.clients import World

NO_LEADER_OFFSET = -1001
"""What `list_offsets` gives, without an error, for a partition whose leader is lost."""


class Answer:
    """A future that has come already."""

    def __init__(self, value: object, error: KafkaError | None = None) -> None:
        self._value, self._error = value, error

    def result(self, timeout: float | None = None) -> Any:
        """Returns the value, or the error raised."""
        if self._error is not None:
            raise KafkaException(self._error)
        return self._value

    def exception(self, timeout: float | None = None) -> KafkaException | None:
        """Returns the error, None for none."""
        return None if self._error is None else KafkaException(self._error)


@dataclass(slots=True)
class PartitionMetadata:
    """As `list_topics` gives it."""

    id: int
    leader: int
    replicas: list[int]
    isrs: list[int]
    error: KafkaError | None = None


@dataclass(slots=True)
class TopicMetadata:
    """As `list_topics` gives it."""

    topic: str
    partitions: dict[int, PartitionMetadata] = field(default_factory=dict)
    error: KafkaError | None = None


@dataclass(slots=True)
class ClusterMetadata:
    """As `list_topics` gives it."""

    topics: dict[str, TopicMetadata]
    brokers: dict[int, SimpleNamespace]
    cluster_id: str = "simulated"
    controller_id: int = 1


class SimulatedAdmin:
    """In the place of `confluent_kafka.admin.AdminClient`."""

    def __init__(self, world: World) -> None:
        assert world.events.current is not None
        self._world = world
        self._process = world.events.current

    def poll(self, timeout: float = 0) -> int:
        """Serves callbacks; there are none."""
        return 0

    def list_topics(self, topic: str | None = None, timeout: float = -1) -> ClusterMetadata:
        """Returns the topics there are."""
        self._process.call(f"admin: list_topics({topic or ''})")
        if topic is not None:
            for place in self._world.places(topic):
                self._world.brokers.strike("Metadata", place)
        return self._world.metadata(topic)

    def list_offsets(
        self, asked: Mapping[Any, Any], isolation_level: Any = None, request_timeout: float = 10.0
    ) -> dict[Any, Answer]:
        """Returns where partitions begin and end."""
        committed = isolation_level == IsolationLevel.READ_COMMITTED
        self._process.call(f"admin: list_offsets ({'committed' if committed else 'all'})")
        return {place: self._offset(place, spec, committed) for place, spec in asked.items()}

    def create_topics(self, topics: Iterable[Any], **options: Any) -> dict[str, Answer]:
        """Makes topics."""
        self._process.call("admin: create_topics")
        answers: dict[str, Answer] = {}
        for each in topics:
            if each.topic in self._world.brokers.topics:
                answers[each.topic] = Answer(None, kafka_error("TOPIC_ALREADY_EXISTS"))
                continue
            self._world.brokers.make(each.topic, each.num_partitions, dict(each.config or {}))
            answers[each.topic] = Answer(None)
        return answers

    def create_partitions(self, topics: Iterable[Any], **options: Any) -> dict[str, Answer]:
        """Gives topics more partitions."""
        self._process.call("admin: create_partitions")
        answers: dict[str, Answer] = {}
        for each in topics:
            if len(self._world.brokers.topics[each.topic].partitions) < each.new_total_count:
                self._world.brokers.grow(each.topic, each.new_total_count)
            answers[each.topic] = Answer(None)
        return answers

    def delete_records(self, offsets: Iterable[Any], **options: Any) -> dict[Any, Answer]:
        """Removes records before an offset."""
        self._process.call("admin: delete_records")
        answers: dict[Any, Answer] = {}
        for each in offsets:
            found = self._world.brokers.partition((each.topic, each.partition))
            assert found is not None
            found.delete_before(found.end if each.offset < 0 else each.offset)
            answers[each] = Answer(SimpleNamespace(low_watermark=found.start))
        return answers

    def describe_topics(self, topics: Any, **options: Any) -> dict[str, Answer]:
        """Their ids and partitions."""
        self._process.call("admin: describe_topics")
        return {name: self._described(name) for name in topics.topic_names}

    def describe_configs(self, resources: Iterable[Any], **options: Any) -> dict[Any, Answer]:
        """Returns the configuration in force."""
        self._process.call("admin: describe_configs")
        return {each: self._configured(each) for each in resources}

    def incremental_alter_configs(self, resources: Iterable[Any], **options: Any) -> dict[Any, Answer]:
        """Changes configuration."""
        self._process.call("admin: incremental_alter_configs")
        answers: dict[Any, Answer] = {}
        for each in resources:
            topic = self._world.brokers.topics.get(each.name)
            if topic is None:
                answers[each] = Answer(None, kafka_error("UNKNOWN_TOPIC_OR_PART"))
                continue
            for entry in each.incremental_configs:
                topic.config[entry.name] = entry.value
            answers[each] = Answer(None)
        return answers

    def _offset(self, place: Any, spec: Any, committed: bool) -> Answer:
        found = self._world.brokers.partition((place.topic, place.partition))
        if found is None:
            return Answer(None, kafka_error("UNKNOWN_TOPIC_OR_PART"))
        self._world.brokers.strike("ListOffsets", found.place)
        if not found.is_led:
            return Answer(SimpleNamespace(offset=NO_LEADER_OFFSET, timestamp=-1, leader_epoch=-1))
        if isinstance(spec, TimestampSpec):
            for each in found.records:
                if wall_seconds(each.at) * 1000 >= spec.timestamp:
                    return Answer(SimpleNamespace(offset=each.offset, timestamp=-1, leader_epoch=each.leader_epoch))
            return Answer(SimpleNamespace(offset=-1, timestamp=-1, leader_epoch=None))
        end = found.stable_end if committed else found.end
        offset = found.start if isinstance(spec, EarliestSpec) else end
        return Answer(SimpleNamespace(offset=offset, timestamp=-1, leader_epoch=found.leader_epoch))

    def _described(self, name: str) -> Answer:
        topic = self._world.brokers.topics.get(name)
        if topic is None:
            return Answer(None, kafka_error("UNKNOWN_TOPIC_OR_PART"))
        partitions = [
            SimpleNamespace(id=each.number, leader=_NODE if each.is_led else None, replicas=[_NODE], isr=[_NODE])
            for each in topic.partitions
        ]
        return Answer(SimpleNamespace(name=name, topic_id=topic.id, partitions=partitions, is_internal=False))

    def _configured(self, resource: Any) -> Answer:
        topic = self._world.brokers.topics.get(resource.name)
        known = {"cleanup.policy": "delete", "min.insync.replicas": "1"} if topic is not None else {}
        values = {**known, **(topic.config if topic is not None else self._world.broker_config)}
        return Answer({name: SimpleNamespace(name=name, value=value) for name, value in values.items()})


_NODE = SimpleNamespace(id=1, host="simulated", port=9092)


def metadata(world: World, only: str | None) -> ClusterMetadata:
    """Returns all topics, or the one named; a missing one is listed with its error, as brokers do."""
    names = list(world.brokers.topics) if only is None else [only]
    topics: dict[str, TopicMetadata] = {}
    for name in names:
        topic = world.brokers.topics.get(name)
        if topic is None:
            topics[name] = TopicMetadata(name, error=kafka_error("UNKNOWN_TOPIC_OR_PART"))
            continue
        partitions = {
            each.number: PartitionMetadata(
                each.number,
                1 if each.is_led else -1,
                [1],
                [1] if each.is_led else [],
                None if each.is_led else kafka_error("LEADER_NOT_AVAILABLE"),
            )
            for each in topic.partitions
        }
        topics[name] = TopicMetadata(name, partitions)
    return ClusterMetadata(topics, {1: _NODE})
