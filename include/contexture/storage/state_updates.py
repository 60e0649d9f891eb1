"""How a concluded run changes state: its delta is merged, and what went to the dead-letter topic is withheld.

Outboxes of publications with dead letters record for each row which identities it holds, so that exactly these are
withheld. Where nothing of an identity was sent, its old row of state stays, marked; it may have none. Where something
was (an earlier change of it, or the same for another topic), what Kafka holds is neither the old content nor the new:
its row has a content that nothing equals, so that whatever the source holds next is sent.

A run that changes little writes little: a delta is merged with the files before it only when what is newer than one of
them outgrows a share of it. So each file is several times as large as all that are newer, their number grows with the
logarithm of what is held, and a changed row is rewritten some times on its way into the base, however large that is.
Memory holds a chunk of rows, never a whole file.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from contexture.errors import DefectError
from contexture.storage.folder import StoredFolder
from contexture.storage.manifests import Manifest
from contexture.storage.publication_store import SHARD_FILE, OutboxStore, PublicationStore
from contexture.storage.schemas import HASH_BYTES, IDENTITIES, STATE
from contexture.storage.state import State, StatePointer
from contexture.storage.state_files import KEYS, StateFile, latest, merged, writing

MERGE_SHARE = 0.2
"""A file is merged with all newer ones when they hold more rows than this share of its own."""
ROWS_IN_CHUNK = 250_000
"""Rows that are sorted in memory at once, some 200 bytes each."""


@dataclass(frozen=True, slots=True)
class Written:
    """The files of a generation, older ones first, with their rows, and how many identities they hold together."""

    files: tuple[str, ...]
    rows: tuple[int, ...]
    identities: int


def advance(
    state: State,
    pointer: StatePointer,
    changes: StoredFolder,
    sequence: int,
    *,
    rows_in_chunk: int = ROWS_IN_CHUNK,
    suffix: str = "",
) -> Written:
    """Writes the files of the generation that follows on `pointer`, and points to none of them.

    Args:
        state: whose.
        pointer: the generation before.
        changes: a folder of STATE rows as shards wrote them, later files over earlier ones.
        sequence: of the outbox that is concluded; the same inputs give the same files, byte for byte.
        rows_in_chunk: what is sorted in memory at once.
        suffix: distinguishes the files from those of the outbox of that sequence, where they are not its changes.
    """
    label = f"{sequence:012d}{suffix}"
    before = Written(pointer.files, pointer.rows, pointer.identities)
    deltas = list(_deltas(state, _chunks(changes, rows_in_chunk), label))
    if not deltas:
        return before
    first = merge_from(before.rows, sum(rows for _, rows in deltas))
    if not first:
        return _new_base(state, [*before.files, *(name for name, _ in deltas)], label)
    growth = _growth(state, before, [name for name, _ in deltas])
    newest = _merged(state, [*zip(before.files, before.rows, strict=True)][first:] + deltas, label)
    files, rows = zip(*[*zip(before.files, before.rows, strict=True)][:first], newest, strict=True)
    return Written(files, rows, before.identities + growth)


def merge_from(rows: Sequence[int], added: int) -> int:
    """The first of the files (their rows are given, older ones first) that is merged with what is added."""
    newer = [added + sum(rows[place + 1 :]) for place in range(len(rows))]
    outgrown = (place for place in range(len(rows)) if newer[place] > MERGE_SHARE * rows[place])
    return next(outgrown, len(rows))


def _deltas(state: State, chunks: Iterator[Any], label: str) -> Iterator[tuple[str, int]]:
    """Sorted files of what the run changed, with their rows; one, unless there is much of it."""
    for number, chunk in enumerate(chunks):
        name = f"delta-{label}{f'-{number:03d}' if number else ''}.parquet"
        with writing(state.folder, name) as file:
            file.write(latest(chunk, keep_removed=True))
        yield name, file.rows


def _chunks(folder: StoredFolder, rows_in_chunk: int) -> Iterator[Any]:
    parts: list[Any] = []
    rows = 0
    for batch in _batches(folder, rows_in_chunk):
        parts.append(batch)
        rows += batch.num_rows
        if rows >= rows_in_chunk:
            yield pa.Table.from_batches(parts).select(STATE.names).cast(STATE)
            parts, rows = [], 0
    if rows:
        yield pa.Table.from_batches(parts).select(STATE.names).cast(STATE)


def _batches(folder: StoredFolder, rows: int) -> Iterator[Any]:
    for name in folder.files(".parquet"):
        with (
            folder.translate_read_errors(name),
            folder.open_table(name, pre_buffer=False, page_checksum_verification=True) as file,
        ):
            yield from file.iter_batches(batch_size=rows, columns=STATE.names)


def _new_base(state: State, names: Sequence[str], label: str) -> Written:
    name = f"base-{label}.parquet"
    rows = _merge(state, names, name, keep_removed=False)
    return Written((name,), (rows,), rows)


def _merged(state: State, newest: Sequence[tuple[str, int]], label: str) -> tuple[str, int]:
    """The newest files as one; nothing is written when there is one."""
    if len(newest) == 1:
        return newest[0]
    name = f"merged-{label}.parquet"
    return name, _merge(state, [each for each, _ in newest], name, keep_removed=True)


def _merge(state: State, names: Sequence[str], into: str, *, keep_removed: bool) -> int:
    files = [StateFile(state.folder, name) for name in names]
    with writing(state.folder, into) as target:
        for piece in merged(files, STATE.names, keep_removed=keep_removed):
            target.write(piece)
    return target.rows


def _growth(state: State, before: Written, deltas: Sequence[str]) -> int:
    """How many identities the deltas add; removed ones count against it."""
    pointer = StatePointer(files=before.files)
    files = [StateFile(state.folder, name) for name in deltas]
    reader = state.reader(pointer)
    return sum(_added(piece, reader) for piece in merged(files, KEYS, keep_removed=True))


def _added(changed: Any, reader: Any) -> int:
    held = reader.of_entities(changed.column("entity_hash"), ["identity_hash"]).column("identity_hash")
    is_known = pc.is_in(changed.column("identity_hash"), value_set=held)
    removed = changed.column("removed")
    added = pc.sum(pc.and_(pc.invert(is_known), pc.invert(removed))).as_py() or 0
    gone = pc.sum(pc.and_(is_known, removed)).as_py() or 0
    return int(added - gone)


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


def mark_undelivered(
    store: PublicationStore, pointer: StatePointer, manifest: Manifest, refused: Mapping[int, Sequence[int]]
) -> None:
    """Adds to what concluding an outbox changes in state: the identities of refused records are withheld.

    Doing it again writes the same, as long as `pointer` is the state that the outbox was compared with.

    Args:
        store: of the publication.
        pointer: the state before the outbox.
        manifest: the outbox.
        refused: positions of records that are in the dead-letter topic, by shard.

    Raises:
        DefectError: the outbox doesn't say whom its records show.
    """
    outbox = store.outbox(manifest.outbox)
    fates = _fates(outbox, manifest, refused)
    rows = _delta_rows(outbox.state_delta, fates.withheld)
    if not rows:
        return
    entities = pa.array([row["entity_hash"] for row in rows.values()], STATE.field("entity_hash").type)
    held = store.state.reader(pointer).of_entities(entities, STATE.names).to_pylist()
    before = {row["identity_hash"]: row for row in held}
    made = [_row(row, before.get(identity), was_sent=identity in fates.sent) for identity, row in rows.items()]
    # Behind the files of shards, so that it has the last word.
    outbox.state_delta.write_table(_FILE, pa.Table.from_pylist(made, schema=STATE))


def _row(changed: dict[str, Any], before: dict[str, Any] | None, *, was_sent: bool) -> dict[str, Any]:
    if was_sent:
        return {**changed, "content_hash": UNKNOWN_CONTENT, "withheld": True, "removed": False}
    if before is None:
        return {**changed, "removed": True}
    if changed["removed"]:
        return {**before, "withheld": True}
    # It was seen in the source: no mark of its absence holds any longer.
    return {**before, "withheld": True, "missing_since": None, "expires_at": changed["expires_at"]}


def _fates(outbox: OutboxStore, manifest: Manifest, refused: Mapping[int, Sequence[int]]) -> _Fates:
    shards = {shard: _identities_of(outbox, manifest, shard) for shard, positions in refused.items() if positions}
    refused_identities = {
        identity for shard, rows in shards.items() for position in refused[shard] for identity in rows[position][1]
    }
    fates = _Fates()
    for each in manifest.shards:
        rows = shards.get(each.shard) or (
            _identities_of(outbox, manifest, each.shard) if each.records and refused_identities else []
        )
        left_out = set(refused.get(each.shard, ()))
        for position, (topic, identities) in enumerate(rows):
            for identity in refused_identities.intersection(identities):
                fates.last_refused[identity, topic] = position in left_out
                if position not in left_out:
                    fates.sent.add(identity)
    return fates


def _identities_of(outbox: OutboxStore, manifest: Manifest, shard: int) -> list[tuple[str, list[bytes]]]:
    """Topic and identities of each record of a shard, in order."""
    folder = outbox.shard(shard)
    with folder.translate_errors(SHARD_FILE):
        if IDENTITIES.name not in folder.schema(SHARD_FILE).names:
            raise DefectError(
                f"outbox {manifest.outbox} does not name its records' identities, and has dead letters",
                next_step="abandon the outbox, so that the next run sends everything, and report this",
                outbox=manifest.outbox,
            )
        table = folder.table(SHARD_FILE, columns=_READ)
    columns = (table.column(name).to_pylist() for name in _READ)
    return [(topic, _split(identities or b"")) for _, topic, identities in zip(*columns, strict=True)]


def _split(identities: bytes) -> list[bytes]:
    return [identities[at : at + HASH_BYTES] for at in range(0, len(identities), HASH_BYTES)]


def _delta_rows(delta: StoredFolder, identities: set[bytes]) -> dict[bytes, dict[str, Any]]:
    """What the shards' files say of these identities; the last word of each."""
    found = {}
    wanted = pa.array(sorted(identities), STATE.field("identity_hash").type)
    for name in delta.files(".parquet"):
        if name == _FILE:
            continue
        with delta.translate_errors(name):
            chosen = delta.table(name, filters=pc.field("identity_hash").isin(wanted))
        for row in chosen.select(STATE.names).to_pylist():
            found[row["identity_hash"]] = row
    return found
