"""Existing topics that would lose what a publication sends to them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from contexture.kafka.errors import KafkaConfigurationError

if TYPE_CHECKING:
    from contexture.kafka.topics import TopicSpec

_POLICY = "cleanup.policy"
_LIMITS = ("retention.ms", "retention.bytes")
_UNLIMITED = "-1"
_SHOWN = 5


def find_loss(spec: TopicSpec, config: Mapping[str, str]) -> str | None:
    """Returns why an existing topic would lose records that its publication wants kept; None where it keeps them.

    Args:
        spec: the topic as the publication wants it.
        config: the topic's configuration in force, by Kafka's names; settings that are absent count as harmless.
    """
    policies = {policy.strip() for policy in config.get(_POLICY, "").split(",")}
    if spec.keep == "history":
        if "compact" not in policies:
            return None
        return f"{_POLICY} is {config[_POLICY]}: compaction removes all but the newest record of each key"
    limits = [f"{name} is {config[name]}" for name in _LIMITS if config.get(name, _UNLIMITED) != _UNLIMITED]
    if "delete" not in policies or not limits:
        return None
    return f"{_POLICY} is {config[_POLICY]} and {' and '.join(limits)}: Kafka removes what has not changed for long"


def check_retention(specs: Iterable[TopicSpec], configs: Mapping[str, Mapping[str, str]]) -> None:
    """Checks that existing topics keep what is sent to them.

    Args:
        specs: existing topics as their publications want them.
        configs: the configuration in force of each, by name.

    Raises:
        KafkaConfigurationError: one or more would lose records.
    """
    losses = [(spec, why) for spec in specs if (why := find_loss(spec, configs.get(spec.name, {})))]
    if not losses:
        return
    first, why = losses[0]
    wanted = first.full_config()[_POLICY]
    more = f"; also {', '.join(spec.name for spec, _ in losses[1:_SHOWN])}" if losses[1:] else ""
    rest = f" and {len(losses) - _SHOWN} more" if len(losses) > _SHOWN else ""
    other = "latest" if first.keep == "history" else "history"
    raise KafkaConfigurationError(
        f"topic {first.name} would lose records that topics.keep: {first.keep} is to keep: {why}{more}{rest}",
        next_step=f"run `contexture topics apply` (or kafka-configs --alter --entity-type topics --entity-name "
        f"{first.name} --add-config {_POLICY}={wanted}), then clear this task; or write keep: {other} if that is what "
        "the topic is for",
        topic=first.name,
    )
