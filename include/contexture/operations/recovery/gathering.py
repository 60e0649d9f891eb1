"""The last record of each key with the identity it tells, in a database: memory does not grow with the topics."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from typing import Final, NamedTuple

from contexture.events import identity_hash
from contexture.kafka import ReplicaRecord
from contexture.operations.recovery.ownership import Owner
from contexture.operations.recovery.values import ValueReader
from contexture.operations.verification.contents import place_of

_SCHEMA: Final = """
CREATE TABLE found (place BLOB, partition INT, topic TEXT, key BLOB, identity BLOB, entity_hash BLOB, content BLOB,
    refers TEXT, left_alone TEXT, PRIMARY KEY (place, partition)) WITHOUT ROWID;
CREATE TABLE known (identity_hash BLOB PRIMARY KEY) WITHOUT ROWID;
"""
_FOUND: Final = "INSERT OR REPLACE INTO found VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)"
_ROWS: Final = (
    "SELECT identity, entity_hash, topic, key, content, refers FROM found WHERE left_alone IS NULL "
    "ORDER BY identity, topic, partition"
)

_Row = tuple[bytes, bytes, str, bytes | None, bytes | None, str]

FOREIGN = "of another publication, or of what this one does not select"
SHARED = "of several publications alike, so that nobody can tell whose they are"


class Gathered(NamedTuple):
    """What the topics hold of one identity.

    Attributes:
        identity, entity_hash: as state has them.
        topics: where it is.
        key: of its records.
        content: its content hash; None where topics differ, or where no value tells it.
        references: of a structure.
    """

    identity: bytes
    entity_hash: bytes
    topics: tuple[str, ...]
    key: bytes | None
    content: bytes | None
    references: tuple[str, ...]


class Gathering:
    """Takes records, each partition in its order, then gives what is there of each identity.

    Args:
        database: an empty one.
        owner: tells the publication's own records.
        others: tell those of publications that may send to the same topics.
        read: tells what values hold.
    """

    def __init__(self, database: sqlite3.Connection, owner: Owner, others: Sequence[Owner], read: ValueReader) -> None:
        self._database, self._owner, self._others, self._read = database, owner, others, read
        self._database.executescript(_SCHEMA)

    def know(self, identity_hashes: Iterable[bytes]) -> None:
        """Identities that state holds already: nothing is made of them."""
        self._database.executemany("INSERT OR IGNORE INTO known VALUES (?)", ((each,) for each in identity_hashes))

    def take(self, record: ReplicaRecord) -> None:
        """One record."""
        place = place_of(record.topic, record.key)
        if record.value is None:
            self._database.execute("DELETE FROM found WHERE place = ? AND partition = ?", (place, record.partition))
            return
        owned = self._owner.of(record)
        if owned is None or any(other.of(record) is not None for other in self._others):
            why = FOREIGN if owned is None else SHARED
            self._database.execute(_FOUND, (place, record.partition, *(None,) * 6, why))
            return
        told = self._read(record.value)
        row = (record.topic, record.key, *owned, told.content, json.dumps(told.references), None)
        self._database.execute(_FOUND, (place, record.partition, *row))

    def left_alone(self) -> dict[str, int]:
        """How many keys were left alone, by reason."""
        rows = self._database.execute(
            "SELECT left_alone, COUNT(*) FROM found WHERE left_alone IS NOT NULL GROUP BY 1 ORDER BY 1"
        )
        return {str(why): int(count) for why, count in rows}

    def known(self) -> int:
        """How many identities state holds already."""
        return int(self._database.execute("SELECT COUNT(*) FROM known").fetchone()[0])

    def identities(self) -> Iterator[Gathered]:
        """What the topics hold of each identity that state does not know, in order."""
        for identity, rows in groupby(self._database.execute(_ROWS), key=lambda row: bytes(row[0])):
            if not self._is_known(identity_hash(identity)):
                yield self._gathered(identity, list(rows))

    def _is_known(self, hashed: bytes) -> bool:
        return self._database.execute("SELECT 1 FROM known WHERE identity_hash = ?", (hashed,)).fetchone() is not None

    def _gathered(self, identity: bytes, rows: Sequence[_Row]) -> Gathered:
        topics = dict.fromkeys(row[2] for row in rows)
        fixed = tuple(topic for topic in self._owner.topics if topic in topics)
        contents = {row[4] for row in rows}
        # What one topic lacks has to be sent to all of them.
        told = contents.pop() if len(contents) == 1 and len(fixed) == len(self._owner.topics) else None
        *_, (_, entity_hash, _, key, _, refers) = rows
        return Gathered(identity, entity_hash, fixed or tuple(topics), key, told, tuple(json.loads(refers)))
