"""Ending a run: state moves on by one pointer, and what retention says goes.

Concluding twice is harmless, and a process that dies in between leaves either the old state or the new one.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from contexture.outbox.layout import PublicationFolder
from contexture.outbox.lifecycle import ENDS, Outboxes
from contexture.outbox.manifest import Manifest
from contexture.outbox.schemas import STATE
from contexture.outbox.state import State, StatePointer
from contexture.outbox.storage import Storage

MERGE_SHARE = 0.2
"""A new base is written when the deltas hold more rows than this share of the base."""
MERGE_FILES = 50


def conclude(storage: Storage, manifest: Manifest, *, cluster: str | None, target: str | None) -> StatePointer:
    """Makes what the outbox sent the state that the next run compares with, then marks the outbox concluded.

    The caller has seen every shard committed. A backfill's outbox touches neither state nor watermark.

    Raises:
        ConfigurationError: the outbox is not approved; state stays as it is.
        RetriableError: the storage failed; concluding again ends what was begun.
    """
    outboxes = Outboxes(storage, manifest.publication)
    outboxes.movable(manifest.outbox, "concluded")
    state = State(storage, manifest.publication)
    pointer = state.pointer()
    if manifest.mode != "backfill" and pointer.sequence < manifest.sequence:
        before, pointer = pointer, _advance(state, pointer, manifest, cluster, target)
        state.point(pointer)
        _remove_unused(state, {*before.files, *pointer.files})
    outboxes.move(manifest.outbox, "concluded", reason=f"{manifest.records} records committed")
    return pointer


def owe_full(storage: Storage, publication: str, reason: str) -> None:
    """Makes the next run of a publication send everything."""
    state = State(storage, publication)
    state.point(state.pointer().model_copy(update={"owes_full": reason}))


def expire(storage: Storage, publication: str, *, archive_days: int, now: datetime) -> list[str]:
    """Removes outboxes at their end, with all that belongs to their runs, when they are older than the archive."""
    outboxes = Outboxes(storage, publication)
    limit = now.astimezone(UTC) - timedelta(days=archive_days)
    old = [item for item in outboxes.all() if item.status in ENDS and item.steps[-1].at < limit]
    for item in old:
        _remove(storage, outboxes.folder, item.outbox, outboxes.manifest(item.outbox).run)
    return [item.outbox for item in old]


def _remove(storage: Storage, folder: PublicationFolder, outbox: str, run: str) -> None:
    # The status goes near the end: while it is there, a removal that was cut short is done again. The manifest, which
    # that needs, goes after it.
    for path in (
        folder.landing(run),
        folder.orders(run),
        folder.quarantine(outbox),
        folder.report(outbox),
        folder.status(outbox),
        folder.outbox(outbox),
    ):
        storage.remove(path)


def _advance(
    state: State, pointer: StatePointer, manifest: Manifest, cluster: str | None, target: str | None
) -> StatePointer:
    delta = _delta(state, manifest)
    files, rows = _write(state, pointer, delta, manifest.sequence)
    return StatePointer(
        generation=pointer.generation + 1,
        sequence=manifest.sequence,
        outbox=manifest.outbox,
        files=files,
        rows=rows,
        identities=pointer.identities + _growth(state, pointer, delta),
        watermark=manifest.watermark or pointer.watermark,
        fingerprint=manifest.fingerprint,
        cluster=cluster,
        target=target,
        owes_full=None if manifest.mode == "full" else pointer.owes_full,
        concluded_at=datetime.now(UTC),
    )


def _write(state: State, pointer: StatePointer, delta: Any, sequence: int) -> tuple[tuple[str, ...], tuple[int, ...]]:
    """Writes the delta, and a new base when the deltas have grown; gives the files of the new state with their rows."""
    files, rows = pointer.files, pointer.rows
    if delta.num_rows:
        files, rows = (*files, f"delta-{sequence:012d}.parquet"), (*rows, delta.num_rows)
        state.write(files[-1], delta)
    if not _wants_merging(rows):
        return files, rows
    base = state.table(pointer.model_copy(update={"files": files}))
    name = f"base-{sequence:012d}.parquet"
    state.write(name, base)
    return (name,), (base.num_rows,)


def _delta(state: State, manifest: Manifest) -> Any:
    folder = state.folder.state_delta(manifest.outbox)
    names = state.storage.files(folder, ".parquet")
    parts = [
        pq.read_table(state.storage.path(f"{folder}/{name}"), filesystem=state.storage.filesystem, partitioning=None)
        for name in names
    ]
    return pa.concat_tables([STATE.empty_table(), *(part.cast(STATE) for part in parts)])


def _growth(state: State, pointer: StatePointer, delta: Any) -> int:
    """How many identities the delta adds; removed ones count against it."""
    known = state.table(pointer, ["identity_hash"]).column("identity_hash")
    is_known = pc.is_in(delta.column("identity_hash"), value_set=known)
    removed = delta.column("removed")
    added = pc.and_(pc.invert(is_known), pc.invert(removed))
    gone = pc.and_(is_known, removed)
    return int((pc.sum(added).as_py() or 0) - (pc.sum(gone).as_py() or 0))


def _wants_merging(rows: tuple[int, ...]) -> bool:
    return len(rows) > 1 and (sum(rows[1:]) > MERGE_SHARE * rows[0] or len(rows) > MERGE_FILES)


def _remove_unused(state: State, used: set[str]) -> None:
    # The files of the generation before stay, for whoever is reading them just now.
    for name in state.storage.files(state.folder.state(), ".parquet"):
        if name not in used:
            state.storage.remove(f"{state.folder.state()}/{name}")
