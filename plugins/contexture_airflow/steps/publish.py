"""Publishing the shards of an approved outbox, with its attempts, and the ledger that proves it.

The number of the failed attempt and the time of the next are on storage before anything is waited for. So a killed
task, a restarted scheduler and the settle of a later run go on at the same attempt and wait only what is left.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Final, TypeVar

from contexture.errors import ConfigurationError, ContextureError, RejectedError, RetriableError
from contexture.kafka import BrokersAwayError, FencedError, SequenceTakenError
from contexture.kafka.errors import KafkaConfigurationError
from contexture.monitoring.alerts import AlertKind
from contexture.publications import Publication
from contexture.sending import LedgerEntry, ShardResult
from contexture.sending.resume import ExpectedRow, ledger_lost
from contexture.sending.target import SendRequest, Target
from contexture.storage.delivery import (
    AttemptLog,
    AttemptState,
    KnownLedger,
    RetrySchedule,
    SendAttempts,
    ShardBegun,
    ShardRecord,
)
from contexture.storage.manifests import Manifest
from contexture.storage.outboxes import Status
from contexture.storage.publication_store import PublicationStore
from contexture_airflow.run_events import UNRECORDED, ShardEvents

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
        on_change: called with each new state.
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
        on_change: Callable[[SendAttempts], None] = lambda attempts: None,
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
        self._on_change = on_change
        self._then = then
        self._longest_sleep = longest_sleep
        self._clock = clock
        self._sleep = sleep

    def wait_until_due(self) -> None:
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
            self._report(f"shard {self._shard}: {known.describe()}, as recorded before; waiting for the rest")
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
            self._note(attempt, "exhausted", None, failure)
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

    def retry_until_answered(self, call: Callable[[], Result]) -> Result:
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
        attempts = SendAttempts(
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
        self._keep(attempts)
        self._report(f"shard {self._shard}: {attempts.describe()}: {failure}")

    def _keep(self, attempts: SendAttempts) -> None:
        self._log.keep(attempts)
        self._on_change(attempts)

    def _later_if_long(self, at: datetime, wait: timedelta) -> None:
        if wait > self._longest_sleep:
            raise SendLaterError(at)

    def _used_up(self, attempts: int, failure: ContextureError) -> AttemptsUsedUpError:
        return AttemptsUsedUpError(
            f"batch_ttl is used up after {attempts} attempts, and outbox {self._outbox} stays approved: "
            f"{failure.message}",
            next_step=(
                f"fix the cause and {self._then}, with all its attempts available again. Last cause: "
                f"{failure.next_step}"
            ),
            outbox=self._outbox,
            shard=self._shard,
            alert=AlertKind.RETRIES_USED_UP,
        )


def build_shard_attempts(
    store: PublicationStore,
    outbox: str,
    shard: int,
    publication: Publication,
    *,
    report: Callable[[str], None] = lambda sentence: None,
    on_change: Callable[[SendAttempts], None] = lambda attempts: None,
) -> ShardAttempts:
    """The attempts of one shard by the publication's `batch_ttl` and `batch_retry_intervals`."""
    batches = publication.batches
    return ShardAttempts(
        store.attempts,
        outbox,
        shard,
        RetrySchedule(batches.batch_ttl, tuple(batches.batch_retry_intervals)),
        report=report,
        on_change=on_change,
        then=OWN_TASK if store.outboxes.is_known_of_backfill(outbox) else NEXT_RUN,
    )


_LOG: Final = logging.getLogger(__name__)
_COMPACTED: Final = "compact"


def check_ledger(store: PublicationStore, target: Target) -> None:
    """Sees that nothing of the ledger is lost or will be, before a run sends anything.

    Raises:
        LedgerLostError: the topic is not there, is another one, or holds no row of a shard that was sent.
        KafkaConfigurationError: its `cleanup.policy` removes rows.
    """
    seen = _seen_on(store, target)
    if seen is None:
        return
    # Before the ledger is read: a sender that is at work may commit meanwhile.
    committed = store.ledger.committed_shards(seen.topic_id)
    status = target.ledger_status()
    _check_topic(target, seen, status.topic_id)
    missing = sorted(committed - status.shards)
    if missing:
        which = f"shard {missing[0]}" if len(missing) == 1 else f"{len(missing)} shards, the first is {missing[0]}"
        raise ledger_lost(target.names(), f"holds nothing of {which} any more")
    _check_policy(target, status.policy)


