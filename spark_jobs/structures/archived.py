"""Landing a registry's transactions from archived landings: the rows as they were read then."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds

from contexture.storage.home import Storage
from contexture.storage.schemas import LANDING
from spark_jobs.structures.intake import Intake
from spark_jobs.structures.landing_file import LandingFile, Row, landing_file
from spark_jobs.structures.landing_units import batches_of, units_of

FILE = "part-archive.parquet"

Places = Mapping[int, int]
"""New ordinals of archived rows, by their old ones."""


def archived_rows(storage: Storage, landing: str, transaction: int, only: frozenset[str] | None) -> list[int]:
    """Ordinals of the rows that an archived landing has of a transaction, in order; `only` those of these."""
    files = [storage.path(f"{landing}/{name}") for name in storage.files(landing, ".parquet")]
    with storage.translating(landing):
        dataset: Any = ds.dataset(files, filesystem=storage.filesystem, format="parquet")
        wanted = ds.field("source_transaction") == transaction
        rows = dataset.to_table(columns=["ordinal", "id"], filter=wanted).to_pylist()
    return sorted(row["ordinal"] for row in rows if only is None or row["id"] in only)


def copy_rows(intake: Intake, places: Mapping[str, Places]) -> None:
    """Copies archived rows into the landing.

    Args:
        intake: of the landing.
        places: of the rows, by the folder of the archived landing that they are in.
    """
    if not places:
        return
    storage = Storage(intake.reading.home)
    with landing_file(storage, f"{intake.reading.folder}/{FILE}") as file:
        for landing, ordinals in places.items():
            for batch in _batches(storage, landing, ordinals):
                _add(file, batch, ordinals)
    intake.tally.note_file(FILE, file.sha256, file.rows)


def _batches(storage: Storage, landing: str, ordinals: Places) -> Iterator[Any]:
    wanted = pa.array(list(ordinals), pa.int64())
    for unit in units_of(storage, landing):
        for batch in batches_of(storage, landing, unit):
            kept = batch.filter(pc.is_in(batch.column("ordinal"), value_set=wanted))
            if kept.num_rows:
                yield kept


def _add(file: LandingFile, batch: Any, ordinals: Places) -> None:
    for number in range(batch.num_rows):
        row: Row = batch.slice(number, 1).to_pylist()[0]
        file.add({**_known(row), "ordinal": ordinals[row["ordinal"]]})


def _known(row: Row) -> Row:
    found: Row = {name: value for name, value in row.items() if name in LANDING.names}  # type: ignore[assignment]
    return found
