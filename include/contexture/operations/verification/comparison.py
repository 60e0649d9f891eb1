"""Records of topics against what was sent: by state for records with keys, by the archive for others.

Both sides lie in one SQLite database, of memory or of a temporary file: memory grows with neither.
"""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final, NamedTuple

from contexture.operations.verification.contents import ContentReader, digest, place_of
from contexture.operations.verification.result import SAMPLES, DifferenceSample, Kind, shown_name

# Keys come in no order: with less, half of the time goes into moving pages.
_CACHE_KIBIBYTES: Final = 65_536


@contextmanager
def scratch_database(prefix: str) -> Iterator[sqlite3.Connection]:
    """Opens an empty database in a temporary file, so that memory does not grow with the data."""
    with (
        TemporaryDirectory(prefix=prefix) as folder,
        closing(sqlite3.connect(Path(folder) / "scratch.sqlite")) as database,
    ):
        database.execute("PRAGMA journal_mode=OFF")
        database.execute("PRAGMA synchronous=OFF")
        database.execute(f"PRAGMA cache_size=-{_CACHE_KIBIBYTES}")
        yield database


_KEYED_SCHEMA: Final = """
CREATE TABLE held (place BLOB PRIMARY KEY, topic TEXT, name BLOB, content BLOB, sequence INT, shared INT, sent BLOB)
    WITHOUT ROWID;
CREATE TABLE found (place BLOB, partition INT, topic TEXT, key BLOB, live INT, matched INT, earlier INT, how TEXT,
    PRIMARY KEY (place, partition)) WITHOUT ROWID;
CREATE TABLE moving (place BLOB PRIMARY KEY) WITHOUT ROWID;
CREATE TABLE withheld (place BLOB PRIMARY KEY) WITHOUT ROWID;
CREATE TABLE others (place BLOB PRIMARY KEY) WITHOUT ROWID;
"""
_HOLD: Final = (
    "INSERT INTO held VALUES (?, ?, ?, ?, ?, 0, NULL) "
    "ON CONFLICT (place) DO UPDATE SET shared = shared + 1, sent = NULL"
)
_FIND: Final = (
    "INSERT INTO found VALUES (?, ?, ?, ?, ?, ?, 0, ?) ON CONFLICT (place, partition) DO UPDATE SET "
    "live = excluded.live, matched = excluded.matched, how = excluded.how, "
    "earlier = earlier OR COALESCE(matched, 0)"
)
_SETTLED: Final = "place NOT IN (SELECT place FROM moving UNION SELECT place FROM withheld)"
_REMOVED: Final = "topic IN (SELECT topic FROM removed)"
_LIVE: Final = "SELECT 1 FROM found WHERE found.place = held.place AND live"

MOVING = "in motion: an outbox with this key is being sent"
WITHHELD = "withheld: a record with this key is in the dead-letter topic"
REMOVED = "removed from the beginning of its topic, by retention or by hand"
BASELINE = "never sent: the first run only noted it"
ELSEWHERE = "of another publication that shares the topic"


class ExpectedHashes(NamedTuple):
    """What a key of a topic should hold. `name`: its identity; `sequence`: of the outbox that sent it."""

    topic: str
    key: bytes | None
    name: bytes
    content: bytes
    sequence: int


class ReadRecord(NamedTuple):
    """A record as it lies in its topic; `value` None is a tombstone."""

    topic: str
    partition: int
    key: bytes | None
    value: bytes | None


class ComparisonResult(NamedTuple):
    """What comparing gave, in the words of `VerificationResult`."""

    held: int
    compared: dict[str, int]
    unjudged: dict[str, int]
    differences: dict[Kind, int]
    samples: tuple[DifferenceSample, ...]


