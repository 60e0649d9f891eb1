"""Verifies the topics of one publication against its source: what the last record of each key should be, and is.

The source is walked with the guards of a run: it must be well before and after, and meet at least what it counts. What
differs is looked at once more, in the source by id and in the topics, so that a change meanwhile is no difference.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Final

import orjson

from contexture.errors import ConfigurationError, RetriableError
from contexture.kafka import ReplicaRecord
from contexture.ngsi.sighting import moment
from contexture.operations.scratch import scratch_database
from contexture.operations.verification.archive import Archive
from contexture.operations.verification.contents import place_of
from contexture.operations.verification.findings import SAMPLES, Kind, Sample, Verification, shown_name
from contexture.operations.verification.keyed import ELSEWHERE, MOVING, REMOVED, WITHHELD
from contexture.operations.verification.replica_topics import Cut, ReplicaTopics
from contexture.operations.verification.source_comparison import EXTRA, MISSING, SCATTERED, SourceComparison, Suspect
from contexture.operations.verification.source_view import Met, SourceView
from contexture.operations.verification.verifying import BACKFILLED, Report, basis_of
from contexture.outbox.replay import BACKFILL_HEADER
from contexture.outbox.state import State, StatePointer
from contexture.outbox.storage import Storage
from contexture.publications import Publication
from contexture.publications.delivery import KEY_IDENTITY

_REPORT_EVERY: Final = 100_000
_TRIES: Final = 3
_IDENTITY: Final = 4
"""Members of an entity's identity key; an attribute's has more."""
LOOKED_AT_AGAIN: Final = 10_000
"""How many keys that differ are looked at once more; their identities are in memory."""

CHANGED: Final = "changed while it was read: a second look found it equal, or changed again"
BEHIND: Final = "changed in the source after the last concluded run, which the next run publishes"
ABSENT: Final = "absent from the source in one run: its tombstone follows when a second run finds it absent"
HELD_BACK: Final = "quarantined: topics keep what they had of it"

_DETAILS: Final[Mapping[str, str]] = {
    MISSING: "the source holds it, and no record or a tombstone is the last of its key",
    SCATTERED: "its key has values in several partitions",
    "body": "the source holds another body",
    "headers": "its headers are not those of the source's content",
    "time": "its time is not the source's time of change",
}
_STRANGE: Final = "neither the source nor state has it: its tombstone is missing, or another writer made it"
_UNDELETED: Final = "the source no longer has it; state holds it until two runs have found it absent"


def check_answerable(publication: Publication) -> None:
    """Checks that a publication's topics can be compared with its source at all.

    Raises:
        ConfigurationError: they cannot, and why.
    """
    reason = _unanswerable(publication)
    if reason is not None:
        raise ConfigurationError(
            f"publication {publication.name} cannot be verified against its source: {reason}",
            next_step="verify it against what was sent (--against sent)",
            publication=publication.name,
        )


def is_answerable(publication: Publication) -> bool:
    """Returns whether a publication's topics can be compared with its source."""
    return _unanswerable(publication) is None


def _unanswerable(publication: Publication) -> str | None:
    if publication.source.kind == "operations":
        return "its source is Contexture itself, whose events happen once"
    if publication.source.kind == "sdmx":
        return "its source is a structure registry, and only context brokers can be compared"
    if basis_of(publication) == "records":
        return "its records have no key of their own, so nothing says which is the last one of an entity"
    if publication.source.mode == "notifications":
        return "it publishes what its source notifies, which may be a part of an entity"
    return None