def expect_ledger(store: PublicationStore, manifest: Manifest, target: Target) -> None:
    """Before something is sent: the ledger is the known one; the first time, it is made and noted.

    That of backfills may be made again at any time: their shards are watched by their rows alone.

    Raises:
        LedgerLostError: the topic is not there, or is another one.
        KafkaConfigurationError: its `cleanup.policy` removes rows.
    """
    if manifest.interval is None:
        seen = _seen_on(store, target)
        if seen is not None:
            _check_topic(target, seen, target.ledger_id())
        else:
            _note_first(store, manifest, target)
    _check_policy(target, target.ledger_policy())


@dataclass(slots=True)
class ShardRow:
    """What is known of the ledger's row of one shard, kept on storage from the shard's first commit on.

    Attributes:
        record: its document.
        topic_id: of the ledger; empty for a backfill.
        begun: what the document says; None when there is none, or of another ledger.
    """

    record: ShardRecord
    topic_id: str
    begun: ShardBegun | None = field(init=False)

    def __post_init__(self) -> None:
        found = self.record.read()
        self.begun = found if found is not None and found.topic_id == self.topic_id else None

    @property
    def expected(self) -> ExpectedRow:
        """What a sender has to find."""
        if self.begun is None:
            return ExpectedRow.NONE
        return ExpectedRow.CERTAIN if self.begun.committed else ExpectedRow.POSSIBLE

    def begin(self) -> None:
        """Keeps that a sender begins: it may be killed between its first commit and the note of it."""
        if self.begun is None:
            self._note(ShardBegun(topic_id=self.topic_id))

    def noting(self, committed: Callable[[LedgerEntry], None]) -> Callable[[LedgerEntry], None]:
        """Also keeps the first commit; one that storage does not take is kept with the next."""

        def note(entry: LedgerEntry) -> None:
            if self.begun is None or not self.begun.committed:
                try:
                    self._note(ShardBegun(topic_id=self.topic_id, committed=True))
                except ContextureError as failure:
                    _LOG.warning("the first commit of a shard could not be kept on storage: %s", failure)
            committed(entry)

        return note

    def _note(self, begun: ShardBegun) -> None:
        self.record.write(begun)
        self.begun = begun


def shard_row(store: PublicationStore, manifest: Manifest, shard: int) -> ShardRow:
    """What is known of a shard's row; call it after `expect_ledger`."""
    if manifest.interval is not None:
        return ShardRow(store.ledger.backfilled_shard(manifest.outbox, shard), "")
    seen = store.ledger.known()
    return ShardRow(store.ledger.shard(shard), "" if seen is None else seen.topic_id)


def _note_first(store: PublicationStore, manifest: Manifest, target: Target) -> None:
    target.prepare_ledger(len(manifest.shards))
    topic_id = target.ledger_id()
    if topic_id is not None:
        store.ledger.write_known(KnownLedger(cluster=target.cluster(), topic_id=topic_id))


def _seen_on(store: PublicationStore, target: Target) -> KnownLedger | None:
    """What is known of the ledger on this cluster: another one has a ledger of its own."""
    seen = store.ledger.known()
    return seen if seen is not None and seen.cluster == target.cluster() else None


def _check_topic(target: Target, seen: KnownLedger, topic_id: str | None) -> None:
    if topic_id is None:
        raise ledger_lost(target.names(), "does not exist any more")
    if topic_id != seen.topic_id:
        raise ledger_lost(target.names(), "was deleted and created again")


def _check_policy(target: Target, policy: str | None) -> None:
    if policy is None or policy == _COMPACTED:
        return
    topic = target.names().ledger_topic
    raise KafkaConfigurationError(
        f"the ledger {topic} has cleanup.policy={policy}: Kafka will delete rows that record what was sent, and it "
        "would be sent twice",
        next_step=f"kafka-configs --alter --entity-type topics --entity-name {topic} --add-config "
        f"cleanup.policy={_COMPACTED}, then clear the task: it reports whether rows are lost",
        topic=topic,
    )


