"""The status of publications for monitoring: one short document each, the same by HTTP and on the command line."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from typing import Any, Final

from contexture.monitoring.rows import TransactionRow
from contexture.operations.page.put_aside import DeadLetterStatus, dead_letter_status
from contexture.operations.page.sources import Sources, Surveyed, manifest, survey
from contexture.operations.page.standing import Standing
from contexture.storage.delivery import SendAttempts, most_urgent
from contexture.storage.inbox_reader import InboxReader
from contexture.storage.incompleteness import Incompleteness
from contexture.storage.known_topics import LostTopics
from contexture.storage.manifests import Document, Manifest

_READERS: Final = 8


class LastTransaction(Document):
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


class PendingStatus(Document):
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


class Lag(Document):
    """How far Kafka is behind what is known of the source. What it did since it was read last, nobody knows.

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


class Deletions(Document):
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


class RemovedTopics(Document):
    """Topics that were removed from Kafka though they held what the publication had sent.

    Attributes:
        removed: the first 20 of those that no full run has filled since; empty where there are none.
        removed_count: how many they are.
        noticed_at: when the last of them was noticed; null where there are none.
    """

    removed: tuple[str, ...] = ()
    removed_count: int = 0
    noticed_at: datetime | None = None


class StatusReport(Document):
    """Whether a publication does its work, and how far it is.

    Attributes:
        running: whether it tells what changes: its file is good, its DAG is not suspended, nothing has stopped it, and
            it waits for nobody's answer.
        standing: stopped, waiting for an answer, owing a resync, deletions not detected, waiting to send, running
            (now), never run, or idle.
        reason: why; empty where the word says it all.
        suspended: whether its DAG is paused; None where Airflow was not asked.
        attempt, next_try_at: of the first pending outbox of which a send has failed.
        dead_letters: what can never be sent and was put aside.
        deletions: whether it learns what is deleted in its source.
        topics: which of its topics were removed and are not filled again.
    """

    publication: str
    running: bool
    standing: Standing
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
    found = survey(sources, sorted(names))
    with ThreadPoolExecutor(_READERS) as readers:
        return list(readers.map(lambda each: _status(sources, each), found))


def _status(sources: Sources, found: Surveyed) -> StatusReport:
    sent = sources.tables.ask(lambda history: history.last_sent(found.name), None)
    prepared = [manifest(sources.storage, found.name, each.outbox) for each in found.stored.pending]
    pending = tuple(_pending(found, prepared))
    failing = next((each for each in pending if each.attempt is not None), None)
    last = manifest(sources.storage, found.name, found.stored.pointer.outbox)
    suspended = found.dag.paused if found.dag else None
    is_stopped = found.judged.standing in {Standing.STOPPED, Standing.ASKING}
    return StatusReport(
        publication=found.name,
        running=found.name in sources.publications and not suspended and not is_stopped,
        standing=found.judged.standing,
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


def _pending(found: Surveyed, prepared: Sequence[Manifest | None]) -> Iterator[PendingStatus]:
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


def _lag(sources: Sources, found: Surveyed, prepared: Sequence[Manifest | None], last: Manifest | None) -> Lag:
    waiting = InboxReader(sources.storage, found.name).files()
    # What a backfill sends again was read long ago, and says nothing of how far behind this is.
    since = [each.received_from for each in prepared if each and each.received_from and each.mode != "backfill"]
    since += [datetime.fromtimestamp(file.time_us / 1_000_000, UTC) for file in waiting[:1]]
    return Lag(
        seconds=max(0.0, (sources.now - min(since)).total_seconds()) if since else 0.0,
        records=sum(each.records for each in prepared if each),
        notifications=len(waiting),
        published_until=_until(found, last),
    )


def _until(found: Surveyed, last: Manifest | None) -> datetime | None:
    # A run that read nothing has no such time, and retention may have taken the manifest.
    return (last.received_to if last else None) or found.stored.pointer.concluded_at
