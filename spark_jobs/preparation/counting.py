"""What a preparation counted, from its narrow rows."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

import pyarrow.compute as pc
import pyarrow.dataset as ds

from contexture.changes import Verdict
from contexture.outbox.storage import Storage
from spark_jobs.preparation.conflicts import RULE
from spark_jobs.preparation.settings import Preparation


@dataclass(frozen=True, slots=True)
class Counts:
    """Events by verdict, refusals and warnings by rule; `quarantined_entities` counts each event once."""

    accepted: int
    unchanged: int
    quarantined: dict[str, int]
    quarantined_entities: int
    warnings: dict[str, int]

    def with_conflicts(self, conflicts: int) -> Counts:
        """These counts, with contradicting events moved to quarantine."""
        if not conflicts:
            return self
        return replace(
            self,
            accepted=self.accepted - conflicts,
            quarantined={**self.quarantined, RULE: conflicts},
            quarantined_entities=self.quarantined_entities + conflicts,
        )


def count(storage: Storage, preparation: Preparation) -> Counts:
    """Counts the narrow rows of a preparation."""
    path = storage.path(f"{preparation.work}/evaluated")
    dataset = ds.dataset(path, filesystem=storage.filesystem, format="parquet")
    table = dataset.to_table(columns=["verdict", "rules", "warnings"])
    by_verdict = _counted(table.column("verdict"))
    unchanged = by_verdict.get(Verdict.UNCHANGED, 0)
    return Counts(
        accepted=by_verdict.get(Verdict.SEND, 0) + unchanged,
        unchanged=unchanged,
        quarantined=_by_rule(table.column("rules")),
        quarantined_entities=by_verdict.get(Verdict.QUARANTINED, 0),
        warnings=_by_rule(table.column("warnings")),
    )


def newest_modification(storage: Storage, work: str) -> datetime | None:
    """The newest time of change among accepted events, UTC; None where none was told."""
    dataset = ds.dataset(storage.path(f"{work}/evaluated"), filesystem=storage.filesystem, format="parquet")
    accepted = ds.field("verdict") <= int(Verdict.UNCHANGED)
    newest: datetime | None = pc.max(dataset.to_table(columns=["modified_at"], filter=accepted)["modified_at"]).as_py()
    return newest


def _counted(column: Any) -> dict[Any, int]:
    return {
        item["values"]: item["counts"] for item in pc.value_counts(column).to_pylist() if item["values"] is not None
    }


def _by_rule(column: Any) -> dict[str, int]:
    rules: Counter[str] = Counter()
    for joined, number in _counted(column).items():
        for rule in joined.split(","):
            rules[rule] += number
    return dict(sorted(rules.items()))
