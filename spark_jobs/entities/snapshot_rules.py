"""The rules that only a whole snapshot can break, counted on the driver over narrow columns.

A warning is counted in the manifest. An error is a critical expectation of the checkpoint, so that nothing is sent.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import orjson
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds

from contexture.records.changes import ChangeKind
from contexture.records.changes.identity_hashes import hash_words
from contexture.sources.ngsi.rules.catalogue import severities
from contexture.storage.manifests import LandingManifest
from contexture.storage.state import StatePointer, StateReader
from spark_jobs.entities.attributes import find_type_drift
from spark_jobs.entities.superseded import current_rows
from spark_jobs.quality.columns import column_names
from spark_jobs.shared.context import StageContext


def _count_dangling(context: StageContext) -> int:
    """Counts the entities of the snapshot that refer to an id that no known entity has."""
    rows = current_rows(context.work, ["id", "entity_hash", "targets"], ds.field("part") == 0)
    pointer = StatePointer.model_validate_json(context.pointer_json)
    return count_dangling(rows, context.store.state.reader(pointer))


def count_dangling(rows: Any, state: StateReader) -> int:
    """Counts the entities that refer to an id that neither they nor state have.

    State is read only if an id is missing.

    Args:
        rows: entities with the columns `id`, `entity_hash` and `targets`.
        state: the state to compare with.
    """
    targets = rows.column("targets").combine_chunks()
    named = pc.list_flatten(targets)
    missing = pc.unique(named.filter(pc.invert(pc.is_in(named, value_set=pc.unique(rows.column("id"))))))
    if not len(missing):
        return 0
    held = pa.array(sorted(_other_ids(rows.column("entity_hash"), state)), pa.string())
    missing = missing.filter(pc.invert(pc.is_in(missing, value_set=held)))
    is_missing = pc.is_in(named, value_set=missing)
    return len(pc.unique(pc.list_parent_indices(targets).filter(is_missing)))


def _other_ids(read: Any, state: StateReader) -> set[str]:
    """Returns the ids that state has beside those that were read; few after a full read."""
    known = np.unique(hash_words(read)[0])
    found: set[str] = set()
    for piece in state.pieces(["entity_hash", "identity"]):
        others = ~np.isin(hash_words(piece.column("entity_hash"))[0], known)
        identities = piece.column("identity").filter(pa.array(others)).to_pylist()
        found.update(orjson.loads(identity)[2] for identity in identities)
    return found


TOLERATED_SHARE = 0.001
"""Entities are created and deleted during a read, so that a count rarely equals the number of rows."""


def snapshot_violations(context: StageContext, landing: LandingManifest) -> dict[str, int]:
    """Counts how often a snapshot breaks each rule about the whole of it; rules that are off are not in the result."""
    active = severities(context.publication.quality.rules)
    found: dict[str, int] = {}
    if "count-zero" in active and landing.knows_source:
        found["count-zero"] = int(_is_emptied(context, landing))
    if "count-mismatch" in active and landing.knows_source:
        rows = _rows(context, ["entity_hash"], read=True)
        found["count-mismatch"] = _mismatch(rows, context, landing)
    if "dup-across-paths" in active:
        found["dup-across-paths"] = count_across_paths(_rows(context, ["service_path", "id", "type"]))
    if "type-drift" in active:
        judged = [f"type_{safe}" for safe in column_names(context.publication).values()]
        rows = _rows(context, ["type", *judged], accepted=True) if judged else None
        found["type-drift"] = len(find_type_drift(context)) + sum(
            count_unusual_types(rows, column) for column in judged
        )
    if context.judges_targets and landing.complete:
        found["relationship-target"] = _count_dangling(context)
    return found


def count_across_paths(rows: Any) -> int:
    """Counts the pairs of id and type that are in several service paths; columns `service_path`, `id`, `type`."""
    if len(pc.unique(rows["service_path"])) < 2:
        return 0
    paths = rows.group_by(["id", "type"]).aggregate([("service_path", "count_distinct")])
    return int(pc.sum(pc.greater(paths["service_path_count_distinct"], 1)).as_py() or 0)


def count_unusual_types(rows: Any, column: str) -> int:
    """Counts the entities with an attribute of another NGSI type than in most entities of their type.

    Args:
        rows: entities with their `type`.
        column: the attribute's NGSI type; null if an entity lacks the attribute.
    """
    present = rows.select(["type", column]).filter(pc.is_valid(rows[column]))
    counted = present.group_by(["type", column]).aggregate([(column, "count")])
    usual = counted.group_by("type").aggregate([(f"{column}_count", "max")])
    return int(present.num_rows) - int(pc.sum(usual[f"{column}_count_max"]).as_py() or 0)


def count_mismatch(read: int, counted: int) -> int:
    """Returns the difference between the rows and the broker's count; 0 within the tolerance."""
    difference = abs(read - counted)
    return difference if difference > TOLERATED_SHARE * counted else 0


def _mismatch(rows: Any, context: StageContext, landing: LandingManifest) -> int:
    detects = context.publication.source.detect_deletions
    reads_all = landing.mode == "full" or landing.watermark_from is None or detects
    return count_mismatch(len(pc.unique(rows["entity_hash"])), landing.source_count) if reads_all else 0


def _is_emptied(context: StageContext, landing: LandingManifest) -> bool:
    held = StatePointer.model_validate_json(context.pointer_json).identities
    return landing.source_count == 0 and held > 0 and not context.order.confirm_shrink


def _rows(context: StageContext, columns: list[str], *, accepted: bool = False, read: bool = False) -> Any:
    """Reads columns of the narrow rows, one row per entity: only accepted rows, or only rows that were not notified."""
    chosen = ds.field("part") == 0
    if accepted:
        chosen &= ds.field("verdict") <= int(ChangeKind.UNCHANGED)
    if read:
        chosen &= ~ds.field("notified")
    return current_rows(context.work, columns, chosen)
