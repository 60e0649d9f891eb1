"""Verifies, and keeps what was found: the report below the home, a row in the operational tables."""

from __future__ import annotations

from dataclasses import dataclass

from contexture.errors import ConfigurationError
from contexture.monitoring.alerts import AlertKind
from contexture.monitoring.journal import Journal
from contexture.operations.verification import report as reports
from contexture.operations.verification.against_source import verify_against_source
from contexture.operations.verification.findings import WHAT_TO_DO, Verification
from contexture.operations.verification.noting import as_row
from contexture.operations.verification.replica_topics import ReplicaTopics
from contexture.operations.verification.source_view import SourceView
from contexture.operations.verification.verifying import Report, verify
from contexture.publications import Publication
from contexture.storage.home import Storage


@dataclass(frozen=True, slots=True)
class Reported:
    """A verification, and the address of its report."""

    found: Verification
    uri: str

    def raise_differences(self) -> None:
        """Fails where the topics differ.

        Raises:
            ConfigurationError: they do; trying again can't help.
        """
        if not self.found.is_equal:
            raise ConfigurationError(
                f"{self.found.publication}: {self.found.told}",
                next_step=f"{WHAT_TO_DO}. The report: {self.uri}",
                publication=self.found.publication,
                alert=AlertKind.REPLICA_DIFFERS,
            )


def verify_and_report(
    storage: Storage,
    publication: Publication,
    topics: ReplicaTopics,
    *,
    journal: Journal,
    source: SourceView | None = None,
    report: Report = lambda sentence: None,
) -> Reported:
    """Verifies against what was sent, or against `source` where one is given; differences are no error here.

    Raises:
        ContextureError: as `verify`, or as `verify_against_source`.
    """
    if source is None:
        found = verify(storage, publication, topics, report=report)
    else:
        found = verify_against_source(storage, publication, topics, source, report=report)
    path = reports.write(storage, found)
    row = as_row(found, path)
    journal.note(lambda store: store.verification_is(row))
    report(f"{found.told}; the report: {storage.uri(path)}")
    return Reported(found, storage.uri(path))