class KeyedComparison:
    """Takes what should be held, then what records show, in their order; then says how they differ.

    Args:
        database: an empty one.
        content_of: reads a value's content hash; None where no value shows it.
    """

    def __init__(self, database: sqlite3.Connection, content_of: ContentReader | None = None) -> None:
        self._database = database
        self._content_of = content_of
        self._database.executescript(_KEYED_SCHEMA)

    def expect(self, rows: Iterable[ExpectedHashes]) -> None:
        """What keys should hold. Several identities may share a key: then only its presence is judged."""
        self._database.executemany(
            _HOLD, ((place_of(row.topic, row.key), row.topic, row.name, row.content, row.sequence) for row in rows)
        )

    def sent(self, sequence: int, records: Iterable[tuple[str, bytes | None, bytes | None]]) -> None:
        """The records that an outbox sent, in their order: topic, key and value."""
        self._database.executemany(
            "UPDATE held SET sent = ? WHERE place = ? AND sequence = ? AND NOT shared",
            ((digest(value), place_of(topic, key), sequence) for topic, key, value in records if value is not None),
        )

    def expect_moved(self, keys: Iterable[tuple[str, bytes | None]]) -> None:
        """Keys whose value may be another one already, or not yet: they are not judged."""
        self._database.executemany(
            "INSERT OR IGNORE INTO moving VALUES (?)", ((place_of(topic, key),) for topic, key in keys)
        )

    def withhold(self, keys: Iterable[tuple[str, bytes | None]]) -> None:
        """Adds keys whose content is unknown, because their last record cannot be sent: they are not judged."""
        self._database.executemany(
            "INSERT OR IGNORE INTO withheld VALUES (?)", ((place_of(topic, key),) for topic, key in keys)
        )

    def belong_elsewhere(self, keys: Iterable[tuple[str, bytes | None]]) -> None:
        """Keys that other publications hold in these topics."""
        self._database.executemany(
            "INSERT OR IGNORE INTO others VALUES (?)", ((place_of(topic, key),) for topic, key in keys)
        )

    def observe(self, records: Iterable[ReadRecord]) -> None:
        """Adds what is in the topics, each partition in its order."""
        self._database.executemany(_FIND, (self._judged(record) for record in records))

    def topics(self) -> list[str]:
        """The topics that should hold something, sorted."""
        return [row[0] for row in self._database.execute("SELECT DISTINCT topic FROM held ORDER BY topic")]

    def sequences(self) -> list[int]:
        """The outboxes that sent what should be held, the latest first."""
        return [row[0] for row in self._database.execute("SELECT DISTINCT sequence FROM held ORDER BY sequence DESC")]

    def has_extra(self) -> bool:
        """Whether something lies in the topics that should not."""
        return self._count(f"FROM found {_EXTRA}") > 0

    def outcome(self, *, removed: frozenset[str] = frozenset(), baseline: int | None = None) -> ComparisonResult:
        """How both sides differ.

        Args:
            removed: topics that lost records at their beginnings, as they may: what is missing there is not judged.
            baseline: sequence of a run that may have sent nothing. If nothing of it lies in the topics, none was sent.
        """
        excused = self._excused(removed, baseline)
        queries = {kind: f"FROM {_TABLES[kind]} {where}" for kind, where in _KINDS.items()}
        queries["missing"] += f" AND NOT ({excused})"
        differences = {kind: self._count(query) for kind, query in queries.items()}
        return ComparisonResult(
            held=self._count("FROM held"),
            compared={str(how): int(count) for how, count in self._database.execute(_HOW)},
            unjudged=self._unjudged(removed, excused),
            differences=differences,
            samples=tuple(sample for kind, query in queries.items() for sample in self._samples(kind, query)),
        )

    def _judged(self, record: ReadRecord) -> tuple[object, ...]:
        topic, partition, key, value = record
        place = place_of(topic, key)
        matched, how = self._match(place, value)
        return place, partition, topic, key, value is not None, matched, how

    def _match(self, place: bytes, value: bytes | None) -> tuple[bool | None, str | None]:
        """Whether a value is the one that should be held, and how that is known; None where no one can say."""
        if value is None:
            return False, None
        row = self._database.execute("SELECT content, sent, shared FROM held WHERE place = ?", (place,)).fetchone()
        if row is None or row[2]:
            return None, "presence"
        content, sent, _ = row
        if sent is not None and sent == digest(value):
            return True, "bytes"
        if self._content_of is not None:
            # Another instance of a registry's publication may have written the same content in other bytes.
            return self._content_of(value) == content, "content"
        return (None, "presence") if sent is None else (False, "bytes")

    def _excused(self, removed: frozenset[str], baseline: int | None) -> str:
        """The condition by which what is missing is not judged."""
        self._database.execute("CREATE TEMP TABLE IF NOT EXISTS removed (topic TEXT PRIMARY KEY)")
        self._database.executemany("INSERT OR IGNORE INTO removed VALUES (?)", ((topic,) for topic in removed))
        if baseline is None or self._count(f"FROM held WHERE sequence = {baseline:d} AND EXISTS ({_LIVE})"):
            return _REMOVED
        return f"{_REMOVED} OR sequence = {baseline:d}"

    def _unjudged(self, removed: frozenset[str], excused: str) -> dict[str, int]:
        missing = f"FROM {_TABLES['missing']} {_KINDS['missing']}"
        gone = self._count(f"{missing} AND {_REMOVED}") if removed else 0
        counts = {
            MOVING: self._count("FROM moving"),
            WITHHELD: self._count("FROM withheld"),
            REMOVED: gone,
            BASELINE: self._count(f"{missing} AND ({excused})") - gone,
            ELSEWHERE: self._count("FROM found WHERE live AND place IN (SELECT place FROM others)"),
        }
        return {reason: count for reason, count in counts.items() if count}

    def _samples(self, kind: Kind, query: str) -> Iterator[DifferenceSample]:
        columns = _COLUMNS[kind]
        rows = self._database.execute(f"SELECT {columns} {query} ORDER BY 1, 3 LIMIT {SAMPLES}")
        for topic, partition, name, detail in rows:
            yield DifferenceSample(kind=kind, topic=topic, partition=partition, name=shown_name(name), detail=detail)

    def _count(self, query: str) -> int:
        return int(self._database.execute(f"SELECT COUNT(*) {query}").fetchone()[0])


