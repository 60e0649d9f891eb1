"""The last record of each key against what the source holds.

Both sides lie in one SQLite database of a temporary file, hashes instead of bodies: memory grows with neither.
"""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Final, NamedTuple

from contexture.kafka import TopicRecord
from contexture.operations.verification.contents import place_of
from contexture.operations.verification.result import SAMPLES, DifferenceSample, Kind, shown_name
from contexture.operations.verification.source_view import ExpectedRecord, Met, QuarantinedEntity, SourceView
from contexture.storage.state import State, StatePointer

_SCHEMA: Final = """
CREATE TABLE met (walk INT, entity BLOB, PRIMARY KEY (walk, entity)) WITHOUT ROWID;
CREATE TABLE entities (entity BLOB PRIMARY KEY, modified INT, rule TEXT) WITHOUT ROWID;
CREATE TABLE expected (place BLOB PRIMARY KEY, topic TEXT, key BLOB, name BLOB, entity BLOB, content BLOB, event BLOB,
    modified INT, shared INT) WITHOUT ROWID;
CREATE INDEX expected_by_entity ON expected (entity);
CREATE TABLE found (place BLOB, partition INT, topic TEXT, key BLOB, live INT, verdict TEXT,
    PRIMARY KEY (place, partition)) WITHOUT ROWID;
CREATE TABLE known (place BLOB PRIMARY KEY, topic TEXT, name BLOB, entity BLOB, absent INT) WITHOUT ROWID;
CREATE TABLE excused (place BLOB PRIMARY KEY, reason TEXT) WITHOUT ROWID;
CREATE VIEW live AS SELECT place, COUNT(*) AS partitions, MIN(partition) AS partition, MAX(topic) AS topic,
    MAX(key) AS key, MAX(verdict) AS verdict FROM found WHERE live GROUP BY place;
"""
_NEWER: Final = "COALESCE(excluded.modified, -1) >= COALESCE(modified, -1)"
_MEET: Final = f"""
INSERT INTO entities VALUES (?, ?, ?) ON CONFLICT (entity) DO UPDATE SET
    rule = CASE WHEN {_NEWER} THEN excluded.rule ELSE rule END,
    modified = MAX(COALESCE(excluded.modified, -1), COALESCE(modified, -1))
"""  # noqa: S608 - constants
# What another identity has under the same key cannot be distinguished from it by the key.
_EXPECT: Final = f"""
INSERT INTO expected VALUES (?, ?, ?, ?, ?, ?, ?, ?, 0) ON CONFLICT (place) DO UPDATE SET
    shared = shared OR name != excluded.name,
    content = CASE WHEN {_NEWER} THEN excluded.content ELSE content END,
    event = CASE WHEN {_NEWER} THEN excluded.event ELSE event END,
    modified = MAX(COALESCE(excluded.modified, -1), COALESCE(modified, -1))
"""  # noqa: S608 - constants
_FIND: Final = """
INSERT INTO found VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT (place, partition) DO UPDATE SET
    live = excluded.live, verdict = excluded.verdict
"""
EQUAL: Final = "equal"
SHARED: Final = "shared"
SCATTERED: Final = "scattered"
MISSING: Final = "missing"
EXTRA: Final = "extra"


class Suspect(NamedTuple):
    """A key whose last record is not what the source holds, as one look shows it.

    Attributes:
        place: represents topic and key.
        verdict: `missing`, `extra`, `scattered` (values in several partitions), or what differs: `body`, `headers`,
            `time`.
        topic, partition, key: of the record; partition None where there is none.
        name: identity key of what the record is about; the key where nothing says more.
        entity: the identity key that the source can be asked by; None where nothing says it.
        modified_us: when the source says that it was changed; None where it does not say, or no longer has it.
        quarantined_by: the rule that quarantines the entity now.
        is_absent: the last run has found it absent from the source.
        excused: why nothing can be said of its key.
    """

    place: bytes
    verdict: str
    topic: str
    partition: int | None
    key: bytes | None
    name: bytes
    entity: bytes | None
    modified_us: int | None
    quarantined_by: str | None
    is_absent: bool
    excused: str | None


