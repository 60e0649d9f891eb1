"""The rows of the operational tables."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import IntEnum
from typing import Any, Final, Literal

from contexture.errors import ConfigurationError, ContextureError, RejectedError, RetriableError


class TransactionStatus(IntEnum):
    """The status of one Kafka transaction."""

    PENDING = 0
    """Not yet sent."""
    SENT = 1
    """The brokers acknowledged its commit."""
    LOCAL_FAILURE = 2
    """Failed before it left: typically a check against the connection's settings."""
    BROKER_ERROR = 3
    """The brokers refused it, or did not respond."""
    UNEXPECTED = 4
    """Anything else."""

    @classmethod
    def of(cls, error: BaseException) -> TransactionStatus:
        """Returns the status of a transaction that failed with this error."""
        if not isinstance(error, ContextureError):
            return cls.UNEXPECTED
        status = error.context.get("status")
        if status in {cls.LOCAL_FAILURE, cls.BROKER_ERROR}:
            return cls(int(str(status)))
        if isinstance(error, RejectedError):
            return cls.LOCAL_FAILURE
        return cls.BROKER_ERROR if isinstance(error, RetriableError | ConfigurationError) else cls.UNEXPECTED


BACKFILL: Final = "backfill"
"""The mode of a run that sends the past again."""

BACKFILL_RUN: Final = "backfill__"
"""The beginning of the names that Airflow gives to such runs."""

RunState = Literal["running", "succeeded", "failed"]


@dataclass(frozen=True, slots=True)
class RunRow:
    """One run of a publication.

    Attributes:
        run: folder name of the run's files.
        run_id: Airflow's.
        state: `running` until a task ends the run; it stays `running` if the scheduler dies.
        failed_task: which task failed.
        message: why, in one sentence; never data, never a secret. Of a run that succeeded: why nothing was concluded.
    """

    publication: str
    run: str
    run_id: str
    mode: str | None
    sequence: int | None
    outbox: str | None
    state: RunState
    failed_task: str | None
    message: str | None
    started_at: datetime
    ended_at: datetime | None

    @property
    def is_backfill(self) -> bool:
        """Whether it sends the past again; a run that failed before it was planned has no mode, only the name."""
        return self.mode == BACKFILL or self.run_id.startswith(BACKFILL_RUN)


@dataclass(frozen=True, slots=True)
class TransactionRow:
    """One Kafka transaction of an outbox's shard.

    Attributes:
        number: of the transaction in its shard, from 0.
        bytes: of keys and values, before compression.
        position: how many records of the shard are committed with it.
        source_transaction: the registry's own, if it has one.
        source_deletions: whether it contains the deletions of that, which follow its additions and modifications.
        dead_letters: how many of its records can never be sent, and went to the dead-letter topic with it.
    """

    publication: str
    outbox: str
    shard: int
    number: int
    status: TransactionStatus
    records: int
    bytes: int
    position: int
    source_transaction: int | None
    message: str | None
    updated_at: datetime
    source_deletions: bool = False
    dead_letters: int = 0


@dataclass(frozen=True, slots=True)
class AttemptRow:
    """One failed send of a shard; the fields of `contexture.storage.delivery.SendAttempts`."""

    publication: str
    outbox: str
    shard: int
    attempt: int
    allowed: int | None
    state: str
    intent: str
    message: str
    failed: int
    failed_at: datetime
    next_at: datetime | None


@dataclass(frozen=True, slots=True)
class VerificationRow:
    """The result of one verification of a publication's topics.

    Attributes:
        equal: whether nothing differs.
        summary: the outcome in one clause; never data.
        sequence: of the run whose state was compared.
        expected: how many keys or records the topics should hold.
        records: how many were read.
        missing, extra, different, misordered: how many differ, and how.
        report: path of the page below CONTEXTURE_HOME.
    """

    publication: str
    verified_at: datetime
    equal: bool
    summary: str
    sequence: int
    expected: int
    records: int
    missing: int
    extra: int
    different: int
    misordered: int
    seconds: float
    report: str


@dataclass(frozen=True, slots=True)
class InterventionRow:
    """An action of a person on a publication.

    Attributes:
        id: of the row; unique.
        who: the user's name, as Airflow knows it.
        action: in a few words.
        subject: the outbox or connection that it was about; empty where it was the publication.
        outcome: the result, in one sentence.
        run_id: the Airflow run that it started.
    """

    id: str
    publication: str
    at: datetime
    who: str
    action: str
    subject: str
    reason: str
    outcome: str
    run_id: str | None


@dataclass(frozen=True, slots=True)
class Sums:
    """The sums over a publication's transactions.

    Attributes:
        by_status: how many transactions have each status.
        records, bytes: of those that were sent.
        last_sent: the last one that was sent.
    """

    by_status: dict[TransactionStatus, int]
    records: int
    bytes: int
    last_sent: TransactionRow | None


def milliseconds(at: datetime) -> int:
    """Returns the Unix milliseconds of a time."""
    return round(at.timestamp() * 1000)


def moment(given: int | None) -> datetime | None:
    """Returns the time of Unix milliseconds, UTC."""
    return None if given is None else datetime.fromtimestamp(given / 1000, UTC)


def as_run(row: Mapping[Any, Any]) -> RunRow:
    """Returns the run of a row of its table."""
    values = dict(row)
    return RunRow(started_at=_pop(values, "started_ms"), ended_at=moment(values.pop("ended_ms")), **values)


def as_transaction(row: Mapping[Any, Any]) -> TransactionRow:
    """Returns the transaction of a row of its table."""
    values = dict(row)
    status = TransactionStatus(values.pop("status"))
    # Both columns may be null.
    deletions, dead_letters = bool(values.pop("source_deletions")), int(values.pop("dead_letters") or 0)
    return TransactionRow(
        status=status,
        updated_at=_pop(values, "updated_ms"),
        source_deletions=deletions,
        dead_letters=dead_letters,
        **values,
    )


def as_attempt(row: Mapping[Any, Any]) -> AttemptRow:
    """Returns the failed send of a row of its table."""
    values = dict(row)
    return AttemptRow(failed_at=_pop(values, "failed_ms"), next_at=moment(values.pop("next_ms")), **values)


def as_verification(row: Mapping[Any, Any]) -> VerificationRow:
    """Returns the verification of a row of its table."""
    values = dict(row)
    return VerificationRow(verified_at=_pop(values, "verified_ms"), equal=bool(values.pop("equal")), **values)


def as_intervention(row: Mapping[Any, Any]) -> InterventionRow:
    """Returns the action of a row of its table."""
    values = dict(row)
    return InterventionRow(at=_pop(values, "at_ms"), **values)


def _pop(values: dict[str, Any], column: str) -> datetime:
    found = moment(values.pop(column))
    assert found is not None
    return found
