"""What the operational tables add to the status of a publication; when they are away, the rest is told."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

from contexture.errors import ConfigurationError, RetriableError
from contexture.monitoring import ProducerStore, RunRow, Sums
from contexture.monitoring.database import NO_TABLES
from contexture.operations.page.tables import Tables
from contexture.storage.home import Storage
from contexture.storage.manifests import Document


class LastRun(Document):
    """The latest run that was begun, whatever became of it; backfills are left out."""

    run_id: str
    state: str
    failed_task: str | None
    message: str | None
    started_at: datetime
    ended_at: datetime | None


class Operations(Document):
    """One publication in the operational tables.

    Attributes:
        transactions: how many have each status, by its name (sent, pending, local_failure, broker_error, unexpected).
        records, bytes: of those that were sent.
        last_sent_at: when the last one was sent.
        last_source_transaction: the registry's id of the last one that was sent.
    """

    last_run: LastRun | None
    transactions: dict[str, int]
    records: int
    bytes: int
    last_sent_at: datetime | None
    last_source_transaction: int | None


class OperationsReader:
    """Reads the tables of a home; `problem` says why there is nothing to read, if something is wrong."""

    def __init__(self, storage: Storage) -> None:
        self.problem: str | None = None
        self.address: str | None = None
        self._store: ProducerStore | None = None
        self._latest: Mapping[str, RunRow] | None = None
        try:
            found = ProducerStore.of_home(storage.root)
        except ConfigurationError as error:
            self.problem = str(error)
            return
        if found is None:
            self.problem = NO_TABLES
        elif found.is_there:
            self._store, self.address = found, found.address

    def tables(self) -> Tables:
        """The same tables for questions of other kinds."""
        return Tables(self._store, self.problem)

    def of(self, publication: str) -> Operations | None:
        """What the tables tell about a publication; after a first failure they are not asked again."""
        if self._store is None:
            return None
        try:
            # As the page has it: a backfill says nothing of how a publication keeps up with its source.
            self._latest = self._store.latest_runs() if self._latest is None else self._latest
            sums = self._store.sums(publication)
        except (RetriableError, ConfigurationError) as error:
            self.problem, self._store = str(error), None
            return None
        return _operations(self._latest.get(publication), sums)


def _operations(run: RunRow | None, sums: Sums) -> Operations | None:
    if run is None and not sums.by_status:
        return None
    last = sums.last_sent
    return Operations(
        last_run=run
        and LastRun(
            run_id=run.run_id,
            state=run.state,
            failed_task=run.failed_task,
            message=run.message,
            started_at=run.started_at,
            ended_at=run.ended_at,
        ),
        transactions={status.name.lower(): count for status, count in sums.by_status.items()},
        records=sums.records,
        bytes=sums.bytes,
        last_sent_at=last.updated_at if last else None,
        last_source_transaction=last.source_transaction if last else None,
    )
