"""Data quality over time: what each of the last runs read, refused and checked, as numbers and charts."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from typing import Final

from contexture.errors import ConfigurationError, DefectError
from contexture.monitoring.history import History
from contexture.monitoring.rows import RunRow
from contexture.operations.status.charts import Chart, draw_chart, name_ends
from contexture.operations.status.sources import Sources, manifest
from contexture.storage.manifests import Manifest
from contexture.storage.publication_store import PublicationStore

RUNS: Final = 40
TREND_RUNS: Final = 20
_READERS: Final = 8


@dataclass(frozen=True, slots=True)
class RunQuality:
    """What one run found.

    Attributes:
        read, accepted, quarantined: events that it read, let pass, and entities or structures that it held back.
        warnings: how often rules were broken that hold nothing back.
        failed: expectations that failed, by name; None when its report is no longer kept.
        critical: whether one of them stopped the run.
    """

    outbox: str
    sequence: int
    at: datetime
    read: int
    accepted: int
    quarantined: int
    warnings: int
    failed: tuple[str, ...] | None
    critical: bool


@dataclass(frozen=True, slots=True)
class QualityOverTime:
    """The last runs with an outbox, the latest first, and their plots, the latest at the right."""

    runs: tuple[RunQuality, ...]
    plots: tuple[Chart, ...]
    tables_problem: str | None


def quality_over_time(sources: Sources, name: str) -> QualityOverTime:
    """How the data of a publication's last runs were, as far as their outboxes are kept.

    Raises:
        RetriableError: the storage did not answer.
    """
    rows = sources.tables.ask(lambda history: history.runs(name, limit=RUNS), ())
    with ThreadPoolExecutor(_READERS) as readers:
        found = readers.map(lambda row: _quality(sources.home.publication(name), row), rows)
        runs = tuple(each for each in found if each is not None)
    return QualityOverTime(runs, _plots(runs[::-1]), sources.tables.problem)


@dataclass(frozen=True, slots=True)
class Trend:
    """The records and the quarantine of a publication's last runs."""

    name: str
    records: Chart
    quarantined: Chart


def find_trends(sources: Sources, names: Sequence[str]) -> tuple[Trend, ...]:
    """Returns the trends of publications, as far as the outboxes of their last runs are stored.

    Raises:
        RetriableError: the storage did not respond.
    """

    def latest(history: History) -> list[list[RunRow]]:
        return [history.runs(name, limit=TREND_RUNS) for name in names]

    with sources.tables.one_connection():
        nothing: list[list[RunRow]] = [[] for _ in names]
        runs = sources.tables.ask(latest, nothing)
    with ThreadPoolExecutor(_READERS) as readers:
        return tuple(readers.map(lambda name, rows: _trend(sources.home.publication(name), rows), names, runs))


def _trend(store: PublicationStore, rows: Sequence[RunRow]) -> Trend:
    found = [(row, _counts(store, row.outbox)) for row in reversed(rows) if row.outbox is not None]
    known = [(row, counts) for row, counts in found if counts is not None]
    first, last = name_ends(known[0][0].started_at, known[-1][0].started_at) if known else ("", "")
    charts = (
        draw_chart(
            title,
            [
                (f"{row.started_at:%Y-%m-%d %H:%M}, {row.state}: {counts[place]:,}", counts[place], state or row.state)
                for row, counts in known
            ],
            first=first,
            last=last,
        )
        for place, title, state in ((0, "Records", ""), (1, "Quarantined", "failed"))
    )
    return Trend(store.name, *charts)


def _counts(store: PublicationStore, outbox: str) -> tuple[int, int] | None:
    try:
        return _counts_of_manifest(store, outbox)
    except (ConfigurationError, DefectError):
        return None


@lru_cache(maxsize=100_000)
def _counts_of_manifest(store: PublicationStore, outbox: str) -> tuple[int, int]:
    # It never changes, and the overview draws hundreds of them.
    found = store.outboxes.manifest(outbox)
    return found.records, found.quarantined_entities


def _plots(runs: Sequence[RunQuality]) -> tuple[Chart, ...]:
    return (
        _draw("Events read", [(run, run.read, "pending") for run in runs]),
        _draw("Quarantined by rules", [(run, run.quarantined, "failed") for run in runs]),
        _draw("Warnings of rules", [(run, run.warnings, "waiting") for run in runs]),
        _draw(
            "Failed expectations",
            [(run, len(run.failed), "failed" if run.critical else "waiting") for run in runs if run.failed is not None],
        ),
    )


def _draw(title: str, values: Sequence[tuple[RunQuality, int, str]]) -> Chart:
    first, last = name_ends(values[0][0].at, values[-1][0].at) if values else ("", "")
    labelled = [(_said(run, number), number, state) for run, number, state in values]
    return draw_chart(title, labelled, first=first, last=last)


def _said(run: RunQuality, value: int) -> str:
    return f"run {run.sequence}, {run.at:%Y-%m-%d %H:%M}: {value:,}"


def _quality(store: PublicationStore, row: RunRow) -> RunQuality | None:
    found: Manifest | None = manifest(store, row.outbox)
    if found is None:
        return None
    verdict = store.outbox(found.outbox).find_verdict()
    failures = verdict.failures if verdict else ()
    return RunQuality(
        outbox=found.outbox,
        sequence=found.sequence,
        at=row.started_at,
        read=found.read,
        accepted=found.accepted,
        quarantined=found.quarantined_entities,
        warnings=sum(found.warnings.values()),
        failed=tuple(each.name for each in failures) if verdict else None,
        critical=any(each.severity == "critical" for each in failures),
    )