_STRANGE: Final = "place NOT IN (SELECT place FROM held) AND place NOT IN (SELECT place FROM others)"
_EXTRA: Final = f"WHERE live AND {_SETTLED} AND {_STRANGE}"
# Only where several partitions of a topic hold a value of one key: which is the last, no one can show.
_SCATTERED: Final = "place IN (SELECT place FROM found WHERE live GROUP BY place HAVING COUNT(*) > 1)"
_JOINED: Final = "found JOIN held USING (place)"
_TABLES: Final[dict[Kind, str]] = {"missing": "held", "extra": "found", "different": _JOINED, "order": _JOINED}
_HOW: Final = f"SELECT how, COUNT(*) FROM {_JOINED} WHERE live AND {_SETTLED} GROUP BY how ORDER BY how"  # noqa: S608 - constants
_KINDS: Final[dict[Kind, str]] = {
    "missing": f"WHERE {_SETTLED} AND NOT EXISTS ({_LIVE})",
    "extra": _EXTRA,
    "different": f"WHERE live AND matched = 0 AND NOT earlier AND {_SETTLED} AND NOT {_SCATTERED}",
    "order": f"WHERE live AND {_SETTLED} AND ({_SCATTERED} OR (matched = 0 AND earlier))",
}
_COLUMNS: Final[dict[Kind, str]] = {
    "missing": (
        "topic, NULL, name, CASE WHEN EXISTS (SELECT 1 FROM found WHERE found.place = held.place) "
        "THEN 'the last record of its key deletes it' ELSE 'no record has its key' END"
    ),
    "extra": "topic, partition, key, 'state holds no such key'",
    "different": "found.topic, partition, name, 'the last value of its key is another one'",
    "order": (
        f"found.topic, partition, name, CASE WHEN {_SCATTERED} THEN 'its key has values in several partitions' "
        "ELSE 'the right value was followed by another one' END"
    ),
}


_RECORDED_SCHEMA: Final = """
CREATE TABLE sent (number INTEGER PRIMARY KEY, place BLOB, value BLOB, topic TEXT, key BLOB, sequence INT, shard INT,
    moves INT, taken INT);
CREATE INDEX sent_by_content ON sent (place, value, taken, number);
"""
_TAKE: Final = (
    "SELECT number, sequence, shard, moves FROM sent "
    "WHERE place = ? AND value = ? AND taken = 0 ORDER BY number LIMIT 1"
)
_REPEATED: Final = "SELECT COUNT(*) FROM (SELECT 1 FROM sent WHERE place = ? AND value = ? LIMIT 2)"
_MISSING: Final = "FROM sent WHERE NOT taken AND NOT moves"

OLDER: Final = "older than the archive of outboxes"


class SentRecord(NamedTuple):
    """A record of an outbox. `moves`: the outbox is being sent, so that the record may be there or not."""

    topic: str
    key: bytes | None
    value: bytes | None
    sequence: int
    shard: int
    moves: bool = False


