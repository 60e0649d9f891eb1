"""The newest or first records of topics, and dead letters of a publication, by the connections of the environment."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal

from contexture.errors import ConfigurationError
from contexture.kafka import TopicRecord, read_committed
from contexture.kafka.reader import first_records, newest_records
from contexture.operations import environment
from contexture.operations.actions.connection_check import settings_of
from contexture.operations.actions.topic_plan import topics_of
from contexture.operations.environment import named_publication
from contexture.sending.dead_letters import RefusedRecord, refused_records

DEFAULT_CONNECTION = "kafka_default"


Which = Literal["newest", "first"]


@dataclass(frozen=True, slots=True)
class ShownRecords:
    """What was read, and from where; of the newest records the newest is the last one."""

    connection: str
    topics: tuple[str, ...]
    records: tuple[TopicRecord, ...]
    which: Which = "newest"


def read_some(
    topics: Sequence[str],
    publication: str | None,
    connection: str | None,
    *,
    count: int,
    timeout_seconds: float,
    which: Which = "newest",
) -> ShownRecords:
    """Returns the newest or the first `count` records of the topics named and of those that a publication has sent to.

    The connection is the publication's where none is given.

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
    read = newest_records if which == "newest" else first_records
    records = read(settings_of(used), wanted, count, timeout_seconds=timeout_seconds)
    return ShownRecords(used, tuple(sorted(set(wanted))), tuple(records), which)


def _sent_to(publication: str, topics: list[str]) -> list[str]:
    if not topics:
        raise ConfigurationError(
            f"publication {publication} has sent to no topic yet",
            next_step=f"start it, and check its first run with: contexture status {publication}",
        )
    return topics


_LONG_AGO = datetime.min.replace(tzinfo=UTC)


def read_dead_letters(
    name: str, files: Path | None, *, last: int, timeout_seconds: float
) -> tuple[str, tuple[RefusedRecord, ...]]:
    """The dead-letter topic of a publication, and the last records there, the earliest first.

    Raises:
        ConfigurationError: there is no such publication, connection or topic, or it may not be read.
        RetriableError: the brokers did not answer.
    """
    publication = named_publication(name, files)
    topic = publication.dead_letter_topic
    if topic is None:
        raise ConfigurationError(
            f"{name} has no dead letters: what can never be sent stops it",
            next_step="set publish.on_failure: dead-letter, if such records must not stop it",
        )
    settings = settings_of(publication.publish.connection)
    records = read_committed(settings, [topic], timeout_seconds=timeout_seconds)
    return topic, latest_records(refused_records(records), last)


def latest_records(found: Iterable[RefusedRecord], last: int) -> tuple[RefusedRecord, ...]:
    """Returns the last of the records by time, because partitions are read in order."""
    return tuple(sorted(found, key=lambda each: (each.at or _LONG_AGO, each.place))[-last:])
