"""Landing folders as a pull would have written them."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

import orjson
import pyarrow as pa
import pyarrow.parquet as pq

from builders.layout import PublicationPaths
from contexture.sources.ngsi.entity_head import read_entity_head
from contexture.storage.home import Home
from contexture.storage.manifests import LandingManifest
from contexture.storage.schemas import LANDING

MORNING = datetime(2026, 3, 1, 8, 0, tzinfo=UTC)


def car(number: int, speed: float, *, modified: datetime = MORNING, path: str = "/4wheels") -> dict[str, object]:
    """A car as a broker shows it, builtins included."""
    shown = modified.strftime("%Y-%m-%dT%H:%M:%S.000Z")
    return {
        "id": f"car{number}",
        "type": "car",
        "dateCreated": {"type": "DateTime", "value": "2026-01-01T00:00:00.000Z", "metadata": {}},
        "dateModified": {"type": "DateTime", "value": shown, "metadata": {}},
        "servicePath": {"type": "Text", "value": path, "metadata": {}},
        "speed": {"type": "Number", "value": speed, "metadata": {}},
    }


def landing(
    storage: Home,
    publication: str,
    run: str,
    entities: Sequence[dict[str, object] | bytes],
    *,
    present: Sequence[tuple[str, str, str]] = (),
    complete: bool = True,
    mode: str = "changes",
    finished: datetime = MORNING + timedelta(minutes=5),
    received_seconds: Sequence[float] | None = None,
) -> LandingManifest:
    """Writes a landing of whole entities and of sightings (path, id, type); returns its manifest.

    `received_seconds` says when each entity arrived, in seconds before `finished`; all a second before when None.
    """
    moments = [finished - timedelta(seconds=before) for before in received_seconds or [1] * len(entities)]
    rows = [_row(*each) for each in zip(range(len(entities)), entities, moments, strict=True)]
    rows += [_sighting(1 << 36 | number, seen, finished) for number, seen in enumerate(present)]
    folder = PublicationPaths(publication)
    with storage.write_atomically(f"{folder.landing(run)}/part-00000.parquet") as path:
        pq.write_table(pa.Table.from_pylist(rows, schema=LANDING), path)
    manifest = LandingManifest(
        run=run,
        mode=mode,
        source="http://127.0.0.1",
        queries=(),
        watermark_from=None,
        watermark_to="2026-03-01T08:00:00.000Z",
        rows=len(rows),
        present=len(present),
        source_count=len(present) or len(entities),
        complete=complete,
        started_at=finished - timedelta(seconds=2),
        finished_at=finished,
        broker_time=finished,
        files={},
        digest=f"digest of {run}",
    )
    storage.write(folder.landing_manifest(run), manifest.to_json())
    return manifest


def _row(number: int, entity: dict[str, object] | bytes, received: datetime) -> dict[str, object]:
    body = entity if isinstance(entity, bytes) else orjson.dumps(entity)
    shown = {} if isinstance(entity, bytes) else entity
    seen = read_entity_head(orjson.dumps(shown), "/")
    return {
        "ordinal": number,
        "operation": "upsert",
        "scope": "vehicles",
        "path": _value(shown, "servicePath") or "/",
        "id": seen.id,
        "type": seen.type,
        "version": _value(shown, "dateModified"),
        "body": body,
        "media_type": "application/json",
        "modified_at": datetime.fromisoformat(moment) if (moment := _value(shown, "dateModified")) else None,
        "received_at": received,
    }


def _sighting(ordinal: int, seen: tuple[str, str, str], received: datetime) -> dict[str, object]:
    path, entity_id, kind = seen
    names = {"ordinal": ordinal, "operation": "present", "scope": "vehicles", "path": path}
    return {**names, "id": entity_id, "type": kind, "received_at": received}


def _value(entity: dict[str, object], name: str) -> str | None:
    attribute = entity.get(name)
    value = attribute.get("value") if isinstance(attribute, dict) else None
    return value if isinstance(value, str) else None
