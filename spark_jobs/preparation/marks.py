"""State rows that change without a record being sent: marks of absence and of withholding."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from contexture.records.changes import Comparison
from contexture.storage.schemas import STATE


def marked(held: Any, comparison: Comparison, moment: datetime) -> Any:
    """The state's rows whose marks change, once each, with all their new marks.

    Args:
        held: the state's whole rows, which the comparison's numbers refer to.
        comparison: what the snapshot means for them.
        moment: when it was read.
    """
    changed = [comparison.first_absent, comparison.returned, comparison.withheld, comparison.released]
    rows = np.unique(np.concatenate([*changed, comparison.rescheduled])).astype(np.int64)
    first_absent, returned, withheld, released = (pa.array(np.isin(rows, places)) for places in changed)
    table = held.take(pa.array(rows))
    now = pa.scalar(moment.astimezone(UTC), STATE.field("missing_since").type)
    never = pa.scalar(None, now.type)
    missing_since = pc.if_else(first_absent, now, pc.if_else(returned, never, table.column("missing_since")))
    is_withheld = pc.or_(withheld, pc.and_not(table.column("withheld"), released))
    table = table.set_column(STATE.get_field_index("missing_since"), STATE.field("missing_since"), missing_since)
    table = table.set_column(STATE.get_field_index("withheld"), STATE.field("withheld"), is_withheld)
    return _rescheduled(table, np.isin(rows, comparison.rescheduled), comparison.ends)


def _rescheduled(table: Any, places: Any, ends: Any) -> Any:
    """The table with these times of ending at these places, both in order."""
    if not places.any():
        return table
    field = STATE.field("expires_at")
    held = table.column("expires_at").combine_chunks()
    values = ends.combine_chunks() if isinstance(ends, pa.ChunkedArray) else ends
    changed = pc.replace_with_mask(held, pa.array(places), values.cast(field.type))
    return table.set_column(STATE.get_field_index("expires_at"), field, changed)