def send_shard(
    store: PublicationStore,
    manifest: Manifest,
    shard: int,
    target: Target,
    attempts: ShardAttempts,
    shard_events: ShardEvents | None = None,
) -> ShardResult:
    """Sends what is not yet sent of one shard, by the attempts it has; of a concluded outbox that is nothing.

    Raises:
        ConfigurationError: the outbox is not approved, or has changes to what another Kafka cluster holds.
        SendLaterError: the next attempt is due long from now.
        AttemptsUsedUpError: no attempt is left; the outbox stays as it is.
        ContextureError: as `contexture.sending.Publisher.publish`.
    """
    status, reader = _checked_status(store, manifest), store.reader(manifest, shard)
    if status == "concluded":
        # All of it was seen in Kafka then; a task that is cleared later needs no ledger for that, which may be lost.
        return ShardResult(shard, manifest.outbox, 0, reader.records, 0, 0, 0.0, superseded=False)
    attempts.wait_until_due()
    shard_events = shard_events or UNRECORDED.shard(manifest, shard)
    shard_events.started()
    _expect_ledger(store, manifest, target, attempts, shard_events)
    row = shard_row(store, manifest, shard)
    expected = row.expected
    row.begin()
    sending = SendRequest(
        reader,
        shards=len(manifest.shards),
        after_failure=attempts.after,
        committed=row.noting(shard_events.committed),
        skipped=shard_events.skipped,
        bytes=reader.bytes,
        row=expected,
    )
    with _record_failure(attempts, shard_events):
        result = target.send(sending)
    attempts.sent()
    shard_events.sent(result)
    return result


def _expect_ledger(
    store: PublicationStore, manifest: Manifest, target: Target, attempts: ShardAttempts, shard_events: ShardEvents
) -> None:
    def check() -> None:
        check_cluster(store, manifest, target)
        expect_ledger(store, manifest, target)

    try:
        attempts.retry_until_answered(check)
    except ContextureError as failure:
        shard_events.failed(failure)
        raise


def was_made_for_other_cluster(store: PublicationStore, manifest: Manifest, target: Target) -> bool:
    """Whether an outbox has changes to what another Kafka cluster holds; a backfill never has."""
    if manifest.mode == "backfill":
        return False
    decided_for = store.run(manifest.run).order().cluster
    known = decided_for or store.state.pointer().cluster
    return known is not None and known != target.cluster()


def check_cluster(store: PublicationStore, manifest: Manifest, target: Target) -> None:
    """Sees that an outbox goes where it was made for: on another cluster it would look complete and not be.

    Raises:
        ConfigurationError: the connection names another Kafka cluster now.
    """
    if was_made_for_other_cluster(store, manifest, target):
        raise ConfigurationError(
            f"outbox {manifest.outbox} was made for another Kafka cluster than the connection names now, which may "
            "lack earlier records",
            next_step="start a new run: it abandons this outbox and sends everything; or enter that cluster in the "
            "connection again and clear the task",
            outbox=manifest.outbox,
        )


def _checked_status(store: PublicationStore, manifest: Manifest) -> Status:
    status = store.outboxes.status(manifest.outbox).status
    if status not in {"approved", "concluded"}:
        raise ConfigurationError(
            f"outbox {manifest.outbox} is {status}, and only an approved one is sent",
            next_step="start a new run of the publication",
            outbox=manifest.outbox,
        )
    return status


@contextmanager
def _record_failure(attempts: ShardAttempts, shard_events: ShardEvents) -> Iterator[None]:
    try:
        yield
    except (FencedError, SequenceTakenError):
        # Another sender is at it, and what is noted of the shard is its to note.
        raise
    except (ConfigurationError, RejectedError) as failure:
        attempts.stopped(failure)
        shard_events.failed(failure)
        raise
    except RetriableError as failure:
        shard_events.failed(failure)
        raise
