"""How safe a ledger is: its copies among the brokers, and how many of them a commit waits for.

A partition without a leader loses the markers of transactions that are settled meanwhile: readers then see less of the
ledger than of the topics (decision 0063).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Protocol

from contexture.kafka.admin import ListedTopic
from contexture.kafka.errors import KafkaConfigurationError

_REPLICAS: Final = 3
_IN_SYNC: Final = 2
_IN_SYNC_OPTION: Final = "min.insync.replicas"


class AsksTopics(Protocol):
    """What is asked about the ledger's topic (`TopicAdmin`)."""

    def listed(self, only: str | None = None) -> Mapping[str, ListedTopic]: ...
    def brokers(self) -> int: ...
    def configs(self, names: list[str]) -> Mapping[str, Mapping[str, str]]: ...


@dataclass(frozen=True, slots=True)
class LedgerCopies:
    """Those of one ledger.

    Attributes:
        topic: its name.
        replicas: of its first partition.
        in_sync: min.insync.replicas; None when this user may not see it.
        brokers: how many the cluster has.
    """

    topic: str
    replicas: int
    in_sync: int | None
    brokers: int

    @property
    def weakness(self) -> str:
        """What there is too little of, for people; empty when the cluster can give no more."""
        wanted = min(_REPLICAS, self.brokers)
        found: list[str] = []
        if self.replicas < wanted:
            found.append(f"{_counted(self.replicas)} of {wanted}")
        if self.brokers >= _REPLICAS and self.in_sync is not None and self.in_sync < _IN_SYNC:
            found.append(f"{_IN_SYNC_OPTION} {self.in_sync} of {_IN_SYNC}")
        return f"the ledger {self.topic} has {' and '.join(found)}" if found else ""

    @property
    def remedy(self) -> str:
        """What to do about it."""
        steps: list[str] = []
        wanted = min(_REPLICAS, self.brokers)
        if self.replicas < wanted:
            steps.append(f"give every partition of {self.topic} {wanted} replicas with kafka-reassign-partitions")
        if self.brokers >= _REPLICAS and self.in_sync is not None and self.in_sync < _IN_SYNC:
            steps.append(
                f"kafka-configs --alter --entity-type topics --entity-name {self.topic} "
                f"--add-config {_IN_SYNC_OPTION}={_IN_SYNC}"
            )
        return ", then ".join(steps)


def ledger_copies(admin: AsksTopics, topic: str) -> LedgerCopies | None:
    """Reads the copies of a ledger's topic from the brokers; None when there is no such topic.

    Raises:
        BrokersAwayError: they are silent.
    """
    listed = admin.listed(topic).get(topic)
    if listed is None:
        return None
    return LedgerCopies(topic, listed.replication_factor, _in_sync(admin, topic), admin.brokers())


def _in_sync(admin: AsksTopics, topic: str) -> int | None:
    try:
        return int(admin.configs([topic])[topic][_IN_SYNC_OPTION])
    except (KafkaConfigurationError, KeyError, ValueError):
        # Without DESCRIBE_CONFIGS nothing else is wrong.
        return None


def _counted(replicas: int) -> str:
    return "1 replica" if replicas == 1 else f"{replicas} replicas"
