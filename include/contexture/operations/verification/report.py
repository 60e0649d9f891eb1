"""Verifies a publication against state and its source, and writes the report and the row of it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

from jinja2 import Environment, PackageLoader, StrictUndefined

from contexture.errors import ConfigurationError
from contexture.monitoring.alerts import AlertKind
from contexture.monitoring.journal import RunTableWriter
from contexture.operations.verification.against_source import verify_against_source
from contexture.operations.verification.result import KINDS, WHAT_TO_DO, VerificationResult, as_row
from contexture.operations.verification.source_view import SourceView
from contexture.operations.verification.topics import ReplicaTopics
from contexture.operations.verification.verify import verify
from contexture.publications import Publication
from contexture.storage.folder import StoredFolder
from contexture.storage.home import ProgressCallback
from contexture.storage.publication_store import REPORT_PAGE, PublicationStore

KEPT: Final = 30
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


def write(store: PublicationStore, found: VerificationResult) -> StoredFolder:
    """Writes both forms, and removes the oldest reports beyond `KEPT`; returns the folder of the report."""
    reports = store.verifications
    own = reports.folder(f"{found.verified_at.astimezone(UTC):%Y%m%dT%H%M%S%f}Z")
    own.write(_DOCUMENT, found.to_json())
    own.write(REPORT_PAGE, page(found))
    for old in reports.folders()[:-KEPT]:
        reports.remove(old)
    return own


def page(found: VerificationResult) -> bytes:
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
    own = write(store, found)
    row = as_row(found, own.path_of(REPORT_PAGE))
    journal.write(lambda tables: tables.insert_verification(row))
    uri = own.uri_of(REPORT_PAGE)
    report(f"{found.summary}; the report: {uri}")
    return Reported(found, uri)
