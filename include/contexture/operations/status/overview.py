"""The overview: every publication on a line, those in trouble first."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from contexture.monitoring.history import NO_DEAD_LETTERS, DeadLetterTotals, History, Volume
from contexture.monitoring.rows import RunRow, TransactionRow, VerificationRow
from contexture.operations.status.charts import Column, place_columns
from contexture.operations.status.dead_letters import dead_letter_topic
from contexture.operations.status.freshness import UNKNOWN, Freshness, assess_freshness
from contexture.operations.status.health import URGENCY, AnsweredQuestion, PublicationHealth
from contexture.operations.status.sources import Paging, PublicationFacts, Sources, collect_facts, manifests
from contexture.publications.schedule import describe_schedule
from contexture.storage.delivery import most_urgent
from contexture.storage.manifests import Manifest

BARS: Final = 20
HEIGHT: Final = 24
_LOWEST: Final = 3.0
_LATE: Final = URGENCY[PublicationHealth.INCOMPLETE] + 0.5
"""The urgency of a publication that does not keep its schedule and names no other trouble."""


def run_bars(runs: Sequence[RunRow], now: datetime) -> tuple[Column, ...]:
    """Returns the columns of runs that are given latest first; the latest is at the right.

    Heights grow with the logarithm of the time, so that a long run does not hide the others.
    """
    shown = list(reversed(runs[:BARS]))
    seconds = [duration_seconds(run, now) for run in shown]
    longest = max(map(math.log1p, seconds), default=0.0) or 1.0
    return place_columns(
        [
            (
                _LOWEST + (HEIGHT - _LOWEST) * math.log1p(took) / longest,
                run.state,
                f"{run.run_id}: {run.state}, {took:.0f} s",
            )
            for run, took in zip(shown, seconds, strict=True)
        ],
        HEIGHT,
    )


def duration_seconds(run: RunRow, now: datetime) -> float:
    """How long a run took, or has taken until now."""
    return max(0.0, ((run.ended_at or now) - run.started_at).total_seconds())


@dataclass(frozen=True, slots=True)
class PendingLine:
    """An outbox that waits.

    Attributes:
        attempts: `attempt 3 of 11, next at 12:40:05Z`; empty when no send of it has failed.
    """

    outbox: str
    sequence: int
    status: str
    attempts: str
    next_at: datetime | None
    message: str


@dataclass(frozen=True, slots=True)
class PublicationLine:
    """One publication in the overview.

    Attributes:
        is_configured: whether a good file of this name is there.
        paused: whether its DAG is suspended; None when Airflow does not know it.
        reason: why it has this state; empty when the word says it all.
        source_transaction: the registry's id of the last transaction that was sent.
        quarantined: entities or structures that the last concluded run held back; None when it is no longer kept.
        owes_full: why the next run sends everything.
        incomplete: since when and why deletions in the source are not detected, if that lasts; empty otherwise.
        today: what was sent since midnight, UTC; None while the operational tables are away.
        asked: the question that its run waits for.
        dead_letters: records that can never be sent, of all runs that are kept.
        dead_letter_topic: where it is put; None where it would stop the sending.
        schedule: when it runs, in words (UTC); empty where only people and events start it.
        freshness: how old the source is as Kafka shows it.
    """

    name: str
    description: str
    is_configured: bool
    health: PublicationHealth
    reason: str
    paused: bool | None
    next_run_at: datetime | None
    last_run: RunRow | None
    last_sent: TransactionRow | None
    source_transaction: int | None
    pending: tuple[PendingLine, ...]
    quarantined: int | None
    owes_full: str | None
    concluded_at: datetime | None
    identities: int
    watermark: str | None
    today: Volume | None
    picture: tuple[Column, ...]
    last_verification: VerificationRow | None = None
    dead_letters: DeadLetterTotals = NO_DEAD_LETTERS
    dead_letter_topic: str | None = None
    asked: AnsweredQuestion | None = None
    incomplete: str = ""
    schedule: str = ""
    freshness: Freshness = UNKNOWN


@dataclass(frozen=True, slots=True)
class TableSums:
    """By publication: what was sent today, what the last verification found, the dead letters."""

    today: Mapping[str, Volume]
    verified: Mapping[str, VerificationRow]
    dead_letters: Mapping[str, DeadLetterTotals]


@dataclass(frozen=True, slots=True)
class Overview:
    """A page of publications.

    Attributes:
        counts: how many publications have each health, over all pages.
        suspended: how many are suspended, of any health.
        bad_files: files that are no good publication, by name.
        tables_problem: why there are no operational tables, if something is wrong.
    """

    lines: tuple[PublicationLine, ...]
    paging: Paging
    counts: dict[str, int]
    suspended: int
    bad_files: tuple[str, ...]
    tables_problem: str | None


def overview(
    sources: Sources,
    *,
    page: int = 1,
    health: PublicationHealth | None = None,
    suspended: bool = False,
    bad_files: tuple[str, ...] = (),
) -> Overview:
    """Returns the publications that Airflow's DAGs name, those in trouble first.

    Those of one health if given; only those that are suspended if that is requested.

    Raises:
        RetriableError: the storage did not answer.
    """
    found = sorted(collect_facts(sources, sources.dags), key=lambda each: _urgency(sources, each))
    wanted = [each for each in found if health in {None, each.judged.health}]
    shown = [each for each in wanted if not suspended or _is_suspended(each)]
    paging = Paging.of(page, len(shown))
    on_page = shown[paging.offset : paging.end]
    last = manifests(sources.home, on_page)
    with sources.tables.one_connection():
        sums = sums_of(sources, [each.name for each in on_page])
        lines = tuple(line(sources, each, concluded, sums) for each, concluded in zip(on_page, last, strict=True))
    counts = Counter(each.judged.health.value for each in found)
    return Overview(lines, paging, dict(counts), sum(map(_is_suspended, found)), bad_files, sources.tables.problem)


def sums_of(sources: Sources, names: Sequence[str]) -> TableSums:
    """What the tables say of these publications at once; nothing where they do not answer."""
    midnight = sources.now.replace(hour=0, minute=0, second=0, microsecond=0)

    def asked(history: History) -> TableSums:
        return TableSums(
            history.sent_since(midnight, names), history.last_verifications(names), history.dead_letters_of(names)
        )

    return sources.tables.ask(asked, TableSums({}, {}, {}))


def line(sources: Sources, found: PublicationFacts, last: Manifest | None, sums: TableSums) -> PublicationLine:
    """Everything the overview says about one publication; `last` is the manifest of what it concluded last."""
    name, pointer = found.name, found.stored.pointer
    configured = sources.publications.get(name)
    runs = sources.tables.ask(lambda history: history.runs(name, limit=BARS), ())
    sent = sources.tables.ask(lambda history: history.last_sent(name), None)
    return PublicationLine(
        name=name,
        description=configured.description if configured else "",
        is_configured=configured is not None,
        health=found.judged.health,
        reason=found.judged.reason,
        paused=found.dag.paused if found.dag else None,
        next_run_at=found.dag.next_run_at if found.dag and configured and not found.dag.paused else None,
        last_run=found.latest,
        last_sent=sent,
        source_transaction=sent.source_transaction if sent else None,
        pending=_pending(found),
        quarantined=last.quarantined_entities if last else None,
        owes_full=pointer.full_run_due,
        concluded_at=pointer.concluded_at,
        identities=pointer.identities,
        watermark=pointer.watermark,
        today=None if sources.tables.problem else sums.today.get(name, Volume()),
        picture=run_bars(runs, sources.now),
        last_verification=sums.verified.get(name),
        dead_letters=sums.dead_letters.get(name, NO_DEAD_LETTERS),
        dead_letter_topic=dead_letter_topic(sources, name),
        asked=found.asked,
        incomplete=pointer.incomplete.sentence if pointer.incomplete and pointer.incomplete.is_lasting else "",
        schedule=describe_schedule(configured.schedule) if configured and configured.schedule else "",
        freshness=_freshness(sources, found, (last.received_to if last else None) or pointer.concluded_at),
    )


def _urgency(sources: Sources, found: PublicationFacts) -> tuple[float, float, str]:
    """Returns the place in the overview: by health, where a publication that is late comes before all that are well."""
    freshness = _freshness(sources, found, found.stored.pointer.concluded_at)
    urgency = URGENCY[found.judged.health]
    return min(urgency, _LATE) if freshness.is_late else urgency, -freshness.late_seconds, found.name


def _freshness(sources: Sources, found: PublicationFacts, until: datetime | None) -> Freshness:
    configured = sources.publications.get(found.name)
    return assess_freshness(
        until, configured.schedule if configured and not _is_suspended(found) else None, sources.now
    )


def _is_suspended(found: PublicationFacts) -> bool:
    return found.dag is not None and found.dag.paused


def _pending(found: PublicationFacts) -> tuple[PendingLine, ...]:
    lines = []
    for each in found.stored.pending:
        urgent = most_urgent(each.sends)
        lines.append(
            PendingLine(
                outbox=each.outbox,
                sequence=each.sequence,
                status=each.status,
                attempts=f"shard {urgent.shard}: {urgent.describe()}" if urgent else "",
                next_at=urgent.next_at if urgent else None,
                message=urgent.message if urgent else "",
            )
        )
    return tuple(lines)
