"""Objects of a snapshot that a later version of the same entity supersedes.

A source that changes while it is read shows an entity several times: before and after its change. Only the version that
was changed last is published; the others count nowhere.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from contexture.records.changes.comparison import ChangeKind
from contexture.records.changes.identity_hashes import hash_words

_BEFORE_ALL = datetime.min.replace(tzinfo=UTC)


def superseded_rows(snapshot: Any, objects: Any) -> Any:
    """Returns the rows of the objects whose entity the snapshot shows with a later time of change, as row numbers.

    All rows of such an object are among them, whatever their verdict: an attribute that only an older version has is
    not there any more. Objects with the same time of change are left for `compare`, which finds contradictions.
    Notified rows are never among them, because notifications are compared one after the other; rows without an id are
    not either, because nothing says that two of them are one entity.

    Args:
        snapshot: columns `verdict`, `entity_hash`, `entity_modified_at`, `notified` and `identified`; the rows of an
            object follow on each other.
        objects: a number for each row, the same for all rows of one object (numpy).
    """
    verdicts = np.asarray(snapshot.column("verdict"))
    named = np.asarray(snapshot.column("identified")) & ~np.asarray(snapshot.column("notified"))
    read = (verdicts != ChangeKind.PRESENT) & (verdicts != ChangeKind.DELETE) & named
    begins = np.ones(len(objects), dtype=bool)
    begins[1:] = objects[1:] != objects[:-1]
    firsts = np.flatnonzero(read & begins)
    hashes = snapshot.column("entity_hash").take(pa.array(firsts))
    # Sorting half of each hash costs a tenth of counting whole hashes, and most snapshots end here.
    words = np.sort(hash_words(hashes)[0])
    if not (words[1:] == words[:-1]).any():
        return firsts[:0]
    counts = pc.value_counts(hashes)
    repeated = counts.field("values").filter(pc.greater(counts.field("counts"), 1))
    rows = firsts[np.asarray(pc.is_in(hashes, value_set=repeated))]
    return np.flatnonzero(read & np.isin(objects, objects[_older(snapshot, rows)]))


def _older(snapshot: Any, rows: Any) -> list[int]:
    """The rows (few get here) whose entity is among them with a later time."""
    columns = snapshot.select(["entity_hash", "entity_modified_at"]).take(pa.array(rows))
    hashes, times = (column.to_pylist() for column in columns.columns)
    moments = [time or _BEFORE_ALL for time in times]
    newest: dict[bytes, datetime] = {}
    for entity, moment in zip(hashes, moments, strict=True):
        newest[entity] = max(moment, newest.get(entity, _BEFORE_ALL))
    return [int(row) for row, entity, moment in zip(rows, hashes, moments, strict=True) if moment < newest[entity]]
