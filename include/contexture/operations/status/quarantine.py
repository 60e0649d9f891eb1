"""What the row rules quarantined, by outbox and rule, with a few identities each: never a body."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from contexture.errors import ConfigurationError, DefectError
from contexture.operations.status.sources import Paging, Sources
from contexture.storage.outboxes import Outboxes, OutboxStatus
from contexture.storage.publication_store import PublicationStore

SAMPLES = 5
_PAGE_SIZE = 10
_READERS = 8
_IDENTITY = ("path", "id", "type")


@dataclass(frozen=True, slots=True)
class BrokenRule:
    """What one rule quarantined of an outbox's run.

    Attributes:
        rows: how often it is broken by what is still quarantined.
        samples: identities of some of it: service path, id and type, or a structure's URN; with the rule's message.
    """

    rule: str
    severity: str
    rows: int
    samples: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class QuarantinedByRule:
    """What one run quarantined; `events` are those that were not tried again."""

    outbox: str
    sequence: int
    status: str
    prepared_at: datetime
    events: int
    rules: tuple[BrokenRule, ...]


@dataclass(frozen=True, slots=True)
class Quarantines:
    """A page of what runs quarantined, the latest first."""

    lines: tuple[QuarantinedByRule, ...]
    paging: Paging


def quarantines(sources: Sources, name: str, *, page: int) -> Quarantines:
    """Returns what the runs of a publication quarantined, as far as it is kept.

    Raises:
        RetriableError: the storage did not answer.
    """
    store = sources.home.publication(name)
    outboxes = store.quarantined_outboxes()
    with ThreadPoolExecutor(_READERS) as readers:
        sequences = list(readers.map(lambda each: _known_sequence(store, each), outboxes))
    known = sorted(((at, each) for at, each in zip(sequences, outboxes, strict=True) if at is not None), reverse=True)
    paging = Paging.of(page, len(known), _PAGE_SIZE)
    shown = [_status(store.outboxes, each) for _, each in known[paging.offset : paging.end]]
    return Quarantines(tuple(read_quarantine(store, each) for each in shown if each), paging)


def read_quarantine(store: PublicationStore, status: OutboxStatus) -> QuarantinedByRule:
    """Returns what one outbox's run quarantined.

    Raises:
        RetriableError: the storage did not answer.
    """
    quarantine = store.quarantine(status.outbox)
    retried = pa.array(list(quarantine.retried()), pa.int64())
    columns = ["ordinal", *_IDENTITY, "rule", "severity", "message"]
    tables = [quarantine.rows(part, columns) for part in quarantine.parts]
    parts = [each.filter(pc.invert(pc.is_in(each.column("ordinal"), value_set=retried))) for each in tables]
    table = pa.concat_tables(parts) if parts else None
    return QuarantinedByRule(
        outbox=status.outbox,
        sequence=status.sequence,
        status=status.status,
        prepared_at=status.steps[0].at,
        events=0 if table is None else pc.count_distinct(table.column("ordinal")).as_py(),
        rules=() if table is None else _rules(table),
    )


def _rules(table: Any) -> tuple[BrokenRule, ...]:
    counts = table.group_by(["rule", "severity"]).aggregate([("ordinal", "count")]).to_pylist()
    ordered = sorted(counts, key=lambda each: (-each["ordinal_count"], each["rule"]))
    return tuple(_rule(table, each["rule"], each["severity"], each["ordinal_count"]) for each in ordered)


def _rule(table: Any, rule: str, severity: str, rows: int) -> BrokenRule:
    wanted = pc.and_(pc.equal(table.column("rule"), rule), pc.equal(table.column("severity"), severity))
    samples = table.filter(wanted).slice(0, SAMPLES).to_pylist()
    return BrokenRule(rule, severity, rows, tuple((_identity(row), row["message"]) for row in samples))


def _identity(row: dict[str, Any]) -> str:
    # A structure has no path, but a URN for its id.
    names: Sequence[str] = ("id", "type") if row["path"] == "" else _IDENTITY
    return " ".join(str(row[name] or "?") for name in names)


def _known_sequence(store: PublicationStore, outbox: str) -> int | None:
    try:
        return _sequence(store, outbox)
    except (ConfigurationError, DefectError):
        return None


@lru_cache(maxsize=100_000)
def _sequence(store: PublicationStore, outbox: str) -> int:
    # It never changes, and an archive of a month has thousands.
    return store.outboxes.status(outbox).sequence


def _status(outboxes: Outboxes, outbox: str) -> OutboxStatus | None:
    try:
        return outboxes.status(outbox)
    except (ConfigurationError, DefectError):
        return None
