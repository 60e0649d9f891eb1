"""A landing as a pull leaves it, and the same rows as JSON lines for a plain copy."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from itertools import islice
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from contexture.storage.manifests import LandingManifest
from contexture.storage.publication_store import PublicationStore
from contexture.storage.schemas import LANDING
from tools.bench.cars import MODIFIED_AT, RECEIVED_AT, SERVICE, SERVICE_PATH, TYPE, cars

FILES = 2
"""As many as a local Spark of two slots would write."""
ROW_GROUP = 20_000
_SECOND_WALK = 1 << 40


def write_landing(store: PublicationStore, run: str, entities: int, lines: Path) -> LandingManifest:
    """Writes the landing of one complete walk, and its bodies as JSON lines into the folder `lines`."""
    landing = store.landing(run)
    lines.mkdir(parents=True)
    source, first = cars(), 0
    for number in range(FILES):
        rows = entities // FILES + (entities % FILES if number == FILES - 1 else 0)
        with ExitStack() as stack:
            path = stack.enter_context(landing.write_atomically(f"part-{number:05d}.parquet"))
            writer = stack.enter_context(pq.ParquetWriter(path, LANDING, compression="zstd"))
            text = stack.enter_context((lines / f"part-{number:05d}.json").open("wb"))
            for bodies in _chunks(source, rows):
                writer.write_table(_rows(first, bodies), row_group_size=ROW_GROUP)
                text.writelines(body + b"\n" for body in bodies)
                first += len(bodies)
    manifest = _manifest(run, entities)
    landing.write_manifest(manifest)
    return manifest


def write_sightings(store: PublicationStore, changed: LandingManifest, run: str, entities: int) -> LandingManifest:
    """Writes a landing of the same rows as another one, and a sighting of each car as a key-only walk leaves it."""
    before, landing = store.landing(changed.run), store.landing(run)
    for name in before.files(".parquet"):
        before.copy(name, landing)
    with (
        landing.write_atomically("walk-00000.parquet") as target,
        pq.ParquetWriter(target, LANDING, compression="zstd") as writer,
    ):
        for first in range(0, entities, ROW_GROUP):
            writer.write_table(_sightings(first, min(ROW_GROUP, entities - first)))
    manifest = _manifest(run, entities).model_copy(update={"rows": changed.rows + entities, "present": entities})
    landing.write_manifest(manifest)
    return manifest


def _sightings(first: int, count: int) -> pa.Table:
    # Ordinals of another walk, so that they follow on no row with a body.
    rows = _rows(first, [b""] * count)
    columns = {
        "ordinal": pa.array(range(_SECOND_WALK + first, _SECOND_WALK + first + count), pa.int64()),
        "operation": pa.array(["present"] * count),
        "body": pa.nulls(count, pa.binary()),
    }
    for name, column in columns.items():
        rows = rows.set_column(LANDING.get_field_index(name), LANDING.field(name), column)
    return rows


def _chunks(source: Iterator[bytes], rows: int) -> Iterator[list[bytes]]:
    for begin in range(0, rows, ROW_GROUP):
        yield list(islice(source, min(ROW_GROUP, rows - begin)))


def _rows(first: int, bodies: list[bytes]) -> pa.Table:
    same = {
        "operation": "upsert",
        "scope": SERVICE,
        "path": SERVICE_PATH,
        "type": TYPE,
        "version": MODIFIED_AT.isoformat(),
        "media_type": "application/json",
        "modified_at": MODIFIED_AT,
        "received_at": RECEIVED_AT,
    }
    count = len(bodies)
    columns: dict[str, object] = {name: [same.get(name)] * count for name in LANDING.names}
    columns["ordinal"] = list(range(first, first + count))
    columns["id"] = [f"car{number}" for number in range(first, first + count)]
    columns["body"] = bodies
    return pa.Table.from_pydict(columns, schema=LANDING)


def _manifest(run: str, entities: int) -> LandingManifest:
    return LandingManifest(
        run=run,
        mode="full",
        source="bench",
        queries=(),
        watermark_from=None,
        watermark_to=None,
        rows=entities,
        present=0,
        source_count=entities,
        complete=True,
        started_at=MODIFIED_AT,
        finished_at=RECEIVED_AT,
        broker_time=RECEIVED_AT,
        files={},
        digest=f"bench {entities}",
    )
