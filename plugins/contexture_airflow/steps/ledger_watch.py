"""Seeing that the ledger still says what was sent: without it, what is in Kafka would be sent again."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from contexture.errors import ContextureError
from contexture.kafka.errors import KafkaConfigurationError
from contexture.sending import LedgerEntry
from contexture.sending.resume import ExpectedRow, ledger_lost
from contexture.sending.target import Target
from contexture.storage.delivery import LedgerSeen, ShardBegun, committed_shards, ledger_seen, note_ledger, shard_begun
from contexture.storage.home import Storage
from contexture.storage.manifests import Manifest
from contexture.storage.publication_store import PublicationFolder

_LOG: Final = logging.getLogger(__name__)
_COMPACTED: Final = "compact"


def check_ledger(storage: Storage, publication: str, target: Target) -> None:
    """Sees that nothing of the ledger is lost or will be, before a run sends anything.

    Raises:
        LedgerLostError: the topic is not there, is another one, or holds no row of a shard that was sent.
        KafkaConfigurationError: its `cleanup.policy` removes rows.
    """
    seen = _seen_on(storage, publication, target)
    if seen is None:
        return
    # Before the ledger is read: a sender that is at work may commit meanwhile.
    committed = committed_shards(storage, publication, seen.topic_id)
    standing = target.ledger_standing()
    _check_topic(target, seen, standing.topic_id)
    missing = sorted(committed - standing.shards)
    if missing:
        which = f"shard {missing[0]}" if len(missing) == 1 else f"{len(missing)} shards, the first is {missing[0]}"
        raise ledger_lost(target.names(), f"holds nothing of {which} any more")
    _check_policy(target, standing.policy)


def expect_ledger(storage: Storage, manifest: Manifest, target: Target) -> None:
    """Before something is sent: the ledger is the known one; the first time, it is made and noted.

    That of backfills may be made again at any time: their shards are watched by their rows alone.

    Raises:
        LedgerLostError: the topic is not there, or is another one.
        KafkaConfigurationError: its `cleanup.policy` removes rows.
    """
    if manifest.interval is None:
        seen = _seen_on(storage, manifest.publication, target)
        if seen is not None:
            _check_topic(target, seen, target.ledger_id())
        else:
            _note_first(storage, manifest, target)
    _check_policy(target, target.ledger_policy())


@dataclass(slots=True)
class ShardRow:
    """What is known of the ledger's row of one shard, kept on storage from the shard's first commit on.

    Attributes:
        storage: the home.
        path: of the document.
        topic_id: of the ledger; empty for a backfill.
        begun: what the document says; None when there is none, or of another ledger.
    """

    storage: Storage
    path: str
    topic_id: str
    begun: ShardBegun | None = field(init=False)

    def __post_init__(self) -> None:
        found = shard_begun(self.storage, self.path)
        self.begun = found if found is not None and found.topic_id == self.topic_id else None

    @property
    def expected(self) -> ExpectedRow:
        """What a sender has to find."""
        if self.begun is None:
            return ExpectedRow.NONE
        return ExpectedRow.CERTAIN if self.begun.committed else ExpectedRow.POSSIBLE

    def begin(self) -> None:
        """Keeps that a sender begins: it may be killed between its first commit and the note of it."""
        if self.begun is None:
            self._note(ShardBegun(topic_id=self.topic_id))

    def noting(self, committed: Callable[[LedgerEntry], None]) -> Callable[[LedgerEntry], None]:
        """Also keeps the first commit; one that storage does not take is kept with the next."""

        def note(entry: LedgerEntry) -> None:
            if self.begun is None or not self.begun.committed:
                try:
                    self._note(ShardBegun(topic_id=self.topic_id, committed=True))
                except ContextureError as failure:
                    _LOG.warning("the first commit of a shard could not be kept on storage: %s", failure)
            committed(entry)

        return note

    def _note(self, begun: ShardBegun) -> None:
        self.storage.write(self.path, begun.to_json())
        self.begun = begun


def shard_row(storage: Storage, manifest: Manifest, shard: int) -> ShardRow:
    """What is known of a shard's row; call it after `expect_ledger`."""
    folder = PublicationFolder(manifest.publication)
    if manifest.interval is not None:
        return ShardRow(storage, folder.backfilled_shard_begun(manifest.outbox, shard), "")
    seen = ledger_seen(storage, manifest.publication)
    return ShardRow(storage, folder.shard_begun(shard), "" if seen is None else seen.topic_id)


def _note_first(storage: Storage, manifest: Manifest, target: Target) -> None:
    target.prepare_ledger(len(manifest.shards))
    topic_id = target.ledger_id()
    if topic_id is not None:
        note_ledger(storage, manifest.publication, LedgerSeen(cluster=target.cluster(), topic_id=topic_id))


def _seen_on(storage: Storage, publication: str, target: Target) -> LedgerSeen | None:
    """What is known of the ledger on this cluster: another one has a ledger of its own."""
    seen = ledger_seen(storage, publication)
    return seen if seen is not None and seen.cluster == target.cluster() else None


def _check_topic(target: Target, seen: LedgerSeen, topic_id: str | None) -> None:
    if topic_id is None:
        raise ledger_lost(target.names(), "is not there any more")
    if topic_id != seen.topic_id:
        raise ledger_lost(target.names(), "was removed and made again")


def _check_policy(target: Target, policy: str | None) -> None:
    if policy is None or policy == _COMPACTED:
        return
    topic = target.names().ledger_topic
    raise KafkaConfigurationError(
        f"the ledger {topic} has cleanup.policy={policy}: Kafka will remove rows that say what was sent, and it would "
        "be sent twice",
        next_step=f"kafka-configs --alter --entity-type topics --entity-name {topic} "
        f"--add-config cleanup.policy={_COMPACTED}, then clear the task: it says whether rows are lost",
        topic=topic,
    )