def verify_against_source(
    storage: Storage,
    publication: Publication,
    topics: ReplicaTopics,
    source: SourceView,
    *,
    report: Report = lambda sentence: None,
    clock: Callable[[], datetime] = lambda: datetime.now(UTC),
) -> Verification:
    """Compares the last record of each key with what the source holds. Writes nothing, neither to Kafka nor to storage.

    Args:
        storage: the home, for what state knows of keys.
        publication: whose topics.
        topics: where they are read.
        source: what the publication selects of its source.
        report: gets a sentence now and then.
        clock: for tests.

    Raises:
        ConfigurationError: the publication cannot be compared with its source, nothing of it was published yet, or the
            source or the topics may not be read.
        RetriableError: the source was not read completely, so that there is no verdict; or the source, Kafka or the
            storage did not answer.
    """
    check_answerable(publication)
    return _SourceVerification(storage, publication, topics, source, report).run(clock())


class _SourceVerification:
    """One verification."""

    def __init__(
        self, storage: Storage, publication: Publication, topics: ReplicaTopics, source: SourceView, report: Report
    ) -> None:
        self._storage, self._publication, self._topics, self._source = storage, publication, topics, source
        self._report = report
        self._archive = Archive(storage, publication.name)
        self._keeps_history = publication.topics.keep == "history"
        self._backfilled = 0

    def run(self, now: datetime) -> Verification:
        started = time.monotonic()
        pointer = self._archive.pointer()
        if pointer.outbox is None:
            raise ConfigurationError(
                f"nothing of publication {self._publication.name} was published yet, so there is nothing to verify",
                next_step="let it run first",
            )
        with self._comparison() as compared:
            self._read_source(compared, pointer)
            compared.know(self._known(pointer))
            self._excuse(compared, pointer)
            cut = self._cut(compared.topics())
            records = compared.find(self._records(cut))
            if compared.has_extra():
                self._excuse_others(compared)
            unjudged, suspects, more = self._sort(compared.suspects(), pointer, cut)
            changed, left = self._look_again(compared, suspects, pointer)
            unjudged.update(changed)
            if self._backfilled:
                unjudged[BACKFILLED] = self._backfilled
            return Verification(
                publication=self._publication.name,
                verified_at=now,
                seconds=round(time.monotonic() - started, 3),
                against="source",
                basis="keys",
                generation=pointer.generation,
                sequence=pointer.sequence,
                outbox=pointer.outbox,
                ledger={shard: entry.sequence for shard, entry in sorted(cut.ledger.items())},
                topics=len({topic for topic, _ in cut.ends}) + len(cut.missing),
                partitions=len(cut.ends),
                missing_topics=cut.missing,
                held=compared.held(),
                records=records,
                compared=compared.compared(),
                unjudged=dict(unjudged),
                differences=_counts(left, more),
                samples=tuple(_samples(left)),
            )

    @contextmanager
    def _comparison(self) -> Iterator[SourceComparison]:
        with scratch_database("contexture-verify-") as database:
            yield SourceComparison(database, self._source)

    def _read_source(self, compared: SourceComparison, pointer: StatePointer) -> None:
        """Walks the source until a walk has met what the source counts; else there is no verdict."""
        for number in range(1, _TRIES + 1):
            before = self._source.health()
            if not sum(before.counts) and pointer.identities:
                raise self._no_verdict("the source counts nothing, and something was published")
            compared.expect(self._reported(self._source.walk()))
            after = self._source.health()
            pairs = zip(before.counts, after.counts, strict=True)
            # The greater count: a source whose database is away for a moment counts 0.
            short = [(walk, max(pair)) for walk, pair in enumerate(pairs) if compared.met(walk) < max(pair)]
            if not short:
                return
            walk, counted = short[0]
            said = f"walk {walk} of the source met {compared.met(walk)} of {counted}"
            self._report(f"{said}, try {number} of {_TRIES}")
        raise self._no_verdict(said)

    def _no_verdict(self, reason: str) -> RetriableError:
        return RetriableError(
            f"publication {self._publication.name} was not compared, because its source was not read completely: "
            f"{reason}",
            next_step="verify it again when the source is well, and when less is deleted there",
            publication=self._publication.name,
        )

    def _reported(self, walked: Iterator[Met]) -> Iterator[Met]:
        for number, met in enumerate(walked, start=1):
            if number % _REPORT_EVERY == 0:
                self._report(f"{number} of the source are read")
            yield met

    def _known(self, pointer: StatePointer) -> Iterator[tuple[str, bytes | None, bytes, bytes | None, bool]]:
        columns = ["identity", "topics", "key", "missing_since"]
        reader = State(self._storage, self._publication.name).reader(pointer)
        for piece in reader.pieces(columns):
            for name, topics, key, since in zip(*(piece.column(each).to_pylist() for each in columns), strict=True):
                entity = _entity_of(name)
                yield from ((topic, key, name, entity, since is not None) for topic in topics)

    def _excuse(self, compared: SourceComparison, pointer: StatePointer) -> None:
        compared.excuse(self._archive.withheld(pointer), WITHHELD)
        for each in self._archive.moving(pointer.sequence):
            compared.excuse(((topic, key) for topic, key, _ in self._archive.records(each)), MOVING)

    def _excuse_others(self, compared: SourceComparison) -> None:
        topics = set(compared.topics())
        for name in self._storage.folders(""):
            if name != self._publication.name:
                other = Archive(self._storage, name)
                held = other.held(other.pointer())
                compared.excuse(((each.topic, each.key) for each in held if each.topic in topics), ELSEWHERE)

    def _cut(self, topics: list[str]) -> Cut:
        cut = self._topics.cut(topics)
        self._report(f"reading {len(cut.ends)} partitions of {len(topics)} topics")
        return cut

    def _records(self, cut: Cut) -> Iterator[ReplicaRecord]:
        self._backfilled = 0
        for number, record in enumerate(self._topics.records(cut), start=1):
            if number % _REPORT_EVERY == 0:
                self._report(f"{number} records are read")
            # A backfill puts older values behind newer ones where a topic keeps both.
            if self._keeps_history and any(name == BACKFILL_HEADER for name, _ in record.headers):
                self._backfilled += 1
            else:
                yield record

    def _sort(
        self, suspects: Iterator[Suspect], pointer: StatePointer, cut: Cut
    ) -> tuple[Counter[str], list[Suspect], Counter[Kind]]:
        """Returns what cannot be judged, what differs, and how much more than can be looked at again does."""
        unjudged: Counter[str] = Counter()
        more: Counter[Kind] = Counter()
        left: list[Suspect] = []
        for suspect in suspects:
            reason = self._reason(suspect, pointer, cut)
            if reason is not None:
                unjudged[reason] += 1
            elif len(left) < LOOKED_AT_AGAIN:
                left.append(suspect)
            else:
                more[_kind(suspect)] += 1
        return unjudged, left, more

    def _reason(self, suspect: Suspect, pointer: StatePointer, cut: Cut) -> str | None:
        if suspect.excused is not None:
            return suspect.excused
        if suspect.held_back is not None:
            return HELD_BACK
        if suspect.verdict == EXTRA:
            return ABSENT if suspect.is_absent else None
        if suspect.verdict == MISSING and self._keeps_history and suspect.topic in cut.removed:
            return REMOVED
        return BEHIND if _is_later(suspect.modified_us, pointer.watermark) else None

    def _look_again(
        self, compared: SourceComparison, suspects: list[Suspect], pointer: StatePointer
    ) -> tuple[Counter[str], list[Suspect]]:
        """Looks at what differs once more, in the source by id and in the topics; returns what differs as before."""
        unjudged: Counter[str] = Counter()
        if not suspects:
            return unjudged, []
        self._report(f"looking again at {len(suspects)} keys")
        places = {suspect.place for suspect in suspects}
        entities = {suspect.place: self._entity(suspect) for suspect in suspects}
        left = []
        with self._comparison() as again:
            again.expect(self._source.again(sorted({each for each in entities.values() if each is not None})))
            # A source that answers nothing for a moment would make everything extra.
            self._source.health()
            again.know((each.topic, each.key, each.name, each.entity, each.is_absent) for each in suspects)
            latest = self._archive.pointer()
            self._excuse(again, latest)
            if any(each.verdict == EXTRA for each in suspects):
                self._excuse_others(again)
            cut = self._topics.cut({each.topic for each in suspects})
            again.find(self._records(cut), places)
            now = {each.place: each for each in again.suspects() if each.place in places}
            published = self._published_since(pointer, latest, places)
            for suspect in suspects:
                seen = now.get(suspect.place)
                was_asked = entities[suspect.place] is not None
                if seen is None or suspect.place in published or (was_asked and _moved(compared, again, suspect, seen)):
                    reason: str | None = CHANGED
                else:
                    reason = self._reason(seen, pointer, cut)
                if reason is None:
                    left.append(suspect)
                else:
                    unjudged[reason] += 1
        return unjudged, left

    def _entity(self, suspect: Suspect) -> bytes | None:
        """The entity that a key is about, if the source can be asked for it; keys of strangers may be anything."""
        entity = suspect.entity
        if entity is None and self._publication.message.key == KEY_IDENTITY and suspect.key is not None:
            entity = self._entity_of_key(suspect.key)
        return entity if entity is not None and self._source.can_ask(entity) else None

    def _entity_of_key(self, key: bytes) -> bytes | None:
        try:
            members = orjson.loads(key)
        except orjson.JSONDecodeError:
            return None
        is_ours = isinstance(members, list) and len(members) >= _IDENTITY and all(isinstance(m, str) for m in members)
        return orjson.dumps(members[:_IDENTITY]) if is_ours and members[0] == self._publication.source.service else None

    def _published_since(self, before: StatePointer, now: StatePointer, places: set[bytes]) -> set[bytes]:
        """The keys that a run has published which concluded meanwhile."""
        if now.generation == before.generation:
            return set()
        columns = ["topics", "key", "sequence"]
        found = set()
        for piece in State(self._storage, self._publication.name).reader(now).pieces(columns):
            for topics, key, sequence in zip(*(piece.column(each).to_pylist() for each in columns), strict=True):
                if sequence > before.sequence:
                    found |= {place_of(topic, key) for topic in topics}
        return found & places


