"""Each record of the topics against what the archived outboxes sent: for records without a key of their own.

Both sides lie in one SQLite database, of memory or of a temporary file: memory grows with neither.
"""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Iterable
from typing import Final, NamedTuple

from contexture.operations.verification.contents import digest, place_of
from contexture.operations.verification.findings import SAMPLES, Kind, Sample, shown_name
from contexture.operations.verification.keyed import MOVING, REMOVED, Found, Outcome

_SCHEMA: Final = """
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


class Sent(NamedTuple):
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
        self._database.executescript(_SCHEMA)
        self._last: dict[tuple[str, int, int, int], int] = {}
        self._reached: dict[tuple[str, int], int] = {}
        self._differences: Counter[Kind] = Counter()
        self._samples: dict[Kind, list[Sample]] = {"extra": [], "order": []}
        self._older = 0

    def sent(self, records: Iterable[Sent]) -> None:
        """What outboxes sent."""
        self._database.executemany(
            "INSERT INTO sent VALUES (NULL, ?, ?, ?, ?, ?, ?, ?, 0)",
            ((place_of(each.topic, each.key), _stamp(each.value), each.topic, each.key, *each[3:]) for each in records),
        )

    def find(self, records: Iterable[Found]) -> None:
        """What lies in the topics, each partition in its order."""
        for record in records:
            self._judge(record)

    def topics(self) -> list[str]:
        """The topics that were sent to, sorted."""
        return [row[0] for row in self._database.execute("SELECT DISTINCT topic FROM sent ORDER BY topic")]

    def outcome(self, *, removed: frozenset[str] = frozenset()) -> Outcome:
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
        return Outcome(
            held=self._count("FROM sent WHERE NOT moves"),
            compared={"bytes": self._count("FROM sent WHERE taken AND NOT moves")},
            unjudged={reason: count for reason, count in unjudged.items() if count},
            differences=differences,
            samples=tuple(samples),
        )

    def _judge(self, record: Found) -> None:
        content = (place_of(record.topic, record.key), _stamp(record.value))
        row = self._database.execute(_TAKE, content).fetchone()
        where = (record.topic, record.partition)
        if row is None:
            self._unknown(record)
            return
        number, sequence, shard, moves = row
        self._database.execute("UPDATE sent SET taken = 1 WHERE number = ?", (number,))
        if self._database.execute(_REPEATED, content).fetchone()[0] > 1:
            # Which of several equal ones it is, nobody can tell.
            self._reached.setdefault(where, 0)
            return
        of_shard = (*where, sequence, shard)
        if not moves and (number < self._last.get(of_shard, 0) or sequence < self._reached.get(where, 0)):
            self._differ("order", record, "it stands behind a record that was sent later")
        self._last[of_shard] = max(number, self._last.get(of_shard, 0))
        self._reached[where] = max(sequence, self._reached.get(where, 0))

    def _unknown(self, record: Found) -> None:
        if self._complete or (record.topic, record.partition) in self._reached:
            self._differ("extra", record, "no outbox has sent this record, or it stands there once more")
        else:
            self._older += 1

    def _differ(self, kind: Kind, record: Found, detail: str) -> None:
        self._differences[kind] += 1
        if len(self._samples[kind]) < SAMPLES:
            name = shown_name(record.key)
            self._samples[kind].append(
                Sample(kind=kind, topic=record.topic, partition=record.partition, name=name, detail=detail)
            )

    def _by_topic(self) -> dict[str, int]:
        rows = self._database.execute(f"SELECT topic, COUNT(*) {_MISSING} GROUP BY topic")
        return {str(topic): int(count) for topic, count in rows}

    def _lost(self, removed: frozenset[str]) -> list[Sample]:
        rows = self._database.execute(f"SELECT topic, key, sequence, shard {_MISSING} ORDER BY number")
        kept = (row for row in rows if row[0] not in removed)
        return [
            Sample(
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
    """What stands for a value; a tombstone is another one than an empty value."""
    return b"" if value is None else digest(value)
