"""Sending the shards of an approved outbox."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pyarrow.parquet as pq

from contexture.errors import ConfigurationError, ContextureError, RejectedError, RetriableError
from contexture.kafka import FencedError, SequenceTakenError
from contexture.publications import Publication
from contexture.sending import ShardResult
from contexture.sending.target import Sending, Target
from contexture.storage.home import Storage
from contexture.storage.manifests import Manifest
from contexture.storage.orders import StageOrder
from contexture.storage.outbox_reader import OutboxShardReader
from contexture.storage.outboxes import Outboxes, Status
from contexture.storage.publication_store import PublicationFolder
from contexture.storage.state import State
from contexture_airflow.steps.attempting import ShardAttempts
from contexture_airflow.steps.ledger_watch import expect_ledger, shard_row
from contexture_airflow.steps.noting import NOWHERE, ShardNotes


def send_shard(
    storage: Storage,
    manifest: Manifest,
    shard: int,
    target: Target,
    attempts: ShardAttempts,
    notes: ShardNotes | None = None,
) -> ShardResult:
    """Sends what is not yet sent of one shard, by the attempts it has; of a concluded outbox that is nothing.

    Raises:
        ConfigurationError: the outbox is not approved, or tells changes to what another Kafka cluster holds.
        SendLaterError: the next attempt is due long from now.
        AttemptsUsedUpError: no attempt is left; the outbox stays as it is.
        ContextureError: as `contexture.sending.Publisher.publish`.
    """
    status, reader = _checked_status(storage, manifest), OutboxShardReader(storage, manifest, shard)
    if status == "concluded":
        # All of it was seen in Kafka then; a task that is cleared later needs no ledger for that, which may be lost.
        return ShardResult(shard, manifest.outbox, 0, reader.records, 0, 0, 0.0, superseded=False)
    attempts.wait_rest()
    notes = notes or ShardNotes(NOWHERE, manifest, shard)
    notes.began()
    _expect_ledger(storage, manifest, target, attempts, notes)
    row = shard_row(storage, manifest, shard)
    expected = row.expected
    row.begin()
    sending = Sending(
        reader,
        shards=len(manifest.shards),
        after_failure=attempts.after,
        committed=row.noting(notes.committed),
        skipped=notes.skipped,
        bytes=reader.bytes,
        row=expected,
    )
    with _noted_failure(attempts, notes):
        result = target.send(sending)
    attempts.sent()
    notes.ended(result)
    return result


def _expect_ledger(
    storage: Storage, manifest: Manifest, target: Target, attempts: ShardAttempts, notes: ShardNotes
) -> None:
    def check() -> None:
        check_cluster(storage, manifest, target)
        expect_ledger(storage, manifest, target)

    try:
        attempts.until_answered(check)
    except ContextureError as failure:
        notes.failed(failure)
        raise


def belongs_elsewhere(storage: Storage, manifest: Manifest, target: Target) -> bool:
    """Whether an outbox tells changes to what another Kafka cluster holds: a backfill does not go by what one holds."""
    if manifest.mode == "backfill":
        return False
    decided_for = staged_order(storage, manifest.publication, manifest.run).cluster
    known = decided_for or State(storage, manifest.publication).pointer().cluster
    return known is not None and known != target.cluster()


def check_cluster(storage: Storage, manifest: Manifest, target: Target) -> None:
    """Sees that an outbox goes where it was made for: on another cluster it would look complete and not be.

    Raises:
        ConfigurationError: the connection names another Kafka cluster now.
    """
    if belongs_elsewhere(storage, manifest, target):
        raise ConfigurationError(
            f"outbox {manifest.outbox} was made for another Kafka cluster than the connection names now, which may "
            "lack all that it does not tell",
            next_step="start a new run: it gives this outbox up and sends everything; or let the connection name that "
            "cluster again and clear the task",
            outbox=manifest.outbox,
        )


def _checked_status(storage: Storage, manifest: Manifest) -> Status:
    status = Outboxes(storage, manifest.publication).status(manifest.outbox).status
    if status not in {"approved", "concluded"}:
        raise ConfigurationError(
            f"outbox {manifest.outbox} is {status}, and only an approved one is sent",
            next_step="start a new run of the publication",
            outbox=manifest.outbox,
        )
    return status


@contextmanager
def _noted_failure(attempts: ShardAttempts, notes: ShardNotes) -> Iterator[None]:
    try:
        yield
    except (FencedError, SequenceTakenError):
        # Another sender is at it, and what is noted of the shard is its to note.
        raise
    except (ConfigurationError, RejectedError) as failure:
        attempts.stopped(failure)
        notes.failed(failure)
        raise
    except RetriableError as failure:
        notes.failed(failure)
        raise


def topic_counts(storage: Storage, manifest: Manifest) -> dict[str, int]:
    """The topics of an outbox with their numbers of records, ordered by name."""
    path = storage.path(PublicationFolder(manifest.publication).topics(manifest.outbox))
    table = pq.read_table(path, columns=["topic", "records"], filesystem=storage.filesystem, partitioning=None)
    return dict(sorted(zip(table.column("topic").to_pylist(), table.column("records").to_pylist(), strict=True)))


def staged_publication(storage: Storage, publication: str, run: str) -> Publication:
    """The publication as it was when the run was staged: what is sent belongs to that one."""
    return staged_order(storage, publication, run).publication


def staged_order(storage: Storage, publication: str, run: str) -> StageOrder:
    """What the run was asked to prepare."""
    return StageOrder.from_file(storage, PublicationFolder(publication).order(run))
