"""Reading the dead-letter topic of a publication with the connections of the environment."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path

from contexture.errors import ConfigurationError
from contexture.kafka import read_committed
from contexture.operations.actions.connection_check import settings_of
from contexture.operations.environment import named_publication
from contexture.sending.dead_letters import RefusedRecord, refused_records

_LONG_AGO = datetime.min.replace(tzinfo=UTC)


def refused(
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
            next_step="set publish.on_failure: dead-letter, if it is not to",
        )
    settings = settings_of(publication.publish.connection)
    records = read_committed(settings, [topic], timeout_seconds=timeout_seconds)
    return topic, latest(refused_records(records), last)


def latest(found: Iterable[RefusedRecord], last: int) -> tuple[RefusedRecord, ...]:
    """The last of them by time; partitions come one after the other."""
    return tuple(sorted(found, key=lambda each: (each.at or _LONG_AGO, each.place))[-last:])
