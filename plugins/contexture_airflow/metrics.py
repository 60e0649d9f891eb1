"""What Contexture counts, through Airflow's own metrics: StatsD, Datadog or OpenTelemetry, as Airflow is set.

Each metric carries the tag `publication`. With plain StatsD, which knows no tags, publications are added up, unless
`[metrics] statsd_influxdb_enabled` is set. Counting never fails a task.
"""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final, Literal

if TYPE_CHECKING:
    from contexture.operations.verification.result import VerificationResult
    from contexture.sending import ShardResult
    from contexture.storage.delivery import SendAttempts
    from contexture.storage.manifests import Manifest

log = logging.getLogger(__name__)

Kind = Literal["counter", "gauge", "timer"]


@dataclass(frozen=True, slots=True)
class Metric:
    """One metric; Airflow puts its own prefix before the name."""

    name: str
    kind: Kind
    meaning: str
    tags: tuple[str, ...] = ()


RECORDS_SENT: Final = Metric("contexture.records_sent", "counter", "records of committed transactions")
BYTES_SENT: Final = Metric("contexture.bytes_sent", "counter", "their keys and values in bytes, before compression")
TRANSACTIONS_SENT: Final = Metric("contexture.transactions_sent", "counter", "committed transactions")
SEND_DURATION: Final = Metric("contexture.send_duration", "timer", "milliseconds that sending one shard took")
SEND_FAILURES: Final = Metric("contexture.send_failures", "counter", "failed sends of a shard; most are retried")
READ: Final = Metric("contexture.read", "counter", "entities or structures that a concluded run read")
QUARANTINED: Final = Metric("contexture.quarantined", "counter", "those of them that a rule quarantined")
UPSERTS: Final = Metric("contexture.upserts", "counter", "events of a concluded run with something new")
DELETES: Final = Metric("contexture.deletes", "counter", "events of a concluded run with a deletion")
DEAD_LETTERS: Final = Metric(
    "contexture.dead_letters", "counter", "records of a concluded run that went to the dead-letter topic"
)
RUNS_CONCLUDED: Final = Metric("contexture.runs_concluded", "counter", "concluded runs", ("mode",))
RUN_LAG: Final = Metric(
    "contexture.run_lag_seconds", "gauge", "from the arrival of the first event of a run to the run's conclusion"
)
PENDING_OUTBOXES: Final = Metric("contexture.pending_outboxes", "gauge", "outboxes that wait when a run begins")
REPLICA_DIFFERENCES: Final = Metric(
    "contexture.replica_differences", "gauge", "differences that the last verification found", ("kind",)
)
VERIFICATION_DURATION: Final = Metric(
    "contexture.verification_duration", "timer", "milliseconds that a verification took"
)

METRICS: Final = (
    RECORDS_SENT,
    BYTES_SENT,
    TRANSACTIONS_SENT,
    SEND_DURATION,
    SEND_FAILURES,
    READ,
    QUARANTINED,
    UPSERTS,
    DELETES,
    DEAD_LETTERS,
    RUNS_CONCLUDED,
    RUN_LAG,
    PENDING_OUTBOXES,
    REPLICA_DIFFERENCES,
    VERIFICATION_DURATION,
)
"""All there are; `docs/reference/metrics.md` lists them."""


def count_sent(publication: str, result: ShardResult) -> None:
    """A shard was sent, as far as this task did it."""
    _count(RECORDS_SENT, result.records_sent, publication)
    _count(BYTES_SENT, result.bytes, publication)
    _count(TRANSACTIONS_SENT, result.transactions, publication)
    _time(SEND_DURATION, result.seconds, publication)


def count_failure(publication: str, attempts: SendAttempts) -> None:
    """A send has failed; that it was sent in the end is none."""
    if attempts.state != "sent":
        _count(SEND_FAILURES, 1, publication)


def count_pending(publication: str, outboxes: int) -> None:
    """So many outboxes wait when a run begins."""
    _show(PENDING_OUTBOXES, outboxes, publication)


def count_concluded(manifest: Manifest, now: datetime, dead_letters: int = 0) -> None:
    """A run was concluded."""
    name = manifest.publication
    _count(READ, manifest.read, name)
    _count(QUARANTINED, manifest.quarantined_entities, name)
    _count(UPSERTS, manifest.upserts, name)
    _count(DELETES, manifest.deletes, name)
    _count(DEAD_LETTERS, dead_letters, name)
    _count(RUNS_CONCLUDED, 1, name, mode=manifest.mode)
    if manifest.received_from is not None and manifest.mode != "backfill":
        _show(RUN_LAG, max(0.0, (now - manifest.received_from).total_seconds()), name)


def count_verified(found: VerificationResult) -> None:
    """Topics were verified."""
    for kind, differences in found.differences.items():
        _show(REPLICA_DIFFERENCES, differences, found.publication, kind=kind)
    _time(VERIFICATION_DURATION, found.seconds, found.publication)


def _count(metric: Metric, amount: int, publication: str, **tags: str) -> None:
    _emit(metric, lambda stats, given: stats.incr(metric.name, amount, tags=given), publication, tags)


def _show(metric: Metric, value: float, publication: str, **tags: str) -> None:
    _emit(metric, lambda stats, given: stats.gauge(metric.name, value, tags=given), publication, tags)


def _time(metric: Metric, seconds: float, publication: str) -> None:
    _emit(metric, lambda stats, given: stats.timing(metric.name, seconds * 1000, tags=given), publication, {})


def _emit(
    metric: Metric, call: Callable[[Any, dict[str, str]], object], publication: str, tags: Mapping[str, str]
) -> None:
    # The steps run without Airflow too, and then no metrics are collected.
    if "airflow.sdk" not in sys.modules:
        return
    try:
        from airflow.sdk.observability import stats

        call(stats, {"publication": publication, **tags})
    except Exception:
        # The work that is counted is done, and must not be repeated because counting failed.
        log.warning("The metric %s could not be recorded", metric.name, exc_info=True)
