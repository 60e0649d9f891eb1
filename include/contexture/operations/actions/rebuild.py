"""Rebuilding what was lost: a ledger, the state, or the operational tables of publications."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime

from contexture.errors import ConfigurationError
from contexture.kafka import TopicFilter
from contexture.kafka.admin import TopicAdmin
from contexture.kafka.broker_wait import BrokerWait
from contexture.monitoring import RunTables
from contexture.monitoring.rows import TransactionRow, TransactionStatus
from contexture.operations import environment
from contexture.operations.actions.connection_check import settings_of
from contexture.operations.environment import FOLDER_VARIABLE, named_publication, publications_folder
from contexture.operations.recovery.state import (
    Rebuilding,
    RebuiltState,
    candidates,
    check_differences,
    check_rebuildable,
    rebuilding,
)
from contexture.operations.verification.topics import KafkaTopics
from contexture.publications import Publication, discover, load_publications
from contexture.sending import Ledger, LedgerEntry, SenderNames
from contexture.sending.ledger import ledger_history
from contexture.sending.ledger_rebuild import RebuiltShard, planned_rebuild, write_rows
from contexture.storage.delivery import KnownLedger
from contexture.storage.home import ProgressCallback
from contexture.storage.manifests import ShardManifest
from contexture.storage.publication_store import PublicationStore

_WAIT_SECONDS = 60.0
_HALF = "being rebuilt"


@dataclass(frozen=True, slots=True)
class LedgerRebuildPlan:
    """A ledger that is to be rebuilt.

    Attributes:
        publication: whose.
        store: of the publication.
        how: in which way it is lost.
        shards: what it will say.
    """

    publication: Publication
    store: PublicationStore
    how: str
    shards: tuple[RebuiltShard, ...]

    @property
    def topic(self) -> str:
        return _names(self.publication).ledger_topic


def plan_ledger_rebuild(name: str, progress: ProgressCallback, *, assume_sent: bool) -> LedgerRebuildPlan:
    """Looks at a publication's ledger, and finds what it should say.

    Raises:
        ConfigurationError: no such publication or connection, or the ledger is not lost.
        BrokersAwayError: the brokers are silent.
    """
    publication, store = named_publication(name, None), environment.open_home().publication(name)
    settings = settings_of(publication.publish.connection)
    how = _how_lost(_ledger(publication, progress), store)
    return LedgerRebuildPlan(publication, store, how, planned_rebuild(settings, store, assume_sent=assume_sent))


def rebuild_ledger(lost: LedgerRebuildPlan, progress: ProgressCallback) -> None:
    """Writes it, and notes that it is the publication's ledger from now on."""
    publication, ledger = lost.publication, _ledger(lost.publication, progress)
    rows = {each.shard: each.entry for each in lost.shards if each.entry is not None}
    settings, broker_wait = settings_of(publication.publish.connection), BrokerWait(_WAIT_SECONDS, progress)
    known = lost.store.ledger
    seen = known.known()
    if seen is not None:
        # Until every row is there it stays lost, for runs and for this command: a shard without one would be sent anew.
        known.write_known(seen.model_copy(update={"topic_id": _HALF}))
    write_rows(settings, _names(publication), ledger, rows, shards=len(lost.shards), broker_wait=broker_wait)
    topic_id = ledger.topic_id()
    if seen is not None and topic_id is not None:
        known.write_rows(topic_id, rows)
        known.write_known(KnownLedger(cluster=seen.cluster, topic_id=topic_id))


def _how_lost(ledger: Ledger, store: PublicationStore) -> str:
    seen = store.ledger.known()
    committed = frozenset[int]() if seen is None else store.ledger.committed_shards(seen.topic_id)
    status = ledger.status()
    if status.topic_id is None:
        return "does not exist"
    if seen is not None and seen.topic_id != status.topic_id:
        return "was deleted and created again"
    if not status.shards:
        return "holds nothing"
    missing = committed - status.shards
    if missing:
        return f"holds nothing of shards {', '.join(map(str, sorted(missing)))}"
    raise ConfigurationError(
        f"the ledger {ledger.topic} is not lost: it records how far {len(status.shards)} shards got",
        next_step="do nothing: runs continue with it",
    )


def _names(publication: Publication) -> SenderNames:
    return SenderNames(publication.name, publication.publish.transactional_id_prefix)


def _ledger(publication: Publication, progress: ProgressCallback) -> Ledger:
    broker_wait = BrokerWait(_WAIT_SECONDS, progress)
    return Ledger(settings_of(publication.publish.connection), _names(publication), broker_wait=broker_wait)


