"""The status of publications for monitoring: one short document each, the same by HTTP and on the command line."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from typing import Any, Final

from pydantic import computed_field

from contexture.errors import ConfigurationError, RetriableError
from contexture.monitoring import RunRow, RunTables, Sums
from contexture.monitoring.alerts import PendingSend
from contexture.monitoring.database import NO_TABLES
from contexture.monitoring.rows import TransactionRow
from contexture.operations import environment
from contexture.operations.environment import publications_folder
from contexture.operations.status.dead_letters import DeadLetterStatus, dead_letter_status
from contexture.operations.status.health import PublicationHealth
from contexture.operations.status.sources import PublicationFacts, Sources, Tables, collect_facts, manifest, stored
from contexture.publications import Publication, discover
from contexture.storage.delivery import SendAttempts, most_urgent
from contexture.storage.documents import StoredDocument
from contexture.storage.home import Home
from contexture.storage.incompleteness import Incompleteness
from contexture.storage.known_topics import LostTopics
from contexture.storage.manifests import Manifest
from contexture.storage.publication_store import PublicationStore


class LastRun(StoredDocument):
    """The latest run that was begun, whatever became of it; backfills are left out."""

    run_id: str
    state: str
    failed_task: str | None
    message: str | None
    started_at: datetime
    ended_at: datetime | None


class Operations(StoredDocument):
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

    def __init__(self, home: Home) -> None:
        self.problem: str | None = None
        self.address: str | None = None
        self._store: RunTables | None = None
        self._latest: Mapping[str, RunRow] | None = None
        try:
            found = RunTables.of_home(home.root)
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
        """The tables' answer about a publication; after a first failure they are not asked again."""
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


_READERS: Final = 8


class LastTransaction(StoredDocument):
    """The Kafka transaction that was sent last.

    Attributes:
        source_transaction: the registry's own id of it, as its RSS feed has it; None for a context broker.
        bytes: of keys and values, before compression.
    """

    outbox: str
    shard: int
    number: int
    source_transaction: int | None
    records: int
    bytes: int
    sent_at: datetime


class PendingStatus(StoredDocument):
    """An outbox that is not at its end.

    Attributes:
        status: `prepared` (the quality gate has not judged it) or `approved` (it is sent, or will be).
        attempt: of the shard that needs a person first, the last attempt that failed; None when none has failed.
        attempts_allowed: `batch_ttl` + 1; None: without end, or nothing has failed.
        next_try_at: when the next attempt is due; None when none is.
        message: why the last one failed, and what to do.
    """

    outbox: str
    sequence: int
    status: str
    records: int | None
    attempt: int | None
    attempts_allowed: int | None
    next_try_at: datetime | None
    message: str | None


class Lag(StoredDocument):
    """How far Kafka is behind what is known of the source. What it did since it was read last is unknown.

    Attributes:
        seconds: age of the oldest of what was read or notified, and is not concluded; 0 when nothing waits.
        records: of pending outboxes.
        notifications: files of the inbox that no concluded run has taken.
        published_until: up to when the source was read by the last concluded run.
    """

    seconds: float
    records: int
    notifications: int
    published_until: datetime | None


class Deletions(StoredDocument):
    """Whether a publication learns what is deleted in its source.

    Attributes:
        detected: false while reads of the source are incomplete, run after run (at least 3).
        incomplete_since, incomplete_runs: of the reads without a complete one between; null and 0 after a complete one.
        reason: why the last read was incomplete; null after a complete one.
        next_step: what to do about it.
    """

    detected: bool
    incomplete_since: datetime | None
    incomplete_runs: int
    reason: str | None
    next_step: str | None


class RemovedTopics(StoredDocument):
    """Topics that were removed from Kafka though they held what the publication had sent.

    Attributes:
        removed: the first 20 of those that no full run has filled since; empty where there are none.
        removed_count: how many they are.
        noticed_at: when the last of them was noticed; null where there are none.
    """

    removed: tuple[str, ...] = ()
    removed_count: int = 0
    noticed_at: datetime | None = None


class StatusReport(StoredDocument):
    """Whether a publication does its work, and how far it is.

    Attributes:
        running: whether it shows what changes: its file is good, its DAG is not suspended, nothing has stopped it, and
            it waits for no person's answer.
        health: stopped, waiting for approval, resync required, deletions not detected, waiting to send, running
            (now), never run, or idle.
        reason: why; empty where the word says it all.
        suspended: whether its DAG is paused; None where Airflow was not asked.
        attempt, next_try_at: of the first pending outbox of which a send has failed.
        dead_letters: records that can never be sent.
        deletions: whether it learns what is deleted in its source.
        topics: which of its topics were removed and are not filled again.
    """

    publication: str
    running: bool
    health: PublicationHealth
    reason: str
    suspended: bool | None
    last_transaction: LastTransaction | None
    pending: tuple[PendingStatus, ...]
    attempt: int | None
    next_try_at: datetime | None
    lag: Lag
    dead_letters: DeadLetterStatus
    deletions: Deletions
    topics: RemovedTopics


