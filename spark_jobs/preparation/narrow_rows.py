"""The narrow rows that planning counts in: hashes, times, verdicts and topics, never bodies."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.dataset as ds

from contexture.records.changes import Verdict
from contexture.storage.home import Storage
from contexture.storage.orders import Retry
from contexture.storage.outboxes import Outboxes
from contexture.storage.state import StateReader
from spark_jobs.preparation.outdated import outdated, undone
from spark_jobs.preparation.settings import MAXIMUM_PARTS, Preparation
from spark_jobs.preparation.whole_work import check_seen

NARROW = [
    *("event", "verdict", "identity_hash", "entity_hash", "content_hash"),
    *("modified_at", "entity_modified_at", "expires_at", "received_at", "topic", "meaning"),
    *("notified", "identified"),
]


def narrow_rows(storage: Storage, preparation: Preparation, landed: int) -> Any:
    """Narrow columns in order of events, the order in which everything downstream counts.

    Args:
        storage: the home.
        preparation: what is prepared.
        landed: how many objects were landed; each has an event at least, the first of which is its part 0.

    Raises:
        RetriableError: the storage does not show those of all.
    """
    path = storage.path(f"{preparation.work}/evaluated")
    dataset = ds.dataset(path, filesystem=storage.filesystem, format="parquet")
    table = dataset.to_table(columns=NARROW)
    first_parts = (table.column("event").to_numpy() & (MAXIMUM_PARTS - 1)) == 0
    check_seen(int(first_parts.sum()), landed, "landed objects")
    return table.sort_by("event").combine_chunks()


def without_outdated(storage: Storage, preparation: Preparation, snapshot: Any, reader: StateReader) -> tuple[Any, int]:
    """The snapshot without events of an earlier time that the target holds newer, and how many of these were accepted.

    Such are those that are tried again, and on a replica those of a history.
    """
    if preparation.order.retry is not None:
        rows = outdated(snapshot, reader, _last_sent(storage, preparation, preparation.order.retry))
    elif preparation.skips_outdated:
        rows = undone(snapshot, reader)
    else:
        return snapshot, 0
    skipped = int((np.asarray(snapshot.column("verdict"))[rows] <= Verdict.UNCHANGED).sum())
    return snapshot.take(pa.array(np.delete(np.arange(snapshot.num_rows), rows))), skipped


def _last_sent(storage: Storage, preparation: Preparation, retry: Retry) -> int:
    """The sequence of the last outbox that was sent when the retried events were refused."""
    outboxes = Outboxes(storage, preparation.publication.name)
    sequence = outboxes.manifest(retry.outbox).sequence
    # Of an outbox that was never sent the next one took the number.
    return sequence if outboxes.status(retry.outbox).status == "concluded" else sequence - 1
