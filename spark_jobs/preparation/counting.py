"""What a preparation counted, from its narrow rows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import numpy as np
import pyarrow.compute as pc
import pyarrow.dataset as ds

from contexture.changes import Verdict
from contexture.outbox.storage import Storage
from spark_jobs.preparation.settings import Preparation


@dataclass(frozen=True, slots=True)
class Counts:
    """Events by verdict, refusals and warnings by rule; `quarantined_entities` counts each event once."""

    accepted: int
    unchanged: int
    quarantined: dict[str, int]
    quarantined_entities: int
    warnings: dict[str, int]


def count(storage: Storage, preparation: Preparation, planned: Mapping[str, Any]) -> Counts:
    """Counts the narrow rows of a preparation; `planned` are the numbers of events that planning refused, by rule."""
    path = storage.path(f"{preparation.work}/evaluated")
    dataset = ds.dataset(path, filesystem=storage.filesystem, format="parquet")
    table = dataset.to_table(columns=["event", "verdict", "rules", "warnings"])
    verdicts = np.asarray(table.column("verdict")).copy()
    for events in planned.values():
        verdicts[np.isin(table.column("event").to_numpy(), events)] = Verdict.QUARANTINED
    refused = _by_rule(table.column("rules")) | {rule: len(events) for rule, events in planned.items() if len(events)}
    return Counts(
        accepted=int((verdicts <= Verdict.UNCHANGED).sum()),
        unchanged=int((verdicts == Verdict.UNCHANGED).sum()),
        quarantined=refused,
        quarantined_entities=int((verdicts == Verdict.QUARANTINED).sum()),
        warnings=_by_rule(table.column("warnings")),
    )


def newest_modification(storage: Storage, work: str) -> datetime | None:
    """The newest time of change among accepted events, UTC; None where none was told."""
    dataset = ds.dataset(storage.path(f"{work}/evaluated"), filesystem=storage.filesystem, format="parquet")
    accepted = ds.field("verdict") <= int(Verdict.UNCHANGED)
    newest: datetime | None = pc.max(dataset.to_table(columns=["modified_at"], filter=accepted)["modified_at"]).as_py()
    return newest


def _by_rule(column: Any) -> dict[str, int]:
    rules: Counter[str] = Counter()
    for item in pc.value_counts(column.drop_null()).to_pylist():
        for rule in item["values"].split(","):
            rules[rule] += item["counts"]
    return dict(sorted(rules.items()))
