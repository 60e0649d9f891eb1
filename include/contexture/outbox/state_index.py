"""Looking up many identities in state at once."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np
import pyarrow as pa

from contexture.outbox.state import State, StatePointer, hash_words
from contexture.outbox.storage import Storage

INDEXED = ["identity_hash", "content_hash"]


class StateIndex:
    """Identities and content hashes of a state, sorted for searching; 48 bytes of memory an identity."""

    def __init__(self, table: Any) -> None:
        """`table`: one row per identity, sorted by `identity_hash` as `State.table` returns it."""
        self._high, self._low = hash_words(table.column("identity_hash"))
        self._content = table.column("content_hash").combine_chunks()

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


@lru_cache(maxsize=1)
def load_index(home: str, publication: str, pointer_json: bytes) -> StateIndex:
    """The index of a state, loaded once per process."""
    state = State(Storage(home), publication)
    return StateIndex(state.table(StatePointer.model_validate_json(pointer_json), INDEXED))
