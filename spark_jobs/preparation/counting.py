"""What a preparation counted, from its narrow rows."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import numpy as np
import pyarrow.compute as pc
import pyarrow.dataset as ds

from contexture.records.changes import Verdict
from contexture.storage.home import Storage
from spark_jobs.preparation.collisions import RULE as COLLISION
from spark_jobs.preparation.conflicts import RULE as DUPLICATE
from spark_jobs.preparation.planning import Plan
from spark_jobs.preparation.settings import Preparation
from spark_jobs.preparation.superseded import current_rows


@dataclass(frozen=True, slots=True)
class Counts:
    """Events by verdict, refusals and warnings by rule; `quarantined_entities` counts each event once.

    Events that a newer version supersedes are in none of them.
    """

    accepted: int
    unchanged: int
    quarantined: dict[str, int]
    quarantined_entities: int
    warnings: dict[str, int]


def count(storage: Storage, preparation: Preparation, planned: Plan) -> Counts:
    """Counts the narrow rows of a preparation, by the verdicts that planning has left them."""
    table = current_rows(storage, preparation.work, ["event", "verdict", "rules", "warnings"])
    verdicts, numbers = np.asarray(table.column("verdict")).copy(), table.column("event").to_numpy()
    verdicts[np.isin(numbers, planned.told)] = Verdict.SEND
    verdicts[np.isin(numbers, planned.told_before) & (verdicts <= Verdict.UNCHANGED)] = Verdict.UNCHANGED
    by_planning = {DUPLICATE: planned.conflicting, COLLISION: planned.collided}
    for events in by_planning.values():
        verdicts[np.isin(numbers, events)] = Verdict.QUARANTINED
    refused = _by_rule(table.column("rules"))
    refused |= {rule: len(events) for rule, events in by_planning.items() if len(events)}
    return Counts(
        accepted=int((verdicts <= Verdict.UNCHANGED).sum()),
        unchanged=int((verdicts == Verdict.UNCHANGED).sum()),
        quarantined=refused,
        quarantined_entities=int((verdicts == Verdict.QUARANTINED).sum()),
        warnings=_by_rule(table.column("warnings")),
    )


def newest_modification(storage: Storage, work: str) -> datetime | None:
    """The newest time of change among accepted events, UTC; None where none was told."""
    rows = current_rows(storage, work, ["modified_at"], ds.field("verdict") <= int(Verdict.UNCHANGED))
    newest: datetime | None = pc.max(rows["modified_at"]).as_py()
    return newest


def _by_rule(column: Any) -> dict[str, int]:
    rules: Counter[str] = Counter()
    for item in pc.value_counts(column.drop_null()).to_pylist():
        for rule in item["values"].split(","):
            rules[rule] += item["counts"]
    return dict(sorted(rules.items()))
