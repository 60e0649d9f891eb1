"""The topics of a publication at one moment, and what a read-committed reader gets of them up to then."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final, Protocol

from contexture.kafka import ClientSettings, TopicRecord
from contexture.kafka.admin import TopicAdmin
from contexture.kafka.broker_wait import BrokerWait
from contexture.kafka.reader import read_up_to
from contexture.publications import Publication
from contexture.sending import Ledger, LedgerEntry, SenderNames

Place = tuple[str, int]

_SECONDS: Final = 60.0


@dataclass(frozen=True, slots=True)
class TopicSnapshot:
    """The topics and the ledger at one moment.

    Attributes:
        ends: partitions to the ends of what was committed then.
        removed: topics that have lost records at their beginnings.
        missing: topics that are not there, or may not be seen.
        ledger: what the last committed transaction of each shard left.
    """

    ends: Mapping[Place, int]
    removed: frozenset[str]
    missing: tuple[str, ...]
    ledger: Mapping[int, LedgerEntry]


class ReplicaTopics(Protocol):
    """Topics that can be read back."""

    def cut(self, topics: Iterable[str]) -> TopicSnapshot:
        """Returns the snapshot of now."""
        ...

    def records(self, cut: TopicSnapshot) -> Iterator[TopicRecord]:
        """What is committed in them up to a cut, each partition in its order."""
        ...


class KafkaTopics:
    """The topics of one publication in Kafka.

    Every method raises `BrokersAwayError` when the brokers stay away, and `KafkaConfigurationError` when this user may
    not read.

    Args:
        settings: the connection.
        publication: whose topics.
        timeout_seconds: how long brokers may be silent.
    """

    def __init__(
        self, settings: ClientSettings, publication: Publication, *, timeout_seconds: float = _SECONDS
    ) -> None:
        self._settings = settings
        self._timeout_seconds = timeout_seconds
        self._names = SenderNames(publication.name, publication.publish.transactional_id_prefix)

    def cut(self, topics: Iterable[str]) -> TopicSnapshot:
        """As `ReplicaTopics.cut`; an open transaction lies behind the ends, and is not waited for."""
        broker_wait = BrokerWait(self._timeout_seconds)
        admin = TopicAdmin(self._settings, broker_wait)
        wanted = sorted(set(topics))
        listed = admin.listed(wanted[0] if len(wanted) == 1 else None) if wanted else {}
        places = [(name, part) for name in wanted if name in listed for part in range(listed[name].partitions)]
        ledger = Ledger(self._settings, self._names, broker_wait=broker_wait).entries()
        ends = admin.ends(places, committed=True)
        return TopicSnapshot(
            ends=ends,
            removed=frozenset(topic for (topic, _), first in admin.beginnings(places).items() if first > 0),
            missing=tuple(name for name in wanted if name not in listed),
            ledger=ledger,
        )

    def records(self, cut: TopicSnapshot) -> Iterator[TopicRecord]:
        """As `ReplicaTopics.records`; nothing is left behind in the cluster."""
        return read_up_to(self._settings, cut.ends, timeout_seconds=self._timeout_seconds)
