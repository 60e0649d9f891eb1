"""Telling which structures were converted, and what each of them lost."""

from __future__ import annotations

import logging
from typing import Any

import pyarrow.compute as pc
import pyarrow.parquet as pq

from contexture.records.changes import Verdict
from contexture.storage.home import Storage
from contexture.storage.schemas import TRANSCODED
from spark_jobs.preparation.settings import Preparation

_SHOWN = 20
_log = logging.getLogger(__name__)


def tell_transcoded(preparation: Preparation, rows: Any) -> int:
    """Writes the list of converted structures into the outbox, the first of them into the log; gives their number.

    Args:
        preparation: of the outbox.
        rows: what planning has left, with the columns of EVALUATED.
    """
    is_accepted = pc.less_equal(rows.column("verdict"), int(Verdict.UNCHANGED))
    found = rows.filter(pc.and_(is_accepted, pc.is_valid(rows.column("transcoded_from"))))
    if not found.num_rows:
        return 0
    table = found.select(TRANSCODED.names).cast(TRANSCODED)
    storage = Storage(preparation.home)
    with storage.replacing(preparation.folder.transcoded(preparation.outbox)) as path:
        pq.write_table(table, path, filesystem=storage.filesystem)
    _log_first(table)
    return int(table.num_rows)


def _log_first(table: Any) -> None:
    lossy = table.filter(pc.is_valid(table.column("lost")))
    _log.warning("%d structures were converted, %d of them with a loss", table.num_rows, lossy.num_rows)
    for row in lossy.slice(0, _SHOWN).to_pylist():
        _log.warning("%s was converted from %s, without %s", row["urn"], row["transcoded_from"], row["lost"])
    if lossy.num_rows > _SHOWN:
        _log.warning("and %d more: transcoded.parquet of the outbox lists all", lossy.num_rows - _SHOWN)
