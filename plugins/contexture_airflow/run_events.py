"""Records of a run in the operational tables and as own events; none of it ever fails or delays a run."""

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
from contexture.storage.publication_store import PublicationStore
from contexture_airflow.metrics import count_failure, count_sent
from contexture_airflow.run import RunPlan, RunRequest


def _record_start_event(
    journal: RunTableWriter,
    publication: Publication,
    request: RunRequest,
    plan: RunPlan,
    fingerprint_before: str | None,
) -> None:
    """A run has been planned, and perhaps for a publication that has changed.

    Runs that show such events are not told: each would give the next one something to show.
    """
    if fingerprint_before not in {None, plan.fingerprint}:
        _tell(
            journal,
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
    if publication.source.has_content:
        _tell(
            journal,
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


def _record_end_event(
    journal: RunTableWriter,
    publication: Publication,
    run: str,
    run_id: str,
    outbox: str,
    counts: Mapping[str, JsonValue] | None,
) -> None:
    """A run has come to its good end; `counts` are None where there was nothing to conclude."""
    if not publication.source.has_content:
        return
    data: dict[str, JsonValue] = {
        "run_id": run_id,
        "outbox": outbox,
        "concluded": counts is not None,
        "counts": None if counts is None else {name: value for name, value in counts.items() if name != "outbox"},
    }
    _tell(journal, EventType.RUN_SUCCEEDED, publication.name, run, data)


def _record_failure_event(journal: RunTableWriter, failure: Failure) -> None:
    """A task of a run has failed for good."""
    _tell(
        journal,
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


def _record_attempt_event(journal: RunTableWriter, publication: str, attempts: SendAttempts) -> None:
    """A send has failed; it is told when no further attempt comes by itself."""
    if attempts.state not in {"exhausted", "stopped"}:
        return
    _tell(
        journal,
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


def _tell(
    journal: RunTableWriter, kind: EventType, publication: str, occasion: str, data: Mapping[str, JsonValue]
) -> None:
    happening = OwnEvent(kind, publication, datetime.now(UTC), occasion, data)
    journal.note(lambda store: store.append_event(happening))


NOWHERE = RunTableWriter(None)
"""For callers without operational tables."""

_SUPERSEDED = "a later outbox was sent before it"
_NOT_CONCLUDED = "nothing was concluded: it was a dry run, or its outbox was given up or overtaken"
_SKIPPED = "in Kafka already when this send began"


def open_journal(home: FileTree, report: Callable[[str], None]) -> RunTableWriter:
    """The journal of the operational tables; where there are none, or their address is wrong, it writes nothing."""
    try:
        return RunTableWriter(RunTables.of_home(home.root), report)
    except ConfigurationError as error:
        report(f"nothing is noted in the operational tables: {error}")
        return RunTableWriter(None)


class ShardNotes:
    """Notes about one shard of an outbox.

    Args:
        journal: where to.
        manifest: the outbox.
        shard: which shard.
    """

    def __init__(self, journal: RunTableWriter, manifest: Manifest, shard: int) -> None:
        self._journal = journal
        self._publication = manifest.publication
        self._outbox = manifest.outbox
        self._shard = shard
        of_shard = [each for each in manifest.shards if each.shard == shard]
        self._records = sum(each.records for each in of_shard)
        self._registry = tuple(part for each in of_shard for part in each.registry)

    def began(self) -> None:
        """Its next transaction is pending, or all that show what a registry did."""
        self._journal.note(
            lambda store: store.shard_begins(self._publication, self._outbox, self._shard, self._registry)
        )

    def skipped(self, transactions: int) -> None:
        """So many transactions, from the first on, are in Kafka before anything is sent."""

        def note(store: RunTables) -> None:
            store.shard_skipped(self._publication, self._outbox, self._shard, before=transactions, message=_SKIPPED)

        self._journal.note(note)

    def committed(self, entry: LedgerEntry) -> None:
        """A transaction is in Kafka, and the next one, if there is one, is pending."""
        sent, aside = self._row(entry, entry.transaction, TransactionStatus.SENT), len(entry.dead_letters)
        self._journal.note(lambda store: store.set_transaction(sent, dead_letters=aside))
        if entry.position < self._records and not self._registry:
            pending = self._row(None, entry.transaction + 1, TransactionStatus.PENDING)
            self._journal.note(lambda store: store.set_transaction(pending))

    def attempt(self, attempts: SendAttempts) -> None:
        """A send has failed, or what failed was sent in the end."""
        self._journal.note(lambda store: store.set_attempt(self._publication, attempts))
        count_failure(self._publication, attempts)
        _record_attempt_event(self._journal, self._publication, attempts)

    def ended(self, result: ShardResult) -> None:
        """The shard is in Kafka, or will never be."""
        count_sent(self._publication, result)
        if result.superseded:
            self._rest(TransactionStatus.LOCAL_FAILURE, _SUPERSEDED)
        else:
            self._rest(TransactionStatus.SENT, None)

    def failed(self, error: Exception) -> None:
        """The task ends, and the rest of the shard is not in Kafka: the next transaction is why."""
        status, message = TransactionStatus.of(error), str(error)

        def note(store: RunTables) -> None:
            store.shard_failed(self._publication, self._outbox, self._shard, status=status, message=message)

        self._journal.note(note)

    def _rest(self, status: TransactionStatus, message: str | None) -> None:
        def note(store: RunTables) -> None:
            store.shard_ended(self._publication, self._outbox, self._shard, status=status, message=message)

        self._journal.note(note)

    def _row(self, entry: LedgerEntry | None, number: int, status: TransactionStatus) -> TransactionRow:
        part = self._registry[number] if number < len(self._registry) else None
        told = entry.source_transaction if entry else None
        return TransactionRow(
            publication=self._publication,
            outbox=self._outbox,
            shard=self._shard,
            number=number,
            status=status,
            records=entry.records if entry else 0,
            bytes=entry.bytes if entry else 0,
            position=entry.position if entry else 0,
            source_transaction=part.id if part else told,
            message=None,
            updated_at=datetime.now(UTC),
            source_deletions=part.deletions if part else False,
        )


def record_start(
    journal: RunTableWriter,
    publication: Publication,
    request: RunRequest,
    plan: RunPlan,
    *,
    settings: Mapping[str, str],
    fingerprint_before: str | None,
) -> None:
    """A run begins, perhaps of a publication that has changed; `settings` are its connection's, without secrets."""

    def note(store: RunTables) -> None:
        store.set_publication(
            publication.name,
            topics=publication.topics.summary,
            format_name=publication.record_form,
            connection=publication.publish.connection,
        )
        store.producer_sends_by(
            publication.name,
            properties_of(publication),
            connection=publication.publish.connection,
            settings=settings,
        )
        store.run_started(publication.name, plan.run, run_id=request.run_id, mode=plan.mode, sequence=plan.sequence)

    journal.note(note)
    _record_start_event(journal, publication, request, plan, fingerprint_before)


@contextmanager
def source_noted(
    store: PublicationStore, publication: Publication, run: str, report: Callable[[str], None]
) -> Iterator[None]:
    """Notes whether a registry told a run what it did.

    Where it did not, a transaction of unknown content has failed, until a later run learns what that was. (What is read
    from a context broker are no transactions before they are prepared.)
    """
    if not publication.source.has_log:
        yield
        return
    with open_journal(store.home, report) as journal:
        try:
            yield
        except Exception as error:
            message = str(error) if isinstance(error, ContextureError) else type(error).__name__
            journal.note(lambda store: store.source_failed(publication.name, run, message=message))
            raise
        journal.note(lambda store: store.source_answered(publication.name))


def record_prepared(journal: RunTableWriter, publication: str, run: str, outbox: str) -> None:
    """A run has an outbox: its report is to be found when the run fails too."""
    journal.note(lambda store: store.run_prepared(publication, run, outbox=outbox))


def record_failure(journal: RunTableWriter, failure: Failure) -> None:
    """A run has failed, or another task of it."""
    _record_failure_event(journal, failure)
    journal.note(
        lambda store: store.run_failed(
            failure.publication,
            failure.run_id,
            task=failure.task,
            message=f"{failure.happened}. Next: {failure.next_step}",
        )
    )


def record_end(
    journal: RunTableWriter,
    publication: Publication,
    run: str,
    run_id: str,
    outbox: str,
    counts: Mapping[str, JsonValue] | None,
) -> None:
    """A run has come to its good end; what is older than its archive is forgotten.

    Args:
        journal: where to.
        publication: whose run it is.
        run, run_id: its name in storage, and Airflow's.
        outbox: what it prepared.
        counts: of what it concluded; None where there was nothing to conclude.
    """
    before = datetime.now(UTC) - timedelta(days=publication.retention.archive_days)
    why_not = None if counts is not None else _NOT_CONCLUDED
    journal.note(lambda store: store.run_ended(publication.name, run, outbox=outbox, not_concluded=why_not))
    journal.note(lambda store: store.forget(publication.name, before=before))
    _record_end_event(journal, publication, run, run_id, outbox, counts)