class RecordComparison:
    """Takes what was sent, in its order, then what lies in the topics; then says how they differ.

    Args:
        database: an empty one.
        complete: whether all that was ever sent is given. Otherwise what lies before the first record that is
            recognised in its partition is older, and not judged.
    """

    def __init__(self, database: sqlite3.Connection, *, complete: bool) -> None:
        self._database = database
        self._complete = complete
        self._database.executescript(_RECORDED_SCHEMA)
        self._last: dict[tuple[str, int, int, int], int] = {}
        self._reached: dict[tuple[str, int], int] = {}
        self._differences: Counter[Kind] = Counter()
        self._samples: dict[Kind, list[DifferenceSample]] = {"extra": [], "order": []}
        self._older = 0

    def sent(self, records: Iterable[SentRecord]) -> None:
        """What outboxes sent."""
        self._database.executemany(
            "INSERT INTO sent VALUES (NULL, ?, ?, ?, ?, ?, ?, ?, 0)",
            ((place_of(each.topic, each.key), _stamp(each.value), each.topic, each.key, *each[3:]) for each in records),
        )

    def observe(self, records: Iterable[ReadRecord]) -> None:
        """Adds what is in the topics, each partition in its order."""
        for record in records:
            self._judge(record)

    def topics(self) -> list[str]:
        """The topics that were sent to, sorted."""
        return [row[0] for row in self._database.execute("SELECT DISTINCT topic FROM sent ORDER BY topic")]

    def outcome(self, *, removed: frozenset[str] = frozenset()) -> ComparisonResult:
        """How both sides differ.

        Args:
            removed: topics that lost records at their beginnings, as they may: what is missing there is not judged.
        """
        lost = self._by_topic()
        gone = sum(count for topic, count in lost.items() if topic in removed)
        differences: dict[Kind, int] = {
            "missing": sum(lost.values()) - gone,
            "extra": self._differences["extra"],
            "different": 0,
            "order": self._differences["order"],
        }
        moving = self._count("FROM sent WHERE moves")
        unjudged = {MOVING: moving, REMOVED: gone, OLDER: self._older}
        samples = [*self._lost(removed), *self._samples["extra"], *self._samples["order"]]
        return ComparisonResult(
            held=self._count("FROM sent WHERE NOT moves"),
            compared={"bytes": self._count("FROM sent WHERE taken AND NOT moves")},
            unjudged={reason: count for reason, count in unjudged.items() if count},
            differences=differences,
            samples=tuple(samples),
        )

    def _judge(self, record: ReadRecord) -> None:
        content = (place_of(record.topic, record.key), _stamp(record.value))
        row = self._database.execute(_TAKE, content).fetchone()
        where = (record.topic, record.partition)
        if row is None:
            self._unknown(record)
            return
        number, sequence, shard, moves = row
        self._database.execute("UPDATE sent SET taken = 1 WHERE number = ?", (number,))
        if self._database.execute(_REPEATED, content).fetchone()[0] > 1:
            # Which of several equal ones it is, no one can show.
            self._reached.setdefault(where, 0)
            return
        of_shard = (*where, sequence, shard)
        if not moves and (number < self._last.get(of_shard, 0) or sequence < self._reached.get(where, 0)):
            self._differ("order", record, "it comes after a record that was sent later")
        self._last[of_shard] = max(number, self._last.get(of_shard, 0))
        self._reached[where] = max(sequence, self._reached.get(where, 0))

    def _unknown(self, record: ReadRecord) -> None:
        if self._complete or (record.topic, record.partition) in self._reached:
            self._differ("extra", record, "no outbox has sent this record, or it is there twice")
        else:
            self._older += 1

    def _differ(self, kind: Kind, record: ReadRecord, detail: str) -> None:
        self._differences[kind] += 1
        if len(self._samples[kind]) < SAMPLES:
            name = shown_name(record.key)
            self._samples[kind].append(
                DifferenceSample(kind=kind, topic=record.topic, partition=record.partition, name=name, detail=detail)
            )

    def _by_topic(self) -> dict[str, int]:
        rows = self._database.execute(f"SELECT topic, COUNT(*) {_MISSING} GROUP BY topic")
        return {str(topic): int(count) for topic, count in rows}

    def _lost(self, removed: frozenset[str]) -> list[DifferenceSample]:
        rows = self._database.execute(f"SELECT topic, key, sequence, shard {_MISSING} ORDER BY number")
        kept = (row for row in rows if row[0] not in removed)
        return [
            DifferenceSample(
                kind="missing",
                topic=topic,
                partition=None,
                name=shown_name(key),
                detail=f"run {sequence} sent it in shard {shard}",
            )
            for (topic, key, sequence, shard), _ in zip(kept, range(SAMPLES), strict=False)
        ]

    def _count(self, query: str) -> int:
        return int(self._database.execute(f"SELECT COUNT(*) {query}").fetchone()[0])


def _stamp(value: bytes | None) -> bytes:
    """What represents a value; a tombstone is another one than an empty value."""
    return b"" if value is None else digest(value)
