"""Verifies the topics of one publication against its source: what the last record of each key should be, and is.

The source is walked with the guards of a run: it must be well before and after, and meet at least what it counts. What
differs is looked at once more, in the source by id and in the topics, so that a change meanwhile is no difference.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from datetime import UTC, datetime
from typing import Final

from contexture.errors import DefectError, RetriableError
from contexture.operations.verification.broker_view import open_broker_view
from contexture.operations.verification.comparison import (
    BASELINE,
    ELSEWHERE,
    MOVING,
    REMOVED,
    WITHHELD,
    ComparisonResult,
    scratch_database,
)
from contexture.operations.verification.registry_view import open_registry_view
from contexture.operations.verification.result import Against, Kind, VerificationResult
from contexture.operations.verification.source_comparison import (
    ABSENT,
    BEHIND,
    CHANGED,
    EXTRA,
    MISSING,
    QUARANTINED,
    SourceComparison,
    Suspect,
    count_kinds,
    kind_of,
    known_keys,
    published_since,
    sample_suspects,
)
from contexture.operations.verification.source_view import Met, SourceView, check_answerable
from contexture.operations.verification.topics import ReplicaTopics, TopicSnapshot
from contexture.operations.verification.verify import REPORT_EVERY, TopicVerification
from contexture.publications import NgsiPublication, Publication, SdmxPublication
from contexture.sources.http.connection import BrokerConnection
from contexture.sources.sdmx.registry import RegistryConnection
from contexture.storage.home import ProgressCallback
from contexture.storage.publication_store import PublicationStore
from contexture.storage.state import StatePointer


def open_source_view(
    publication: Publication, connection: BrokerConnection | RegistryConnection
) -> AbstractContextManager[SourceView]:
    """Returns what opens the source of a publication, and closes it.

    Raises:
        ConfigurationError: the publication cannot be compared with its source.
    """
    check_answerable(publication)
    if isinstance(publication, SdmxPublication) and isinstance(connection, RegistryConnection):
        return open_registry_view(publication, connection)
    if isinstance(publication, NgsiPublication) and isinstance(connection, BrokerConnection):
        return open_broker_view(publication, connection)
    raise DefectError("the connection is not of the source's kind", next_step="report this")


_TRIES: Final = 3
LOOKED_AT_AGAIN: Final = 10_000
"""How many keys that differ are looked at once more; their identities are in memory."""


def verify_against_source(
    store: PublicationStore,
    publication: Publication,
    topics: ReplicaTopics,
    source: SourceView,
    *,
    report: ProgressCallback = lambda sentence: None,
    clock: Callable[[], datetime] = lambda: datetime.now(UTC),
) -> VerificationResult:
    """Compares the last record of each key with what the source holds. Writes nothing, neither to Kafka nor to storage.

    Raises:
        ConfigurationError: the publication cannot be compared with its source, nothing of it was published yet, or the
            source or the topics may not be read.
        RetriableError: the source was not read completely, so that there is no verdict; or the source, Kafka or the
            storage did not answer.
    """
    check_answerable(publication)
    return _SourceVerification(store, publication, topics, source, report).run(clock())


class _SourceVerification(TopicVerification):
    against: Against = "source"

    def __init__(
        self,
        store: PublicationStore,
        publication: Publication,
        topics: ReplicaTopics,
        source: SourceView,
        report: ProgressCallback,
    ) -> None:
        super().__init__(store, publication, topics, report)
        self._source = source

    def run(self, now: datetime) -> VerificationResult:
        started = time.monotonic()
        self._published()
        with self._comparison() as compared:
            # Before the walk: its files are there until the second next run concludes, and a walk may take an hour.
            pointer = self._read_state(lambda pointer: self._know(compared, pointer))
            self._read_source(compared, pointer)
            self._excuse_moving(compared, pointer)
            cut = self._cut(compared.topics())
            records = compared.find(self._read(cut))
            if compared.has_extra():
                compared.excuse(self._held_elsewhere(compared.topics()), ELSEWHERE)
            unjudged, suspects, more = self._sort(compared.suspects(), pointer, cut)
            changed, left = self._look_again(compared, suspects, pointer)
            unjudged.update(changed)
            self._records = records
            outcome = ComparisonResult(
                compared.held(),
                compared.compared(),
                dict(unjudged),
                count_kinds(left, more),
                tuple(sample_suspects(left)),
            )
            return self._result(pointer, cut, outcome, now=now, started=started)

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
            said = f"walk {walk} of the source read {compared.met(walk)} of {counted}"
            self._report(f"{said}, attempt {number} of {_TRIES}")
        raise self._no_verdict(said)

    def _no_verdict(self, reason: str) -> RetriableError:
        return RetriableError(
            f"publication {self._publication.name} was not compared, because its source was not read completely: "
            f"{reason}",
            next_step="verify it again when the source responds completely, and when fewer entities are deleted there",
            publication=self._publication.name,
        )

    def _reported(self, walked: Iterator[Met]) -> Iterator[Met]:
        for number, met in enumerate(walked, start=1):
            if number % REPORT_EVERY == 0:
                self._report(f"{number} of the source are read")
            yield met

    def _know(self, compared: SourceComparison, pointer: StatePointer) -> None:
        compared.know(known_keys(self._store.state, pointer, self._source))
        self._excuse_by_state(compared, pointer)

    def _read_state(self, read: Callable[[StatePointer], object]) -> StatePointer:
        """Reads the newest state, and returns its pointer; a run that concludes meanwhile makes it read again."""
        for number in range(1, _TRIES + 1):
            pointer = self._archive.pointer()
            try:
                read(pointer)
            except (FileNotFoundError, RetriableError):
                if number == _TRIES or self._archive.pointer().generation == pointer.generation:
                    raise
            else:
                return pointer
        raise DefectError("a loop that returns or raises has ended", next_step="report this")

    def _excuse_by_state(self, compared: SourceComparison, pointer: StatePointer) -> None:
        baselines = {each.sequence for each in self._archive.concluded(pointer.sequence) if each.manifest.baseline}
        if baselines:
            noted = (each for each in self._archive.held(pointer) if each.sequence in baselines)
            compared.excuse(((each.topic, each.key) for each in noted), BASELINE)
        compared.excuse(self._archive.withheld(pointer), WITHHELD)

    def _excuse_moving(self, compared: SourceComparison, pointer: StatePointer) -> None:
        for each in self._archive.moving(pointer.sequence):
            compared.excuse(((topic, key) for topic, key, _ in self._archive.records(each)), MOVING)

    def _sort(
        self, suspects: Iterator[Suspect], pointer: StatePointer, cut: TopicSnapshot
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
                more[kind_of(suspect)] += 1
        return unjudged, left, more

    def _reason(self, suspect: Suspect, pointer: StatePointer, cut: TopicSnapshot) -> str | None:
        if suspect.excused is not None and (suspect.excused != BASELINE or suspect.verdict == MISSING):
            return suspect.excused
        if suspect.quarantined_by is not None:
            return QUARANTINED
        if suspect.verdict == EXTRA and suspect.is_absent:
            return ABSENT
        if suspect.verdict == MISSING and self._keeps_history and suspect.topic in cut.removed:
            return REMOVED
        return BEHIND if self._source.is_behind(suspect.entity, suspect.modified_us, pointer.watermark) else None

    def _look_again(
        self, compared: SourceComparison, suspects: list[Suspect], pointer: StatePointer
    ) -> tuple[Counter[str], list[Suspect]]:
        """Looks at what differs once more, in the source by id and in the topics; returns what differs as before."""
        unjudged: Counter[str] = Counter()
        if not suspects:
            return unjudged, []
        self._report(f"comparing again {len(suspects)} keys")
        places = {suspect.place for suspect in suspects}
        entities = {suspect.place: self._entity(suspect) for suspect in suspects}
        left = []
        with self._comparison() as again:
            again.expect(self._source.again(sorted({each for each in entities.values() if each is not None})))
            # A source that answers nothing for a moment would make everything extra.
            self._source.health()
            again.know((each.topic, each.key, each.name, each.entity, each.is_absent) for each in suspects)
            latest = self._read_state(lambda latest: self._excuse_by_state(again, latest))
            self._excuse_moving(again, latest)
            if any(each.verdict == EXTRA for each in suspects):
                again.excuse(self._held_elsewhere(again.topics()), ELSEWHERE)
            cut = self._topics.cut({each.topic for each in suspects})
            again.find(self._read(cut), places)
            now = {each.place: each for each in again.suspects() if each.place in places}
            published: set[bytes] = set()
            self._read_state(lambda now: published.update(published_since(self._store.state, pointer, now)))
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
        """The entity that a key is about, if the source can be asked for it; keys of other writers may be anything."""
        entity = suspect.entity
        if entity is None and suspect.key is not None:
            entity = self._source.entity_of_key(suspect.key)
        return entity if entity is not None and self._source.can_ask(entity) else None


def _moved(compared: SourceComparison, again: SourceComparison, suspect: Suspect, seen: Suspect) -> bool:
    """Whether the source holds something else than in the first look, or the key differs in another way."""
    return seen.verdict != suspect.verdict or compared.expects(suspect.place) != again.expects(suspect.place)
