"""Which topics there are, and whether they can be used yet."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from contexture.errors import RetriableError
from contexture.kafka.admin_calls import CALL_SECONDS, LISTING_SECONDS, AdminCalls

if TYPE_CHECKING:
    from confluent_kafka.admin import ClusterMetadata, TopicMetadata

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
    """The topics of a cluster."""

    def listed(self, only: str | None = None) -> dict[str, ListedTopic]:
        """All topics this user may see (or the one named, if it exists), in one request.

        A topic of which a broker can't say yet where it is (its leader is being chosen) is asked for again.
        """
        started = self._patience.now()
        while True:
            metadata = self._until_answered(
                lambda: self._client.list_topics(topic=only, timeout=LISTING_SECONDS), "listing"
            )
            unsaid = [name for name, topic in metadata.topics.items() if _is_unsaid(topic)]
            if not unsaid:
                return _listed(metadata)
            self._patience.waited_since(started, f"no broker says yet where {unsaid[0]} is")
            time.sleep(VISIBLE_POLL_SECONDS)

    def found(self, name: str) -> ListedTopic | None:
        """The topic of this name; None when several listings in succession have none.

        Each listing is answered by any broker, and the one that answers may be the one that is behind.
        """
        for look in range(_LOOKS_FOR_A_TOPIC):
            time.sleep(VISIBLE_POLL_SECONDS if look else 0)
            topic = self.listed(name).get(name)
            if topic is not None:
                return topic
        return None

    def brokers(self) -> int:
        """How many brokers the cluster has."""
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
        next_step="see that the brokers are healthy and below their limits of open files and memory maps",
    )
