"""The page of one publication, and the long lists behind it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import takewhile

from contexture.errors import ConfigurationError, DefectError
from contexture.monitoring.history import ALL_TRANSACTIONS, TransactionFilter
from contexture.monitoring.rows import InterventionRow, RunRow, TransactionRow, TransactionStatus
from contexture.operations.status.dead_letters import of_outbox
from contexture.operations.status.overview import PublicationLine, duration_seconds, line, sums_of
from contexture.operations.status.sources import Paging, Sources, collect_facts, manifest
from contexture.publications.fingerprint import ResolvedKey, resolve_keys
from contexture.publications.problems import without_secrets
from contexture.storage.manifests import Manifest
from contexture.storage.outboxes import Status
from contexture.storage.publication_store import REPORT_PAGE, OutboxStore, PublicationStore
from contexture.storage.shrink_report import ShrinkReport

_INTERVENTIONS = 20


@dataclass(frozen=True, slots=True)
class RuleCount:
    """How often one rule refused something, or warned of it."""

    rule: str
    severity: str
    count: int


@dataclass(frozen=True, slots=True)
class QualitySummary:
    """What a run's outbox says of its data.

    Attributes:
        status: its state; None where that cannot be read.
        report, data_docs: whether they are there.
        dead_letters: dead letters; None where their index is damaged.
    """

    outbox: str
    sequence: int
    read: int
    accepted: int
    unchanged: int
    quarantined: int
    rules: tuple[RuleCount, ...]
    report: bool
    data_docs: bool
    dead_letters: int | None = 0
    status: Status | None = None


@dataclass(frozen=True, slots=True)
class Detail:
    """One publication.

    Attributes:
        configuration: every key as it is understood; empty without a good file.
        statuses: how many transactions have each status, all of them named.
        qualities: of the last concluded outbox, of those that wait, and of the one that the last run failed with, the
            latest first.
        interventions: what people did, the latest first.
        shrink_report: what the latest run would have deleted, where the guard against shrinking stopped it.
        connections: ids of the connections that it reads from and sends to.
        tables_problem: why there are no operational tables, if something is wrong.
    """

    line: PublicationLine
    configuration: tuple[ResolvedKey, ...]
    statuses: Mapping[TransactionStatus, int]
    qualities: tuple[QualitySummary, ...]
    interventions: tuple[InterventionRow, ...]
    shrink_report: ShrinkReport | None
    connections: tuple[str, ...]
    tables_problem: str | None


@dataclass(frozen=True, slots=True)
class TransactionTable:
    """A page of transactions, the latest first.

    Attributes:
        statuses: how many of each status there are, whichever status is asked for.
        which: those that were asked for.
    """

    rows: tuple[TransactionRow, ...]
    paging: Paging
    statuses: Mapping[TransactionStatus, int]
    which: TransactionFilter
    tables_problem: str | None


@dataclass(frozen=True, slots=True)
class StepTime:
    """How long a task of a run took; of several shards, from the first beginning to the last end.

    Attributes:
        map_index: of several shards, the one whose log shows most: the first of those that `state` is of.
        started_at: of several shards, when the first of them started.
    """

    task: str
    state: str
    seconds: float | None
    map_index: int | None = None
    started_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class RunLine:
    """One run, with the time of its steps where Airflow still knows them."""

    run: RunRow
    seconds: float
    steps: tuple[StepTime, ...] = ()


@dataclass(frozen=True, slots=True)
class Runs:
    """A page of runs, the latest first."""

    lines: tuple[RunLine, ...]
    paging: Paging
    tables_problem: str | None


@dataclass(frozen=True, slots=True)
class TopicLine:
    """A topic and the records that an outbox has for it."""

    topic: str
    records: int


@dataclass(frozen=True, slots=True)
class TopicTable:
    """A page of the topics that one outbox writes to; `outbox` is None when none is kept."""

    outbox: str | None
    lines: tuple[TopicLine, ...]
    paging: Paging


def detail(sources: Sources, name: str) -> Detail:
    """Everything about a publication that is not a long list.

    Raises:
        RetriableError: the storage did not answer.
    """
    [found], store = collect_facts(sources, [name]), sources.home.publication(name)
    waiting = [each.outbox for each in reversed(found.stored.pending)]
    failed = found.latest if found.latest and found.latest.state == "failed" else None
    outboxes = dict.fromkeys([*waiting, failed.outbox if failed else None, found.stored.pointer.outbox])
    found_manifests = {outbox: manifest(store, outbox) for outbox in outboxes}
    return Detail(
        line=line(sources, found, found_manifests[found.stored.pointer.outbox], sums_of(sources, [name])),
        configuration=configuration(sources, name),
        statuses=_statuses(sources, name),
        qualities=tuple(_quality(store, each) for each in found_manifests.values() if each),
        interventions=tuple(sources.tables.ask(lambda history: history.interventions(name, limit=_INTERVENTIONS), ())),
        shrink_report=store.run(failed.run).shrink_report() if failed else None,
        connections=connections(sources, name),
        tables_problem=sources.tables.problem,
    )


def connections(sources: Sources, name: str) -> tuple[str, ...]:
    """Ids of the connections that a publication reads from and sends to; none without a good file."""
    publication = sources.publications.get(name)
    if publication is None:
        return ()
    # What Contexture itself did is read by no connection.
    source = (publication.source.connection,) if publication.source.has_content else ()
    return tuple(dict.fromkeys((*source, publication.publish.connection)))


def configuration(sources: Sources, name: str) -> tuple[ResolvedKey, ...]:
    """The keys of a publication with their defaults; what looks like a secret is covered."""
    publication = sources.publications.get(name)
    keys = [_covered(key) for key in resolve_keys(publication)] if publication else []
    return tuple(_mark_section(key, keys[place + 1 :]) if key.value is None else key for place, key in enumerate(keys))


def _mark_section(section: ResolvedKey, following: Sequence[ResolvedKey]) -> ResolvedKey:
    """Returns the line of a section; it counts as a default where every key in the section has its default."""
    keys = takewhile(lambda key: key.depth > section.depth, following)
    return replace(section, is_default=all(key.is_default for key in keys if key.value is not None))


def transactions(sources: Sources, name: str, which: TransactionFilter, *, page: int) -> TransactionTable:
    """A page of those of a publication's transactions that are asked for."""
    statuses = _statuses(sources, name, replace(which, status=None))
    total = sum(statuses.values()) if which.status is None else statuses[which.status]
    paging = Paging.of(page, total)
    rows = sources.tables.ask(
        lambda history: history.transactions(name, which=which, limit=paging.size, offset=paging.offset), ()
    )
    return TransactionTable(tuple(rows), paging, statuses, which, sources.tables.problem)