def statuses(sources: Sources, names: Iterable[str]) -> list[StatusReport]:
    """The status of each of the publications, by name.

    Raises:
        RetriableError: the storage did not answer.
    """
    found = collect_facts(sources, sorted(names))
    with ThreadPoolExecutor(_READERS) as readers:
        return list(readers.map(lambda each: _status(sources, each), found))


def _status(sources: Sources, found: PublicationFacts) -> StatusReport:
    sent = sources.tables.ask(lambda history: history.last_sent(found.name), None)
    store = sources.home.publication(found.name)
    prepared = [manifest(store, each.outbox) for each in found.stored.pending]
    pending = tuple(_pending(found, prepared))
    failing = next((each for each in pending if each.attempt is not None), None)
    last = manifest(store, found.stored.pointer.outbox)
    suspended = found.dag.paused if found.dag else None
    is_stopped = found.judged.health in {PublicationHealth.STOPPED, PublicationHealth.ASKING}
    return StatusReport(
        publication=found.name,
        running=found.name in sources.publications and not suspended and not is_stopped,
        health=found.judged.health,
        reason=found.judged.reason,
        suspended=suspended,
        last_transaction=_transaction(sent) if sent else None,
        pending=pending,
        attempt=failing.attempt if failing else None,
        next_try_at=failing.next_try_at if failing else None,
        lag=_lag(sources, found, prepared, last),
        dead_letters=dead_letter_status(sources, found.name, last),
        deletions=_deletions(found.stored.pointer.incomplete),
        topics=_removed_topics(found.stored.pointer.lost_topics),
    )


def _deletions(incomplete: Incompleteness | None) -> Deletions:
    return Deletions(
        detected=incomplete is None or not incomplete.is_lasting,
        incomplete_since=incomplete.since if incomplete else None,
        incomplete_runs=incomplete.runs if incomplete else 0,
        reason=incomplete.why if incomplete else None,
        next_step=incomplete.next_step if incomplete else None,
    )


def _removed_topics(lost: LostTopics | None) -> RemovedTopics:
    if lost is None:
        return RemovedTopics()
    return RemovedTopics(removed=lost.topics, removed_count=lost.count, noticed_at=lost.noticed_at)


def _transaction(row: TransactionRow) -> LastTransaction:
    return LastTransaction(
        outbox=row.outbox,
        shard=row.shard,
        number=row.number,
        source_transaction=row.source_transaction,
        records=row.records,
        bytes=row.bytes,
        sent_at=row.updated_at,
    )


def _pending(found: PublicationFacts, prepared: Sequence[Manifest | None]) -> Iterator[PendingStatus]:
    for each, manifest_of in zip(found.stored.pending, prepared, strict=True):
        yield PendingStatus(
            outbox=each.outbox,
            sequence=each.sequence,
            status=each.status,
            records=manifest_of.records if manifest_of else None,
            **_attempted(most_urgent(each.sends)),
        )


def _attempted(send: SendAttempts | None) -> dict[str, Any]:
    return {
        "attempt": send.attempt if send else None,
        "attempts_allowed": send.allowed if send else None,
        "next_try_at": send.next_at if send else None,
        "message": send.message if send else None,
    }


def _lag(sources: Sources, found: PublicationFacts, prepared: Sequence[Manifest | None], last: Manifest | None) -> Lag:
    waiting = sources.home.publication(found.name).inbox.files()
    # What a backfill sends again was read long ago, and says nothing of how far behind this is.
    since = [each.received_from for each in prepared if each and each.received_from and each.mode != "backfill"]
    since += [datetime.fromtimestamp(file.time_us / 1_000_000, UTC) for file in waiting[:1]]
    # A run that read nothing has no such time, and retention may have taken the manifest.
    until = (last.received_to if last else None) or found.stored.pointer.concluded_at
    return Lag(
        seconds=max(0.0, (sources.now - min(since)).total_seconds()) if since else 0.0,
        records=sum(each.records for each in prepared if each),
        notifications=len(waiting),
        published_until=until,
    )


