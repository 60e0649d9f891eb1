"""The newest records of topics, named or those that a publication has sent to."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from contexture.errors import ConfigurationError
from contexture.kafka import TopicRecord
from contexture.kafka.reader import newest_records
from contexture.operations import environment
from contexture.operations.actions.connection_check import settings_of
from contexture.operations.actions.topic_plan import topics_of
from contexture.operations.environment import named_publication

DEFAULT_CONNECTION = "kafka_default"


@dataclass(frozen=True, slots=True)
class Newest:
    """What was read, and from where; the newest record is the last one."""

    connection: str
    topics: tuple[str, ...]
    records: tuple[TopicRecord, ...]


def newest(
    topics: Sequence[str], publication: str | None, connection: str | None, *, count: int, timeout_seconds: float
) -> Newest:
    """The newest records of the topics named and of those that a publication has sent to.

    Args:
        topics: their names.
        publication: the name of a publication; its connection is taken where none is given.
        connection: id of a Kafka connection of the environment.
        count: of records, of all topics together.
        timeout_seconds: how long brokers may be silent.

    Raises:
        ConfigurationError: a topic, the publication or the connection isn't there, or it has sent to no topic yet.
        BrokersAwayError: brokers were silent for too long.
    """
    wanted, of_publication = list(topics), DEFAULT_CONNECTION
    if publication is not None:
        found = named_publication(publication, None)
        wanted += _sent_to(publication, topics_of(environment.open_home().publication(found.name), found))
        of_publication = found.publish.connection
    used = connection or of_publication
    records = newest_records(settings_of(used), wanted, count, timeout_seconds=timeout_seconds)
    return Newest(used, tuple(sorted(set(wanted))), tuple(records))


def _sent_to(publication: str, topics: list[str]) -> list[str]:
    if not topics:
        raise ConfigurationError(
            f"publication {publication} has sent to no topic yet",
            next_step=f"start it, and look at its first run with: contexture status {publication}",
        )
    return topics
