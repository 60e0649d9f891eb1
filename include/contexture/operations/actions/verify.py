"""Verifies a publication against state or its source, and writes the report and the row of it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from jinja2 import Environment, PackageLoader, StrictUndefined

from contexture.errors import ConfigurationError, DefectError
from contexture.monitoring import RunTables, RunTableWriter
from contexture.monitoring.alerts import AlertKind
from contexture.operations import environment
from contexture.operations.actions.connection_check import settings_of
from contexture.operations.environment import named_publication
from contexture.operations.verification.against_source import open_source_view, verify_against_source
from contexture.operations.verification.result import KINDS, WHAT_TO_DO, Against, VerificationResult, as_row
from contexture.operations.verification.source_view import SourceView, check_answerable
from contexture.operations.verification.topics import KafkaTopics, ReplicaTopics
from contexture.operations.verification.verify import verify
from contexture.publications import NgsiPublication, Publication
from contexture.sources.http.connection import BrokerConnection
from contexture.sources.sdmx.registry import RegistryConnection
from contexture.storage.folder import StoredFolder
from contexture.storage.home import ProgressCallback
from contexture.storage.publication_store import REPORT_PAGE, PublicationStore

REPORTS_KEPT: Final = 30
"""How many reports of a publication are kept."""

_MEANINGS: Final = {
    "missing": "should be there and is not",
    "extra": "is there and should not",
    "different": "the last value is another one",
    "order": "values are in another order, or in several partitions",
}
_COMPARED: Final = {
    "bytes": "byte for byte with the archived outbox that sent them",
    "content": "by the hash of their content, as state has it",
    "source": "with the body, headers and time of what the source holds",
    "presence": "by presence alone: their outbox is no longer kept, or several identities share the key",
}


_DOCUMENT: Final = "verification.json"


def write_report(store: PublicationStore, found: VerificationResult) -> StoredFolder:
    """Writes both forms, and removes the oldest reports beyond `REPORTS_KEPT`; returns the folder of the report."""
    reports = store.verifications
    own = reports.folder(f"{found.verified_at.astimezone(UTC):%Y%m%dT%H%M%S%f}Z")
    own.write(_DOCUMENT, found.to_json())
    own.write(REPORT_PAGE, render_report(found))
    for old in reports.folders()[:-REPORTS_KEPT]:
        reports.remove(old)
    return own


def render_report(found: VerificationResult) -> bytes:
    """The page as UTF-8 HTML; every text in it is escaped, because identities are untrusted input."""
    environment = Environment(
        loader=PackageLoader("contexture.operations.verification"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {"number": _number, "moment": _moment}
    template = environment.get_template("verification.html.j2")
    words = {"kinds": KINDS, "meanings": _MEANINGS, "compared": _COMPARED, "what_to_do": WHAT_TO_DO}
    return template.render(found=found, **words).encode()


def _number(value: int) -> str:
    return f"{value:,}"


def _moment(value: datetime) -> str:
    return f"{value.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC"


@dataclass(frozen=True, slots=True)
class Reported:
    found: VerificationResult
    uri: str

    def raise_differences(self) -> None:
        """Fails where the topics differ.

        Raises:
            ConfigurationError: they do; trying again can't help.
        """
        if not self.found.is_equal:
            raise ConfigurationError(
                f"{self.found.publication}: {self.found.summary}",
                next_step=f"{WHAT_TO_DO}. The report: {self.uri}",
                publication=self.found.publication,
                alert=AlertKind.REPLICA_DIFFERS,
            )


def verify_and_report(
    store: PublicationStore,
    publication: Publication,
    topics: ReplicaTopics,
    *,
    journal: RunTableWriter,
    source: SourceView | None = None,
    report: ProgressCallback = lambda sentence: None,
) -> Reported:
    """Verifies against what was sent, or against `source` where one is given; differences are no error here.

    Raises:
        ContextureError: as `verify`, or as `verify_against_source`.
    """
    if source is None:
        found = verify(store, publication, topics, report=report)
    else:
        found = verify_against_source(store, publication, topics, source, report=report)
    own = write_report(store, found)
    row = as_row(found, own.path_of(REPORT_PAGE))
    journal.write(lambda tables: tables.insert_verification(row))
    uri = own.uri_of(REPORT_PAGE)
    report(f"{found.summary}; the report: {uri}")
    return Reported(found, uri)


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
        raise DefectError("a connection that existed was deleted", next_step="report this")
    return found
