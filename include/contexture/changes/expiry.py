"""Entities that say beforehand when they end: what that means for identities the target holds.

Works on the tables of `contexture.changes.comparison`. Sources without such entities pay a look at null counts.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from contexture.changes.verdicts import Verdict

_NEVER = -(1 << 62)


def expired(state: Any, as_of: datetime | None) -> Any:
    """Which of the state's rows had ended at a moment of the source's clock, by what was last read of them."""
    ends = state.column("expires_at")
    if as_of is None or ends.null_count == state.num_rows:
        return pa.array(np.zeros(state.num_rows, dtype=bool))
    return pc.fill_null(pc.less_equal(ends, pa.scalar(as_of.astimezone(UTC), ends.type)), False)


def rescheduled(told: Any, state: Any) -> tuple[Any, Any]:
    """Rows of state whose entity ends at another time than they say while its content stays; and that time of each.

    What is sent brings its time along.
    """
    if not any(each.column("expires_at").null_count < each.num_rows for each in (told, state)):
        return np.empty(0, dtype=np.int64), pa.nulls(0, state.schema.field("expires_at").type)
    kept = told.filter(pc.equal(told.column("verdict"), Verdict.UNCHANGED))
    places = pc.index_in(state.column("identity_hash"), value_set=kept.column("identity_hash"))
    rows = np.flatnonzero(np.asarray(places.is_valid()))
    ends = kept.column("expires_at").take(places.take(pa.array(rows)))
    held = state.column("expires_at").take(pa.array(rows))
    differs = np.asarray(pc.not_equal(_microseconds(ends), _microseconds(held)))
    return rows[differs], ends.filter(pa.array(differs))


def _microseconds(times: Any) -> Any:
    return pc.fill_null(times.cast(pa.int64()), _NEVER)
