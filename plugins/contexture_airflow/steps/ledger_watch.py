"""Seeing that the ledger is the one that was written before: without it, what is in Kafka would be sent again."""

from __future__ import annotations

from contexture.kafka.errors import LedgerLostError
from contexture.outbox.ledger_seen import LedgerSeen, ledger_seen, note_ledger
from contexture.outbox.manifest import Manifest
from contexture.outbox.storage import Storage
from contexture_airflow.steps.target import Target


def check_ledger(storage: Storage, publication: str, target: Target) -> None:
    """Sees that nothing of the ledger is lost, before a run begins.

    Raises:
        LedgerLostError: the topic is not there, is another one, or holds nothing any more.
    """
    seen = _seen_on(storage, publication, target)
    if seen is None:
        return
    standing = target.ledger_standing()
    _check_topic(publication, seen, standing.topic_id)
    if seen.written and not standing.rows:
        raise _lost(publication, "holds nothing any more")


def expect_ledger(storage: Storage, manifest: Manifest, target: Target) -> None:
    """Before something is sent: the ledger is the known one; the first time, it is made and noted.

    Backfills have a ledger of their own, which is not watched.

    Raises:
        LedgerLostError: the topic is not there, or is another one.
    """
    if manifest.interval is not None:
        return
    seen = _seen_on(storage, manifest.publication, target)
    if seen is not None:
        _check_topic(manifest.publication, seen, target.ledger_id())
        return
    target.prepare_ledger(len(manifest.shards))
    topic_id = target.ledger_id()
    if topic_id is not None:
        note_ledger(storage, manifest.publication, LedgerSeen(cluster=target.cluster(), topic_id=topic_id))


def ledger_was_written(storage: Storage, manifest: Manifest) -> None:
    """After a shard was sent whole: from now on an empty ledger is a lost one."""
    if manifest.interval is not None:
        return
    seen = ledger_seen(storage, manifest.publication)
    if seen is not None and not seen.written:
        note_ledger(storage, manifest.publication, seen.model_copy(update={"written": True}))


def _seen_on(storage: Storage, publication: str, target: Target) -> LedgerSeen | None:
    """What is known of the ledger on this cluster: another one has a ledger of its own."""
    seen = ledger_seen(storage, publication)
    return seen if seen is not None and seen.cluster == target.cluster() else None


def _check_topic(publication: str, seen: LedgerSeen, topic_id: str | None) -> None:
    if topic_id is None:
        raise _lost(publication, "is not there any more")
    if topic_id != seen.topic_id:
        raise _lost(publication, "was removed and made again")


def _lost(publication: str, how: str) -> LedgerLostError:
    return LedgerLostError(
        f"the ledger contexture.ledger.{publication}, which says what was sent, {how}: sending now would send records "
        "twice",
        next_step=f"see what `contexture ledger rebuild {publication} --dry-run` finds in the topics, then run it "
        "without --dry-run and clear the task",
        publication=publication,
    )
