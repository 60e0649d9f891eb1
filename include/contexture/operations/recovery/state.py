"""State made again from the topics: what the next runs compare the source with.

Nothing counts as deleted by it. It holds what is there, so that a run that reads the whole source finds what has
disappeared, under the guards of every run. What must be true before is checked, and refused by name with the next step.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice, product, takewhile
from typing import Any, Final
from uuid import uuid4

import pyarrow as pa

from contexture.errors import ConfigurationError, ContextureError
from contexture.events import ContextIdentity, identity_hash
from contexture.kafka.consumer_group import LEDGER_PREFIX
from contexture.operations.recovery.ownership import Gathered, LastRecords, may_share, owner_of, value_reader
from contexture.operations.verification.comparison import scratch_database
from contexture.operations.verification.contents import content_reader
from contexture.operations.verification.result import shown_name
from contexture.operations.verification.topics import ReplicaTopics, TopicSnapshot
from contexture.publications import NgsiPublication, Publication, SdmxPublication
from contexture.publications.checks.records import IDENTITY_FIELDS
from contexture.publications.delivery import KEY_IDENTITY, KEY_NONE, KEY_TOPIC
from contexture.publications.fields import is_wildcard
from contexture.records.topics import TopicNamer
from contexture.sending import LedgerEntry
from contexture.storage.folder import StoredFolder
from contexture.storage.home import ProgressCallback
from contexture.storage.publication_store import PublicationStore
from contexture.storage.replay import BACKFILL_HEADER
from contexture.storage.schemas import STATE
from contexture.storage.state import FORMAT, StatePointer
from contexture.storage.state_updates import advance

_ANY = r"(?!__).*"
_MADE = re.compile(r"\{[^{}]*\}")
# Any two of each differ in their first characters, so that names have in common only what the service gives them.
_PATHS, _NAMES = ("/", "/a", "/Zb"), ("a", "Zb")


def candidates(publication: Publication, names: Iterable[str]) -> list[str]:
    """Those of a cluster's topics that are named for certain, or that begin as names of the publication's service do.

    Where grouping rules or name mappings may name anything, that is every topic but Kafka's own.
    """
    pattern = re.compile(_pattern(publication))
    return sorted(name for name in names if pattern.fullmatch(name) and not name.startswith(LEDGER_PREFIX))


def _pattern(publication: Publication) -> str:
    if not isinstance(publication, NgsiPublication):
        return "|".join(map(_template, publication.topics.written_names))
    topics = publication.topics
    namer = TopicNamer(topics)
    if topics.naming == "fixed":
        return "|".join(map(re.escape, namer(ContextIdentity("", "/", "any", ""))))
    if namer.rewrites:
        return _ANY
    found = set(_samples(namer, publication.source.tenant))
    return re.escape(found.pop()) if len(found) == 1 else f"{re.escape(_common_beginning(found))}.*"


def _samples(namer: TopicNamer, service: str) -> Iterator[str]:
    for path, name, kind, attribute in product(_PATHS, _NAMES, _NAMES, _NAMES):
        try:
            yield namer.name(ContextIdentity(service, path, name, kind), attribute)
        except ContextureError:
            # Old releases name few paths; the others say enough.
            continue


def _template(name: str) -> str:
    return ".+".join(map(re.escape, _MADE.split(name)))


def _common_beginning(names: set[str]) -> str:
    # What the least and the greatest have in common, all between them have too.
    least, greatest = min(names, default=""), max(names, default="")
    same = takewhile(lambda pair: pair[0] == pair[1], zip(least, greatest, strict=False))
    return "".join(character for character, _ in same)


_BY_HAND = (
    "start a full run, then run `contexture verify {name}`: what it reports as extra is deleted only with its "
    "topic, by hand"
)


def check_rebuildable(publication: Publication) -> None:
    """Returns where a record shows its identity.

    Raises:
        ConfigurationError: it does not; says why, and what to do in place of it.
    """
    reason = _reason(publication)
    if reason is not None:
        raise ConfigurationError(
            f"state of publication {publication.name} cannot be made from its topics: {reason}",
            next_step=_BY_HAND.format(name=publication.name),
        )


def check_differences(publication: Publication) -> None:
    """Returns where the run that follows may send only what differs from the topics.

    Raises:
        ConfigurationError: it may not.
    """
    if publication.source.has_log:
        reason = "one transaction of a registry is never sent in parts: the next run is a full one"
    elif publication.source.mode == "notifications":
        reason = "it receives only notifications, and has to read the whole source once"
    elif content_reader(publication) is None:
        reason = f"values in format {publication.message.format} do not hold what was read"
    else:
        return
    raise ConfigurationError(
        f"the next run of {publication.name} cannot send only what differs from the topics: {reason}",
        next_step="leave --only-differences out",
    )


def check_settled(store: PublicationStore) -> None:
    """Returns where nothing is on its way into the topics.

    Raises:
        ConfigurationError: an outbox waits.
    """
    waiting = store.outboxes.pending()
    if waiting:
        raise ConfigurationError(
            f"outbox {waiting[0].outbox} of publication {store.name} is {waiting[0].status}: its records may not be "
            "in the topics yet",
            next_step=(
                f"start a run, which finishes it, or abandon it: contexture outbox abandon {waiting[0].outbox} "
                "--reason …"
            ),
        )


def nothing_sent(publication: str) -> ConfigurationError:
    """The error where the ledger holds nothing, so that no one knows which number comes next."""
    return ConfigurationError(
        f"the ledger of publication {publication} shows that nothing was ever sent",
        next_step="check that the connection leads to the cluster it was sent to; if the ledger is lost too, start a "
        f"full run, then run `contexture verify {publication}`, which lists extra records",
    )


def _reason(publication: Publication) -> str | None:
    message, topics = publication.message, publication.topics
    if not publication.source.has_content:
        return "its topics are a history of what Contexture did, and nothing in them is ever deleted"
    if message.encoder is not None:
        return f"its values are what the encoder {message.encoder} made (message.encoder), not what was read"
    if isinstance(publication, SdmxPublication) and publication.message.bundle == "transaction":
        return "a record holds the structures of a whole transaction, and has no key (message.bundle: transaction)"
    if message.key == KEY_NONE:
        return "its records have no keys (message.key: none), so that none of them could be deleted"
    if publication.joins_lines:
        return "a record holds the lines of several entities (cygnus-lines with a batch_size above 1)"
    if message.key == KEY_IDENTITY:
        return _unnamed(publication)
    if message.key != KEY_TOPIC and message.key not in IDENTITY_FIELDS:
        return f"its keys are values of the attribute {message.key}, which change while the entity stays"
    if topics.keep != "latest":
        return f"several entities may share a key (message.key: {message.key} with keep: history)"
    return _unread(publication)


def _unnamed(publication: Publication) -> str | None:
    """Returns why values do not show the type of an attribute, where name mappings name topics by it."""
    by_type = isinstance(publication, NgsiPublication) and publication.topics.enable_name_mappings
    if by_type and publication.splits_by_attribute and publication.message.format != "ngsiv2":
        return f"name mappings may name topics by an attribute's type, which {publication.message.format} does not hold"
    return None


def _unread(publication: Publication) -> str | None:
    """Where the key is a part of the identity, the value has to show the rest."""
    source = NgsiPublication.of(publication).source
    needs = f"its keys are only a part of the identity (message.key: {publication.message.key}), and"
    if publication.message.format != "ngsiv2" or publication.splits_by_attribute:
        return f"{needs} only whole entities in format ngsiv2 hold id and type"
    if source.api == "ngsiv2" and (len(source.service_path) != 1 or is_wildcard(source.service_path[0])):
        return f"{needs} there are several service paths, which no value holds"
    return None


UNKNOWN_HASH: Final = b"\1" * 32
"""The content hash of what no value shows: no content has it, so that it is sent when it is read again."""

_ROWS_AT_ONCE: Final = 50_000


def write_rows(folder: StoredFolder, found: Iterable[Gathered], sequence: int) -> None:
    """Writes what was found as changes of state, into a folder that is not there yet."""
    rows = (_row(each, sequence) for each in found)
    with folder.table_writer("rows.parquet", STATE) as writer:
        while some := list(islice(rows, _ROWS_AT_ONCE)):
            writer.write_table(pa.Table.from_pylist(some, schema=STATE))


def _row(each: Gathered, sequence: int) -> dict[str, Any]:
    return {
        "identity_hash": identity_hash(each.identity),
        "entity_hash": each.entity_hash,
        "identity": each.identity,
        "content_hash": each.content or UNKNOWN_HASH,
        "topics": each.topics,
        "key": each.key,
        # No one knows when it was changed: a record's time may be that of its arrival.
        "modified_at": None,
        "missing_since": None,
        "withheld": False,
        "sequence": sequence,
        "removed": False,
        "expires_at": None,
        "references": each.references or None,
        "is_final": None,
    }


_FULL_RUN_REASON: Final = "state was rebuilt from the topics"
_SHOWN: Final = 10
_REPORT_EVERY: Final = 100_000


@dataclass(frozen=True, slots=True)
class RebuiltState:
    """What state will hold that it does not hold yet.

    Attributes:
        publication: its name.
        topics: how many were read; `missing`: those of the named that are not there, or may not be seen.
        records: how many were read.
        held: identities that state holds already.
        found: identities that are in the topics and that state does not know; `with_content`: those of them whose
            content is known too.
        samples: the first of them, fit to be shown.
        left_alone: keys of which nothing is made, by reason.
        sequence: the number that state has then: the greatest that Kafka has seen, or state itself.
    """

    publication: str
    topics: int
    missing: tuple[str, ...]
    records: int
    held: int
    found: int
    with_content: int
    samples: tuple[str, ...]
    left_alone: dict[str, int]
    sequence: int


class Rebuilding:
    """Topics that were read, and the state that can be made of them.

    Args:
        store: of the publication.
        publication: whose state.
        gathering: what was read.
        last: the row of the ledger with the greatest sequence.
    """

    def __init__(
        self, store: PublicationStore, publication: Publication, gathering: LastRecords, last: LedgerEntry
    ) -> None:
        self._store = store
        self._state = store.state
        self._publication = publication
        self._gathering = gathering
        self._last = last
        self._pointer = self._state.pointer()
        # No number of its own: a number without an outbox is a run whose archive is lost.
        self.sequence = max(self._pointer.sequence, last.sequence)

    def found(self, cut: TopicSnapshot, records: int) -> RebuiltState:
        """What there is, in numbers."""
        count = with_content = 0
        samples: list[str] = []
        for each in self._gathering.identities():
            count, with_content = count + 1, with_content + (each.content is not None)
            if count <= _SHOWN:
                samples.append(shown_name(each.identity))
        return RebuiltState(
            publication=self._publication.name,
            topics=len({topic for topic, _ in cut.ends}),
            missing=cut.missing,
            records=records,
            held=self._gathering.known(),
            found=count,
            with_content=with_content,
            samples=tuple(samples),
            left_alone=self._gathering.count_unclaimed(),
            sequence=self.sequence,
        )

    def write(self, *, only_differences: bool = False) -> StatePointer:
        """Makes it the state. The next run reads the source whole.

        Args:
            only_differences: it sends only what differs; otherwise everything, as every first run does.

        Raises:
            ConfigurationError: differences cannot be found, or would not be sent.
            RetriableError: the storage failed; state is as it was.
        """
        if only_differences:
            check_differences(self._publication)
        self._check_unmoved()
        generation = self._pointer.generation + 1
        # A folder of its own: another rebuilding at the same time would take the rows away.
        folder = self._store.run(f"rebuild-{generation}-{uuid4().hex[:12]}").work
        try:
            write_rows(folder, self._gathering.identities(), self.sequence)
            written = advance(self._state, self._pointer, folder, self.sequence, suffix=f"-rebuilt-{generation}")
        finally:
            folder.remove()
        pointer = self._pointer.model_copy(
            update={
                "generation": generation,
                "sequence": self.sequence,
                "outbox": self._pointer.outbox or self._last.outbox,
                "files": written.files,
                "rows": written.rows,
                "identities": written.identities,
                # A broker is read whole then; a registry's log goes on where it was, for a full run reads all anyway.
                "watermark": self._pointer.watermark if self._publication.source.has_log else None,
                "full_run_due": self._pointer.full_run_due if only_differences else _FULL_RUN_REASON,
                "format": FORMAT,
            }
        )
        # Reading and writing took their time.
        self._check_unmoved()
        self._state.commit(pointer)
        return pointer

    def _check_unmoved(self) -> None:
        if self._state.pointer() != self._pointer:
            raise ConfigurationError(
                f"the state of {self._publication.name} has changed in the meantime: a run was concluded, or it was "
                "rebuilt",
                next_step="pause its DAG, wait until nothing of it runs, and rebuild again",
            )


@contextmanager
def rebuilding(
    store: PublicationStore,
    publication: Publication,
    topics: ReplicaTopics,
    names: Sequence[str],
    *,
    others: Sequence[Publication] = (),
    report: ProgressCallback = lambda sentence: None,
) -> Iterator[tuple[Rebuilding, RebuiltState]]:
    """Reads topics, and says what state they make; nothing is written until `Rebuilding.write`.

    Args:
        store, publication: whose state is lost, or holds less than the topics.
        topics: where they are read.
        names: of the topics that may hold its records.
        others: publications that may send to the same topics: what they may have sent is left alone.
        report: gets a sentence now and then.

    Raises:
        ConfigurationError: its records do not show their identities, an outbox waits, the ledger says that nothing was
            ever sent, or a topic may not be read.
        BrokersAwayError: the brokers are silent.
    """
    check_rebuildable(publication)
    check_settled(store)
    cut = topics.cut(names)
    last = max(cut.ledger.values(), key=lambda entry: entry.sequence, default=None)
    if last is None:
        raise nothing_sent(publication.name)
    with scratch_database("contexture-rebuild-") as database:
        alike = [owner_of(other) for other in others if may_share(publication, other)]
        gathering = LastRecords(database, owner_of(publication), alike, value_reader(publication))
        for piece in store.state.reader(store.state.pointer()).pieces(["identity_hash"]):
            gathering.add_known(piece.column("identity_hash").to_pylist())
        report(f"reading {len(cut.ends)} partitions of {len(names)} topics")
        made = Rebuilding(store, publication, gathering, last)
        records = _gather(gathering, publication, topics, cut, report)
        yield made, made.found(cut, records)


def _gather(
    gathering: LastRecords,
    publication: Publication,
    topics: ReplicaTopics,
    cut: TopicSnapshot,
    report: ProgressCallback,
) -> int:
    keeps_history = publication.topics.keep == "history"
    count = 0
    for record in topics.records(cut):
        count += 1
        if count % _REPORT_EVERY == 0:
            report(f"{count} records are read")
        # On a history a backfill's records are old values beside what is there.
        if not (keeps_history and any(name == BACKFILL_HEADER for name, _ in record.headers)):
            gathering.add(record)
    return count
