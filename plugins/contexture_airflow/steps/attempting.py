"""The publication's retry schedule, applied to the sends of one shard.

The number of the failed attempt and the time of the next are on storage before anything is waited for. So a killed
task, a restarted scheduler and the settle of a later run go on at the same attempt and wait only what is left.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Final, TypeVar

from contexture.errors import ConfigurationError, ContextureError, RejectedError, RetriableError
from contexture.kafka import BrokersAwayError
from contexture.monitoring.alerts import AlertKind
from contexture.publications import Publication
from contexture.sending.retry_schedule import RetrySchedule
from contexture.storage.delivery import AttemptLog, AttemptState, SendAttempts
from contexture.storage.outboxes import Outboxes, is_known_of_backfill

LONGEST_SLEEP = timedelta(seconds=60)
"""Longer waits end the process, so that they hold no worker slot."""

NEXT_RUN: Final = "start a new run, or wait for the scheduled one: it sends this outbox first"
OWN_TASK: Final = "clear the publish task of this backfill: it alone sends this outbox"

Result = TypeVar("Result")


class SendLaterError(Exception):
    """Not a failure: the next attempt is due so late that the task should give its slot back until then.

    Args:
        at: when to go on.
    """

    def __init__(self, at: datetime) -> None:
        super().__init__(f"the next attempt is due at {at:%H:%M:%SZ}")
        self.at = at


class AttemptsUsedUpError(RetriableError):
    """Every attempt that `batch_ttl` allows has failed. The outbox stays approved; the next send has a new budget."""


class ShardAttempts:
    """The attempts to send one shard.

    Args:
        log: where failed sends are noted.
        outbox: id of the outbox.
        shard: which shard.
        schedule: how many attempts, and when.
        report: gets a sentence for each failed attempt.
        noted: is told each new standing.
        then: what sends the outbox when every attempt has failed.
        longest_sleep: longer waits raise `SendLaterError` instead of being slept.
        clock, sleep: for tests.
    """

    def __init__(
        self,
        log: AttemptLog,
        outbox: str,
        shard: int,
        schedule: RetrySchedule,
        *,
        report: Callable[[str], None] = lambda sentence: None,
        noted: Callable[[SendAttempts], None] = lambda attempts: None,
        then: str = NEXT_RUN,
        longest_sleep: timedelta = LONGEST_SLEEP,
        clock: Callable[[], datetime] = lambda: datetime.now(UTC),
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._log = log
        self._outbox = outbox
        self._shard = shard
        self._schedule = schedule
        self._report = report
        self._noted = noted
        self._then = then
        self._longest_sleep = longest_sleep
        self._clock = clock
        self._sleep = sleep

    def wait_rest(self) -> None:
        """Waits until the next attempt is due, if an earlier task or run noted that one is.

        Raises:
            SendLaterError: that is long from now.
        """
        known = self._log.of_shard(self._outbox, self._shard)
        if known is None or known.state != "waiting" or known.next_at is None:
            return
        now = self._clock()
        # Never longer than was to be waited then: a clock that was ahead and is set right would hold it up till then.
        rest = min(known.next_at - now, known.next_at - known.failed_at)
        if rest > timedelta(0):
            self._report(f"shard {self._shard}: {known.told()}, as noted before; waiting the rest")
            self._later_if_long(now + rest, rest)
            self._sleep(rest.total_seconds())

    def after(self, failure: ContextureError) -> int:
        """Notes a failed attempt; milliseconds to wait before the next one.

        Raises:
            SendLaterError: the next one is due long from now.
            AttemptsUsedUpError: there is none left.
        """
        attempt = self._failed_of_budget() + 1
        delay_ms = self._schedule.delay_after(attempt)
        if delay_ms is None:
            self._note(attempt, "used up", None, failure)
            raise self._used_up(attempt, failure) from failure
        wait = timedelta(milliseconds=delay_ms)
        failed_at = self._clock()
        next_at = failed_at + wait
        self._note(attempt, "waiting", next_at, failure, failed_at)
        self._later_if_long(next_at, wait)
        return delay_ms

    def stopped(self, failure: ContextureError) -> None:
        """Notes a failure that no further attempt can heal."""
        self._note(self._failed_of_budget() + 1, "stopped", None, failure)

    def sent(self) -> None:
        """Notes that everything is in Kafka, if anything was noted before."""
        known = self._log.of_shard(self._outbox, self._shard)
        if known is not None and known.is_open:
            self._keep(known.model_copy(update={"state": "sent", "next_at": None}))

    def until_answered(self, call: Callable[[], Result]) -> Result:
        """The result of a call that needs the brokers; each time they stay away uses up an attempt."""
        while True:
            try:
                return call()
            except BrokersAwayError as failure:
                self._sleep(self.after(failure) / 1000)
            except (ConfigurationError, RejectedError) as failure:
                self.stopped(failure)
                raise

    def _failed_of_budget(self) -> int:
        known = self._log.of_shard(self._outbox, self._shard)
        return known.attempt if known is not None and known.state == "waiting" else 0

    def _note(
        self,
        attempt: int,
        state: AttemptState,
        next_at: datetime | None,
        failure: ContextureError,
        failed_at: datetime | None = None,
    ) -> None:
        known = self._log.of_shard(self._outbox, self._shard)
        standing = SendAttempts(
            outbox=self._outbox,
            shard=self._shard,
            attempt=attempt,
            allowed=self._schedule.attempts,
            state=state,
            next_at=next_at,
            failed_at=failed_at or self._clock(),
            intent=failure.intent,
            message=str(failure),
            failed=(known.failed if known else 0) + 1,
        )
        self._keep(standing)
        self._report(f"shard {self._shard}: {standing.told()}: {failure}")

    def _keep(self, standing: SendAttempts) -> None:
        self._log.keep(standing)
        self._noted(standing)

    def _later_if_long(self, at: datetime, wait: timedelta) -> None:
        if wait > self._longest_sleep:
            raise SendLaterError(at)

    def _used_up(self, attempts: int, failure: ContextureError) -> AttemptsUsedUpError:
        return AttemptsUsedUpError(
            f"batch_ttl is used up after {attempts} attempts, and outbox {self._outbox} stays approved: "
            f"{failure.message}",
            next_step=f"mend the cause and {self._then}, with all its attempts. Last cause: {failure.next_step}",
            outbox=self._outbox,
            shard=self._shard,
            alert=AlertKind.RETRIES_USED_UP,
        )


def attempts_of(
    outboxes: Outboxes,
    outbox: str,
    shard: int,
    publication: Publication,
    *,
    report: Callable[[str], None] = lambda sentence: None,
    noted: Callable[[SendAttempts], None] = lambda attempts: None,
) -> ShardAttempts:
    """The attempts of one shard by the publication's `batch_ttl` and `batch_retry_intervals`."""
    batches = publication.batches
    return ShardAttempts(
        AttemptLog(outboxes.storage, outboxes.folder.publication),
        outbox,
        shard,
        RetrySchedule(batches.batch_ttl, tuple(batches.batch_retry_intervals)),
        report=report,
        noted=noted,
        then=OWN_TASK if is_known_of_backfill(outboxes, outbox) else NEXT_RUN,
    )
