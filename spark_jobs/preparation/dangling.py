"""Entities that refer to what is neither in the snapshot nor in state."""

from __future__ import annotations

from typing import Any

import numpy as np
import orjson
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds

from contexture.records.changes.identity_hashes import hash_words
from contexture.storage.home import Storage
from contexture.storage.state import State, StatePointer, StateReader
from spark_jobs.preparation.settings import Preparation
from spark_jobs.preparation.superseded import current_rows


def dangling(storage: Storage, preparation: Preparation) -> int:
    """How many entities of a whole snapshot refer to an id that nothing known has."""
    rows = current_rows(storage, preparation.work, ["id", "entity_hash", "targets"], ds.field("part") == 0)
    pointer = StatePointer.model_validate_json(preparation.pointer_json)
    return count_dangling(rows, State(storage, preparation.publication.name).reader(pointer))


def count_dangling(rows: Any, state: StateReader) -> int:
    """The same, over the columns `id`, `entity_hash` and `targets`; state is asked only when something is missing."""
    targets = rows.column("targets").combine_chunks()
    named = pc.list_flatten(targets)
    missing = pc.unique(named.filter(pc.invert(pc.is_in(named, value_set=pc.unique(rows.column("id"))))))
    if not len(missing):
        return 0
    held = pa.array(sorted(_held(rows.column("entity_hash"), state)), pa.string())
    missing = missing.filter(pc.invert(pc.is_in(missing, value_set=held)))
    is_missing = pc.is_in(named, value_set=missing)
    return len(pc.unique(pc.list_parent_indices(targets).filter(is_missing)))


def _held(read: Any, state: StateReader) -> set[str]:
    """The ids that state has beside what was read: few, after everything was."""
    known = np.unique(hash_words(read)[0])
    found: set[str] = set()
    for piece in state.pieces(["entity_hash", "identity"]):
        others = ~np.isin(hash_words(piece.column("entity_hash"))[0], known)
        identities = piece.column("identity").filter(pa.array(others)).to_pylist()
        found.update(orjson.loads(identity)[2] for identity in identities)
    return found
