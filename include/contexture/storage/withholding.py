"""What state says of identities whose records went to the dead-letter topic: the target does not hold what was read.

Outboxes of publications with dead letters say for each record which identities it tells, so that exactly these are
withheld. Where nothing of an identity was sent, its old row of state stays, marked; it may have none. Where something
was (an earlier change of it, or the same for another topic), what the target holds is neither the old content nor the
new: its row has a content that nothing equals, so that whatever the source holds next is sent.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq

from contexture.errors import DefectError
from contexture.storage.layout import SHARD_FILE
from contexture.storage.manifest import Manifest
from contexture.storage.schemas import HASH_BYTES, IDENTITIES, STATE
from contexture.storage.state import State, StatePointer

UNKNOWN_CONTENT: Final = bytes(32)
"""The content hash of what is held and not known; no content has it."""

_FILE: Final = "withheld.parquet"
_READ: Final = ["position", "topic", IDENTITIES.name]


@dataclass(slots=True)
class _Fates:
    """What became of the records of identities: whether any was sent, and of each topic whether the last was."""

    sent: set[bytes] = field(default_factory=set)
    last_refused: dict[tuple[bytes, str], bool] = field(default_factory=dict)

    @property
    def withheld(self) -> set[bytes]:
        """The identities of which a topic lacks the last record."""
        return {identity for (identity, _), refused in self.last_refused.items() if refused}


def withhold(state: State, pointer: StatePointer, manifest: Manifest, refused: Mapping[int, Sequence[int]]) -> None:
    """Adds to what concluding an outbox changes in state: the identities of refused records are withheld.

    Doing it again writes the same, as long as `pointer` is the state that the outbox was compared with.

    Args:
        state: whose.
        pointer: the state before the outbox.
        manifest: the outbox.
        refused: positions of records that are in the dead-letter topic, by shard.

    Raises:
        DefectError: the outbox doesn't say whom its records tell.
    """
    fates = _fates(state, manifest, refused)
    rows = _delta_rows(state, manifest, fates.withheld)
    if not rows:
        return
    entities = pa.array([row["entity_hash"] for row in rows.values()], STATE.field("entity_hash").type)
    held = state.reader(pointer).of_entities(entities, STATE.names).to_pylist()
    before = {row["identity_hash"]: row for row in held}
    made = [_row(row, before.get(identity), was_sent=identity in fates.sent) for identity, row in rows.items()]
    # Behind the files of shards, so that it has the last word.
    with state.storage.replacing(f"{state.folder.state_delta(manifest.outbox)}/{_FILE}") as path:
        pq.write_table(pa.Table.from_pylist(made, schema=STATE), path, filesystem=state.storage.filesystem)


def _row(told: dict[str, Any], before: dict[str, Any] | None, *, was_sent: bool) -> dict[str, Any]:
    if was_sent:
        return {**told, "content_hash": UNKNOWN_CONTENT, "withheld": True, "removed": False}
    if before is None:
        return {**told, "removed": True}
    if told["removed"]:
        return {**before, "withheld": True}
    # It was seen in the source: no mark of its absence holds any longer.
    return {**before, "withheld": True, "missing_since": None, "expires_at": told["expires_at"]}


def _fates(state: State, manifest: Manifest, refused: Mapping[int, Sequence[int]]) -> _Fates:
    shards = {shard: _told_by(state, manifest, shard) for shard, positions in refused.items() if positions}
    meant = {
        identity for shard, rows in shards.items() for position in refused[shard] for identity in rows[position][1]
    }
    fates = _Fates()
    for each in manifest.shards:
        rows = shards.get(each.shard) or (_told_by(state, manifest, each.shard) if each.records and meant else [])
        left_out = set(refused.get(each.shard, ()))
        for position, (topic, identities) in enumerate(rows):
            for identity in meant.intersection(identities):
                fates.last_refused[identity, topic] = position in left_out
                if position not in left_out:
                    fates.sent.add(identity)
    return fates


def _told_by(state: State, manifest: Manifest, shard: int) -> list[tuple[str, list[bytes]]]:
    """Topic and identities of each record of a shard, in order."""
    path = f"{state.folder.shard(manifest.outbox, shard)}/{SHARD_FILE}"
    with state.storage.translating(path):
        known, filesystem = state.storage.path(path), state.storage.filesystem
        if IDENTITIES.name not in pq.read_schema(known, filesystem=filesystem).names:
            raise DefectError(
                f"outbox {manifest.outbox} does not say whom its records tell, and some are in the dead-letter topic",
                next_step="abandon the outbox, so that the next run sends everything, and report this",
                outbox=manifest.outbox,
            )
        table = pq.read_table(known, columns=_READ, filesystem=filesystem, partitioning=None)
    columns = (table.column(name).to_pylist() for name in _READ)
    return [(topic, _split(identities or b"")) for _, topic, identities in zip(*columns, strict=True)]


def _split(identities: bytes) -> list[bytes]:
    return [identities[at : at + HASH_BYTES] for at in range(0, len(identities), HASH_BYTES)]


def _delta_rows(state: State, manifest: Manifest, identities: set[bytes]) -> dict[bytes, dict[str, Any]]:
    """What the shards' files say of these identities; the last word of each."""
    folder, found = state.folder.state_delta(manifest.outbox), {}
    wanted = pa.array(sorted(identities), STATE.field("identity_hash").type)
    for name in state.storage.files(folder, ".parquet"):
        if name == _FILE:
            continue
        with state.storage.translating(f"{folder}/{name}"):
            path, filesystem = state.storage.path(f"{folder}/{name}"), state.storage.filesystem
            chosen = pq.read_table(
                path, filesystem=filesystem, partitioning=None, filters=ds.field("identity_hash").isin(wanted)
            )
        for row in chosen.select(STATE.names).to_pylist():
            found[row["identity_hash"]] = row
    return found
