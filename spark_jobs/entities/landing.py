"""The contents of a landing folder: digests, counts, seen identities, and the newest change."""

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
_COLUMNS = ["ordinal", "operation", "version", "created_at", "modified_at", *_IDENTITY]

TimeSpan = tuple[datetime, datetime]


@dataclass(frozen=True, slots=True)
class ScannedLanding:
    """The scanned Parquet files of a landing folder.

    Attributes:
        files: SHA-256 of each file by its name.
        table: the columns that reading needs, of all rows.
    """

    files: Mapping[str, str]
    table: pa.Table

    @classmethod
    def scan(cls, folder: StoredFolder) -> ScannedLanding:
        """Reads the columns and digests of the Parquet files in a folder."""
        names = folder.files(".parquet")
        columns = pa.schema([LANDING.field(name) for name in _COLUMNS])
        tables = [folder.table(name, columns=_COLUMNS) for name in names]
        table = pa.concat_tables([columns.empty_table(), *(table.cast(columns) for table in tables)])
        return cls({name: folder.sha256(name) for name in names}, table)

    @property
    def digest(self) -> str:
        """The SHA-256 of the digests of all files."""
        lines = "".join(f"{digest} {name}\n" for name, digest in sorted(self.files.items()))
        return hashlib.sha256(lines.encode()).hexdigest()

    @property
    def rows(self) -> int:
        """The number of all rows."""
        return int(self.table.num_rows)

    @property
    def present(self) -> int:
        """The number of rows that only name an existing entity."""
        return int(pc.sum(pc.equal(self.table["operation"], "present")).as_py() or 0)

    @property
    def has_identities(self) -> bool:
        """Whether every row has path, id and type of its entity."""
        return all(self.table[name].null_count == 0 for name in _IDENTITY)

    def count_identities(self, walk: int, newcomers: TimeSpan | None = None, *, repeats: bool = False) -> int:
        """Counts the different entities that a walk returned.

        Args:
            walk: its number.
            newcomers: excludes entities created after the first of these times, up to the second.
            repeats: counts an entity as often as one version of it was returned, because a broker that is queried by
                type counts an entity of several types more than once.
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

    def seen_identities(self, walk: int) -> set[tuple[str | None, str | None, str | None]]:
        """Returns the identities (path, id, type) of the entities that a walk returned."""
        columns = (self._of(walk)[name].to_pylist() for name in _IDENTITY)
        return set(zip(*columns, strict=True))

    def next_number(self, walk: int) -> int:
        """Returns the number of the next row within a walk."""
        last = pc.max(self._of(walk)["ordinal"]).as_py()
        return 0 if last is None else int(last) + 1 - (walk << WALK_BITS)

    def _of(self, walk: int) -> pa.Table:
        return self.table.filter(pc.equal(pc.shift_right(self.table["ordinal"], WALK_BITS), walk))

    def newest_version(self, latest: datetime) -> str | None:
        """Returns the latest modification time up to `latest` among rows with a body, as the broker wrote it."""
        is_counted = pc.and_(
            pc.equal(self.table["operation"], "upsert"),
            pc.less_equal(self.table["modified_at"], pa.scalar(latest, LANDING.field("modified_at").type)),
        )
        rows = self.table.filter(is_counted)
        greatest = pc.max(rows["modified_at"])
        if not greatest.is_valid:
            return None
        return str(rows.filter(pc.equal(rows["modified_at"], greatest))["version"][0].as_py())