@contextmanager
def opened(
    name: str, pattern: str | None, *, only_differences: bool, report: ProgressCallback
) -> Iterator[tuple[Rebuilding, RebuiltState]]:
    """The topics of a publication, read, and the state that can be made of them; raises as `rebuilding`.

    Args:
        name: of the publication.
        pattern: of the topics to read; None for those that may hold its records.
        only_differences: the run that follows is to send only what differs.
        report: receives sentences about the progress.

    Raises:
        ConfigurationError: there is no such publication or connection, or its state can't be made from topics.
    """
    known = {publication.name: publication for publication in load_publications(publications_folder())}
    if name not in known:
        raise ConfigurationError(
            f"there is no publication {name}",
            next_step=f"choose among: {', '.join(sorted(known))}, or set {FOLDER_VARIABLE} as Airflow has it",
        )
    publication = known[name]
    check_rebuildable(publication)
    if only_differences:
        check_differences(publication)
    settings = settings_of(publication.publish.connection)
    listed = TopicAdmin(settings, BrokerWait(_WAIT_SECONDS)).listed()
    names = TopicFilter(pattern).chosen(listed) if pattern else candidates(publication, listed)
    topics, others = KafkaTopics(settings, publication), [each for each in known.values() if each.name != name]
    store = environment.open_home().publication(name)
    with rebuilding(store, publication, topics, names, others=others, report=report) as made:
        yield made


_CLAIM = -1

Shard = tuple[str, int]
"""An outbox and its shard."""


@dataclass(frozen=True, slots=True)
class Rebuilt:
    """What is in the tables again.

    Attributes:
        sent: transactions that the ledger has.
        pending: transactions of approved outboxes that are still to be sent, as far as is known.
        attempts: shards of which a send has failed.
    """

    publication: str
    sent: int
    pending: int
    attempts: int


def rebuild_tables(tables: RunTables, store: PublicationStore, ledger: Iterable[tuple[int, LedgerEntry]]) -> Rebuilt:
    """Writes what ledger and storage hold of a publication into the tables; a second time changes nothing.

    Rows that are there already and that neither holds stay. Runs are not restored: Airflow has them, and neither
    ledger nor storage keep what they were called.

    `ledger`: shards and rows, those of a shard in order.

    Raises:
        RetriableError: the database or the storage did not answer.
    """
    pending = _begun(tables, store)
    last: dict[Shard, LedgerEntry] = {}
    sent = 0
    for shard, entry in ledger:
        if entry.transaction == _CLAIM:
            continue
        tables.set_transaction(_sent(store.name, shard, entry), dead_letters=len(entry.dead_letters))
        last[entry.outbox, shard] = entry
        sent += 1
    left = sum(_left(tables, store.name, place, part, last.get(place)) for place, part in pending.items())
    return Rebuilt(store.name, sent, left, _attempts(tables, store))


def _begun(tables: RunTables, store: PublicationStore) -> dict[Shard, ShardManifest]:
    """The shards of approved outboxes; all that they hold of a registry is pending for now."""
    found: dict[Shard, ShardManifest] = {}
    for status in store.outboxes.pending():
        if status.status == "approved":
            parts = {(status.outbox, each.shard): each for each in store.outboxes.manifest(status.outbox).shards}
            found |= {place: part for place, part in parts.items() if part.records}
    for (outbox, shard), part in found.items():
        if part.registry:
            tables.set_shard_pending(store.name, outbox, shard, part.registry)
    return found


def _left(tables: RunTables, publication: str, place: Shard, part: ShardManifest, last: LedgerEntry | None) -> int:
    """How many transactions of a shard are still to be sent, as far as is known; the next one is noted."""
    done = last.transaction + 1 if last else 0
    if part.registry:
        return max(0, len(part.registry) - done)
    if last is not None and last.position >= part.records:
        return 0
    outbox, shard = place
    now = datetime.now(UTC)
    row = TransactionRow(publication, outbox, shard, done, TransactionStatus.PENDING, 0, 0, 0, None, None, now)
    tables.set_transaction(row)
    return 1


def _sent(publication: str, shard: int, entry: LedgerEntry) -> TransactionRow:
    return TransactionRow(
        publication=publication,
        outbox=entry.outbox,
        shard=shard,
        number=entry.transaction,
        status=TransactionStatus.SENT,
        records=entry.records,
        bytes=entry.bytes,
        position=entry.position,
        source_transaction=entry.source_transaction,
        message=None,
        updated_at=entry.at,
        source_deletions=entry.source_deletions,
    )


def _attempts(tables: RunTables, store: PublicationStore) -> int:
    found = [send for outbox in store.outboxes.names() for send in store.attempts.of_outbox(outbox)]
    for send in found:
        tables.set_attempt(store.name, send)
    return len(found)


def rebuilt(names: Sequence[str]) -> Iterator[Rebuilt]:
    """Rebuilds the rows of each of the publications; of all that have a good file when none is named.

    Raises:
        ConfigurationError: there is no such publication, connection or database.
        RetriableError: brokers, database or storage did not answer.
    """
    home = environment.open_home()
    tables = RunTables.of_home(home.root)
    if tables is None:
        raise ConfigurationError(
            "there are no operational tables", next_step="set CONTEXTURE_DATABASE to the URL of a database"
        )
    for publication in _chosen(names):
        history = ledger_history(settings_of(publication.publish.connection), publication.name)
        yield rebuild_tables(tables, home.publication(publication.name), history)
    tables.close()


def _chosen(names: Sequence[str]) -> list[Publication]:
    folder = publications_folder()
    known = {each.publication.name: each.publication for each in discover(folder) if each.publication is not None}
    if missing := [name for name in names if name not in known]:
        raise ConfigurationError(
            f"there is no valid publication file for {', '.join(missing)}",
            next_step=f"name some of {', '.join(sorted(known))}" if known else f"check the files in {folder}",
        )
    return [known[name] for name in names or sorted(known)]
