"""Verifying a publication with the environment: its file, its home, its Kafka connection."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from contexture.errors import DefectError
from contexture.monitoring import RunTables, RunTableWriter
from contexture.operations import environment
from contexture.operations.actions.connection_check import settings_of
from contexture.operations.environment import named_publication
from contexture.operations.verification.against_source import open_source_view
from contexture.operations.verification.report import Reported, verify_and_report
from contexture.operations.verification.result import Against
from contexture.operations.verification.source_view import SourceView, check_answerable
from contexture.operations.verification.topics import KafkaTopics
from contexture.publications import NgsiPublication, Publication
from contexture.sources.http.connection import BrokerConnection
from contexture.sources.sdmx.registry import RegistryConnection
from contexture.storage.home import ProgressCallback


def verified(
    name: str,
    files: Path | None,
    *,
    timeout_seconds: float,
    against: Against = "sent",
    report: ProgressCallback = lambda sentence: None,
) -> Reported:
    """What verifying a publication found; raises as `verify_and_report`.

    Raises:
        ConfigurationError: there is no such publication or connection.
    """
    home, publication = environment.open_home(), named_publication(name, files)
    topics = KafkaTopics(settings_of(publication.publish.connection), publication, timeout_seconds=timeout_seconds)
    with RunTableWriter(RunTables.of_home(home.root), report) as journal, _source(publication, against) as source:
        return verify_and_report(
            home.publication(publication.name), publication, topics, journal=journal, source=source, report=report
        )


@contextmanager
def _source(publication: Publication, against: Against) -> Iterator[SourceView | None]:
    """The source of a publication, behind the connection that the environment has; None where it is not asked."""
    if against == "sent":
        yield None
        return
    check_answerable(publication)
    connection_id = publication.source.connection
    with open_source_view(publication, _connection(publication, connection_id)) as view:
        yield view


def _connection(publication: Publication, connection_id: str) -> BrokerConnection | RegistryConnection:
    fields = environment.read_required(connection_id)
    if isinstance(publication, NgsiPublication):
        return environment.context_broker(connection_id, fields)
    found = environment.registry(connection_id)
    if found is None:
        raise DefectError("a connection that was there is gone", next_step="report this")
    return found
