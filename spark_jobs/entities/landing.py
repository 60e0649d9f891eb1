"""The landing of a read: digests, counts, and the newest change."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

import pyarrow as pa
import pyarrow.compute as pc

from contexture.storage.folder import StoredFolder
from contexture.storage.schemas import LANDING
from spark_jobs.data_sources.ngsi import WALK_BITS

_IDENTITY = ["path", "id", "type"]
_LOOKED_AT = ["ordinal", "operation", "version", "created_at", "modified_at", *_IDENTITY]

HistoryInterval = tuple[datetime, datetime]


@dataclass(frozen=True, slots=True)
class Landed:
    """A landing folder, looked through. `files`: name to SHA-256."""

    files: Mapping[str, str]
    table: pa.Table

    @classmethod
    def look(cls, folder: StoredFolder) -> Landed:
        """Looks through the Parquet files of a folder."""
        names = folder.files(".parquet")
        columns = pa.schema([LANDING.field(name) for name in _LOOKED_AT])
        tables = [folder.table(name, columns=_LOOKED_AT) for name in names]
        table = pa.concat_tables([columns.empty_table(), *(table.cast(columns) for table in tables)])
        return cls({name: folder.sha256(name) for name in names}, table)

    @property
    def digest(self) -> str:
        """SHA-256 over the digests of all files."""
        lines = "".join(f"{digest} {name}\n" for name, digest in sorted(self.files.items()))
        return hashlib.sha256(lines.encode()).hexdigest()

    @property
    def rows(self) -> int:
        """All rows."""
        return int(self.table.num_rows)

    @property
    def present(self) -> int:
        """Rows that only tell who is there."""
        return int(pc.sum(pc.equal(self.table["operation"], "present")).as_py() or 0)

    @property
    def identities_known(self) -> bool:
        """Whether every row says whose it is."""
        return all(self.table[name].null_count == 0 for name in _IDENTITY)

    def identities(self, walk: int, newcomers: HistoryInterval | None = None, *, repeats: bool = False) -> int:
        """How many different entities a walk met.

        Args:
            walk: its number.
            newcomers: leaves out what was created after the first of these times, up to the second.
            repeats: counts an entity as often as one version of it was met: a broker that is asked for types apart
                counts an entity of several types more than once.
        """
        rows = self._of(walk)
        if newcomers is not None:
            created = rows["created_at"]
            after, until = (pa.scalar(time, created.type) for time in newcomers)
            is_new = pc.and_(pc.greater(created, after), pc.less_equal(created, until))
            rows = rows.filter(pc.invert(pc.fill_null(is_new, False)))
        if not repeats:
            return int(rows.select(_IDENTITY).group_by(_IDENTITY).aggregate([]).num_rows)
        versions = rows.group_by([*_IDENTITY, "version"]).aggregate([([], "count_all")])
        most = versions.group_by(_IDENTITY).aggregate([("count_all", "max")])
        return int(pc.sum(most["count_all_max"]).as_py() or 0)

    def met(self, walk: int) -> set[tuple[str | None, str | None, str | None]]:
        """The identities (path, id, type) of the entities that a walk met."""
        columns = (self._of(walk)[name].to_pylist() for name in _IDENTITY)
        return set(zip(*columns, strict=True))

    def following(self, walk: int) -> int:
        """The number that the next row of a walk has within it."""
        last = pc.max(self._of(walk)["ordinal"]).as_py()
        return 0 if last is None else int(last) + 1 - (walk << WALK_BITS)

    def _of(self, walk: int) -> pa.Table:
        return self.table.filter(pc.equal(pc.shift_right(self.table["ordinal"], WALK_BITS), walk))

    def newest(self, latest: datetime) -> str | None:
        """The greatest modification time up to `latest` among rows with a body, as the broker wrote it."""
        believed = pc.and_(
            pc.equal(self.table["operation"], "upsert"),
            pc.less_equal(self.table["modified_at"], pa.scalar(latest, LANDING.field("modified_at").type)),
        )
        rows = self.table.filter(believed)
        greatest = pc.max(rows["modified_at"])
        if not greatest.is_valid:
            return None
        return str(rows.filter(pc.equal(rows["modified_at"], greatest))["version"][0].as_py())
