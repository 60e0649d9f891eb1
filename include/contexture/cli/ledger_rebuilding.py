"""Rebuilding the lost ledger of a publication: what it will say, and writing that."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from contexture.cli import home
from contexture.cli.kafka_connections import settings_of
from contexture.cli.named_publication import named_publication
from contexture.errors import ConfigurationError
from contexture.kafka.broker_wait import Patience
from contexture.publications import Publication
from contexture.sending import Ledger, SenderNames
from contexture.sending.ledger_rebuild import RebuiltShard, planned_rebuild, write_rows
from contexture.storage.delivery import LedgerSeen, committed_shards, ledger_seen, note_ledger, note_rows
from contexture.storage.home import Storage

_WAIT_SECONDS = 60.0
_HALF = "being rebuilt"


@dataclass(frozen=True, slots=True)
class LostLedger:
    """A ledger that is to be rebuilt.

    Attributes:
        publication: whose.
        storage: the home.
        how: in which way it is lost.
        shards: what it will say.
    """

    publication: Publication
    storage: Storage
    how: str
    shards: tuple[RebuiltShard, ...]

    @property
    def topic(self) -> str:
        """Its name in Kafka."""
        return _names(self.publication).ledger_topic


def lost_ledger(name: str, progress: Callable[[str], None], *, assume_sent: bool) -> LostLedger:
    """Looks at a publication's ledger, and finds what it should say.

    Raises:
        ConfigurationError: no such publication or connection, or the ledger is not lost.
        BrokersAwayError: the brokers are silent.
    """
    publication, storage = named_publication(name, None), home.open_home()
    settings = settings_of(publication.publish.connection)
    how = _how_lost(_ledger(publication, progress), storage, name)
    return LostLedger(publication, storage, how, planned_rebuild(settings, storage, name, assume_sent=assume_sent))


def rebuild(lost: LostLedger, progress: Callable[[str], None]) -> None:
    """Writes it, and notes that it is the publication's ledger from now on."""
    publication, ledger = lost.publication, _ledger(lost.publication, progress)
    rows = {each.shard: each.entry for each in lost.shards if each.entry is not None}
    settings, patience = settings_of(publication.publish.connection), Patience(_WAIT_SECONDS, progress)
    seen = ledger_seen(lost.storage, publication.name)
    if seen is not None:
        # Until every row is there it stays lost, for runs and for this command: a shard without one would be sent anew.
        note_ledger(lost.storage, publication.name, seen.model_copy(update={"topic_id": _HALF}))
    write_rows(settings, _names(publication), ledger, rows, shards=len(lost.shards), patience=patience)
    topic_id = ledger.topic_id()
    if seen is not None and topic_id is not None:
        note_rows(lost.storage, publication.name, topic_id, rows)
        note_ledger(lost.storage, publication.name, LedgerSeen(cluster=seen.cluster, topic_id=topic_id))


def _how_lost(ledger: Ledger, storage: Storage, publication: str) -> str:
    seen = ledger_seen(storage, publication)
    committed = frozenset[int]() if seen is None else committed_shards(storage, publication, seen.topic_id)
    standing = ledger.standing()
    if standing.topic_id is None:
        return "is not there"
    if seen is not None and seen.topic_id != standing.topic_id:
        return "was removed and made again"
    if not standing.shards:
        return "holds nothing"
    missing = committed - standing.shards
    if missing:
        return f"holds nothing of shards {', '.join(map(str, sorted(missing)))}"
    raise ConfigurationError(
        f"the ledger {ledger.topic} is not lost: it says how far {len(standing.shards)} shards got",
        next_step="nothing: runs go on by it",
    )


def _names(publication: Publication) -> SenderNames:
    return SenderNames(publication.name, publication.publish.transactional_id_prefix)


def _ledger(publication: Publication, progress: Callable[[str], None]) -> Ledger:
    patience = Patience(_WAIT_SECONDS, progress)
    return Ledger(settings_of(publication.publish.connection), _names(publication), patience=patience)
