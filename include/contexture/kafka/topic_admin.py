"""Topic administration over one connection: list, create, grow, configure, and find offsets."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice

from contexture.kafka.admin_calls import BULK, CALL_SECONDS
from contexture.kafka.topic_configs import TopicConfigs
from contexture.kafka.topic_offsets import TopicOffsets


@dataclass(frozen=True, slots=True)
class NewTopicOrder:
    """A topic to be made; a replication factor of -1 takes the brokers' default."""

    name: str
    partitions: int
    replication_factor: int
    config: Mapping[str, str]


class TopicAdmin(TopicOffsets, TopicConfigs):
    """All that brokers are asked about topics, and told to do with them.

    Args:
        settings: the connection.
        patience: how long brokers are waited for.
    """

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
        """Gives a topic more partitions; having them already is as good."""
        from confluent_kafka.admin import NewPartitions

        self._settle(
            lambda: self._client.create_partitions([NewPartitions(name, partitions)], request_timeout=CALL_SECONDS),
            "growing",
        )
