"""What people are alerted to: which kinds of alerts there are, what is safe in each, and what needs no alert."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import StrEnum
from typing import Final

from contexture.errors import ContextureError
from contexture.storage.delivery import SendAttempts

_SENDERS: Final = frozenset({"publish", "settle"})


class AlertKind(StrEnum):
    """What happened, in a word or two.

    An error says so itself: the value stands in its context as `alert`.
    """

    FORCED_STOP = "sending is stopped"
    RETRIES_USED_UP = "retries used up"
    CRITICAL_EXPECTATION = "critical expectation failed"
    SHRINK_GUARD = "too much vanished"
    QUESTION = "waiting for an answer"
    REPLICA_DIFFERS = "replica differs"
    LATE = "not published in time"
    DEAD_LETTERS = "records put aside"
    INCOMPLETE = "deletions not detected"
    TOPIC_REMOVED = "topic removed"
    OVERTAKEN = "another sender took over"
    RUN_FAILED = "run failed"

    @property
    def heals_itself(self) -> bool:
        """Whether the next run is all that is needed, so that nobody need hear of it once."""
        return self is AlertKind.OVERTAKEN

    @property
    def is_told_each_time(self) -> bool:
        """Whether a second one within the hour is another matter, however alike they are."""
        return self is AlertKind.QUESTION


_KEPT: Final = (
    "Nothing is lost: what is in Kafka stays there and is not sent twice, and what is not yet there waits in the "
    "outbox."
)
_WAITS: Final = f"{_KEPT} The next run sends it before it reads anything new, with all its attempts."
_BACKFILL_WAITS: Final = (
    f"{_KEPT} The backfill's own run alone sends it, with all its attempts, when its publish task is cleared. The "
    "other runs of the publication go on."
)
_NOTHING_WAITS: Final = (
    "Nothing waits to be sent. What earlier runs sent stays in Kafka as it is; the next run reads the source anew."
)
_SAFE: Final[Mapping[AlertKind, str]] = {
    AlertKind.FORCED_STOP: f"{_WAITS} Until then nothing after it is sent, so that the order stays right.",
    AlertKind.CRITICAL_EXPECTATION: "Nothing of this run was sent, and it never will be: the outbox is rejected. The "
    "topics hold what earlier runs sent.",
    AlertKind.SHRINK_GUARD: "Nothing was sent and nothing deleted: the topics hold what earlier runs sent, also of "
    "what is missing in the source now.",
    AlertKind.QUESTION: "Nothing of this run was sent and nothing deleted: it waits, and holds no slot. Without an "
    "answer in time it fails, and deletes nothing.",
    AlertKind.REPLICA_DIFFERS: "Verifying only reads: neither topics nor state were changed by it.",
    AlertKind.DEAD_LETTERS: "Everything else of the run was sent. What was put aside is not taken for sent nor for "
    "deleted: the topics hold what they held of it before.",
    AlertKind.INCOMPLETE: "New and changed entities are sent, and nothing is deleted by mistake. What is "
    "deleted in the source stays in the topics until a read is complete again.",
    AlertKind.TOPIC_REMOVED: "State, outboxes and archive are as they were. A full run makes the topic again and sends "
    "everything that the source holds; where this run is none, the next one is.",
    AlertKind.LATE: "Nothing is lost or skipped: the run goes on, unless somebody has suspended the publication, and "
    "what it sends arrives later than you wanted.",
}


def kind_of(error: ContextureError | None, task: str, sends: Iterable[SendAttempts] = ()) -> AlertKind:
    """Which kind of alert a failed task is.

    Args:
        error: what the task failed with, as far as it is one of ours.
        task: its id, without a shard.
        sends: what is noted of the sends of pending outboxes.
    """
    told = None if error is None else error.context.get("alert")
    if told in set(AlertKind):
        return AlertKind(str(told))
    # An error that crossed processes may have lost its class, but what became of the send is on storage.
    states = {send.state for send in sends} if task in _SENDERS else set()
    if "stopped" in states:
        return AlertKind.FORCED_STOP
    return AlertKind.RETRIES_USED_UP if "used up" in states else AlertKind.RUN_FAILED


def what_is_safe(kind: AlertKind, *, outbox_waits: bool, of_backfill: bool = False) -> str:
    """What the reader of an alert need not fear.

    Args:
        kind: what happened.
        outbox_waits: whether an approved outbox is pending.
        of_backfill: whether a backfill's run failed, which no other run helps.
    """
    if of_backfill and (kind is AlertKind.FORCED_STOP or (kind not in _SAFE and outbox_waits)):
        return _BACKFILL_WAITS
    return _SAFE.get(kind) or (_WAITS if outbox_waits else _NOTHING_WAITS)
