"""Looking up many identities in state at once."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np
import pyarrow as pa

from contexture.changes.hashes import hash_words
from contexture.outbox.state import State, StatePointer
from contexture.outbox.state_reader import StateReader
from contexture.outbox.storage import Storage

INDEXED = ["identity_hash", "content_hash"]


class StateIndex:
    """Identities and content hashes, sorted for searching; 48 bytes of memory an identity."""

    def __init__(self, table: Any) -> None:
        """`table`: one row per identity, in any order, with the columns INDEXED."""
        high, low = hash_words(table.column("identity_hash"))
        content = table.column("content_hash").combine_chunks()
        if not (high[1:] > high[:-1]).all():
            order = np.lexsort((low, high))
            high, low, content = high[order], low[order], content.take(pa.array(order))
        self._high, self._low, self._content = high, low, content

    def __len__(self) -> int:
        return len(self._high)

    def find(self, identity_hashes: Any) -> list[bytes | None]:
        """For each identity hash (16 bytes, an Arrow array) the content hash that state holds, or None."""
        if not len(self._high):
            return [None] * len(identity_hashes)
        rows, found = self._rows(identity_hashes)
        contents: list[bytes | None] = self._content.take(pa.array(rows, mask=~found)).to_pylist()
        return contents

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
    """

    def __init__(self, reader: StateReader) -> None:
        self._reader = reader
        self._everything: StateIndex | None = None

    def contents(self, identity_hashes: Any, entity_hashes: Any) -> list[bytes | None]:
        """The content hash that state holds of each identity, or None.

        Args:
            identity_hashes: 16 bytes each, an Arrow array.
            entity_hashes: of the entities they belong to, in the same order.
        """
        if self._everything is None and self._wants_everything(entity_hashes):
            self._everything = StateIndex(self._reader.table(INDEXED))
        if self._everything is not None:
            return self._everything.find(identity_hashes)
        return StateIndex(self._reader.of_entities(entity_hashes, INDEXED)).find(identity_hashes)

    def _wants_everything(self, entity_hashes: Any) -> bool:
        reader = self._reader
        return reader.groups_read + reader.groups_of(entity_hashes) >= reader.groups


@lru_cache(maxsize=1)
def load_lookup(home: str, publication: str, pointer_json: bytes) -> StateLookup:
    """The lookup in a state, one for each process."""
    state = State(Storage(home), publication)
    return StateLookup(state.reader(StatePointer.model_validate_json(pointer_json)))