def run_rows(sources: Sources, name: str, *, page: int) -> tuple[Sequence[RunRow], Paging]:
    """A page of a publication's runs, the latest first."""
    paging = Paging.of(page, sources.tables.ask(lambda history: history.run_count(name), 0))
    rows = sources.tables.ask(lambda history: history.runs(name, limit=paging.size, offset=paging.offset), ())
    return rows, paging


def runs(rows: Sequence[RunRow], paging: Paging, steps: Mapping[str, tuple[StepTime, ...]], sources: Sources) -> Runs:
    """These runs with their steps, which are given by run id."""
    lines = tuple(RunLine(run, duration_seconds(run, sources.now), steps.get(run.run_id, ())) for run in rows)
    return Runs(lines, paging, sources.tables.problem)


def topics(sources: Sources, name: str, *, page: int) -> TopicTable:
    """The topics of the last outbox that was sent, else of the last one concluded; those with most records first.

    Raises:
        RetriableError: the storage did not answer.
    """
    [found] = collect_facts(sources, [name])
    sent = sources.tables.ask(lambda history: history.last_sent(name), None)
    for outbox in (sent.outbox if sent else None, found.stored.pointer.outbox):
        if outbox and (stored := sources.home.publication(name).outbox(outbox)).has_topics():
            return _topics(stored, outbox, page)
    return TopicTable(None, (), Paging.of(page, 0))


def _topics(stored: OutboxStore, outbox: str, page: int) -> TopicTable:
    counts = stored.topic_counts()
    paging = Paging.of(page, len(counts))
    ordered = sorted(counts.items(), key=lambda each: (-each[1], each[0]))[paging.offset : paging.end]
    return TopicTable(outbox, tuple(TopicLine(topic, records) for topic, records in ordered), paging)


def _covered(key: ResolvedKey) -> ResolvedKey:
    value = None if key.value is None else without_secrets(key.value)
    return ResolvedKey(key.depth, key.key, value, key.is_default)


def _statuses(sources: Sources, name: str, which: TransactionFilter = ALL_TRANSACTIONS) -> dict[TransactionStatus, int]:
    counts: dict[TransactionStatus, int] = sources.tables.ask(
        lambda history: history.transaction_counts(name, which), {}
    )
    return {status: counts.get(status, 0) for status in TransactionStatus}


def _quality(store: PublicationStore, found: Manifest) -> QualitySummary:
    errors = [RuleCount(rule, "error", count) for rule, count in found.quarantined.items()]
    warnings = [RuleCount(rule, "warning", count) for rule, count in found.warnings.items()]
    report = store.outbox(found.outbox).report
    return QualitySummary(
        outbox=found.outbox,
        sequence=found.sequence,
        read=found.read,
        accepted=found.accepted,
        unchanged=found.unchanged,
        quarantined=found.quarantined_entities,
        rules=tuple(sorted([*errors, *warnings], key=lambda each: (each.severity, -each.count, each.rule))),
        report=report.exists(REPORT_PAGE),
        data_docs=report.folder("data_docs").exists(REPORT_PAGE),
        dead_letters=of_outbox(store, found),
        status=_status(store, found),
    )


def _status(store: PublicationStore, found: Manifest) -> Status | None:
    try:
        return store.outboxes.status(found.outbox).status
    except (ConfigurationError, DefectError):
        return None
