"""Which publications a verification looks at, where it reads them, and what it hands on."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from pydantic import JsonValue

from contexture.errors import ConfigurationError
from contexture.operations.verification.replica_topics import KafkaTopics
from contexture.operations.verification.reporting import Reported
from contexture.outbox.state import State
from contexture.outbox.storage import Storage
from contexture.publications import Publication
from contexture_airflow.catalogue import publications
from contexture_airflow.connections import kafka_settings


def to_verify(storage: Storage, known: Iterable[Publication], named: Sequence[str]) -> list[str]:
    """The publications that are named; without names all that have published something.

    Raises:
        ConfigurationError: there is no such publication.
    """
    names = [publication.name for publication in known]
    unknown = sorted(set(named) - set(names))
    if unknown:
        raise ConfigurationError(
            f"there is no publication {unknown[0]!r}",
            next_step=f"choose among: {', '.join(names)}",
            publication=unknown[0],
        )
    return list(dict.fromkeys(named)) or [name for name in names if State(storage, name).pointer().outbox is not None]


def chosen(name: str) -> Publication:
    """The publication of a name.

    Raises:
        ConfigurationError: there is none.
    """
    found = {publication.name: publication for publication in publications()}
    if name not in found:
        raise ConfigurationError(
            f"there is no publication {name!r}", next_step="start the DAG again: its file is gone or no longer good"
        )
    return found[name]


def kafka_topics(publication: Publication) -> KafkaTopics:
    """The publication's topics, behind its connection.

    Raises:
        ConfigurationError: the connection is missing or can not be used.
    """
    settings = kafka_settings(publication.publish.connection)
    return KafkaTopics(settings, publication, timeout_seconds=float(publication.publish.broker_wait_seconds or 1))


def counts(reported: Reported) -> dict[str, JsonValue]:
    """What was found, without samples."""
    found = reported.found
    return {
        "publication": found.publication,
        "equal": found.is_equal,
        "held": found.held,
        "records": found.records,
        "differences": dict(found.differences),
        "seconds": found.seconds,
        "report": reported.uri,
    }
