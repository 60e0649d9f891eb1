"""What a run asks a person, while it waits for the answer."""

from __future__ import annotations

from dataclasses import dataclass

from contexture.monitoring.rows import RunRow
from contexture.operations.page.standing import DagFacts, Question
from contexture.publications import Publication
from contexture.storage.home import Storage
from contexture.storage.publication_store import PublicationFolder, run_name
from contexture.storage.shrink_report import Vanishing, kept_vanishing

_TASK = "stage"


@dataclass(frozen=True, slots=True)
class Asked:
    """A question: whether what is gone from the source may be deleted.

    Attributes:
        question: where it is put.
        vanishing: what would be deleted; None when that is no longer kept.
    """

    question: Question
    vanishing: Vanishing | None

    @property
    def told(self) -> str:
        """It in one sentence."""
        found, until = self.vanishing, self.question.until
        what = f"{found.count} of {found.held} identities" if found else "more than source.shrink_limit allows"
        when = f" until {until:%Y-%m-%d %H:%M} UTC" if until else ""
        return f"{what} would be deleted, if somebody says so{when}"


def asked(
    storage: Storage, name: str, publication: Publication | None, dag: DagFacts | None, latest: RunRow | None
) -> Asked | None:
    """What a run of a publication asks; None when none does.

    Args:
        storage: the home.
        name: the publication's.
        publication: its file, if there is a good one.
        dag: what Airflow knows; without it, the run's own files are believed.
        latest: the run that began last.

    Raises:
        RetriableError: the storage did not answer.
    """
    if dag is None:
        return _by_files(storage, name, publication, latest)
    if dag.question is None:
        return None
    return Asked(dag.question, kept_vanishing(storage, name, run_name(dag.question.run_id)))


def _by_files(storage: Storage, name: str, publication: Publication | None, latest: RunRow | None) -> Asked | None:
    if publication is None or publication.source.shrink_limit.beyond != "ask":
        return None
    if latest is None or latest.state != "running":
        return None
    found = kept_vanishing(storage, name, latest.run)
    if found is None or storage.exists(PublicationFolder(name).shrink_decision(latest.run)):
        return None
    return Asked(Question(latest.run_id, _TASK), found)
