"""The events that a newer version of their identity supersedes, which every count excludes.

The tasks that evaluate a snapshot do not see that an object is shown again later. Planning does, and stores the numbers
of these events beside the narrow rows. Counts, rules about the snapshot, expectations and samples exclude them.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds

from contexture.records.changes import ChangeKind, superseded_rows
from contexture.storage.folder import StoredFolder
from spark_jobs.shared.context import PART_BITS, StageContext

SUPERSEDED = pa.schema([pa.field("event", pa.int64(), nullable=False)])
_FILE = "superseded.parquet"


def without_older_objects(snapshot: Any) -> tuple[Any, Any]:
    """Returns the snapshot without objects whose entity it shows in a later version, and these objects' rows."""
    older = superseded_rows(snapshot, snapshot.column("event").to_numpy() >> PART_BITS)
    if not len(older):
        return snapshot, snapshot.slice(0, 0)
    return snapshot.take(pa.array(np.delete(np.arange(snapshot.num_rows), older))), snapshot.take(pa.array(older))


def save_superseded(work: StoredFolder, events: Any) -> None:
    """Writes the numbers of superseded events where `current_rows` and its siblings find them."""
    table = pa.table([pa.array(np.unique(events), pa.int64())], schema=SUPERSEDED)
    work.write_table(_FILE, table)


def superseded_events(work: StoredFolder) -> Any:
    """Returns the numbers of the superseded events of a run, as an Arrow array; most runs have none."""
    with work.translate_errors(_FILE):
        return work.table(_FILE)["event"].combine_chunks()


def is_current(work: StoredFolder) -> Any:
    """Returns the condition on a dataset with a column `event` that leaves superseded events out."""
    events = superseded_events(work)
    return ~ds.field("event").isin(events) if len(events) else ds.scalar(True)


def current_rows(work: StoredFolder, columns: list[str], chosen: Any = None) -> Any:
    """Returns columns of the narrow rows that no newer version supersedes.

    Args:
        work: the work folder of the run.
        columns: their names.
        chosen: a further condition on the rows.
    """
    dataset = work.folder("evaluated").dataset()
    current = is_current(work)
    return dataset.to_table(columns=columns, filter=current if chosen is None else current & chosen)


def discard_quarantined(context: StageContext, rows: Any, events: Any) -> None:
    """Removes objects from quarantine that a newer version supersedes, because they need no action.

    Args:
        context: of the stage.
        rows: all narrow rows of the snapshot, with `event` and `verdict`.
        events: the superseded events.
    """
    refused = rows.filter(pc.equal(rows.column("verdict"), int(ChangeKind.QUARANTINED))).column("event").to_numpy()
    is_superseded = np.isin(refused, events)
    ordinals = np.setdiff1d(refused[is_superseded] >> PART_BITS, refused[~is_superseded] >> PART_BITS)
    if not len(ordinals):
        return
    quarantine = context.quarantine
    for part in quarantine.parts:
        table = quarantine.table(part)
        kept = table.filter(pc.invert(pc.is_in(table.column("ordinal"), value_set=pa.array(ordinals))))
        if not kept.num_rows:
            quarantine.remove(part)
        elif kept.num_rows < table.num_rows:
            quarantine.write_table(part, kept)
