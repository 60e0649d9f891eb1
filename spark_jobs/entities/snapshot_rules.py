"""Rules that only a whole snapshot can break, counted on the driver over narrow columns.

A warning is counted in the manifest; an error is a critical expectation of the checkpoint, so nothing is sent.
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
from spark_jobs.entities.attributes import drift
from spark_jobs.entities.superseded import current_rows
from spark_jobs.quality.columns import column_names
from spark_jobs.shared.context import StageContext


def dangling(preparation: StageContext) -> int:
    """How many entities of a whole snapshot refer to an id that nothing known has."""
    rows = current_rows(preparation.work, ["id", "entity_hash", "targets"], ds.field("part") == 0)
    pointer = StatePointer.model_validate_json(preparation.pointer_json)
    return count_dangling(rows, preparation.store.state.reader(pointer))


def count_dangling(rows: Any, state: StateReader) -> int:
    """The same, over the columns `id`, `entity_hash` and `targets`; state is asked only when something is missing."""
    targets = rows.column("targets").combine_chunks()
    named = pc.list_flatten(targets)
    missing = pc.unique(named.filter(pc.invert(pc.is_in(named, value_set=pc.unique(rows.column("id"))))))
    if not len(missing):
        return 0
    held = pa.array(sorted(_held(rows.column("entity_hash"), state)), pa.string())
    missing = missing.filter(pc.invert(pc.is_in(missing, value_set=held)))
    is_missing = pc.is_in(named, value_set=missing)
    return len(pc.unique(pc.list_parent_indices(targets).filter(is_missing)))


def _held(read: Any, state: StateReader) -> set[str]:
    """The ids that state has beside what was read: few, after everything was."""
    known = np.unique(hash_words(read)[0])
    found: set[str] = set()
    for piece in state.pieces(["entity_hash", "identity"]):
        others = ~np.isin(hash_words(piece.column("entity_hash"))[0], known)
        identities = piece.column("identity").filter(pa.array(others)).to_pylist()
        found.update(orjson.loads(identity)[2] for identity in identities)
    return found


TOLERATED_SHARE = 0.001
"""Entities come and go while they are read, so that a count is never quite that of the rows."""


def snapshot_violations(preparation: StageContext, landing: LandingManifest) -> dict[str, int]:
    """How often a snapshot breaks each rule about the whole of it; rules that are off are left out."""
    wanted = severities(preparation.publication.quality.rules)
    found: dict[str, int] = {}
    if "count-zero" in wanted and landing.knows_source:
        found["count-zero"] = int(_is_emptied(preparation, landing))
    if "count-mismatch" in wanted and landing.knows_source:
        rows = _rows(preparation, ["entity_hash"], read=True)
        found["count-mismatch"] = _mismatch(rows, preparation, landing)
    if "dup-across-paths" in wanted:
        found["dup-across-paths"] = across_paths(_rows(preparation, ["service_path", "id", "type"]))
    if "type-drift" in wanted:
        judged = [f"type_{safe}" for safe in column_names(preparation.publication).values()]
        rows = _rows(preparation, ["type", *judged], accepted=True) if judged else None
        found["type-drift"] = len(drift(preparation)) + sum(drifting(rows, column) for column in judged)
    if preparation.judges_targets and landing.complete:
        found["relationship-target"] = dangling(preparation)
    return found


def across_paths(rows: Any) -> int:
    """How many pairs of id and type stand in several service paths; columns `service_path`, `id`, `type`."""
    if len(pc.unique(rows["service_path"])) < 2:
        return 0
    paths = rows.group_by(["id", "type"]).aggregate([("service_path", "count_distinct")])
    return int(pc.sum(pc.greater(paths["service_path_count_distinct"], 1)).as_py() or 0)


def drifting(rows: Any, column: str) -> int:
    """How many entities have an attribute with another NGSI type than most entities of their type.

    Args:
        rows: entities with their `type`.
        column: the attribute's NGSI type; null where an entity lacks it.
    """
    present = rows.select(["type", column]).filter(pc.is_valid(rows[column]))
    counted = present.group_by(["type", column]).aggregate([(column, "count")])
    usual = counted.group_by("type").aggregate([(f"{column}_count", "max")])
    return int(present.num_rows) - int(pc.sum(usual[f"{column}_count_max"]).as_py() or 0)


def mismatch(met: int, counted: int) -> int:
    """By how many entities the rows differ from the broker's count; 0 within the tolerance."""
    difference = abs(met - counted)
    return difference if difference > TOLERATED_SHARE * counted else 0


def _mismatch(rows: Any, preparation: StageContext, landing: LandingManifest) -> int:
    detects = preparation.publication.source.detect_deletions
    reads_all = landing.mode == "full" or landing.watermark_from is None or detects
    return mismatch(len(pc.unique(rows["entity_hash"])), landing.source_count) if reads_all else 0


def _is_emptied(preparation: StageContext, landing: LandingManifest) -> bool:
    held = StatePointer.model_validate_json(preparation.pointer_json).identities
    return landing.source_count == 0 and held > 0 and not preparation.order.confirm_shrink


def _rows(preparation: StageContext, columns: list[str], *, accepted: bool = False, read: bool = False) -> Any:
    """Columns of what arrived, one row per entity: what was accepted of it, or was read and not notified."""
    chosen = ds.field("part") == 0
    if accepted:
        chosen &= ds.field("verdict") <= int(ChangeKind.UNCHANGED)
    if read:
        chosen &= ~ds.field("notified")
    return current_rows(preparation.work, columns, chosen)
