"""The configuration of topics and brokers: read, and for topics set."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from itertools import islice
from typing import TYPE_CHECKING

from contexture.kafka.admin_calls import BULK, CALL_SECONDS, LISTING_SECONDS, AdminCalls
from contexture.kafka.clients import client_error

if TYPE_CHECKING:
    from confluent_kafka.admin import ConfigResource


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
        """The configuration in force of existing topics."""
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