class SourceComparison:
    """Takes what the source holds, what state knows, and what topics hold; then says which keys differ.

    Args:
        database: an empty one.
        view: compares records.
    """

    def __init__(self, database: sqlite3.Connection, view: SourceView) -> None:
        self._database, self._view = database, view
        database.executescript(_SCHEMA)

    def expect(self, walked: Iterable[Met]) -> None:
        """Takes what the source holds; of an entity that comes twice, the later version."""
        for met in walked:
            self._database.execute("INSERT OR IGNORE INTO met VALUES (?, ?)", (met.walk, met.entity))
            for row in met.rows:
                if isinstance(row, QuarantinedEntity):
                    self._database.execute(_MEET, (row.entity, row.modified_us, row.rule))
                else:
                    self._expect(row)

    def know(self, rows: Iterable[tuple[str, bytes | None, bytes, bytes | None, bool]]) -> None:
        """Takes what state holds: topic, key, identity key, entity's identity key, absent in the last run."""
        self._database.executemany(
            "INSERT OR IGNORE INTO known VALUES (?, ?, ?, ?, ?)",
            ((place_of(topic, key), topic, name, entity, absent) for topic, key, name, entity, absent in rows),
        )

    def excuse(self, keys: Iterable[tuple[str, bytes | None]], reason: str) -> None:
        """Takes keys of which nothing can be said, and why."""
        rows = ((place_of(topic, key), reason) for topic, key in keys)
        self._database.executemany("INSERT OR IGNORE INTO excused VALUES (?, ?)", rows)

    def find(self, records: Iterable[TopicRecord], among: Collection[bytes] | None = None) -> int:
        """Takes the records of topics, each partition in its order; returns how many they were.

        Args:
            records: of all topics.
            among: only these keys are compared; all when None.
        """
        count = 0
        for record in records:
            count += 1
            place = place_of(record.topic, record.key)
            if among is None or place in among:
                found = (record.topic, record.key, record.value is not None, self._verdict(place, record))
                self._database.execute(_FIND, (place, record.partition, *found))
        return count

    def met(self, walk: int) -> int:
        """Returns how many entities or structures a walk has met."""
        return self._number("SELECT COUNT(*) FROM met WHERE walk = ?", walk)

    def topics(self) -> list[str]:
        """Returns the topics that should hold something, or that state says hold something, sorted."""
        rows = self._database.execute("SELECT topic FROM expected UNION SELECT topic FROM known ORDER BY topic")
        return [row[0] for row in rows]

    def held(self) -> int:
        """Returns how many keys should hold something."""
        return self._number("SELECT COUNT(*) FROM expected")

    def has_extra(self) -> bool:
        """Returns whether a key holds something that the source does not."""
        return self._number("SELECT EXISTS (SELECT 1 FROM live WHERE place NOT IN (SELECT place FROM expected))") > 0

    def compared(self) -> dict[str, int]:
        """Returns how many keys are as they should be, by whole records and by presence."""
        rows = self._database.execute(
            "SELECT verdict, COUNT(*) FROM live JOIN expected USING (place) WHERE partitions = 1 GROUP BY verdict"
        )
        counts = {str(verdict): int(count) for verdict, count in rows}
        known = {"source": counts.get(EQUAL, 0), "presence": counts.get(SHARED, 0)}
        return {how: count for how, count in known.items() if count}

    def suspects(self) -> Iterator[Suspect]:
        """Gives every key whose last record is not what the source holds."""
        for row in self._database.execute(_SUSPECTS):
            yield Suspect._make((*row[:9], bool(row[9]), row[10]))

    def expects(self, place: bytes) -> tuple[object, ...] | None:
        """Returns what represents the content that the source holds of a key, to be compared with another look."""
        row = self._database.execute("SELECT content, modified FROM expected WHERE place = ?", (place,)).fetchone()
        return None if row is None else tuple(row)

    def _expect(self, row: ExpectedRecord) -> None:
        self._database.execute(_MEET, (row.entity, row.modified_us, None))
        self._database.execute(_EXPECT, (place_of(row.topic, row.key), *row))

    def _verdict(self, place: bytes, record: TopicRecord) -> str | None:
        if record.value is None:
            return None
        row = self._database.execute(
            "SELECT topic, key, name, entity, content, event, modified, shared FROM expected WHERE place = ?", (place,)
        ).fetchone()
        if row is None:
            return None
        modified = row[6] if row[6] is not None and row[6] >= 0 else None
        return SHARED if row[7] else self._view.difference(ExpectedRecord._make((*row[:6], modified)), record) or EQUAL

    def _number(self, query: str, *values: object) -> int:
        return int(self._database.execute(query, values).fetchone()[0])