class PendingOutbox(StoredDocument):
    """An outbox that has not come to its end; `sends` are its shards that failed at least once."""

    outbox: str
    sequence: int
    status: str
    sends: tuple[SendAttempts, ...]

    @computed_field  # type: ignore[prop-decorator]  # mypy knows no decorator on top of property
    @property
    def attempts(self) -> int:
        return sum(each.failed for each in self.sends)


class Waiting(StoredDocument):
    """Notifications that no concluded run has taken: in how many files, and since when the oldest of them."""

    files: int
    since: datetime


class PublicationStatus(StoredDocument):
    """One publication.

    Attributes:
        configured: whether a good file of this name lies in the folder of publications; None when there is no folder.
        baseline: whether the last concluded run noted what a registry holds, and sent nothing.
        quarantined: entities or structures that the last concluded run held back; None when it is no longer kept.
        owes_full: why the next run sends everything.
        damaged: whether its files can't be read: nothing of them is shown then, and `status` says why.
        waiting: what is in its inbox; None when nothing is.
        operations: its latest run and transactions; None without the operational tables.
        status: what monitoring asks for, the same as by HTTP.
    """

    publication: str
    configured: bool | None
    concluded_at: datetime | None
    sequence: int
    outbox: str | None
    mode: str | None
    baseline: bool
    identities: int
    watermark: str | None
    quarantined: int | None
    owes_full: str | None
    damaged: bool
    pending: tuple[PendingOutbox, ...]
    waiting: Waiting | None
    operations: Operations | None
    status: StatusReport

    @property
    def question(self) -> str | None:
        """The question that a run waits for; None where none waits."""
        return self.status.reason if self.status.health is PublicationHealth.ASKING else None

    @property
    def needs_a_person(self) -> bool:
        """Whether its last run failed, a run waits for an answer, deletions go unseen, a topic was removed and is not
        filled again, or sending has failed."""
        if (
            self.status.health in {PublicationHealth.STOPPED, PublicationHealth.ASKING}
            or not self.status.deletions.detected
        ):
            return True
        if self.status.topics.removed:
            return True
        return any(send.is_open for outbox in self.pending for send in outbox.sends)


def publication_statuses(home: Home, operations: OperationsReader, only: str | None = None) -> list[PublicationStatus]:
    """Every publication that has a file or has run, by name; or one of them.

    Raises:
        ConfigurationError: there is none of that name.
    """
    configured = _configured()
    names = sorted({*environment.publications(home), *(configured or ())})
    if only is not None:
        names = [_known(only, names)]
    sources = Sources(home, operations.tables(), configured or {}, {}, datetime.now(UTC))
    reports = {each.publication: each for each in statuses(sources, names)}
    return [
        _publication_status(
            home.publication(name),
            None if configured is None else name in configured,
            operations.of(name),
            reports[name],
        )
        for name in names
    ]


def _known(wanted: str, names: Sequence[str]) -> str:
    if wanted in names:
        return wanted
    raise ConfigurationError(
        f"there is no publication {wanted}",
        next_step=f"name one of {', '.join(names)}" if names else "set CONTEXTURE_HOME as Airflow has it",
    )


def _configured() -> dict[str, Publication] | None:
    try:
        loaded = discover(publications_folder())
        return {each.publication.name: each.publication for each in loaded if each.publication is not None}
    except ConfigurationError:
        return None


def _publication_status(
    store: PublicationStore, configured: bool | None, operations: Operations | None, report: StatusReport
) -> PublicationStatus:
    # As the page reads them: damage of one publication hides none of the others.
    found = stored(store)
    pointer = found.pointer
    last = manifest(store, pointer.outbox)
    return PublicationStatus(
        publication=store.name,
        configured=configured,
        concluded_at=pointer.concluded_at,
        sequence=pointer.sequence,
        outbox=pointer.outbox,
        mode=last.mode if last else None,
        baseline=bool(last and last.baseline),
        identities=pointer.identities,
        watermark=pointer.watermark,
        quarantined=last.quarantined_entities if last else None,
        owes_full=pointer.full_run_due,
        damaged=bool(found.damage),
        pending=tuple(_pending_outbox(store, each) for each in found.pending),
        waiting=_waiting(store),
        operations=operations,
        status=report,
    )


def _pending_outbox(store: PublicationStore, found: PendingSend) -> PendingOutbox:
    sends = store.attempts.of_outbox(found.outbox)
    return PendingOutbox(outbox=found.outbox, sequence=found.sequence, status=found.status, sends=sends)


def _waiting(store: PublicationStore) -> Waiting | None:
    files = store.inbox.files()
    if not files:
        return None
    return Waiting(files=len(files), since=datetime.fromtimestamp(files[0].time_us / 1_000_000, UTC))
