"""What row rules refused, as a run leaves it."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime

import pyarrow as pa
import pyarrow.parquet as pq

from builders.layout import PublicationPaths
from contexture.storage.home import Home
from contexture.storage.schemas import QUARANTINE


def refused(
    storage: Home,
    outbox_id: str,
    rules: Mapping[str, int],
    *,
    path: str | None = "/4wheels",
    body: bytes | None = None,
    message: str = "breaks {rule}",
) -> None:
    """Writes so many cars that break each of the rules; `path`: their service path, empty for structures."""
    rows = [
        {
            "ordinal": ordinal,
            "operation": "upsert",
            "scope": "vehicles",
            "path": path,
            "id": f"car{number}",
            "type": "car",
            "received_at": datetime(2026, 3, 1, tzinfo=UTC),
            "rule": rule,
            "severity": "error",
            "message": message.format(rule=rule),
            "body": body,
        }
        for ordinal, (rule, number) in enumerate(
            (rule, number) for rule, count in rules.items() for number in range(count)
        )
    ]
    with storage.write_atomically(f"{PublicationPaths('vehicles').quarantine(outbox_id)}/part-0.parquet") as file:
        pq.write_table(pa.Table.from_pylist(rows, schema=QUARANTINE), file)
