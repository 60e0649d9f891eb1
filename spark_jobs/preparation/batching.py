"""Which events are sent, and in which batches."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from contexture.records.batches import plan as plan_batches
from contexture.records.changes import Comparison, Verdict
from contexture.storage.home import Storage
from spark_jobs.preparation.event_plan import EventPlan
from spark_jobs.preparation.settings import Preparation
from spark_jobs.preparation.turns import Turns


def sent_events(
    storage: Storage, preparation: Preparation, snapshot: Any, comparison: Comparison, turns: Turns | None
) -> EventPlan:
    """The events that are sent, in order; what turns add to them is written.

    Args:
        storage: the home.
        preparation: what is prepared.
        snapshot: narrow rows, in order of events.
        comparison: of the snapshot with state.
        turns: events told one after the other; None where state alone says what is sent.
    """
    kept = np.asarray(pc.equal(snapshot.column("verdict"), Verdict.SEND)).copy()
    final = np.ones(len(kept), dtype=bool)
    kept[comparison.superseded] = False
    kept[comparison.conflicting] = False
    if turns is not None:
        kept[turns.succession.looked_at] = final[turns.succession.looked_at] = False
        kept[turns.succession.sent] = final[turns.succession.final] = True
    sent = snapshot.select(["event", "received_at", "topic"]).filter(pa.array(kept))
    events = sent.column("event").to_numpy()
    cuts = [] if turns is None else np.searchsorted(np.flatnonzero(kept), turns.told_by)
    batch, sub_batch, told = _batches(preparation, sent, cuts)
    if turns is not None:
        turns.save(storage, preparation, snapshot, told)
    return EventPlan(events, batch, sub_batch, final[kept])


def _batches(preparation: Preparation, sent: Any, cuts: Any) -> tuple[Any, Any, list[int]]:
    """Batch and sub-batch of each event, and the batch that each deletion among them has for itself.

    Args:
        preparation: what is prepared.
        sent: the events.
        cuts: how many of them stand before each deletion; never falling.
    """
    topics = sent.column("topic").combine_chunks().dictionary_encode().indices.to_numpy().astype(np.int64)
    arrived = sent.column("received_at").cast(pa.int64()).to_numpy()
    batches = preparation.publication.batches
    batch, sub_batch = np.empty(len(topics), np.int64), np.empty(len(topics), np.int64)
    told: list[int] = []
    start = following = 0
    for cut in [*cuts, len(topics)]:
        if cut > start:
            planned = plan_batches(
                arrived[start:cut],
                topics[start:cut],
                batch_size=batches.batch_size,
                batch_timeout_seconds=batches.batch_timeout,
            )
            batch[start:cut], sub_batch[start:cut] = planned.batch + following, planned.sub_batch
            start, following = cut, following + int(planned.batch[-1]) + 1
        told.append(following)
        following += 1
    return batch, sub_batch, told[:-1]
