"""Which publications a verification reads, from where, and what it passes on."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager

from pydantic import JsonValue

from contexture.errors import ConfigurationError
from contexture.operations.actions.verify import Reported
from contexture.operations.verification.against_source import open_source_view
from contexture.operations.verification.source_view import SourceView, check_answerable, is_answerable
from contexture.operations.verification.topics import KafkaTopics
from contexture.publications import Publication
from contexture.storage.home import Home
from contexture_airflow.catalogue import publications
from contexture_airflow.connections.settings import kafka_settings, source_connection


def select_publications(
    home: Home, known: Iterable[Publication], named: Sequence[str], against: str = "sent"
) -> list[str]:
    """The publications that are named; without names all that have published something and can be compared.

    Raises:
        ConfigurationError: there is no such publication.
    """
    listed = list(known)
    names = [publication.name for publication in listed]
    unknown = sorted(set(named) - set(names))
    if unknown:
        raise ConfigurationError(
            f"there is no publication {unknown[0]!r}",
            next_step=f"choose among: {', '.join(names)}",
            publication=unknown[0],
        )
    if named:
        return list(dict.fromkeys(named))
    comparable = [each.name for each in listed if against != "source" or is_answerable(each)]
    return [name for name in comparable if home.publication(name).state.pointer().outbox is not None]


@contextmanager
def source_view(publication: Publication, against: str) -> Iterator[SourceView | None]:
    """The source of a publication behind its connection; None where topics are compared with what was sent.

    Raises:
        ConfigurationError: the connection is missing or cannot be used, or the publication cannot be compared with its
            source.
        RetriableError: the source is away.
    """
    if against != "source":
        yield None
        return
    check_answerable(publication)
    source = publication.source
    with open_source_view(publication, source_connection(source.connection, source.kind)) as view:
        yield view


def find_publication(name: str) -> Publication:
    """The publication of a name.

    Raises:
        ConfigurationError: there is none.
    """
    found = {publication.name: publication for publication in publications()}
    if name not in found:
        raise ConfigurationError(
            f"there is no publication {name!r}",
            next_step="start the DAG again: its file was deleted or is no longer valid",
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
        "against": found.against,
        "equal": found.is_equal,
        "held": found.held,
        "records": found.records,
        "differences": {str(name): number for name, number in found.differences.items()},
        "seconds": found.seconds,
        "report": reported.uri,
    }
