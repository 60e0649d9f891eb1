"""Reading topics as a careful consumer does: committed records only, and no record left out in silence."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import closing

from contexture.kafka.clients import client_error, error_in, reader
from contexture.kafka.error_table import translated
from contexture.kafka.group_member import GroupMember
from contexture.kafka.patience import Patience
from contexture.kafka.replica import PARTITIONS_AT_ONCE, ReplicaRecord, places_of, read_places
from contexture.kafka.settings import ClientSettings
from contexture.kafka.starts import GroupOffsets, Place, Start, starts_of
from contexture.kafka.topic_admin import TopicAdmin
from contexture.kafka.topic_filter import TopicFilter
from contexture.kafka.watch import ClientWatch


class ReplicaReader:
    """Reads topics, named or chosen by a pattern.

        reader = ReplicaReader(settings, TopicFilter(r"ngsi\\..*"))
        for record in reader.records(since=datetime(2026, 11, 1, tzinfo=UTC)):
            ...

    Args:
        settings: the connection.
        topics: their names, or a filter that is applied to what the cluster has when reading begins.
        timeout_seconds: how long brokers may be silent, or a transaction stay open, before it is given up.
    """

    def __init__(
        self, settings: ClientSettings, topics: Iterable[str] | TopicFilter, *, timeout_seconds: float = 60.0
    ) -> None:
        self._settings = settings
        self._topics = topics if isinstance(topics, TopicFilter) else tuple(sorted(set(topics)))
        self._timeout_seconds = timeout_seconds

    def topics(self) -> list[str]:
        """The topics that are read, by name."""
        return self._names(self._admin(Patience(self._timeout_seconds)))

    def records(self, since: Start = None) -> Iterator[ReplicaRecord]:
        """The records from a start to the topics' ends at the time of the call.

        Records of one partition come in their order; partitions are mixed. Nothing is left behind in the cluster.
        Memory stays the same however much there is.

        Args:
            since: where to begin, as of `Start`.

        Raises:
            OffsetGoneError: records between the start and what is there are gone.
            KafkaConfigurationError: a topic is not there, or may not be read.
            BrokersAwayError: brokers were silent for too long, or an open transaction hides the rest.
        """
        patience = Patience(self._timeout_seconds)
        admin = self._admin(patience)
        places = places_of(admin, self._names(admin))
        for at in range(0, len(places), PARTITIONS_AT_ONCE):
            some = places[at : at + PARTITIONS_AT_ONCE]
            starts = self._starts(admin, some, since)
            yield from read_places(self._settings, patience, starts, admin.ends(some, committed=False))

    def member(self, group: str, *, instance: str | None = None, refresh_seconds: float = 30.0) -> GroupMember:
        """A member of a consumer group that shares the partitions of the topics; to be used as a context manager.

        Args:
            group: its name.
            instance: a name that this member keeps when it comes again soon, so that nothing moves meanwhile.
            refresh_seconds: how often a filter is applied anew, so that new topics are read too.
        """
        return GroupMember(
            self._settings, self._topics, group, instance, refresh_seconds, Patience(self._timeout_seconds)
        )

    def _admin(self, patience: Patience) -> TopicAdmin:
        return TopicAdmin(self._settings, patience)

    def _names(self, admin: TopicAdmin) -> list[str]:
        if isinstance(self._topics, TopicFilter):
            return self._topics.chosen(admin.listed())
        return list(self._topics)

    def _starts(self, admin: TopicAdmin, places: list[Place], since: Start) -> dict[Place, int]:
        group = {"group.id": since.group} if isinstance(since, GroupOffsets) else {}
        try:
            with closing(reader(self._settings, ClientWatch(), own=group)) as consumer:
                return starts_of(admin, consumer, places, since)
        except client_error() as failure:
            raise translated(error_in(failure), "finding where a group stands") from failure
