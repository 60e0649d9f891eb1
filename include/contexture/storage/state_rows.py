"""Rows of state: their order, and which of several rows of one identity holds."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from contexture.changes.hashes import hash_words
from contexture.storage.schemas import STATE

KEYS = ("identity_hash", "entity_hash", "removed")
"""Columns without which rows can be neither sorted nor merged."""


def completed(table: Any, columns: Sequence[str]) -> Any:
    """These columns of a table; those that it lacks are null."""
    for name in columns:
        if name not in table.column_names:
            table = table.append_column(STATE.field(name), pa.nulls(table.num_rows, STATE.field(name).type))
    return table.select(list(columns))


def latest(table: Any, *, keep_removed: bool = False) -> Any:
    """The last row of each identity, in order of entity and identity.

    Args:
        table: rows with at least KEYS, older ones first.
        keep_removed: also identities whose last row is `removed`, as a delta needs them.
    """
    if table.num_rows == 0:
        return table
    order, last = _order(table)
    kept = table.take(pa.array(order[last]))
    return kept if keep_removed else kept.filter(pc.invert(kept.column("removed")))


def _order(table: Any) -> tuple[Any, Any]:
    """Places of the rows in order, and which of them are the last of their identity."""
    entity_high, entity_low = hash_words(table.column("entity_hash"))
    high, low = hash_words(table.column("identity_hash"))
    # Entities nearly always differ in their first word; then one stable sort of sorted pieces, which costs little, is
    # all: rows that share it are of one identity.
    order = np.argsort(entity_high, kind="stable")
    same_entity = entity_high[order][1:] == entity_high[order][:-1]
    same = _neighbours_equal(order, high, low)
    if not np.array_equal(same_entity & same, same_entity):
        order = np.lexsort((low, high, entity_low, entity_high))
        same = _neighbours_equal(order, high, low)
    return order, np.append(~same, True)


def _neighbours_equal(order: Any, high: Any, low: Any) -> Any:
    high, low = high[order], low[order]
    return (high[1:] == high[:-1]) & (low[1:] == low[:-1])
