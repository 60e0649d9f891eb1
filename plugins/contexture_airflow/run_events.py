"""The events of a run: rows of the operational tables, own events and metrics.

Recording never fails or delays a run: where the tables are away, the writer reports it once and stops.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta

from pydantic import JsonValue

from contexture.errors import ConfigurationError, ContextureError
from contexture.monitoring import RunTables, RunTableWriter, TransactionRow, TransactionStatus
from contexture.monitoring.alerts import Failure
from contexture.monitoring.own_events import EventType, OwnEvent
from contexture.monitoring.store import properties_of
from contexture.publications import Publication
from contexture.sending import LedgerEntry, ShardResult
from contexture.storage.delivery import SendAttempts
from contexture.storage.file_tree import FileTree
from contexture.storage.manifests import Manifest
from contexture_airflow.metrics import count_failure, count_sent
from contexture_airflow.run import RunPlan, RunRequest

_SUPERSEDED = "a later outbox was sent before it"
_NOT_CONCLUDED = "nothing was concluded: it was a dry run, or its outbox was abandoned or overtaken"
_SKIPPED = "in Kafka already when this send began"


class RunEvents:
    """Records what happens in the runs of publications.

    Args:
        tables: the writer of the operational tables.
    """

    def __init__(self, tables: RunTableWriter) -> None:
        self.tables = tables

    def run_started(
        self,
        publication: Publication,
        request: RunRequest,
        plan: RunPlan,
        *,
        settings: Mapping[str, str],
        fingerprint_before: str | None,
    ) -> None:
        """Records a planned run, and that its publication has changed, if it has.

        Args:
            publication: the publication of the run.
            request: what the run was started with.
            plan: what settle decided.
            settings: those of the Kafka connection, without secrets.
            fingerprint_before: of the publication when its last run concluded; None before the first run.
        """

        def record(store: RunTables) -> None:
            store.set_publication(
                publication.name,
                topics=publication.topics.summary,
                format_name=publication.record_form,
                connection=publication.publish.connection,
            )
            store.set_producer_settings(
                publication.name,
                properties_of(publication),
                connection=publication.publish.connection,
                settings=settings,
            )
            store.insert_run(publication.name, plan.run, run_id=request.run_id, mode=plan.mode, sequence=plan.sequence)

        self.tables.write(record)
        if fingerprint_before not in {None, plan.fingerprint}:
            self._append_event(
                EventType.CONFIGURATION_CHANGED,
                publication.name,
                plan.run,
                {
                    "run_id": request.run_id,
                    "fingerprint": plan.fingerprint,
                    "fingerprint_before": fingerprint_before,
                    "mode": plan.mode,
                },
            )
        # A run that publishes own events appends none, because each would give the next run something to publish.
        if publication.source.has_content:
            self._append_event(
                EventType.RUN_STARTED,
                publication.name,
                plan.run,
                {
                    "run_id": request.run_id,
                    "run_type": request.run_type,
                    "mode": plan.mode,
                    "sequence": plan.sequence,
                    "why": plan.why,
                    "triggered_by": request.triggered_by,
                    "reason": request.reason,
                    "dry_run": request.dry_run,
                },
            )

    def run_prepared(self, publication: str, run: str, outbox: str) -> None:
        """Records the outbox of a run, so that its report is found when the run fails too."""
        self.tables.write(lambda store: store.set_run_outbox(publication, run, outbox=outbox))

    def run_failed(self, failure: Failure) -> None:
        """Records that a task of a run has failed for good."""
        self._append_event(
            EventType.RUN_FAILED,
            failure.publication,
            f"{failure.run_id} {failure.task} {failure.at.isoformat()}",
            {
                "run_id": failure.run_id,
                "task": failure.task,
                "kind": str(failure.kind),
                "message": failure.happened,
                "next_step": failure.next_step,
            },
        )
        self.tables.write(
            lambda store: store.set_run_failed(
                failure.publication,
                failure.run_id,
                task=failure.task,
                message=f"{failure.happened}. Next: {failure.next_step}",
            )
        )

    def run_concluded(
        self, publication: Publication, run: str, run_id: str, outbox: str, counts: Mapping[str, JsonValue] | None
    ) -> None:
        """Records the good end of a run, and removes the rows that are older than the publication's archive.

        Args:
            publication: the publication of the run.
            run, run_id: the run's name in storage, and in Airflow.
            outbox: the outbox that the run prepared.
            counts: of what was concluded; None where there was nothing to conclude.
        """
        before = datetime.now(UTC) - timedelta(days=publication.retention.archive_days)
        why_not = None if counts is not None else _NOT_CONCLUDED
        self.tables.write(
            lambda store: store.set_run_succeeded(publication.name, run, outbox=outbox, not_concluded=why_not)
        )
        self.tables.write(lambda store: store.delete_before(publication.name, before=before))
        if not publication.source.has_content:
            return
        data: dict[str, JsonValue] = {
            "run_id": run_id,
            "outbox": outbox,
            "concluded": counts is not None,
            "counts": None if counts is None else {name: value for name, value in counts.items() if name != "outbox"},
        }
        self._append_event(EventType.RUN_SUCCEEDED, publication.name, run, data)

    def shard(self, manifest: Manifest, shard: int) -> ShardEvents:
        """Returns the recorder of one shard of an outbox."""
        return ShardEvents(self, manifest, shard)

    def sending_stopped(self, publication: str, attempts: SendAttempts) -> None:
        """Records a failed send as own event when no further attempt follows by itself."""
        if attempts.state not in {"exhausted", "stopped"}:
            return
        self._append_event(
            EventType.SENDING_STOPPED,
            publication,
            f"{attempts.outbox} {attempts.shard} {attempts.failed}",
            {
                "outbox": attempts.outbox,
                "shard": attempts.shard,
                "attempt": attempts.attempt,
                "attempts_allowed": attempts.allowed,
                "state": attempts.state,
                "message": attempts.message,
            },
        )

    def _append_event(self, kind: EventType, publication: str, occasion: str, data: Mapping[str, JsonValue]) -> None:
        event = OwnEvent(kind, publication, datetime.now(UTC), occasion, data)
        self.tables.write(lambda store: store.append_event(event))


class ShardEvents:
    """Records what happens to one shard of an outbox.

    Args:
        run_events: the recorder of the run.
        manifest: the outbox.
        shard: number of the shard.
    """

    def __init__(self, run_events: RunEvents, manifest: Manifest, shard: int) -> None:
        self._run_events = run_events
        self._tables = run_events.tables
        self._publication = manifest.publication
        self._outbox = manifest.outbox
        self._shard = shard
        of_shard = [each for each in manifest.shards if each.shard == shard]
        self._records = sum(each.records for each in of_shard)
        self._registry = tuple(part for each in of_shard for part in each.registry)

    def started(self) -> None:
        """Records the next transaction as pending, or all transactions of a registry."""
        self._tables.write(
            lambda store: store.set_shard_pending(self._publication, self._outbox, self._shard, self._registry)
        )

    def skipped(self, transactions: int) -> None:
        """Records that the first `transactions` are in Kafka before anything is sent."""

        def record(store: RunTables) -> None:
            store.set_shard_skipped(self._publication, self._outbox, self._shard, before=transactions, message=_SKIPPED)

        self._tables.write(record)

    def committed(self, entry: LedgerEntry) -> None:
        """Records that a transaction is in Kafka, and that the next one, if there is one, is pending."""
        sent, dead_letters = self._row(entry, entry.transaction, TransactionStatus.SENT), len(entry.dead_letters)
        self._tables.write(lambda store: store.set_transaction(sent, dead_letters=dead_letters))
        if entry.position < self._records and not self._registry:
            pending = self._row(None, entry.transaction + 1, TransactionStatus.PENDING)
            self._tables.write(lambda store: store.set_transaction(pending))

    def attempts_changed(self, attempts: SendAttempts) -> None:
        """Records that a send has failed, or that the shard was sent after failures."""
        self._tables.write(lambda store: store.set_attempt(self._publication, attempts))
        count_failure(self._publication, attempts)
        self._run_events.sending_stopped(self._publication, attempts)

    def sent(self, result: ShardResult) -> None:
        """Records that the shard is in Kafka, or never will be, because a later outbox was sent before it."""
        count_sent(self._publication, result)
        if result.superseded:
            self._end(TransactionStatus.LOCAL_FAILURE, _SUPERSEDED)
        else:
            self._end(TransactionStatus.SENT, None)

    def failed(self, error: Exception) -> None:
        """Records that the task ends before the whole shard is in Kafka; the next transaction has the reason."""
        status, message = TransactionStatus.of(error), str(error)

        def record(store: RunTables) -> None:
            store.set_shard_failed(self._publication, self._outbox, self._shard, status=status, message=message)

        self._tables.write(record)

    def _end(self, status: TransactionStatus, message: str | None) -> None:
        def record(store: RunTables) -> None:
            store.set_shard_status(self._publication, self._outbox, self._shard, status=status, message=message)

        self._tables.write(record)

    def _row(self, entry: LedgerEntry | None, number: int, status: TransactionStatus) -> TransactionRow:
        part = self._registry[number] if number < len(self._registry) else None
        source_transaction = entry.source_transaction if entry else None
        return TransactionRow(
            publication=self._publication,
            outbox=self._outbox,
            shard=self._shard,
            number=number,
            status=status,
            records=entry.records if entry else 0,
            bytes=entry.bytes if entry else 0,
            position=entry.position if entry else 0,
            source_transaction=part.id if part else source_transaction,
            message=None,
            updated_at=datetime.now(UTC),
            source_deletions=part.deletions if part else False,
        )


UNRECORDED = RunEvents(RunTableWriter(None))
"""For callers without operational tables."""


@contextmanager
def open_run_events(home: FileTree, report: Callable[[str], None]) -> Iterator[RunEvents]:
    """Opens the operational tables of a home; where there are none, or their address is wrong, nothing is written."""
    try:
        tables = RunTableWriter(RunTables.of_home(home.root), report)
    except ConfigurationError as error:
        report(f"nothing is written to the operational tables: {error}")
        tables = RunTableWriter(None)
    with tables:
        yield RunEvents(tables)


@contextmanager
def record_source_read(
    home: FileTree, publication: Publication, run: str, report: Callable[[str], None]
) -> Iterator[None]:
    """Records whether the block could read the log of a registry.

    Where it could not, a transaction of unknown content has failed, until a later run reads its content. What is read
    from a context broker has no transactions before it is prepared.
    """
    if not publication.source.has_log:
        yield
        return
    with open_run_events(home, report) as events:
        try:
            yield
        except Exception as error:
            message = str(error) if isinstance(error, ContextureError) else type(error).__name__
            events.tables.write(lambda store: store.insert_source_failure(publication.name, run, message=message))
            raise
        events.tables.write(lambda store: store.delete_source_failures(publication.name))
