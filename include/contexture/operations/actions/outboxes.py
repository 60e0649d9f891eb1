"""Outboxes and Kafka transactions for people: what was done with them, and what to do next."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

from contexture.errors import ConfigurationError
from contexture.monitoring import RunTables, TransactionRow
from contexture.monitoring.database import DATABASE_VARIABLE
from contexture.monitoring.history import TransactionFilter
from contexture.operations import environment
from contexture.operations.environment import FoundOutbox, known_publications
from contexture.storage.delivery import SendAttempts
from contexture.storage.documents import StoredDocument
from contexture.storage.file_tree import HOME_VARIABLE
from contexture.storage.home import Home
from contexture.storage.manifests import ExpectationResult, Manifest
from contexture.storage.publication_store import REPORT_PAGE, OutboxStore
from contexture.storage.quarantine import Quarantine

SAMPLES_OF_A_RULE = 3
_IDENTITY = ("path", "id", "type")


class RefusedRule(StoredDocument):
    """What one rule holds back: how many rows, and a few identities (service path, id, type), never bodies."""

    rule: str
    severity: str
    rows: int
    samples: tuple[str, ...]


class OutboxReport(StoredDocument):
    """Everything a person needs to decide about an outbox."""

    publication: str
    outbox: str
    status: str
    sequence: int
    sends: tuple[SendAttempts, ...]
    steps: tuple[Mapping[str, str], ...]
    manifest: Manifest
    topics: Mapping[str, int]
    refused: tuple[RefusedRule, ...]
    failed: tuple[ExpectationResult, ...]
    report: str | None
    next_step: str


def describe_outbox(found: FoundOutbox) -> OutboxReport:
    """The story of an outbox, read from its files."""
    store, status = found.store, found.status
    manifest, outbox = store.outboxes.manifest(status.outbox), store.outbox(status.outbox)
    return OutboxReport(
        publication=found.publication,
        outbox=status.outbox,
        status=status.status,
        sequence=status.sequence,
        sends=store.attempts.of_outbox(status.outbox),
        steps=tuple(
            {"at": step.at.isoformat(timespec="seconds"), "status": step.status, "reason": step.reason}
            for step in status.steps
        ),
        manifest=manifest,
        topics=_topics(outbox),
        refused=_refused(store.quarantine(status.outbox)),
        failed=_failed(outbox),
        report=outbox.report.uri_of(REPORT_PAGE) if outbox.report.exists(REPORT_PAGE) else None,
        next_step=next_step(found, backfill=manifest.mode == "backfill", baseline=manifest.baseline),
    )


def next_step(found: FoundOutbox, *, backfill: bool, baseline: bool = False) -> str:
    """What a person can do about an outbox in its state."""
    outbox, dag = found.status.outbox, f"publish_{found.publication}"
    if found.status.status == "prepared":
        return (
            f"wait for the quality gate of its run; if that run has ended, start {dag}: that run rejects this "
            "outbox and reads the source again"
        )
    if found.status.status == "approved":
        again = "clear the backfill's publish task" if backfill else f"start {dag}: it sends this outbox first"
        return (
            f"correct what its tasks report and {again}; to abandon it: contexture outbox abandon {outbox} --reason …"
        )
    if found.status.status == "rejected":
        return f"read the report, correct the source or the publication's quality section, and start {dag}"
    if found.status.status == "abandoned":
        return "nothing: abandoned outboxes are never sent"
    if baseline:
        return (
            f"nothing: publishing continues with the registry's next change; to send everything, start {dag} in "
            "mode full"
        )
    return "nothing: all of it is in Kafka"


def _topics(outbox: OutboxStore) -> dict[str, int]:
    counts = outbox.topic_counts() if outbox.has_topics() else {}
    return dict(sorted(counts.items(), key=lambda each: (-each[1], each[0])))


def _refused(quarantine: Quarantine) -> tuple[RefusedRule, ...]:
    rows: Counter[tuple[str, str]] = Counter()
    samples: dict[tuple[str, str], dict[str, None]] = {}
    for part in quarantine.parts:
        for row in quarantine.table(part, columns=[*_IDENTITY, "rule", "severity"]).to_pylist():
            key = (row["rule"], row["severity"])
            rows[key] += 1
            shown = samples.setdefault(key, {})
            if len(shown) < SAMPLES_OF_A_RULE:
                shown[" ".join(str(row[part] or "?") for part in _IDENTITY)] = None
    return tuple(
        RefusedRule(rule=rule, severity=severity, rows=rows[rule, severity], samples=tuple(samples[rule, severity]))
        for rule, severity in sorted(rows)
    )


def _failed(outbox: OutboxStore) -> tuple[ExpectationResult, ...]:
    # No verdict, no failures: the quality was not checked yet, or the report was removed.
    verdict = outbox.find_verdict()
    return verdict.failures if verdict else ()


@dataclass(frozen=True, slots=True)
class KeptTransactions:
    """Some of them, the latest first.

    Attributes:
        address: of the operational tables, without a password.
        publication: whose they are; None: of all.
        rows: the transactions.
        has_more: whether there are earlier ones that were asked for as well.
    """

    address: str
    publication: str | None
    rows: tuple[TransactionRow, ...]
    has_more: bool


def kept_transactions(publication: str | None, which: TransactionFilter, *, last: int) -> KeptTransactions:
    """The last transactions that are asked for.

    Raises:
        ConfigurationError: there is no such publication, or there are no tables.
        RetriableError: their database, or the storage, did not answer.
    """
    storage = environment.open_home()
    store = _store(storage)
    rows = store.transactions(publication, which=which, limit=last + 1) if store.is_there else []
    if not rows and publication is not None:
        _check_known(storage, publication)
    return KeptTransactions(store.address, publication, tuple(rows[:last]), len(rows) > last)


def _store(storage: Home) -> RunTables:
    found = RunTables.of_home(storage.root)
    if found is None:
        raise ConfigurationError(
            f"there are no operational tables: {storage.root} is an object store, and {DATABASE_VARIABLE} is not set",
            next_step=f"set {DATABASE_VARIABLE} as Airflow has it",
        )
    return found


def _check_known(storage: Home, publication: str) -> None:
    known = sorted({each.name for each in known_publications()} | set(environment.publications(storage)))
    if publication not in known:
        raise ConfigurationError(
            f"there is no publication {publication} in {storage.root}",
            next_step=f"choose among: {', '.join(known)}" if known else f"set {HOME_VARIABLE} as Airflow has it",
        )
