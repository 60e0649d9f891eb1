"""Reading one generation of state: a few entities, or everything."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from contexture.changes.hashes import hash_words
from contexture.storage.schemas import STATE
from contexture.storage.state_files import StateFile, merged, with_keys
from contexture.storage.state_rows import latest
from contexture.storage.storage import Storage


class StateReader:
    """Reads the files of one generation, which never change.

    Args:
        storage: where they are.
        paths: the files, older ones first; each is sorted by entity, so that few are found without reading all.

    Attributes:
        groups_read: how many row groups were read so far; what the whole costs is `groups`.
    """

    def __init__(self, storage: Storage, paths: Sequence[str]) -> None:
        self._storage = storage
        self._paths = paths
        self.groups_read = 0

    @property
    def is_empty(self) -> bool:
        """Whether nothing was ever held."""
        return not self._paths

    @cached_property
    def files(self) -> list[StateFile]:
        """The files, opened."""
        return [StateFile(self._storage, path) for path in self._paths]

    @property
    def groups(self) -> int:
        """Row groups of all files; 0 when there is nothing to choose among."""
        return sum(file.groups for file in self.files)

    def groups_of(self, entity_hashes: Any) -> int:
        """How many row groups can hold any of these entities."""
        words = _words(entity_hashes)
        return sum(len(file.holding(words)) for file in self.files)

    def of_entities(self, entity_hashes: Any, columns: Sequence[str]) -> Any:
        """The rows of these entities (16-byte hashes, an Arrow array), one per identity, in order of entity and
        identity; only the row groups that can hold them are read."""
        words, read = _words(entity_hashes), with_keys(columns)
        parts = [self._read(file, file.holding(words), read) for file in self.files]
        table = pa.concat_tables([STATE.empty_table().select(read), *parts])
        asked = table.filter(pc.is_in(table.column("entity_hash"), value_set=pc.unique(entity_hashes)))
        return latest(asked).select(list(columns))

    def table(self, columns: Sequence[str]) -> Any:
        """All rows that hold, one per identity, in order of entity and identity, those removed left out."""
        return pa.concat_tables([STATE.empty_table().select(list(columns)), *self.pieces(columns)])

    def pieces(self, columns: Sequence[str]) -> Iterator[Any]:
        """The same, one range of hashes after the other, so that memory does not grow with the state."""
        read = with_keys(columns)
        self.groups_read += self.groups
        return (table.select(list(columns)) for table in merged(self.files, read))

    def _read(self, file: StateFile, groups: Any, columns: Sequence[str]) -> Any:
        self.groups_read += len(groups)
        return file.read(groups, columns)


def _words(hashes: Any) -> Any:
    return np.unique(hash_words(hashes)[0])
