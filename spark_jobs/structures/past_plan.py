"""What is different about planning what a registry did in the past: it starts from what there was then.

State knows what the target holds now. That says nothing of then, but on a replica it says what would be undone.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import orjson
import pyarrow as pa
import pyarrow.compute as pc

from contexture.records.changes.structure_changes import (
    HeldStructure,
    PlannedRecord,
    PlannedTransaction,
    Routes,
    StructureEvent,
)
from contexture.records.changes.structure_plan import StructurePlan
from contexture.storage.home import Storage
from spark_jobs.preparation.settings import Preparation
from spark_jobs.structures.columns import PLANNED

_SOME_CONTENT = b"\x01" * 32
"""Nobody knows what a structure was before the first transaction that tells it."""


def held_before(storage: Storage, preparation: Preparation, routes: Routes) -> dict[str, HeldStructure]:
    """What the target held of the structures that there were, by today's routes; the landing says which."""
    urns = orjson.loads(storage.read(preparation.folder.landing_before(preparation.order.run)))
    topics = routes.route(urns, held=urns).topics
    return {urn: HeldStructure(_SOME_CONTENT, topics.get(urn, ())) for urn in urns}


def without(looked_at: Any, transactions: Sequence[int]) -> Any:
    """The rows without those of transactions of which not all was landed."""
    if not transactions:
        return looked_at
    is_out = pc.is_in(looked_at.column("source_transaction"), value_set=pa.array(transactions, pa.int64()))
    return looked_at.filter(pc.invert(is_out)).combine_chunks()


def still_newest(
    plan: StructurePlan, events: Sequence[StructureEvent], now: Mapping[str, HeldStructure]
) -> tuple[StructurePlan, int]:
    """The plan with what undoes nothing on a replica, and how many records are left out.

    A value is kept where it is the last of its structure in a topic, and the target holds just that content there; a
    tombstone, where it is the last word too, and the target holds nothing.
    """
    contents = {event.event: event.content_hash for event in events}
    last = {(each.urn, each.topic): each for step in plan.transactions for each in step.records}
    kept: list[PlannedTransaction] = []
    for transaction in plan.transactions:
        records = tuple(
            each
            for each in transaction.records
            if last[each.urn, each.topic] is each and _agrees(each, contents, now.get(each.urn))
        )
        if records:
            kept.append(replace(transaction, records=records))
    every = sum(len(transaction.records) for transaction in plan.transactions)
    return replace(plan, transactions=tuple(kept)), every - sum(len(transaction.records) for transaction in kept)


def _agrees(record: PlannedRecord, contents: Mapping[int, bytes], held: HeldStructure | None) -> bool:
    is_there = held is not None and record.topic in held.topics
    if record.event is None:
        return not is_there
    return held is not None and is_there and held.content_hash == contents[record.event]


def readdressed(records: Any, prefix: str) -> Any:
    """Planned records for other topics."""
    if not prefix:
        return records
    topics = pc.binary_join_element_wise(prefix, records.column("topic").cast(pa.string()), "")
    return records.set_column(records.schema.get_field_index("topic"), "topic", topics).cast(PLANNED)
