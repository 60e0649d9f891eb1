"""Events that contradict each other: other content for one identity at one time. None of them is sent."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq

from contexture.storage.home import Storage
from contexture.storage.schemas import QUARANTINE
from spark_jobs.preparation.settings import PART_BITS, Preparation

RULE = "duplicate"
MESSAGE = "the source shows other content for the same identity and the same time of change"


def quarantine_conflicts(storage: Storage, preparation: Preparation, events: Any) -> None:
    """Writes the landing rows of contradicting events to quarantine."""
    if not len(events):
        return
    ordinals = pa.array(np.unique(events >> PART_BITS))
    folder = storage.path(preparation.folder.landing(preparation.order.run))
    dataset = ds.dataset(folder, filesystem=storage.filesystem, format="parquet", exclude_invalid_files=True)
    rows = dataset.to_table(filter=ds.field("ordinal").isin(ordinals))
    for name, text in (("rule", RULE), ("severity", "error"), ("message", MESSAGE)):
        rows = rows.append_column(name, pa.array([text] * rows.num_rows))
    target = f"{preparation.folder.quarantine(preparation.outbox)}/conflicts.parquet"
    with storage.replacing(target) as path:
        pq.write_table(rows.select(QUARANTINE.names).cast(QUARANTINE), path, filesystem=storage.filesystem)