def _moved(compared: SourceComparison, again: SourceComparison, suspect: Suspect, seen: Suspect) -> bool:
    """Whether the source holds something else than in the first look, or the key differs in another way."""
    return seen.verdict != suspect.verdict or compared.expects(suspect.place) != again.expects(suspect.place)


def _entity_of(name: bytes) -> bytes:
    """The identity key of an entity, from its own or from that of an attribute."""
    members = orjson.loads(name)
    return name if len(members) == _IDENTITY else orjson.dumps(members[:_IDENTITY])


def _is_later(modified_us: int | None, watermark: str | None) -> bool:
    known = moment(watermark)
    return known is not None and modified_us is not None and modified_us > known.timestamp() * 1_000_000


def _kind(suspect: Suspect) -> Kind:
    match suspect.verdict:
        case "missing":
            return "missing"
        case "extra":
            return "extra"
        case "scattered":
            return "order"
        case _:
            return "different"


def _counts(suspects: list[Suspect], more: Counter[Kind]) -> dict[Kind, int]:
    counted = Counter(map(_kind, suspects)) + more
    kinds: tuple[Kind, ...] = ("missing", "extra", "different", "order")
    return {kind: counted[kind] for kind in kinds}


def _samples(suspects: list[Suspect]) -> Iterator[Sample]:
    shown: Counter[Kind] = Counter()
    for suspect in suspects:
        kind = _kind(suspect)
        shown[kind] += 1
        if shown[kind] <= SAMPLES:
            strange = _STRANGE if suspect.entity is None else _UNDELETED
            detail = _DETAILS.get(suspect.verdict, strange)
            name = shown_name(suspect.name if suspect.name is not None else suspect.key)
            yield Sample(kind=kind, topic=suspect.topic, partition=suspect.partition, name=name, detail=detail)