_SUSPECTS: Final = """
SELECT expected.place,
    CASE WHEN live.place IS NULL THEN 'missing' WHEN partitions > 1 THEN 'scattered' ELSE verdict END,
    expected.topic, live.partition, expected.key, expected.name, expected.entity, expected.modified, entities.rule, 0,
    excused.reason
FROM expected LEFT JOIN live USING (place) LEFT JOIN entities ON entities.entity = expected.entity
    LEFT JOIN excused ON excused.place = expected.place
WHERE live.place IS NULL OR partitions > 1 OR verdict NOT IN ('equal', 'shared')
UNION ALL
SELECT live.place, 'extra', live.topic, live.partition, live.key, COALESCE(known.name, live.key), known.entity, NULL,
    entities.rule, COALESCE(known.absent, 0), excused.reason
FROM live LEFT JOIN expected USING (place) LEFT JOIN known USING (place)
    LEFT JOIN entities ON entities.entity = known.entity LEFT JOIN excused ON excused.place = live.place
WHERE expected.place IS NULL
ORDER BY 3, 1
"""


CHANGED: Final = "changed while it was read: a second comparison found it equal, or changed again"
BEHIND: Final = "changed in the source after the last concluded run, which the next run publishes"
ABSENT: Final = "absent from the source in one run: its tombstone follows when a second run finds it absent"
QUARANTINED: Final = "quarantined: topics keep what they had of it"

_DETAILS: Final[Mapping[str, str]] = {
    MISSING: "the source holds it, and no record or a tombstone is the last of its key",
    SCATTERED: "its key has values in several partitions",
    "body": "the source holds another body",
    "headers": "its headers are not those of the source's content",
    "time": "its time is not the source's time of change",
}
_STRANGE: Final = "neither the source nor state has it: its tombstone is missing, or another writer made it"
_UNDELETED: Final = "the source no longer has it; state holds it until two runs have found it absent"


def kind_of(suspect: Suspect) -> Kind:
    """Returns the kind of a difference, in the words of `VerificationResult`."""
    match suspect.verdict:
        case "missing":
            return "missing"
        case "extra":
            return "extra"
        case "scattered":
            return "order"
        case _:
            return "different"


def count_kinds(suspects: list[Suspect], more: Counter[Kind]) -> dict[Kind, int]:
    """Returns how many differences there are of each kind, with those of which only the number is known."""
    counted = Counter(map(kind_of, suspects)) + more
    kinds: tuple[Kind, ...] = ("missing", "extra", "different", "order")
    return {kind: counted[kind] for kind in kinds}


def sample_suspects(suspects: list[Suspect]) -> Iterator[DifferenceSample]:
    """Gives the first few differences of each kind, with what each means."""
    shown: Counter[Kind] = Counter()
    for suspect in suspects:
        kind = kind_of(suspect)
        shown[kind] += 1
        if shown[kind] <= SAMPLES:
            strange = _STRANGE if suspect.entity is None else _UNDELETED
            detail = _DETAILS.get(suspect.verdict, strange)
            name = shown_name(suspect.name if suspect.name is not None else suspect.key)
            yield DifferenceSample(
                kind=kind, topic=suspect.topic, partition=suspect.partition, name=name, detail=detail
            )


KnownKey = tuple[str, bytes | None, bytes, bytes | None, bool]
"""Topic, key, identity key, the entity's identity key, and whether the last run has found it absent."""


def known_keys(state: State, pointer: StatePointer, view: SourceView) -> Iterator[KnownKey]:
    """Gives every key of a generation of state.

    Raises:
        RetriableError: its files are no longer there, because runs have moved on.
    """
    columns = ["identity", "topics", "key", "missing_since"]
    for piece in state.reader(pointer).pieces(columns):
        for name, topics, key, since in zip(*(piece.column(each).to_pylist() for each in columns), strict=True):
            entity = view.entity_of(name)
            yield from ((topic, key, name, entity, since is not None) for topic in topics)


def published_since(state: State, before: StatePointer, now: StatePointer) -> Iterator[bytes]:
    """Gives what represents the keys that runs have published between two generations; errors as `known_keys`."""
    if now.generation == before.generation:
        return
    columns = ["topics", "key", "sequence"]
    for piece in state.reader(now).pieces(columns):
        for topics, key, sequence in zip(*(piece.column(each).to_pylist() for each in columns), strict=True):
            if sequence > before.sequence:
                yield from (place_of(topic, key) for topic in topics)
