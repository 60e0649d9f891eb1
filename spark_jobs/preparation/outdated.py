"""Events of an earlier time, tried or sent again, although the target holds something newer by now."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from contexture.storage.state import StateReader


def outdated(snapshot: Any, reader: StateReader, sequence: int) -> Any:
    """Rows of the snapshot whose identity the target holds newer: by the time of change, or, where that is the same or
    not known, because it was sent by a later run than the one that refused the event. An entity may be notified several
    times before one run: what that run sent of it counts as newer then, for nothing tells which came last.

    Args:
        snapshot: with `identity_hash`, `entity_hash`, `modified_at` and `notified`.
        reader: the state.
        sequence: of the last outbox that was sent when the events were refused, that of their own run included.
    """
    rows = _held(snapshot, reader, ["identity_hash", "modified_at", "sequence"])
    newer = pc.greater(rows.column("modified_at"), snapshot.column("modified_at"))
    older = pc.less(rows.column("modified_at"), snapshot.column("modified_at"))
    sent_before = pc.if_else(snapshot.column("notified"), pa.scalar(sequence - 1), pa.scalar(sequence))
    sent_later = pc.greater(rows.column("sequence"), sent_before)
    is_outdated = pc.or_(pc.fill_null(newer, False), pc.and_(sent_later, pc.invert(pc.fill_null(older, False))))
    return np.flatnonzero(np.asarray(pc.fill_null(is_outdated, False)))


def undone(snapshot: Any, reader: StateReader) -> Any:
    """Rows of the snapshot that would undo what the target holds: it has something newer, or nothing (any more), or
    nobody knows which of both is newer. Arguments as of `outdated`.
    """
    rows = _held(snapshot, reader, ["identity_hash", "modified_at"])
    is_newest = pc.less_equal(rows.column("modified_at"), snapshot.column("modified_at"))
    return np.flatnonzero(~np.asarray(pc.fill_null(is_newest, False)))


def _held(snapshot: Any, reader: StateReader, columns: list[str]) -> Any:
    """The state row of each row of the snapshot; nulls where there is none."""
    held = reader.of_entities(snapshot.column("entity_hash"), columns)
    places = pc.index_in(snapshot.column("identity_hash"), value_set=held.column("identity_hash").combine_chunks())
    return held.take(places.combine_chunks() if isinstance(places, pa.ChunkedArray) else places)
