"""State: what Kafka holds according to us, and the pointer that says which files hold it.

A base, deltas of what the runs since then changed, each much smaller than the one before, and `CURRENT`, which is
replaced last: until then nothing has happened, and afterwards everything has.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime
from functools import cached_property, lru_cache
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from contexture.errors import RetriableError
from contexture.records.changes.attribute_types import AttributeTypes
from contexture.records.changes.identity_hashes import hash_words
from contexture.storage.documents import Versioned
from contexture.storage.file_tree import FileTree
from contexture.storage.folder import StoredFolder
from contexture.storage.incompleteness import Incompleteness
from contexture.storage.known_topics import LostTopics
from contexture.storage.paths import CURRENT, PublicationPaths
from contexture.storage.schemas import STATE
from contexture.storage.state_files import StateFile, latest, merged, with_keys


class StateReader:
    """Reads the files of one generation, which never change.

    Args:
        folder: where they are.
        names: of the files, older ones first; each is sorted by entity, so that few are found without reading all.

    Attributes:
        groups_read: how many row groups were read so far; what the whole costs is `groups`.
    """

    def __init__(self, folder: StoredFolder, names: Sequence[str]) -> None:
        self._folder = folder
        self._names = names
        self.groups_read = 0

    @property
    def is_empty(self) -> bool:
        """Whether nothing was ever held."""
        return not self._names

    @cached_property
    def files(self) -> list[StateFile]:
        return [StateFile(self._folder, name) for name in self._names]

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


FORMAT = 3
"""Of the files: sorted by entity, with references and finality of structures."""


class StatePointer(Versioned):
    """Which files make up the state, and what it was made by.

    `generation` grows by one with each concluded run; `cluster` and `target` are the Kafka cluster's id and the target
    connection's identity (no secrets); `full_run_due` is set by an abandoned outbox: the next run sends everything;
    `format` is that of the files; `types` names the file with the NGSI types that attributes had; `full_concluded_at`
    is when the last run that sent everything concluded; `incomplete` says since when deletions are not detected;
    `lost_topics` are those that were removed, until a full run has sent everything to them again.
    """

    FORMAT: ClassVar[int] = FORMAT

    generation: int = 0
    sequence: int = 0
    outbox: str | None = None
    files: tuple[str, ...] = ()
    rows: tuple[int, ...] = ()
    identities: int = 0
    watermark: str | None = None
    fingerprint: str | None = None
    cluster: str | None = None
    target: str | None = None
    full_run_due: str | None = None
    concluded_at: datetime | None = None
    format: int = FORMAT
    types: str | None = None
    full_concluded_at: datetime | None = None
    incomplete: Incompleteness | None = None
    lost_topics: LostTopics | None = None

    @property
    def is_blank(self) -> bool:
        """Whether no concluded run has read anything, and no full run is due."""
        return self.identities == 0 and self.watermark is None and self.full_run_due is None


class State:
    def __init__(self, home: FileTree, publication: str) -> None:
        self.publication = publication
        self.folder = StoredFolder(home, PublicationPaths(publication).state())

    def pointer(self) -> StatePointer:
        """Returns the current pointer; an empty one before the first run has concluded."""
        return self.folder.find_document(StatePointer, CURRENT) or StatePointer()

    def commit(self, pointer: StatePointer, *, after: StatePointer | None = None) -> None:
        """Makes `pointer` the current one.

        Args:
            pointer: the new one.
            after: the one that it was made of. A process that was paused for long must not revert what others
                did meanwhile: the state would lack what they sent, and a full run that became due would be lost.

        Raises:
            RetriableError: `after` is no longer the current one, or the storage failed.
        """
        if after is not None and self.pointer() != after:
            raise RetriableError(
                f"the state of {self.publication} was changed by another process in the meantime",
                next_step="retry the task: it continues from the current state",
                publication=self.publication,
            )
        self.folder.write(CURRENT, pointer.to_json())

    def reader(self, pointer: StatePointer) -> StateReader:
        """Reads the generation that a pointer shows."""
        return StateReader(self.folder, pointer.files)

    def table(self, pointer: StatePointer, columns: list[str] | None = None) -> Any:
        """The rows that hold, one per identity: deltas over the base, removed ones left out.

        Args:
            pointer: which state.
            columns: only these; all of them when None.
        """
        return self.reader(pointer).table(columns or STATE.names)

    def attribute_types(self, pointer: StatePointer) -> AttributeTypes:
        """The NGSI types that attributes had in earlier runs."""
        if pointer.types is None:
            return AttributeTypes()
        return AttributeTypes.from_json(self.folder.read(pointer.types))


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
    state = State(FileTree(home), publication)
    return StateLookup(state.reader(StatePointer.model_validate_json(pointer_json)), times=times)
