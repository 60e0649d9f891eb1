"""Looking up many identities in state at once."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np
import pyarrow as pa

from contexture.changes.hashes import hash_words
from contexture.storage.state import State, StatePointer
from contexture.storage.state_reader import StateReader
from contexture.storage.storage import Storage

INDEXED = ["identity_hash", "content_hash"]
WITH_TIMES = [*INDEXED, "modified_at"]


class StateIndex:
    """Identities and content hashes, sorted for searching; 48 bytes of memory an identity, 56 with times."""

    def __init__(self, table: Any) -> None:
        """`table`: one row per identity, in any order, with the columns INDEXED or WITH_TIMES."""
        high, low = hash_words(table.column("identity_hash"))
        values = table.drop_columns(["identity_hash"]).combine_chunks()
        if not (high[1:] > high[:-1]).all():
            order = np.lexsort((low, high))
            high, low, values = high[order], low[order], values.take(pa.array(order))
        self._high, self._low, self._values = high, low, values

    def __len__(self) -> int:
        return len(self._high)

    def find(self, identity_hashes: Any) -> list[bytes | None]:
        """For each identity hash (16 bytes, an Arrow array) the content hash that state holds, or None."""
        contents: list[bytes | None] = self._found("content_hash", identity_hashes).to_pylist()
        return contents

    def times(self, identity_hashes: Any) -> list[int | None]:
        """For each the time of change that state holds, in microseconds since 1970, or None."""
        times: list[int | None] = self._found("modified_at", identity_hashes).cast(pa.int64()).to_pylist()
        return times

    def _found(self, column: str, identity_hashes: Any) -> Any:
        values = self._values.column(column)
        if not len(self._high):
            return pa.nulls(len(identity_hashes), values.type)
        rows, found = self._rows(identity_hashes)
        return values.take(pa.array(rows, mask=~found))

    def _rows(self, identity_hashes: Any) -> tuple[Any, Any]:
        high, low = hash_words(identity_hashes)
        rows = np.minimum(np.searchsorted(self._high, high), len(self._high) - 1)
        # Two identities that share their first eight bytes stand side by side: step on while the second word differs.
        while True:
            behind = (self._high[rows] == high) & (self._low[rows] < low)
            behind &= rows + 1 < len(self._high)
            if not behind.any():
                break
            rows = rows + behind
        return rows, (self._high[rows] == high) & (self._low[rows] == low)


class StateLookup:
    """Finds what a state holds of some identities, asked again and again.

    Few entities are read from the row groups that can hold them. As soon as that would have read as much as the whole
    state, everything is read once and kept: at worst twice what the better way costs.

    Args:
        reader: of the state.
        times: times of change are asked for too.
    """

    def __init__(self, reader: StateReader, *, times: bool = False) -> None:
        self._reader = reader
        self._columns = WITH_TIMES if times else INDEXED
        self._everything: StateIndex | None = None

    def contents(self, identity_hashes: Any, entity_hashes: Any) -> list[bytes | None]:
        """The content hash that state holds of each identity, or None.

        Args:
            identity_hashes: 16 bytes each, an Arrow array.
            entity_hashes: of the entities they belong to, in the same order.
        """
        return self._index(entity_hashes).find(identity_hashes)

    def contents_and_times(self, identity_hashes: Any, entity_hashes: Any) -> list[tuple[bytes | None, int | None]]:
        """The same, each with the time of change that state holds (microseconds since 1970); asked with `times`."""
        index = self._index(entity_hashes)
        return list(zip(index.find(identity_hashes), index.times(identity_hashes), strict=True))

    def _index(self, entity_hashes: Any) -> StateIndex:
        if self._everything is None and self._wants_everything(entity_hashes):
            self._everything = StateIndex(self._reader.table(self._columns))
        if self._everything is not None:
            return self._everything
        return StateIndex(self._reader.of_entities(entity_hashes, self._columns))

    def _wants_everything(self, entity_hashes: Any) -> bool:
        reader = self._reader
        return reader.groups_read + reader.groups_of(entity_hashes) >= reader.groups


@lru_cache(maxsize=1)
def load_lookup(home: str, publication: str, pointer_json: bytes, *, times: bool = False) -> StateLookup:
    """The lookup in a state, one for each process."""
    state = State(Storage(home), publication)
    return StateLookup(state.reader(StatePointer.model_validate_json(pointer_json)), times=times)
